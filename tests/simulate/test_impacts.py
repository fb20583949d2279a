"""Impacts in a run: by the slopes of a step they are those that are computed apart, and those of `impact`."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import crba
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.tree import UNROLLED, Tree
from jaxmbs.elements import Action, Kind, element, field
from jaxmbs.simulate.impacts import Impact, after_impact
from jaxmbs.simulate.steppers import MuntheKaas, RungeKutta
from tests.simulate.test_events_in_loops import linkage, start


@dataclass(frozen=True)
class Apart(RungeKutta):
    """The method whose impacts are not its own."""

    def impulses(self, tree):
        return False


@dataclass(frozen=True)
class ApartOnTheGroup(MuntheKaas):
    def impulses(self, tree):
        return False


def satellite(*then):
    """A free body with a wing on a ball joint and a panel whose hinge latches, under gravity, a spring, and a drive."""
    mech = mbs.Mechanism("satellite", gravity=(0.3, 0.0, -1.6))
    mech.add_body("bus", mass=4.0, com=(0.1, 0.0, 0.05), inertia=(0.5, 0.7, 0.6))
    mech.add_joint("flight", mbs.Free(), "world", "bus")
    mech.add_body("wing", mass=1.0, com=(0.4, 0.1, 0.0), inertia=(0.02, 0.1, 0.1))
    mech.add_joint("ball", mbs.Spherical(), "bus", "wing", mbs.Pose((0.3, 0.0, 0.1)))
    mech.add_body("panel", mass=0.7, com=(0.3, 0.0, 0.0), inertia=(0.01, 0.05, 0.05))
    mech.add_joint("hinge", mbs.Revolute(axis=(0, 1, 0)), "wing", "panel", mbs.Pose((0.8, 0.0, 0.0)))
    mech.add_force("coil", mbs.TorsionSpring("hinge", stiffness=3.0, rest_angle=1.0))
    mech.add_force(
        "strut", mbs.LinearSpring("bus", "panel", (0.2, 0.0, 0.4), (0.3, 0.0, 0.1), stiffness=40.0, rest_length=0.9)
    )
    mech.add_event("latch", when=mbs.JointReaches("hinge", 0.25), then=then)
    return mech.build()


def moving(kind, *then):
    """(model, q, v, joint that latches); what happens at the latch is `then`."""
    if kind == "loop":
        model = linkage(("latch", mbs.JointReaches("crank_hinge", 1.0, direction="down"), then))
        return model, *start(), "crank_hinge"
    model = satellite(*then)
    v = jnp.array([0.3, -0.2, 0.5, 0.1, 0.0, -0.3, 0.4, 0.2, -0.6, 0.5])
    return model, model.neutral(), v, "hinge"


def law(model, t, q, v):
    return 0.2 * jnp.cos(3.0 * t) - 0.1 * v


@pytest.mark.usually("group", "loop", "apart")
@pytest.mark.parametrize(
    "kind, method, tolerance",
    [
        ("tree", MuntheKaas("dopri5"), 1e-9),
        ("loop", RungeKutta("rk4"), None),
        ("loop", Apart("rk4"), None),
        ("tree", "implicit", None),
    ],
    ids=["group", "loop", "apart", "implicit"],
)
def test_what_a_latch_leaves_is_the_impact_of_its_lock(kind, method, tolerance):
    joint = moving(kind)[-1]
    model, q, v, _ = moving(kind, mbs.Lock(joint), mbs.Finish())

    def kept(carry, model, t, q, v, mode, event):
        return jnp.where(event >= 0, v, carry)

    fold, options = (jnp.zeros(model.nv), kept), {"dt": 0.01, "tau": law, "save_every": None}
    run = mbs.simulate(model, q, v, 2.0, method=method, tolerance=tolerance, fold=fold, **options)
    assert run.status == mbs.Status.OK and run.events.index[0] == 0 and 0.05 < run.events.time[0] < 1.9
    end, before = run.q[-1], run.folded
    after, _ = mbs.impact(model, end, before, mode=run.mode)
    np.testing.assert_allclose(run.v[-1], after, atol=1e-12)
    assert abs(float(before[model.v_slice(joint)][0])) > 0.1 and abs(run.v[-1][model.v_slice(joint)][0]) < 1e-13
    A = np.asarray(mbs.mass_matrix(model, end))
    lost = (before @ A @ before - after @ A @ after) / 2
    assert float(run.events.energy_lost[0]) == pytest.approx(float(lost), rel=1e-10)
    assert abs(run.energy_error[-1]) < 1e-6


def test_no_rounding_is_left_in_the_rate_of_a_joint_that_latches():
    """The slopes of a step sum up to the jump only to rounding; the rate that the impact stops is zero exactly."""
    model, q, v, joint = moving("loop", mbs.Lock("crank_hinge"), mbs.Finish())
    run = jax.jit(jax.vmap(lambda k: mbs.simulate(model, q, k * v, 2.0, 0.01, tau=law, save_every=None)))
    found = run(jnp.linspace(1.0, 1.3, 32))
    assert np.all(found.status == mbs.Status.OK) and np.all(found.events.index[:, 0] == 0)
    assert np.all(found.v[:, -1, model.v_slice(joint)] == 0)


@pytest.mark.slow
@pytest.mark.usually("loop")
@pytest.mark.parametrize(
    "kind, method, apart",
    [("tree", MuntheKaas("rk4"), ApartOnTheGroup("rk4")), ("loop", RungeKutta("rk4"), Apart("rk4"))],
    ids=["tree", "loop"],
)
def test_an_impact_in_the_slopes_is_that_apart(kind, method, apart):
    """The motion, the losses, and their derivatives; the joint of the tree rebounds before it holds."""
    joint, rebound = moving(kind)[-1], {"restitution": 0.4, "rest_rate": 0.2} if kind == "tree" else {}
    model, q, v, _ = moving(kind, mbs.Lock(joint, **rebound))
    varied, mass = ("panel.mass", 0.7) if kind == "tree" else ("rocker.mass", 0.7)

    def seen(method, mass, v):
        own = mbs.set(model, {varied: mass})
        run = mbs.simulate(own, q, v, 1.5, dt=0.01, tau=law, method=method, save_every=None)
        return (run.q[-1], run.v[-1], run.events.time, run.events.energy_lost), (run.events.index, run.mode.lock)

    def both(method):
        along = (jnp.ones(()), jnp.linspace(-1.0, 1.0, model.nv))
        return jax.jit(lambda *x: jax.jvp(lambda *x: seen(method, *x), x, along, has_aux=True))(mass, v)

    values, slopes, (index, lock) = both(method)
    expected, expected_slopes, _ = both(apart)
    assert int((index >= 0).sum()) >= (2 if kind == "tree" else 1) and bool(lock[model.v_slice(joint)][0])
    for x, y in zip(values, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-11)
    for x, y in zip(slopes, expected_slopes, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-9)
    assert float(jnp.abs(slopes[3]).max()) > 1e-3


def carried(n):
    """Rods on hinges, on a stage that turns by itself; another motion of its own in their middle."""
    mech, parent, end = mbs.Mechanism("carried"), "stage", mbs.Pose()
    mech.add_body("stage", 1.0, (0, 0, 0), (1.0, 1.0, 1.0))
    mech.add_joint("turn", mbs.Carried(axis=(1, 0, 0), rate=0.5), "world", "stage")
    for k in range(n):
        mech.add_body(f"b{k}", 1.0, (0.5, 0, 0), (0.01, 0.1, 0.1))
        mech.add_joint(f"j{k}", mbs.Revolute((0, 1, 0)), parent, f"b{k}", end)
        parent, end = f"b{k}", mbs.Pose((1.0, 0, 0))
        if k == n // 2:
            mech.add_body("drum", 0.7, (0.1, 0, 0.2), (0.1, 0.2, 0.2))
            mech.add_joint("spin", mbs.Carried(axis=(0, 0, 1), rate=2.0), parent, "drum", end)
            parent, end = "drum", mbs.Pose()
    mech.add_event("latch", when=mbs.JointReaches(f"j{n - 1}", 0.05), then=mbs.Lock(f"j{n - 1}"))
    return mech.build()


@pytest.mark.interpreted
def test_joints_that_move_by_themselves_give_no_impulse_in_trees_of_any_length():
    """In loops as link by link: A (v+ - v-) is the impulses of the locks alone, whatever turns by itself."""
    model = carried(12)
    n, dice = model.nv, np.random.default_rng(3)
    q, v = (jnp.asarray(x) for x in dice.normal(size=(2, n)))
    hit = jnp.zeros(n, bool).at[4].set(True)
    impact, mode = Impact(jnp.asarray(True), hit, jnp.where(hit, 0.7, 0.0)), model.mode(lock=["j11"])
    after = []
    for unrolled in (0, len(model.structure.links)):
        tree = Tree(model, jnp.float64, unrolled=unrolled)
        own = (q, v) if tree.rolled else (list(q), list(v))
        after.append(np.array(after_impact(tree, *own, 0.3, mode, impact)))
        A = np.array(crba.mass_matrix(State(tree, *own, 0.3)))
    np.testing.assert_allclose(after[0], after[1], rtol=0, atol=1e-10)
    free = np.delete(np.arange(n), [4, 11])
    np.testing.assert_allclose(after[1][[4, 11]], [0.7, 0.0], rtol=0, atol=1e-12)
    np.testing.assert_allclose((A @ (after[1] - v))[free], 0.0, rtol=0, atol=1e-10)


def test_a_long_tree_on_a_joint_that_moves_by_itself_latches():
    model = carried(UNROLLED)
    run = jax.eval_shape(lambda q, v: mbs.simulate(model, q, v, t_end=0.1, dt=0.01), *2 * [np.zeros(model.nv)])
    assert run.q.shape == (11, model.nv)


@element
class Soft(Action):
    """The faster a joint is struck, the less it rebounds."""

    strikes = True
    joint: str = field(Kind.JOINT, "", "joint of the tree")
    speed: float = field(Kind.POSITIVE, "m/s", "speed of which half is left")

    def rates_after(self, p, v):
        return -v / (1 + jnp.abs(v) / p["speed"])


def test_an_impact_with_a_law_of_its_own():
    mech = mbs.Mechanism("pair", gravity=(0.0, 0.0, -10.0))
    for name, parent in (("frame", "world"), ("ball", "frame")):
        mech.add_body(name, mass=1.0)
        mech.add_joint(name, mbs.Prismatic((0, 0, 1)), parent, name)
    mech.add_event("floor", mbs.JointReaches("ball", 0.0, direction="down"), [Soft("ball", 3.0), mbs.Finish()])
    run = mbs.simulate(mech.build(), [0.0, 0.8], [0.0, -1.0], 2.0, 0.1, save_every=None)
    assert run.status == mbs.Status.OK
    assert float(run.v[-1, 1]) == pytest.approx(0.75, rel=1e-12)  # 1 m/s / (1 + 1/3)
