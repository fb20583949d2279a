"""Events where loops and constraints hold: a five-bar linkage on a sliding base, struck, latched, let go and cut open;
a body on which a blade comes down."""

import functools

import jax
import numpy as np
import pytest

import jaxmbs as mbs

Z = (0.0, 0.0, 1.0)
LENGTHS = {"crank": 0.8, "coupler": 1.0, "follower": 1.1, "rocker": 0.7}
LATCH = mbs.JointReaches("crank_hinge", 1.0, direction="down")


def linkage(*events, loop=True):
    """Two arms of two rods on a base that slides, joined at their ends by the loop "pin": three freedoms."""
    mech = mbs.Mechanism("five-bar")
    mech.add_body("base", 3.0, inertia=(0.4, 0.5, 0.6))
    mech.add_joint("flight", mbs.Prismatic((1, 0, 0)), "world", "base")
    for x, arm in ((0.0, ("crank", "coupler")), (1.2, ("rocker", "follower"))):
        parent, end = "base", mbs.Pose((x, 0, 0))
        for name in arm:
            length = LENGTHS[name]
            mech.add_body(name, length, (length / 2, 0, 0), (1e-3, length**3 / 12, length**3 / 12))
            mech.add_joint(f"{name}_hinge", mbs.Revolute(Z), parent, name, end)
            parent, end = name, mbs.Pose((length, 0, 0))
    mech.add_force("coil", mbs.TorsionSpring("coupler_hinge", stiffness=2.0, rest_angle=-0.2))
    ends = (mbs.Pose((LENGTHS[name], 0, 0)) for name in ("coupler", "follower"))
    if loop:
        mech.close_loop("pin", mbs.Revolute(Z), "coupler", "follower", *ends)
    for event in events:
        mech.add_event(*event[:3], **(event[3] if len(event) > 3 else {}))
    return mech.build()


@functools.cache
def start():
    guess, v = [0, 1.3, -0.5, 1.9, 0.6], [0.2, -1.5, 0, 0, 0]
    q, v, status, _ = mbs.assemble(linkage(), guess, v, fixed=["flight", "crank_hinge"])
    assert status == mbs.Status.OK
    return q, v


@pytest.mark.slow
@pytest.mark.parametrize("e", [0.0, 0.6])
def test_a_stop_in_a_linkage_is_the_impact_of_its_rows(struck, e):
    """The stop's row and the loop's take their impulses together; the loss is energy in the metric of the rows."""
    model, end = struck
    before, after = end(-1.0), end(e)  # with e = -1 nothing happens
    assert before.events.index[0] == 0 and 0.05 < before.events.time[0] < 0.9
    q, v = before.q[-1], np.asarray(before.v[-1])
    A, J = np.asarray(mbs.mass_matrix(model, q)), np.asarray(mbs.constraint_jacobian(model, q)[0])
    rows = np.vstack([J, np.eye(model.nv)[model.v_slice("crank_hinge")]])
    share = np.append(np.zeros(len(J)), 1 + e)
    impulses = np.linalg.solve(rows @ np.linalg.solve(A, rows.T), share * (rows @ v))
    np.testing.assert_allclose(after.v[-1], v - np.linalg.solve(A, rows.T @ impulses), atol=1e-11)
    assert abs(after.v[-1][model.v_slice("coupler_hinge")][0]) > 0.1  # the other freedom goes on
    lost = (1 - e) / 2 * (impulses @ rows @ v)
    assert float(after.events.energy_lost[0]) == pytest.approx(lost, rel=1e-9)
    states = ((before.q[-1], before.v[-1]), (after.q[-1], after.v[-1]), start())
    kept = [float(mbs.momentum(model, *x)[1][0]) for x in states]  # along the line on which the base is free
    assert kept[1] == pytest.approx(kept[0], abs=1e-12) and kept[1] == pytest.approx(kept[2], abs=1e-7)


