"""Velocities at the start in world axes: those of `mbs.velocities`, in files and in Python."""

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.io import InputError
from jaxmbs.study import Study, read, save

TURN = np.array([0.5, 0.1, -0.7, 0.4])  # an attitude that is no simple one, of any length


def satellite():
    """A bus that flies, whose joint is beside its origin, with a panel on a hinge and an antenna that slides on it."""
    mech = mbs.Mechanism("satellite")
    for name in ("bus", "panel", "antenna"):
        mech.add_body(name, mass=1.0, com=(0.1, 0.2, 0.0), inertia=(1.0, 1.2, 1.5))
    mech.add_joint("flight", mbs.Free(), "world", "bus", child_pose=mbs.Pose((0.3, 0.0, 0.1), (0.8, 0.6, 0, 0)))
    mech.add_joint("hinge", mbs.Revolute((0, 0, 1)), "bus", "panel", parent_pose=mbs.Pose((1.0, 0, 0)))
    mech.add_joint("slide", mbs.Prismatic((0.6, 0.8, 0)), "panel", "antenna")
    return mech.build()


POSITIONS = {"flight": [1.0, 2.0, 3.0, *TURN], "hinge": [0.4], "slide": [0.2]}
SPIN, SPEED = [0.1, -0.2, 0.3], [1.0, 2.0, -0.5]


def started(model, **given):
    tables = {joint: {"q": q} for joint, q in POSITIONS.items()}
    for joint, more in given.items():
        tables[joint] |= more
    return Study(model=model, initial=tables)


def test_a_body_that_flies_moves_as_in_python():
    model = satellite()
    study = started(model, flight={"world_velocity": {"angular": SPIN, "linear": SPEED}})
    want = mbs.velocities(model, study.q0, {"bus": [*SPIN, *SPEED]})
    np.testing.assert_allclose(study.v0, want, atol=1e-14)
    assert study.v0[6:].tolist() == [0.0, 0.0]
    drift = started(model, flight={"world_velocity": {"linear": SPEED}})
    moving = mbs.body_velocities(model, drift.q0, drift.v0)
    np.testing.assert_allclose(moving, np.tile([0, 0, 0, *SPEED], (3, 1)), atol=1e-14)


def test_the_rates_of_other_joints_are_kept():
    """Those before it in the tree move its child, and are therefore part of the given motion."""
    model = satellite()
    rates = started(model, flight={"world_velocity": {"angular": SPIN, "linear": SPEED}}, hinge={"v": [0.7]})
    assert rates.v0[6:].tolist() == [0.7, 0.0]
    moving = np.asarray(mbs.body_velocities(model, rates.q0, rates.v0))
    np.testing.assert_allclose(moving[0], [*SPIN, *SPEED], atol=1e-14)
    panel = {"angular": moving[1, :3].tolist(), "linear": moving[1, 3:].tolist()}
    both = started(
        model, hinge={"world_velocity": panel}, flight={"world_velocity": {"angular": SPIN, "linear": SPEED}}
    )
    np.testing.assert_allclose(both.v0, rates.v0, atol=1e-13)


def test_a_file_comes_back(tmp_path):
    model = satellite()
    made = started(model, flight={"world_velocity": {"angular": SPIN, "linear": SPEED}})
    (tmp_path / "one.toml").write_bytes(made.content)
    assert b"world_velocity" in made.content
    study = read(tmp_path / "one.toml", need="mechanism")
    assert study == made and study.v0.tobytes() == made.v0.tobytes()
    again = save(model, tmp_path / "two.toml", q0=study.q0, v0=study.v0)
    assert again.v0.tobytes() == study.v0.tobytes()


@pytest.mark.parametrize(
    ("joint", "given", "said"),
    [
        (
            "flight",
            {"v": [0.0] * 6, "world_velocity": {}},
            "initial.flight.world_velocity: v says the same .* leave one",
        ),
        (
            "hinge",
            {"world_velocity": {"linear": [0.0, 0.0, 1.0]}},
            "hinge.world_velocity: .* differs by 1; give v: ",
        ),
        (
            "hinge",
            {"world_velocity": {"angular": 1.0}},
            "initial.hinge.world_velocity.angular: needs a list of 3 numbers",
        ),
        ("hinge", {"world_velocity": {"linar": SPEED}}, 'initial.hinge.world_velocity.linar: .* did you mean "linear"'),
        ("flight", {"world_velocity": SPEED}, "initial.flight.world_velocity: needs a table, got"),
    ],
)
def test_what_cannot_be(joint, given, said):
    with pytest.raises(InputError, match=said):
        started(satellite(), **{joint: given})
