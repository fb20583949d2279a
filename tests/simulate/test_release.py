"""Joints that let go: hinges and guides that hold a free body until an event."""

import numpy as np
import pytest

import jaxmbs as mbs
from tests.cases import relative

AXIS = np.array([0.2, 1.0, -0.3]) / np.linalg.norm([0.2, 1.0, -0.3])
POSES = mbs.Pose((0.1, 0.2, 0.3), (0.9, 0.1, -0.3, 0.2)), mbs.Pose((-0.2, 0.1, 0.4), (0.3, 0.5, 0.2, -0.7))


def swinging(joint, releasable, events=()):
    mech = mbs.Mechanism("swing", gravity=(0.3, -0.2, -9.81))
    mech.add_body("bob", mass=2.0, com=(0.1, 0.0, -0.5), inertia=(0.1, 0.2, 0.15))
    mech.add_joint("hinge", joint, "world", "bob", *POSES, releasable=releasable)
    for name, when, then in events:
        mech.add_event(name, when=when, then=then)
    return mech.build()


JOINTS = {
    "revolute": (mbs.Revolute(AXIS), [0.7]),
    "prismatic": (mbs.Prismatic(AXIS), [0.7]),
    "cylindrical": (mbs.Cylindrical(AXIS), [0.7, -0.4]),
    "spherical": (mbs.Spherical(), [0.3, 0.2, -0.5]),
    "planar": (mbs.Planar(), [0.3, -0.2, 0.6]),
    "fixed": (mbs.Fixed(), []),
}


@pytest.mark.parametrize("name", JOINTS)
@pytest.mark.usually("revolute", "spherical", "fixed")
def test_until_its_release_a_joint_is_what_it_was(name):
    """The body moves as on the joint itself, from rest where both joint frames are one."""
    joint, _ = JOINTS[name]
    plain, held = swinging(joint, False), swinging(joint, True)
    run, same = (mbs.simulate(m, m.neutral(), np.zeros(m.nv), 0.5, 2e-3, save_every=125) for m in (plain, held))
    for q, p in zip(run.q, same.q, strict=True):
        pose, twin = mbs.body_poses(plain, q), mbs.body_poses(held, p)
        assert relative(twin.position, pose.position) < 1e-9 and relative(twin.rotation, pose.rotation) < 1e-9
    assert same.mode.force.shape == (0,) and same.mode.lock.tolist() == list(held.structure.links[0].locked)
    assert same.status == mbs.Status.OK and np.abs(same.energy_error).max() < 1e-9


@pytest.mark.slow
def test_a_hinge_lets_go_at_an_angle():
    """Then the body flies: its centre of mass on a parabola, its angular momentum constant."""
    release = ("release", mbs.JointReaches("hinge", 0.4), mbs.Release("hinge"))
    model = swinging(mbs.Revolute(AXIS), True, [release])
    run = mbs.simulate(model, model.neutral(), np.zeros(6), 1.0, 1e-3)
    t = float(run.events.time[0])
    assert 0.05 < t < 0.9 and run.events.index.tolist() == [0] and not run.mode.lock.any()
    hinged = swinging(mbs.Revolute(AXIS), False)
    before = mbs.simulate(hinged, [0.0], [0.0], t, 1e-3, save_every=None)
    assert abs(abs(float(before.q[-1, 0])) - 0.4) < 1e-9  # the sense in which it swings is not told
    first, last = (int(np.searchsorted(run.t, x)) for x in (t, 1.0))

    def moved(k):
        angular, linear = mbs.momentum(model, run.q[k], run.v[k])
        pose = mbs.body_poses(model, run.q[k])
        return angular, linear, pose.rotation[0] @ np.array([0.1, 0.0, -0.5]) + pose.position[0]

    (L0, p0, x0), (L1, p1, x1) = moved(first), moved(last)
    dt, g = float(run.t[last] - run.t[first]), np.array([0.3, -0.2, -9.81])
    assert relative(L1, L0) < 1e-9 and relative(p1, p0 + 2.0 * g * dt) < 1e-9
    assert relative(x1, x0 + p0 / 2.0 * dt + g * dt**2 / 2) < 1e-9


