"""When some constraints let go, those that are left hold as in the mechanism that is built with them alone."""

import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.constrained.multipliers import constrained_dynamics
from jaxmbs.dynamics.constrained.order import plan_of
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Mode

KINDS = {
    "fixed": mbs.Fixed(),
    "hinge": mbs.Revolute((0, 1, 0)),
    "rail": mbs.Prismatic((1, 0, 0)),
    "screw": mbs.Helical((0, 1, 0), 0.1),
    "cylinder": mbs.Cylindrical((0, 1, 0)),
    "universal": mbs.Universal((0, 1, 0), (0, 0, 1)),
    "ball": mbs.Spherical(),
    "plane": mbs.Planar(),
}
POINTS = ((-0.7, 0.1, 0.0), (0.6, 0.0, 0.2), (0.1, -0.5, -0.3))
PAIRS = list(itertools.combinations_with_replacement(KINDS, 2))
TRIPLES = list(itertools.combinations_with_replacement(KINDS, 3))


def bar(kinds, events=(), off=(), opens=True):
    """A free body held by attachments to the world; kinds: by their place, None for none."""
    mech = mbs.Mechanism("bar", gravity=(0.5, 0.3, -9.81), off=off)
    mech.add_body("bar", mass=2.0, com=(0.1, 0.05, 0.02), inertia=(0.1, 0.5, 0.45))
    mech.add_joint("free", mbs.Free(), "world", "bar")
    for place, kind in enumerate(kinds):
        if kind is not None:
            pose = mbs.Pose(POINTS[place])
            mech.close_loop(f"at_{place}", KINDS[kind], "world", "bar", pose, pose)
            if opens:
                mech.add_event(f"open_{place}", mbs.Time(9.0), mbs.Disable(f"at_{place}"))
    for name, when, then in events:
        mech.add_event(name, when, then)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbs.ModelWarning)  # all attachments together hold more than there is to hold
        return mech.build()


def accelerations(model, on=None):
    """(a, multipliers) on the path of Python floats, at rest in the position that all attachments allow."""
    mode = None if on is None else Mode(None, None, np.array(on))
    q, v = model.neutral().tolist(), [0.0] * 6
    a, multipliers, _ = constrained_dynamics(
        State(Tree(model, jnp.float64), q, v, 0.0, mode), [0.1, 0.2, 0.3, -0.4, 0.5, 0.6]
    )
    return np.array(a, float), np.array(multipliers, float)


def check_all_that_may_be_left(kinds, alone):
    model, rows = bar(kinds), {}
    for on in itertools.product((True, False), repeat=len(kinds)):
        if not any(on):
            continue
        left = tuple(kind if holds else None for kind, holds in zip(kinds, on, strict=True))
        if left not in alone:
            alone[left] = accelerations(bar(left))[0]
        a, multipliers = accelerations(model, on)
        np.testing.assert_allclose(a, alone[left], rtol=0, atol=1e-9, err_msg=f"{kinds}, {on}")
        rows = rows or mbs.constraint_rows(model)
        for place, holds in enumerate(on):
            assert holds or np.abs(multipliers[rows[f"at_{place}"]]).max() < 1e-12


@pytest.mark.interpreted
def test_every_pair_of_attachments_whichever_is_left():
    alone = {}
    for kinds in PAIRS:
        check_all_that_may_be_left(kinds, alone)


@pytest.mark.slow
@pytest.mark.interpreted
def test_triples_of_attachments_whichever_are_left():
    alone = {}
    for kinds in TRIPLES[::30]:
        check_all_that_may_be_left(kinds, alone)


@pytest.mark.slow
@pytest.mark.interpreted
def test_every_triple_of_attachments_whichever_are_left():
    alone = {}
    for kinds in TRIPLES:
        check_all_that_may_be_left(kinds, alone)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["multipliers", "elimination"])
def test_reactions_of_what_is_left_balance_the_loads(method):
    model = bar(("hinge", "rail", "ball"))
    q, v = model.neutral(), jnp.zeros(6)
    J = np.asarray(mbs.constraint_jacobian(model, q)[0])
    A, bias = np.asarray(mbs.mass_matrix(model, q)), np.asarray(mbs.bias_forces(model, q, v))
    for off in (["at_0"], ["at_0", "at_1"], ["at_2"]):
        a, multipliers, _ = mbs.constrained_dynamics(model, q, v, mode=model.mode(off=off), method=method)
        np.testing.assert_allclose(A @ a + bias, J.T @ multipliers, rtol=0, atol=1e-11)
        for name, rows in mbs.constraint_rows(model).items():
            assert name not in off or np.abs(multipliers[rows]).max() < 1e-12


