"""Initial states against their constraints: positions, and velocities that they do not allow, by name."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.constrained.constraints import tree_of
from jaxmbs.simulate.consistency import violated
from tests.simulate.test_assembly import closed

SPEEDS = (closed(1.0 + 1e-5) - closed(1.0 - 1e-5)) / 2e-5  # of the linkage at a crank rate of 1 rad/s
OK, INCONSISTENT = int(mbs.Status.OK), int(mbs.Status.INCONSISTENT)


def on_a_wire(**more):
    """A mass on two crossed rails, which a wire holds at y = 0.3; its hook may not move along x."""
    mech = mbs.Mechanism("wire", **more)
    mech.add_body("carriage", mass=1.0)
    mech.add_body("mass", mass=1.0, inertia=(0.1, 0.1, 0.1))
    mech.add_joint("x", mbs.Prismatic((1, 0, 0)), "world", "carriage")
    mech.add_joint("y", mbs.Prismatic((0, 1, 0)), "carriage", "mass")
    mech.add_constraint("wire", mbs.Holonomic(lambda model, t, q, v: q[1] - 0.3))
    return mech


def started(model, q, v, **options):
    return mbs.simulate(model, q, v, 0.01, 1e-3, save_every=None, **options)


def named(model, run):
    return [name for name, on in zip(model.constraint_names, run.violated, strict=True) if on]


def test_a_velocity_along_the_wire_is_inconsistent_by_name():
    model = on_a_wire().build()
    run = started(model, [0.0, 0.3], [1.0, 0.05])
    assert run.status == INCONSISTENT and named(model, run) == ["wire"]
    assert "'wire'" in run.message(model) and "assemble" in run.message(model)
    q, v, status, _ = mbs.assemble(model, [0.0, 0.3], [1.0, 0.05])
    run = started(model, q, v)
    assert status == OK and run.status == OK and named(model, run) == [] and run.message(model) == "completed"


@pytest.mark.slow
def test_a_velocity_that_a_linkage_does_not_allow_in_a_batch():
    """What it allows is consistent at any speed, and to rounding."""
    model = mbs.library.four_bar(1.0, 2.0, 1.8, 2.2).build()
    q, v = jnp.asarray(closed(1.0)), jnp.asarray(SPEEDS)
    rows = jnp.stack([v, jnp.array([1.0, 0, 0]), 0 * v, 1e-9 + v, 1e-6 + v, 100 * v, jnp.array([0, 0, 1e-3])])
    run = jax.vmap(lambda v: mbs.simulate(model, q, v, 1e-3, 1e-4, save_every=None))(rows)
    wrong = [False, True, False, False, True, False, True]
    assert run.violated[:, 0].tolist() == wrong
    assert run.status.tolist() == [INCONSISTENT if x else OK for x in wrong]


@pytest.mark.slow
@pytest.mark.parametrize("events", [False, True])
@pytest.mark.usually("True")
def test_in_single_precision_rounding_is_no_violation(events):
    mech = mbs.library.four_bar(1.0, 2.0, 1.8, 2.2)
    if events:
        mech.add_event("end", mbs.Time(5e-3), mbs.Finish())
    model = mech.build()
    q, v = jnp.asarray(closed(1.0), jnp.float32), jnp.asarray(SPEEDS, jnp.float32)
    speeds = jnp.array([1.0, 30.0], jnp.float32)
    allowed, wrong = jax.vmap(lambda s: started(model, q, s * v))(speeds), started(model, q, v + jnp.float32(0.01))
    assert allowed.status.tolist() == [OK, OK] and wrong.status == INCONSISTENT


def test_rows_that_drive_and_rows_of_velocities():
    """A rheonomic row asks for its own velocity; a nonholonomic one was looked at before, and still is."""
    mech = mbs.library.double_pendulum()
    mech.add_constraint("drive", mbs.Holonomic(lambda model, t, q, v: q[0] - 0.4 * t))
    mech.add_constraint("ratio", mbs.Nonholonomic(lambda model, t, q, v: v[1] - 2.0 * v[0] * jnp.cos(q[0])))
    model = mech.build()
    for v, wrong in (
        ([0.4, 0.8], []),
        ([0.0, 0.0], ["drive"]),
        ([0.4, 0.7], ["ratio"]),
        ([0.5, 0.0], ["drive", "ratio"]),
    ):
        run = started(model, [0.0, 0.5], v)
        assert named(model, run) == wrong and run.status == (INCONSISTENT if wrong else OK)
    assert "'drive', 'ratio'" in run.message(model)


@pytest.mark.slow
def test_what_is_switched_off_is_not_violated():
    mech = on_a_wire(off=["wire"])
    mech.add_event("caught", mbs.Time(5e-3), mbs.Enable("wire"))
    model = mech.build()
    run = started(model, [0.0, 0.3 - 5e-3 * 0.05], [1.0, 0.05])
    assert run.status == OK and named(model, run) == [] and run.v[-1, 1] == 0
    on = mbs.Mode(None, None, jnp.array([True]))
    assert started(on_a_wire().build(), [0.0, 0.3], [0.0, 0.1], mode=on).status == INCONSISTENT


def test_what_an_event_switches_on_has_to_fit():
    """Two hinges whose angles a coupling makes equal from 0.1 s on, in a batch: none is moved to fit, all are told."""
    mech = mbs.Mechanism("pair", gravity=(0, -9.81, 0), off=("gear",))
    for name, at in (("a", 0.0), ("b", 0.5)):
        mech.add_body(name, 1.0, com=(0.3, 0, 0), inertia=(0.1, 0.1, 0.1))
        mech.add_joint(f"hinge_{name}", mbs.Revolute((0, 0, 1)), "world", name, mbs.Pose((at, 0, 0)))
    mech.add_constraint("gear", mbs.Coupling("hinge_a", "hinge_b", (0.0, 1.0)))
    mech.add_event("mesh", mbs.Time(0.1), mbs.Enable("gear"))
    model = mech.build()
    apart = jnp.array([0.0, 1e-9, 1e-3, 1.0])
    run = jax.vmap(lambda x: mbs.simulate(model, jnp.array([0.0, x]), jnp.zeros(2), 0.2, 1e-2))(apart)
    assert [mbs.Status(s).name for s in run.status.tolist()] == ["OK", "OK", "INCONSISTENT", "INCONSISTENT"]
    assert np.array_equal(run.violated[:, 0], [False, False, True, True])
    said = mbs.simulate(model, [0.0, 1.0], [0.0, 0.0], 0.2, 1e-2).message(model)
    assert "an event that switches constraints on" in said and "'gear'" in said


@pytest.mark.slow
def test_any_of_the_rows_that_depend_on_one_another():
    """Two wires that hold the same, and one joint that is held twice: each names what it forbids."""
    mech = on_a_wire()
    mech.add_constraint("spare", mbs.Holonomic(lambda model, t, q, v: 2.0 * q[1] - 0.6))
    mech.add_constraint("both", mbs.Holonomic(lambda model, t, q, v: q[0] + q[1] - 0.3))
    model = mech.build()
    assert named(model, started(model, [0.0, 0.3], [0.2, 0.0])) == ["both"]
    assert named(model, started(model, [0.0, 0.3], [0.2, -0.2])) == ["wire", "spare"]
    assert started(model, [0.0, 0.3], [0.0, 0.0]).status == OK


def test_a_held_joint_that_moves_where_the_values_are_traced():
    model = mbs.library.double_pendulum().build()
    run = jax.vmap(lambda v: started(model, jnp.zeros(2), v, held="elbow"))(jnp.array([[1.0, 0.0], [0.0, 1e-3]]))
    assert run.status.tolist() == [OK, INCONSISTENT]


@pytest.mark.slow
def test_rows_that_are_arrays_beside_one_another():
    """Of a large mechanism: windows that turn together; alone the first foot, which two of them share, and the last."""
    model = mbs.library.four_bar_windows(40).build()
    tree = tree_of(model, jnp.float64)
    assert tree.rolled
    sign = np.array([1.0 if name.startswith("foot") else -1.0 for name in model.joint_names])
    alone = np.eye(model.nv)[[0, model.joint_names.index("foot_40")]]
    state = jnp.asarray(0.7 * sign)
    found = jax.jit(jax.vmap(lambda v: violated(tree, state, v, 0.0, None)))(jnp.stack([sign, *alone]))
    assert [np.flatnonzero(row).tolist() for row in np.asarray(found)] == [[], [0], [39]]
    moved = jax.jit(lambda q: violated(tree, q, 0 * q, 0.0, None))(state.at[0].add(1e-6))
    assert np.flatnonzero(moved).tolist() == [0]


def test_the_labelled_result_names_them():
    model = on_a_wire().build()
    data = started(model, [0.0, 0.3], [0.0, 0.1]).to_xarray(model)
    assert data["violated"].sel(constraint="wire").item() is True
