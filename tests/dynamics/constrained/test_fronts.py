"""Elimination in fronts, linear in the size of a mechanism: against dense matrices, differences and exact motions."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import jaxmbs as mbs
from jaxmbs.dynamics.constrained.constraints import constraints
from jaxmbs.dynamics.constrained.order import equations_text, ordered, plan_of
from jaxmbs.dynamics.constrained.row_groups import row_groups
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.elements import Condition, Kind, element, field
from jaxmbs.model.constraint_rows import sites

JOINTS = (
    mbs.Revolute((0, 1, 0)), mbs.Revolute((0.6, 0, 0.8)), mbs.Universal((1, 0, 0), (0, 1, 0)), mbs.Spherical(),
    mbs.Prismatic((1, 0, 0)), mbs.Cylindrical((0, 0, 1)),
)  # fmt: skip
CUTS = (mbs.Spherical(), mbs.Universal((1, 0, 0), (0, 1, 0)), mbs.Cylindrical((0, 0, 1)), mbs.Planar())


def pose(dice):
    turn = dice.normal(size=4)
    return mbs.Pose(tuple(dice.normal(size=3)), tuple(turn / np.linalg.norm(turn)))


def tangled(seed, bodies=9):
    """A tree of bodies with loops between any of them and the world, a gear, a rotor, blades on the world and on a body."""
    dice = np.random.default_rng(seed)
    mech = mbs.Mechanism(f"tangle {seed}", gravity=(1.0, 2.0, -9.0))
    for i in range(bodies):
        mech.add_body(f"b{i}", 1 + dice.random(), tuple(0.3 * dice.normal(size=3)), (1.0, 1.2, 1.5))
        parent = "world" if i == 0 or dice.random() < 0.2 else f"b{dice.integers(max(0, i - 3), i)}"
        joint = mbs.Revolute((0, 0, 1)) if i in (2, 5) else JOINTS[dice.integers(len(JOINTS))]
        joint = mbs.Free() if i == 0 else joint
        mech.add_joint(f"j{i}", joint, parent, f"b{i}", pose(dice), pose(dice), armature=0.3 if i == 5 else 0.0)
    for k in range(3):
        a, b = dice.choice(bodies + 1, 2, replace=False)
        ends = ("world" if x == bodies else f"b{x}" for x in (a, b))
        mech.close_loop(f"loop{k}", CUTS[dice.integers(len(CUTS))], *ends, pose(dice), pose(dice))
    mech.add_constraint("gear", mbs.Coupling("j5", "j2", coefficients=(0.1, -2.0, 0.3)))
    mech.add_constraint("blade", mbs.KnifeEdge("b1", point=(0.1, 0.2, 0.3)))
    mech.add_constraint("skate", mbs.KnifeEdge("b4", point=(0.3, 0.1, 0.2), on="b3"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbs.ModelWarning)
        return mech.build()


def metrics(model, q, v, mode=None, prescribed=None, rolled=0):
    """(the metric in fronts and its rows, the dense one and its rows)."""
    s, plan = model.structure, ordered(model.structure, sites(model.structure))
    state = State(Tree(model, jnp.float64, unrolled=rolled), q, v, 0.0, mode)
    found = row_groups(state, plan)
    written = State(Tree(model, jnp.float64, unrolled=len(s.links)), q, v, 0.0, mode)
    rows = constraints(written)
    given = None if prescribed is None else list(prescribed)
    return found.metric(prescribed), found, rows.metric(given), rows


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", [11, *(pytest.param(k, marks=pytest.mark.slow) for k in range(11))])
def test_as_dense_matrices(seed):
    """Loops of any joints, nonholonomic rows, couplings, locks that move as prescribed, a constraint that is off.

    In the eleventh two trees stand on the world and no link is like another: blocks in another order than the links.
    """
    model = tangled(seed)
    dice = np.random.default_rng(seed)
    q, v = model.random(jax.random.key(seed)), jnp.asarray(dice.normal(size=model.nv))
    mode = model.mode(lock=["j3"], off=["loop1"]) if seed % 2 else None
    metric, found, dense, rows = metrics(model, q, v, mode, jnp.full(model.nv, 0.3) if mode else None)
    J = np.array([[float(x) for x in row] for row in rows.J])
    for own, other in ((found.drift, rows.drift), (found.residual, rows.residual)):
        np.testing.assert_allclose(own, np.array([float(x) for x in other]), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.rate, J @ v, rtol=0, atol=1e-12)
    a = jnp.asarray(dice.normal(size=model.nv))
    a = a if mode is None else jnp.where(mode.lock, 0.3, a)
    force, target = jnp.asarray(dice.normal(size=model.nv)), jnp.asarray(J @ a)
    mine, multipliers = metric.closest(force, target)
    theirs, others = dense.closest(list(force), tuple(target))
    scale = np.abs(np.array(theirs)).max()
    np.testing.assert_allclose(mine, np.array(theirs), rtol=0, atol=1e-10 * scale)
    free = (
        np.ones(model.nv, bool) if mode is None else ~np.asarray(mode.lock)
    )  # locks may carry any part of their loads
    forces, expected = ((J.T @ np.array(x))[free] for x in (multipliers, others))
    np.testing.assert_allclose(forces, expected, rtol=0, atol=1e-9 * np.abs(force).max() * scale)


def rockers(mass_of_bar=2.0):
    """A bar on three parallel rockers: its loops depend on one another wherever they are closed."""
    mech = mbs.Mechanism("rockers", gravity=(0, -9.81, 0))
    for i in range(3):
        mech.add_body(f"r{i}", 1.0, (0.5, 0, 0), (0.1, 0.1, 0.1))
        mech.add_joint(f"foot{i}", mbs.Revolute((0, 0, 1)), "world", f"r{i}", mbs.Pose((i, 0, 0)))
    mech.add_body("bar", mass_of_bar, (1.0, 0, 0), (0.1, 0.1, 0.2))
    mech.add_joint("head", mbs.Revolute((0, 0, 1)), "r0", "bar", mbs.Pose((1, 0, 0)))
    for i in (1, 2):
        mech.close_loop(f"pin{i}", mbs.Revolute((0, 0, 1)), "bar", f"r{i}", mbs.Pose((i, 0, 0)), mbs.Pose((1, 0, 0)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbs.ModelWarning)
        return mech.build()


@pytest.mark.interpreted
def test_a_blade_and_a_wheel_on_a_body_that_moves():
    """A carriage that carries them along: at rest on it, nothing moves along their rows."""
    mech = mbs.Mechanism("carriage")
    mech.add_body("carriage", 5.0, (0, 0, 0), (1.0, 1.0, 1.0))
    mech.add_joint("rail", mbs.Free(), "world", "carriage")
    for k in range(3):
        mech.add_body(f"wheel{k}", 1.0, (0, 0, 0), (0.1, 0.2, 0.1))
        mech.add_joint(f"free{k}", mbs.Free(), "carriage", f"wheel{k}")
        mech.add_constraint(f"rim{k}", mbs.RollingDisc(f"wheel{k}", radius=0.3, on="carriage"))
        mech.add_constraint(f"edge{k}", mbs.KnifeEdge(f"wheel{k}", normal=(0, 0.6, 0.8), on="carriage"))
    model = mech.build()
    assert plan_of(model.structure) is not None
    q, v = model.neutral().at[9::7].set(0.3), jnp.zeros(model.nv).at[:6].set(jnp.arange(1.0, 7.0))
    found = row_groups(State(Tree(model, jnp.float64), q, v, 0.0, None), plan_of(model.structure))
    np.testing.assert_allclose(found.rate, 0.0, rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.residual, 0.0, rtol=0, atol=1e-14)


@pytest.mark.interpreted
def test_couplings_of_different_degrees():
    """Polynomials with different numbers of coefficients, two of them like ones, one joint that is held by a number."""
    model = chain_of_hinges(
        20, ("a", 3, (0.1, 2.0)), ("b", 7, (0.1, 2.0, 0.5)), ("c", 11, (-0.2, 1.0)), ("d", 15, (0.3,))
    )
    assert plan_of(model.structure) is not None
    dice = np.random.default_rng(5)
    q, v, force = (jnp.asarray(dice.normal(size=20)) for _ in range(3))
    metric, found, dense, rows = metrics(model, q, v)
    for own, other in ((found.drift, rows.drift), (found.residual, rows.residual)):
        np.testing.assert_allclose(own, np.array([float(x) for x in other]), rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        found.rate, np.array([[float(x) for x in row] for row in rows.J]) @ v, rtol=0, atol=1e-12
    )
    mine, multipliers = metric.closest(force, -found.drift)
    theirs, others = dense.closest(list(force), tuple(-found.drift))
    np.testing.assert_allclose(mine, np.array(theirs), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(multipliers, np.array(others), rtol=1e-9, atol=1e-9)


def chain_of_hinges(n, *couplings):
    """Rods on hinges; couplings: (name, joint that follows the one before it, coefficients)."""
    mech, parent = mbs.Mechanism("chain"), "world"
    for k in range(n):
        mech.add_body(f"b{k}", 1.0, (0.5, 0, 0), (0.01, 0.1, 0.1))
        mech.add_joint(f"j{k}", mbs.Revolute((0, 1, 0)), parent, f"b{k}", mbs.Pose((1.0 if k else 0.0, 0, 0)))
        parent = f"b{k}"
    for name, k, coefficients in couplings:
        driver = f"j{k - 1}" if len(coefficients) > 1 else None
        mech.add_constraint(name, mbs.Coupling(f"j{k}", driver, coefficients))
    return mech.build()


@pytest.mark.interpreted
def test_multipliers_of_least_norm():
    """Redundant loops share the load as they do with matrices; what depends on others is no sign of a singular place."""
    model = rockers()
    metric, found, dense, _ = metrics(model, jnp.array([1.0, 1.0, 1.0, -1.0]), jnp.zeros(4))
    force = jnp.array([1.0, 2.0, 3.0, 4.0])
    a, multipliers = metric.closest(force, -found.drift)
    b, others = dense.closest(list(force), tuple(-found.drift))
    np.testing.assert_allclose(a, np.array(b), rtol=0, atol=1e-10)
    np.testing.assert_allclose(metric.least_norm(multipliers), np.array(dense.least_norm(others)), rtol=0, atol=1e-9)
    assert min(float(x) for x in metric.conditioning()) > 1e-3


@pytest.mark.interpreted
def test_derivatives_in_both_modes():
    """Accelerations of windows: forward against differences, reverse against forward."""
    model = mbs.library.four_bar_windows(2).build()
    dice = np.random.default_rng(0)
    q, v, dq, dv, u = (jnp.asarray(x) for x in dice.normal(size=(5, model.nv)))

    def solved(q, v):
        metric, found, *_ = metrics(model, q, v)
        a, multipliers = metric.closest(v, -found.drift)
        return a, metric.least_norm(multipliers)

    _, forward = jax.jvp(solved, (q, v), (dq, dv))
    h = 1e-5
    plus, minus = (solved(q + s * h * dq, v + s * h * dv) for s in (1, -1))
    for own, x, y in zip(forward, plus, minus, strict=True):
        np.testing.assert_allclose(own, (x - y) / (2 * h), rtol=1e-6, atol=1e-6)
    _, back = jax.vjp(lambda q, v: solved(q, v)[0], q, v)
    gq, gv = back(u)
    np.testing.assert_allclose(gq @ dq + gv @ dv, u @ forward[0], rtol=1e-10)


@pytest.mark.interpreted
def test_the_order_is_local():
    """Windows, masts and wings of any length have fronts of the same size and as many strands to compile."""
    for make, front in (
        (mbs.library.four_bar_windows, 4), (mbs.library.scissor_mast, 4), (mbs.library.synchronised_wing, 2),
    ):  # fmt: skip
        plans = [ordered(s, sites(s)) for s in (make(n).build().structure for n in (20, 30))]
        assert [p.size for p in plans] == [front] * 2
        assert len(plans[0].strands) == len(plans[1].strands) <= 10
    assert plan_of(mbs.library.four_bar_windows(8).build().structure) is not None
    assert plan_of(mbs.library.four_bar_windows(5).build().structure) is None


@element
class Loaded(Condition):
    """A joint carries more than 1 kN."""

    joint: str = field(Kind.JOINT, "", "joint of the tree")

    def guards(self, p, now):
        _, force = now.reaction(self.joint)
        return (force @ force - 1e6,)


@element
class DeclaredLoaded(Loaded):
    """The same, which says what it asks for."""

    of_reactions = True


def test_conditions_that_ask_for_reactions_have_matrices():
    models = []
    for condition in (Loaded, DeclaredLoaded, mbs.ReactionExceeds):
        mech = mbs.library.four_bar_windows(8)
        joint = mech.build().joint_names[0]
        mech.add_event("end", condition(joint), mbs.Finish())
        models.append(mech.build())
    assert [plan_of(model.structure) is None for model in models] == [False, True, True]
    with pytest.raises(mbs.ModelError, match="of_reactions = True"):
        mbs.simulate(models[0], models[0].neutral(), np.zeros(models[0].nv), t_end=0.01, dt=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "t_end", "dt"),
    [
        (9, 1.0, 5e-3),
        pytest.param(40, 10.0, 5e-3, marks=pytest.mark.slow),
        pytest.param(200, 10.0, 2.5e-3, marks=pytest.mark.slow),
    ],
)
def test_windows_pass_the_flat_position(n, t_end, dt):
    """All posts turn alike, an exact system with one freedom; flat, the mechanism could branch in n ways."""
    model, rate = mbs.library.four_bar_windows(n).build(), -3.0
    sign = np.array([1.0 if name.startswith("foot") else -1.0 for name in model.joint_names])
    inertia, weight = (n + 1) / 3 + n, ((n + 1) / 2 + n) * 9.81

    def motion(t, y):
        return [y[1], -weight * np.cos(y[0]) / inertia]

    exact = solve_ivp(motion, (0, t_end), [np.pi / 2, rate], rtol=1e-12, atol=1e-12, method="DOP853").y[:, -1]
    run = mbs.simulate(model, sign * np.pi / 2, sign * rate, t_end, dt, save_every=None)
    assert exact[0] < 0  # it was flat
    assert int(run.status) == mbs.Status.OK
    # a step that ends near the flat position, where rows nearly depend on one another, costs some digits
    np.testing.assert_allclose(run.q[-1], exact[0] * sign, rtol=0, atol=2e-5)
    np.testing.assert_allclose(run.v[-1], exact[1] * sign, rtol=0, atol=2e-5)
    assert run.constraint_error.max() < 1e-10


@pytest.mark.slow
def test_mast_of_scissors_in_closed_form():
    """A mast of 50 bays falls as its one equation says: the track and the angle of the bars tell all places."""
    n, t_end = 50, 0.4
    model = mbs.library.scissor_mast(n).build()
    names = [x.split("_")[0] for x in model.joint_names]

    def at(c):
        places = {"foot": c, "cross": -2 * c, "left": 2 * c, "track": np.cos(c + np.pi / 4) - np.sqrt(0.5)}
        return np.array([places[x] for x in names])

    k = np.arange(1, n + 1) - 0.5  # heights of the middles, in sines; two bars of 1 kg and 1 m each

    def motion(t, y):
        s, c = np.sin(y[0]), np.cos(y[0])
        inertia = np.sum(2 * (s**2 / 4 + k**2 * c**2) + 2 / 12) + 0.1 * s**2
        slope = np.sum(2 * (s * c / 2 - 2 * k**2 * c * s)) + 0.2 * s * c
        return [y[1], (-slope * y[1] ** 2 / 2 - np.sum(2 * k) * 9.81 * c) / inertia]

    exact = solve_ivp(motion, (0, t_end), [1.2, 0.0], rtol=1e-12, atol=1e-12, method="DOP853").y[0, -1]
    run = mbs.simulate(model, at(1.2 - np.pi / 4), np.zeros(model.nv), t_end, 1e-3, save_every=None)
    np.testing.assert_allclose(run.q[-1], at(exact - np.pi / 4), rtol=0, atol=1e-7)


@pytest.mark.slow
def test_wing_unfolds_together():
    """All panels of a wing of 20 turn at once, and its gradient is that of differences."""
    model = mbs.library.synchronised_wing(20).build()

    def angle(k):
        run = mbs.simulate(
            mbs.set(model, {"spring_1.stiffness": k}), np.zeros(20), np.zeros(20), 2.0, 0.02, save_every=None
        )
        return run.q[-1]

    q = np.asarray(angle(0.5))
    np.testing.assert_allclose(q[1:], 2 * q[0] * -np.array([1 if k % 2 == 0 else -1 for k in range(19)]), rtol=1e-9)
    _, slope = jax.jvp(angle, (0.5,), (1.0,))
    back = jax.grad(lambda k: angle(k)[0])(0.5)
    h = 1e-4
    difference = (angle(0.5 + h)[0] - angle(0.5 - h)[0]) / (2 * h)
    np.testing.assert_allclose([slope[0], back], difference, rtol=1e-5)


@pytest.mark.interpreted
def test_how_equations_are_solved_in_words():
    """Which of the three ways a mechanism takes, and why."""
    assert "linear" in equations_text(mbs.library.four_bar_windows(8).build().structure)
    assert "written out" in equations_text(mbs.library.four_bar().build().structure)
    assert equations_text(mbs.library.chain(3).build().structure) == ""
    mech = mbs.library.four_bar_windows(8)
    mech.add_constraint("all", mbs.Nonholonomic(lambda m, t, q, v: v[0] - v[1]))
    assert "'all' is a function" in equations_text(mech.build().structure)


@pytest.mark.slow
def test_assembled_struck_and_latched():
    """A row of windows from a guess that is off; struck; latched by an event: one freedom throughout."""
    mech = mbs.library.four_bar_windows(9)
    mech.add_event("latch", when=mbs.JointReaches("foot_0", 1.2, direction="down"), then=mbs.Lock("foot_0"))
    model = mech.build()
    sign = np.array([1.0 if name.startswith("foot") else -1.0 for name in model.joint_names])
    dice = np.random.default_rng(0)
    q, v, status, residual = mbs.assemble(model, sign * 1.3 + 0.05 * dice.normal(size=model.nv), -sign, fixed="foot_3")
    assert int(status) == mbs.Status.OK and np.abs(residual).max() < 1e-12
    np.testing.assert_allclose(v, v[0] * sign, rtol=0, atol=1e-10)
    jumped, _ = mbs.impact(model, q, jnp.zeros(model.nv).at[0].set(1.0))
    np.testing.assert_allclose(jumped, jumped[0] * sign, rtol=0, atol=1e-10)
    other, _ = jax.jit(lambda q: mbs.impact(model, q, jnp.zeros(model.nv).at[0].set(1.0)))(q)
    np.testing.assert_allclose(other, jumped, atol=1e-12)
    run = mbs.simulate(model, q, v, 0.5, 5e-3, save_every=None)
    assert int(run.status) == mbs.Status.OK and run.events.index[0] == 0
    np.testing.assert_allclose(run.q[-1][0], 1.2, atol=1e-9)
    np.testing.assert_allclose(run.v[-1], 0.0, atol=1e-9)