def axle():
    """Two wheels on one axle: neither may slip sideways."""
    mech = mbs.Mechanism("axle")
    mech.add_body("axle", mass=2.0, inertia=(0.3, 0.1, 0.3))
    mech.add_joint("free", mbs.Free(), "world", "axle")
    for name, y in (("left", 0.5), ("right", -0.5)):
        mech.add_body(name, mass=1.0, inertia=(0.1, 0.2, 0.1))
        mech.add_joint(f"{name}_hub", mbs.Revolute((0, 1, 0)), "axle", name, mbs.Pose((0, y, 0)))
    return mech


@pytest.mark.interpreted
def test_two_wheels_on_an_axle_are_reported_and_either_may_lift():
    def built(*wheels):
        mech = axle()
        for wheel in wheels:
            mech.add_constraint(f"{wheel}_rim", mbs.RollingDisc(wheel, radius=0.3))
        return mech.build()

    with pytest.warns(mbs.ModelWarning, match=r"1 of 6 constraint rows.*\['left_rim', 'right_rim'\]"):
        both = built("left", "right")
    q = both.neutral().tolist()
    q[2] = 0.3
    v = [0.1, 0.5, -0.2, 0.3, 0.2, 0.1, 0.4, -0.3]

    def found(model, on):
        state = State(Tree(model, jnp.float64), q, v, 0.0, Mode(None, None, np.array(on)))
        return np.array(constrained_dynamics(state, [0.1, -0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])[0], float)

    for wheels, on in ((["left"], [True, False]), (["right"], [False, True])):
        np.testing.assert_allclose(found(both, on), found(built(*wheels), [True]), rtol=0, atol=1e-10)