def test_a_spring_plate_beside_the_centre_of_mass_tips_off_at_the_end_of_the_rail():
    """The rail takes the moment while it guides; behind its end the push goes on for 20 mm and turns the body."""
    mass, lever, k, preload, rail, stroke = 12.0, 0.01, 900.0, 200.0, 0.2, 0.22
    mech = mbs.Mechanism("dispenser")
    mech.add_body("satellite", mass=mass, inertia=(0.1, 0.12, 0.12))
    mech.add_joint("rail", mbs.Prismatic((1, 0, 0)), "world", "satellite", releasable=True)
    mech.add_force(
        "plate",
        mbs.Pusher(
            "world", "satellite", (0, lever, 0), (0, lever, 0), (1, 0, 0), stiffness=k, preload=preload, stroke=stroke
        ),
    )
    mech.add_event("out", when=mbs.JointReaches("rail", rail, direction="up"), then=mbs.Release("rail"))
    model = mech.build()
    run = mbs.simulate(model, model.neutral(), np.zeros(6), 0.5, 1e-3, save_every=None)
    angular, linear = mbs.momentum(model, run.q[-1], run.v[-1])
    work = preload * stroke - k * stroke**2 / 2
    energy = 0.5 * mass * (float(linear[0]) / mass) ** 2 + 0.5 * float(angular[2]) ** 2 / 0.12
    assert energy == pytest.approx(work, rel=1e-9)
    speeds = [np.sqrt((2 * preload * s - k * s**2) / mass) for s in (rail, stroke)]
    impulse = mass * (speeds[1] - speeds[0])  # the turning changes it by a thousandth
    assert float(angular[2]) == pytest.approx(-lever * impulse, rel=3e-3)


@pytest.mark.parametrize("lever", [0.01, -0.03])
def test_an_impulse_beside_the_centre_of_mass_tips_off_by_m_v_d_over_i(lever):
    """A stroke of 0.1 mm, in which nothing turns noticeably."""
    mass, inertia, k, stroke = 12.0, 0.12, 4e6, 1e-4
    mech = mbs.Mechanism("kick")
    mech.add_body("satellite", mass=mass, inertia=(0.1, 0.12, inertia))
    mech.add_joint("clamp", mbs.Fixed(), "world", "satellite", releasable=True)
    spring = {"stiffness": k, "preload": k * stroke, "stroke": stroke}
    mech.add_force("kick", mbs.Pusher("world", "satellite", (0, lever, 0), (0, lever, 0), (1, 0, 0), **spring))
    mech.add_event("go", mbs.Time(1e-3), mbs.Release("clamp"))
    model = mech.build()
    v = mbs.simulate(model, model.neutral(), np.zeros(6), 0.02, 1e-4, save_every=None).v[-1]
    speed = np.sqrt(k * stroke**2 / (mass + mass**2 * lever**2 / inertia))
    assert float(v[3]) == pytest.approx(speed, rel=1e-5)
    assert float(v[2]) == pytest.approx(-mass * float(v[3]) * lever / inertia, rel=1e-5)


def test_joints_that_cannot_be_released():
    mech = mbs.Mechanism("m")
    mech.add_body("b", mass=1.0)
    with pytest.raises(mbs.ModelError, match="joint 'j': Universal cannot be releasable; Revolute"):
        mech.add_joint("j", mbs.Universal(), "world", "b", releasable=True)
    with pytest.raises(mbs.ModelError, match="joint 'j': axis"):
        mech.add_joint("j", mbs.Revolute((0, 0, 0)), "world", "b", releasable=True)


def test_in_a_file(tmp_path):
    path = tmp_path / "swing.toml"
    path.write_text(
        """
[mechanism]
gravity = [0.0, 0.0, -9.81]
[[mechanism.bodies]]
name = "bob"
mass = 1.0
com = [0.0, 0.0, -0.5]
inertia = [0.1, 0.1, 0.1]
[[mechanism.joints]]
name = "hinge"
type = "revolute"
axis = [0.0, 1.0, 0.0]
parent = "world"
child = "bob"
releasable = true
[[mechanism.events]]
name = "far"
when = {type = "distance", body_a = "world", body_b = "bob", point_b = [0.0, 0.0, -0.5], value = 0.6}
then = [{type = "release", joint = "hinge"}]
""",
        encoding="utf-8",
    )
    from jaxmbs.study import read

    model = read(path, need="mechanism").model
    assert (
        model.event_names == ("far",)
        and model.nv == 6
        and [link.locked for link in model.structure.links] == [(True, True, False, True, True, True)]
    )