@pytest.fixture(scope="module")
def struck():
    """(model, run to just after the stop for a restitution)."""
    model, (q, v) = linkage(("stop", LATCH, [mbs.Bounce("crank_hinge", 0.5), mbs.Finish()])), start()

    @jax.jit
    def end(e):
        return mbs.simulate(mbs.set(model, {"stop.restitution": e}), q, v, 1.0, 0.01, save_every=None)

    return model, end


@pytest.mark.slow
def test_latched_let_go_and_cut_open():
    """While it is latched the hinge stands; then it moves again; when the pin breaks both arms go on as a tree."""
    cut = 0.8
    model = linkage(
        ("latch", LATCH, mbs.Lock("crank_hinge")),
        ("go", mbs.Time(0.55), mbs.Release("crank_hinge"), {"after": "latch"}),
        ("break", mbs.Time(cut), mbs.Disable("pin")),
    )
    motion = mbs.simulate(model, *start(), 1.0, 0.01)
    assert motion.status == mbs.Status.OK and [model.event_names[k] for k in motion.events.index] == [
        "latch",
        "go",
        "break",
    ]
    latched = (motion.t > motion.events.time[0]) & (motion.t <= 0.55)
    crank = motion.q[:, model.q_slice("crank_hinge")][:, 0]
    np.testing.assert_allclose(crank[latched], 1.0, atol=1e-11)
    assert latched.sum() > 5 and abs(crank[motion.t > 0.7] - 1.0).min() > 1e-3
    poses = mbs.body_poses(model, motion.q[-1])
    tips = [
        poses.rotation[k] @ np.array([LENGTHS[name], 0, 0]) + poses.position[k]
        for k, name in enumerate(model.body_names)
        if name in ("coupler", "follower")
    ]
    assert np.linalg.norm(tips[1] - tips[0]) > 1e-3
    assert np.abs(motion.energy_error).max() < 1e-6 and np.max(motion.constraint_error[motion.t < cut]) < 1e-9
    i = int(np.searchsorted(motion.t, cut + 1e-9))
    open_ = mbs.simulate(
        linkage(loop=False), motion.q[i], motion.v[i], 1.0, 0.01, t0=float(motion.t[i]), save_every=None
    )
    np.testing.assert_allclose(open_.q[-1], motion.q[-1], atol=1e-10)
    np.testing.assert_allclose(open_.v[-1], motion.v[-1], atol=1e-10)


def test_a_blade_that_comes_down_takes_the_velocity_across_it():
    blade_comes_down(None)


def test_a_blade_that_comes_down_needs_no_projection():
    """Which would do the same after the impact."""
    blade_comes_down(5.0)


def blade_comes_down(baumgarte):
    """A plate slides on ice at (2, 1) m/s, turns at 3 rad/s; its blade, 0.5 m from the centre, stops what is across."""
    mass, inertia, arm, at = 4.0, 0.6, 0.5, 0.4
    mech = mbs.Mechanism("skate")
    mech.add_body("plate", mass, inertia=(1.0, 1.0, inertia))
    mech.add_joint("ice", mbs.Planar(), "world", "plate")
    mech.add_constraint("blade", mbs.KnifeEdge("plate", point=(arm, 0, 0), normal=(0, 1, 0)))
    mech.add_event("down", mbs.Time(at), [mbs.Enable("blade"), mbs.Finish()])
    model = mech.build()
    options = {"mode": model.mode(off="blade"), "baumgarte": baumgarte, "save_every": None}
    run = mbs.simulate(model, np.zeros(3), [2.0, 1.0, 3.0], 1.0, 0.1, **options)
    c, s = np.cos(3.0 * at), np.sin(3.0 * at)
    across = np.array([-s * 2.0 + c * 1.0 + 3.0 * arm])[0]
    impulse = across / (1 / mass + arm**2 / inertia)
    expected = [2.0 + s * impulse / mass, 1.0 - c * impulse / mass, 3.0 - arm * impulse / inertia]
    np.testing.assert_allclose(run.v[-1], expected, atol=1e-12)
    assert float(run.events.energy_lost[0]) == pytest.approx(across * impulse / 2, rel=1e-11)
    assert run.status == mbs.Status.OK and bool(run.mode.constraint[0])