@pytest.mark.interpreted
def test_gears_in_a_ring_whichever_is_lifted():
    """Three wheels, each geared to the next: any two of the ratios say the third."""

    def built(*pairs):
        mech = mbs.Mechanism("gears", gravity=(0, 0, 0))
        for k in range(3):
            mech.add_body(f"wheel_{k}", 1.0, inertia=(0.3, 0.3, 0.1 * (k + 1)))
            mech.add_joint(f"shaft_{k}", mbs.Revolute((0, 0, 1)), "world", f"wheel_{k}")
        for a, b in pairs:
            mech.add_constraint(f"gear_{a}{b}", mbs.Coupling(f"shaft_{b}", f"shaft_{a}", (0.0, 2.0 ** (b - a))))
        return mech.build()

    ring = ((0, 1), (1, 2), (0, 2))
    with pytest.warns(mbs.ModelWarning, match="1 of 3 constraint rows"):
        model = built(*ring)
    q, v, tau = jnp.zeros(3), jnp.zeros(3), jnp.array([0.1, 0.2, -0.3])
    for lifted in ring:
        a, multipliers, _ = mbs.constrained_dynamics(model, q, v, tau, mode=model.mode(off="gear_{}{}".format(*lifted)))
        pair = [x for x in ring if x != lifted]
        want, loads, _ = mbs.constrained_dynamics(built(*pair), q, v, tau)
        np.testing.assert_allclose(a, want, rtol=0, atol=1e-12)
        np.testing.assert_allclose(multipliers[np.array([x in pair for x in ring])], loads, rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.interpreted
@pytest.mark.parametrize("lifted", ["at_0", "same"])
@pytest.mark.usually("same")
def test_a_function_that_repeats_a_loop(lifted):
    def same(model, t, q, v):
        return mbs.body_poses(model, q).position[0] + mbs.body_poses(model, q).rotation[0] @ jnp.array(POINTS[0])

    mech = mbs.Mechanism("bar", gravity=(0, 0, -9.81))
    mech.add_body("bar", mass=2.0, com=(0.1, 0.05, 0.02), inertia=(0.1, 0.5, 0.45))
    mech.add_joint("free", mbs.Free(), "world", "bar")
    mech.close_loop("at_0", mbs.Spherical(), "world", "bar", mbs.Pose(POINTS[0]), mbs.Pose(POINTS[0]))
    mech.add_constraint("same", mbs.Holonomic(lambda *x: same(*x) - jnp.array(POINTS[0])))
    model = mech.build()
    q, v = model.neutral(), jnp.zeros(6)
    a = mbs.constrained_dynamics(model, q, v, mode=model.mode(off=lifted))[0]
    want = mbs.constrained_dynamics(model, q, v)[0]
    np.testing.assert_allclose(a, want, rtol=0, atol=1e-11)
    assert np.abs(a).max() > 1


def test_functions_beside_other_constraints_may_repeat_them():
    """No backend is started at build to find out: rows are then told from rounding as those that are known to depend."""

    def model(*functions, loop=True):
        mech = mbs.Mechanism("held")
        mech.add_body("bar", 1.0)
        mech.add_joint("free", mbs.Free(), "world", "bar")
        if loop:
            mech.close_loop("ball", mbs.Spherical(), "world", "bar")
        for k, fn in enumerate(functions):
            mech.add_constraint(f"fn_{k}", mbs.Holonomic(fn))
        return mech.build().structure.redundant

    fn = lambda model, t, q, v: q[:1]  # noqa: E731
    assert model(fn) and model(fn, fn, loop=False)
    assert not model() and not model(fn, loop=False)


def test_constraints_that_no_joint_can_meet_are_no_failure_of_the_build():
    """A disc off its plane that turns about its axis only; a blade whose row is zero but for rounding."""
    mech = mbs.Mechanism("disc")
    mech.add_body("wheel", 1.0, inertia=(0.1, 0.1, 0.1))
    mech.add_joint("plane", mbs.Planar(), "world", "wheel")
    mech.add_constraint("disc", mbs.RollingDisc("wheel", radius=0.3, axis=(0, 1, 0)))
    assert not mech.build().structure.redundant
    mech = mbs.Mechanism("blade")
    mech.add_body("sled", 1.0, inertia=(0.1, 0.1, 0.1))
    mech.add_joint("hinge", mbs.Revolute((0.6, 0.8, 0)), "world", "sled")
    mech.add_constraint("blade", mbs.KnifeEdge("sled", point=(-0.2, 0, 0), normal=(0, 1, 0)))
    assert not mech.build().structure.redundant


@pytest.mark.slow
def test_large_mechanisms_eliminated_in_fronts():
    """Four bars in one tree, each with two attachments, in other structures: as each by itself."""
    kinds = ("ball", "ball")
    mech = mbs.Mechanism("bars", gravity=(0.5, 0.3, -9.81))
    for k in range(4):
        name = f"bar_{k}"
        mech.add_body(name, mass=2.0, com=(0.1, 0.05, 0.02), inertia=(0.1, 0.5, 0.45))
        mech.add_joint(f"free_{k}", mbs.Free(), "world", name)
        for place, kind in enumerate(kinds):
            pose = mbs.Pose(POINTS[place])
            mech.close_loop(f"at_{k}{place}", KINDS[kind], "world", name, pose, pose)
    with pytest.warns(mbs.ModelWarning, match="4 of 24 constraint rows"):
        model = mech.build()
    assert plan_of(model.structure) is not None
    rows = jnp.array([[1, 1, 1, 0, 0, 1, 1, 1], [0, 1, 1, 0, 1, 1, 0, 1]], bool)
    tau = jnp.tile(jnp.array([0.1, 0.2, 0.3, -0.4, 0.5, 0.6]), 4)

    def found(on):
        mode = mbs.Mode(jnp.zeros(model.nv, bool), jnp.zeros(0, bool), on)
        return mbs.constrained_dynamics(model, model.neutral(), jnp.zeros(model.nv), tau, mode=mode)[0]

    for on, a in zip(rows, jax.vmap(found)(rows), strict=True):
        for k in range(4):
            left = tuple(kind if on[2 * k + place] else None for place, kind in enumerate(kinds))
            want = accelerations(bar(left))[0]
            np.testing.assert_allclose(a[6 * k : 6 * k + 6], want, rtol=0, atol=1e-9)


LENGTH, OPENS = 0.3, 0.1
PINS = ((-0.7, 0.1, 0.0), (0.6, 0.0, 0.0), (0.1, -0.5, 0.0))


def pinned(pins, joint=None):
    """A bar in the xy plane on pins, each of which an event opens; or on one joint of the tree at the first."""
    mech = mbs.Mechanism("bar", gravity=(0.5, -9.81, 0))
    mech.add_body("bar", mass=2.0, com=(0.1, 0.05, 0), inertia=(0.1, 0.5, 0.45))
    if joint is not None:
        mech.add_joint("only", joint, "world", "bar", mbs.Pose(pins[0]), mbs.Pose(pins[0]))
        return mech.build()
    mech.add_joint("plane", mbs.Planar(), "world", "bar")
    for k, pin in enumerate(pins):
        mech.close_loop(f"pin_{k}", mbs.Revolute((0, 0, 1)), "world", "bar", mbs.Pose(pin), mbs.Pose(pin))
        mech.add_event(f"open_{k}", mbs.Time(9.0), mbs.Disable(f"pin_{k}"))
    with pytest.warns(mbs.ModelWarning, match="constraint rows depend on the others"):
        return mech.build()


def angle_and_rate(model, v, length):
    s = mbs.simulate(model, model.neutral(), v, length, 2.5e-3, save_every=None)
    return s.q[-1, -1], s.v[-1, -1], s.status


@pytest.mark.slow
def test_a_bar_on_two_pins_whichever_opens_first():
    """Both orders in one batch, with derivatives in the instant of opening: what came before was rest, so that the end
    is that of a pendulum on the pin that is left, later by as much."""
    model = pinned(PINS[:2])

    def run(times):
        return angle_and_rate(mbs.set(model, {"open_0.t": times[0], "open_1.t": times[1]}), jnp.zeros(3), LENGTH)

    times = jnp.array([[OPENS, 9.0], [9.0, OPENS]])
    found, slopes = jax.jit(jax.vmap(lambda x: jax.jvp(run, (x,), (jnp.where(x < 1, 1.0, 0.0),))))(times)
    assert found[2].tolist() == [0, 0]
    for k, pin in enumerate((PINS[1], PINS[0])):
        pendulum = pinned((pin,), mbs.Revolute((0, 0, 1)))
        angle, rate, _ = angle_and_rate(pendulum, jnp.zeros(1), LENGTH - OPENS)
        np.testing.assert_allclose((found[0][k], found[1][k]), (angle, rate), rtol=0, atol=1e-9)
        np.testing.assert_allclose(slopes[0][k], -rate, rtol=0, atol=1e-8)
        assert abs(rate) > 1


@pytest.mark.slow
def test_reverse_mode_through_the_opening():
    model = pinned(PINS[:2])

    def end(times):
        angle, rate, _ = angle_and_rate(
            mbs.set(model, {"open_0.t": times[0], "open_1.t": times[1]}), jnp.zeros(3), LENGTH
        )
        return angle, rate

    for times in ((OPENS, 9.0), (9.0, OPENS)):
        slope, rate = jax.grad(end, has_aux=True)(jnp.array(times))
        np.testing.assert_allclose(slope, jnp.where(jnp.array(times) < 1, -rate, 0.0), rtol=0, atol=1e-8)


@pytest.mark.slow
def test_three_balls_in_every_order():
    """One after another opens, in all six orders at once: what is left stays where it is, and no energy is lost."""
    model = bar(("ball",) * 3)

    def run(opens):
        moving = mbs.set(model, {f"open_{k}.t": opens[k] for k in range(3)})
        s = mbs.simulate(moving, model.neutral(), jnp.zeros(6), 0.15, 2.5e-3, save_every=None)
        pose = mbs.body_poses(moving, s.q[-1])
        energy = sum(mbs.energy(moving, s.q[-1], s.v[-1])) - sum(mbs.energy(moving, s.q[0], s.v[0]))
        return jnp.stack([pose.position[0] + pose.rotation[0] @ jnp.array(p) for p in POINTS]), energy, s.status

    orders = jnp.array(list(itertools.permutations((0.05, 0.1, 9.0))))
    points, energies, status = jax.jit(jax.vmap(run))(orders)
    assert not status.any()
    np.testing.assert_allclose(energies, 0, atol=1e-8)
    moved = np.linalg.norm(np.asarray(points) - np.array(POINTS), axis=2)
    assert (moved[orders > 1] < 1e-12).all() and (moved[orders < 0.06] > 1e-3).all()


def swung(joint, place):
    """(position, rotation) of the bar after it has hung on one attachment for the rest of the run: a tree of one joint."""
    mech = mbs.Mechanism("left", gravity=(0.5, 0.3, -9.81))
    mech.add_body("bar", mass=2.0, com=(0.1, 0.05, 0.02), inertia=(0.1, 0.5, 0.45))
    mech.add_joint("only", KINDS[joint], "world", "bar", mbs.Pose(POINTS[place]), mbs.Pose(POINTS[place]))
    model = mech.build()
    end = mbs.simulate(model, model.neutral(), jnp.zeros(model.nv), LENGTH - OPENS, 2.5e-3, save_every=None)
    pose = mbs.body_poses(model, end.q[-1])
    return pose.position[0], pose.rotation[0]


@pytest.mark.slow
def test_an_attachment_that_takes_over():
    """A bar rests in a clamp; a ball that was off begins to hold, then the clamp opens, and it swings on the ball."""
    events = [("take", mbs.Time(0.05), mbs.Enable("at_1")), ("drop", mbs.Time(OPENS), mbs.Disable("at_0"))]
    model = bar(("fixed", "ball"), events, off=("at_1",), opens=False)
    s = mbs.simulate(model, model.neutral(), jnp.zeros(6), LENGTH, 2.5e-3, save_every=None)
    position, rotation = swung("ball", 1)
    pose = mbs.body_poses(model, s.q[-1])
    assert s.status == mbs.Status.OK
    np.testing.assert_allclose(pose.position[0], position, rtol=0, atol=1e-9)
    np.testing.assert_allclose(pose.rotation[0], rotation, rtol=0, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_motions_of_every_pair_in_both_orders(kinds):
    """From rest and in motion, against the mechanism with the one attachment that is left, from the state of the opening."""
    model = bar(kinds)
    q, v, *_ = mbs.assemble(model, model.neutral(), jnp.array([0.3, 0.2, -0.1, 0.1, 0.2, 0.3]))
    steps = {"dt": 2.5e-3, "save_every": None}
    before = mbs.simulate(model, q, v, OPENS, **steps)
    for place in range(2):
        opened = mbs.set(model, {f"open_{1 - place}.t": OPENS})
        got = mbs.simulate(opened, q, v, LENGTH, **steps)
        left = bar(tuple(kind if k == place else None for k, kind in enumerate(kinds)), opens=False)
        want = mbs.simulate(left, before.q[-1], before.v[-1], LENGTH - OPENS, **steps)
        assert got.status == want.status == mbs.Status.OK
        np.testing.assert_allclose(got.q[-1], want.q[-1], rtol=0, atol=1e-9)
        np.testing.assert_allclose(got.v[-1], want.v[-1], rtol=0, atol=1e-9)


def bricard(*events):
    """With a wrist in its third rod: where that is locked its rows depend on one another, but only where the loop is closed,
    which the stages of a step are not quite."""
    mech = mbs.Mechanism("Bricard", gravity=(0, 0, -9.81))
    directions = ((1, 0, 0), (0, -1, 0), (0, 0, 1), (-1, 0, 0), (0, 1, 0))
    axes = ((0, 1, 0), (0, 0, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0))
    parent, end = "world", mbs.Pose()
    for i, (way, axis) in enumerate(zip(directions, axes, strict=False), 1):
        rod = tuple(0.01 + (0 if x else 1 / 12) for x in way)
        mech.add_body(f"rod_{i}", 1.0, tuple(0.5 * x for x in way), rod)
        mech.add_joint(f"hinge_{i}", mbs.Revolute(axis), parent, f"rod_{i}", end)
        parent, end = f"rod_{i}", mbs.Pose(way)
        if i == 3:
            mech.add_body("stub", 0.1, inertia=(0.01, 0.01, 0.01))
            mech.add_joint("wrist", mbs.Revolute((0, 0.6, 0.8)), parent, "stub", end)
            parent, end = "stub", mbs.Pose()
    for name, when, then in events:
        mech.add_event(name, when, then)
    mech.close_loop("hinge_6", mbs.Revolute(axes[5]), parent, "world", end, mbs.Pose((0, 0, 1)))
    return mech.build()


CATCH, GO = ("catch", mbs.Time(0.1), mbs.Lock("wrist")), ("go", mbs.Time(0.8), mbs.Release("wrist"))


def test_locks_that_make_a_loop_redundant_are_known_at_build():
    assert bricard(CATCH, GO).structure.redundant
    assert not bricard().structure.redundant


@pytest.mark.slow
def test_a_lock_that_makes_a_loop_redundant():
    model = bricard(CATCH, GO)
    s = mbs.simulate(model, model.neutral(), jnp.zeros(model.nv), 1.0, 5e-3, save_every=None)
    assert s.status == mbs.Status.OK
    assert np.abs(s.energy_error).max() < 1e-2  # more than 10 J where the rows are taken for independent
