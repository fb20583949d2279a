"""Long mechanisms run as loops over like links: the same values as Pinocchio, the same derivatives as differences."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import aba, rnea, scalar
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.forest import Forest, Strand
from jaxmbs.dynamics.state.tree import Tree
from tests.cases import relative
from tests.mechanisms import build, random_mechanism, random_q
from tests.mirrors import Pinocchio

# a free body, a long arm, and two limbs at its end: (parent of the first, joints)
LIMBS = (
    (-1, ("Free",)),
    (0, ("Revolute",) * 20),
    (20, ("Universal",) * 8),
    (20, ("Spherical",) * 6 + ("Revolute",) * 8),
)


@pytest.fixture(scope="module")
def long_tree():
    joints, bodies = [], []
    for root, kinds in LIMBS:
        for i, kind in enumerate(kinds):
            one = random_mechanism(len(joints), 1, kinds=(kind,), massless=0.0, free_base=False, aligned=0.3)
            parent = root if i == 0 else len(joints) - 1
            name = f"b{len(joints)}"
            up = "world" if parent < 0 else f"b{parent}"
            joints.append(replace(one.joints[0], name="j" + name[1:], parent=up, child=name))
            bodies.append(replace(one.bodies[0], name=name))
    mechanism = replace(one, bodies=tuple(bodies), joints=tuple(joints), gravity=np.array([1.0, -2.0, -9.0]))
    model = build(mechanism)
    mechanism = mechanism.ordered(model.joint_names)
    rng = np.random.default_rng(0)
    q, (v, a) = random_q(mechanism, rng), rng.normal(size=(2, model.nv))
    return model, Pinocchio(mechanism), q, v, a


def test_against_pinocchio(long_tree):
    model, oracle, q, v, a = long_tree
    tau = oracle.inverse_dynamics(q, v, a)

    @jax.jit  # with the model closed over its numbers are literals, which compiles faster
    def evaluate(q, v, a, tau):
        return (
            mbs.body_poses(model, q).position, mbs.inverse_dynamics(model, q, v, a), mbs.mass_matrix(model, q),
            mbs.forward_dynamics(model, q, v, tau),
        )  # fmt: skip

    positions, drive, A, solved = map(np.asarray, evaluate(q, v, a, tau))
    poses = oracle.body_poses(q)
    assert relative(positions, [poses[b][0] for b in model.body_names]) < 1e-12
    assert relative(drive, tau) < 1e-11
    assert relative(A, A.T) < 1e-14
    assert relative(A, oracle.mass_matrix(q)) < 1e-12
    assert relative(solved, a) < 1e-9


@pytest.mark.slow
def test_the_other_functions_against_pinocchio(long_tree):
    model, oracle, q, v, a = long_tree
    tau = oracle.inverse_dynamics(q, v, a)
    last, point = model.body_names[-1], (0.1, 0.2, 0.3)
    assert relative(mbs.jacobian(model, q, last, point), oracle.jacobian(q, last, point)) < 1e-12
    assert relative(mbs.bias_forces(model, q, v), oracle.bias_forces(q, v)) < 1e-11
    assert relative(mbs.forward_dynamics(model, q, v, tau, method="crba"), a) < 1e-9
    assert relative(mbs.energy(model, q, v), oracle.energy(q, v)) < 1e-12
    for got, want in zip(mbs.momentum(model, q, v), oracle.momentum(q, v), strict=True):
        assert relative(got, want) < 1e-12
    wrenches, want = mbs.joint_reactions(model, q, v, tau), oracle.joint_reactions(q, v, a)
    assert relative(wrenches, [want[n] for n in model.joint_names]) < 1e-9


@pytest.mark.slow
def test_derivatives_of_the_loops(long_tree):
    model, oracle, q, v, _ = long_tree
    rng = np.random.default_rng(1)
    direction, weights = rng.normal(size=(2, model.nv))

    def f(v):
        return mbs.forward_dynamics(model, jnp.asarray(q), v)

    # quadratic in v: the difference is exact
    ends = [oracle.forward_dynamics(q, v + h * direction, np.zeros(model.nv)) for h in (-1.0, 1.0)]
    want = (ends[1] - ends[0]) / 2
    forward, gradient = jax.jit(lambda v: (jax.jvp(f, (v,), (direction,))[1], jax.vjp(f, v)[1](weights)[0]))(v)
    assert relative(forward, want) < 1e-8
    assert float(gradient @ direction) == pytest.approx(float(weights @ want), rel=1e-8)


def test_locks_and_elements_in_the_loops():
    """A hanging chain of 50 rods: two hinges locked, a spring on the end, against inverse dynamics."""
    mech = mbs.library.chain(50)
    mech.add_force("tip", mbs.LinearSpring("link_50", "world", (0, 0, -0.5), (1, 0, -25), stiffness=50.0))
    mech.add_force("coil", mbs.TorsionSpring("hinge_20", stiffness=3.0, damping=0.1, rest_angle=0.4))
    model = mech.build()
    rng = np.random.default_rng(2)
    q, v = rng.normal(size=(2, 50)) * 0.2
    mode = model.mode(lock=["hinge_3", "hinge_40"])
    prescribed = np.where(mode.lock, 0.7, 0.0)

    @jax.jit
    def evaluate(q, v):
        a = mbs.forward_dynamics(model, q, v, mode=mode, prescribed=prescribed)
        return a, mbs.inverse_dynamics(model, q, v, a)

    a, tau = map(np.asarray, evaluate(q, v))
    lock = np.asarray(mode.lock)
    assert relative(a[lock], [0.7, 0.7]) < 1e-14
    assert relative(tau[~lock] / np.abs(tau[lock]).max(), np.zeros(48)) < 1e-11  # only the locks push


@pytest.mark.interpreted
def test_runs_are_their_links_one_by_one():
    """Like links as loops and unrolled: a run that forks into two more, a spring inside one of them."""
    mech, parent = mbs.Mechanism("fork", gravity=(1.0, 0.5, -9.81)), "world"
    for k in range(18):
        parent = "b5" if k == 12 else parent
        mech.add_body(f"b{k}", 1.0 + 0.1 * k, (0.1, 0, -0.2), (0.2, 0.3, 0.25))
        poses = mbs.Pose((0, 0.1, -0.4 - 0.01 * k)), mbs.Pose((0.01 * k, 0, 0.02))
        mech.add_joint(f"j{k}", mbs.Revolute((0, 1, 0)), parent, f"b{k}", *poses)
        parent = f"b{k}"
    mech.add_force("coil", mbs.TorsionSpring("j9", stiffness=50.0, rest_angle=1.0))
    model = mech.build()
    q, v, a = (jnp.asarray(x) for x in np.random.default_rng(3).normal(size=(3, 18)))
    runs, single = (State(Tree(model, jnp.float64, unrolled), q, v) for unrolled in (5, 100))
    assert [b.length for b in runs.tree.blocks] == [12, 6]  # the longer branch goes on with the run
    tau = single.tree.vector(rnea.inverse_dynamics(single, a))
    assert relative(rnea.inverse_dynamics(runs, a), tau) < 1e-12
    assert relative(aba.forward_dynamics(runs, tau), a) < 1e-9


@pytest.mark.parametrize("nodes", [(0, 1, 2, 3, 4, 5), (11, 0, 5, 1, 4, 2, 3, 0), (3, -1, 9, 3, 0, 7, 10, 1, 6, -1)])
def test_results_are_gathered_from_any_number_of_strands(nodes):
    """From more than can be told apart by order, each once or to and fro, and from the root."""
    strands = [Strand((k, k + 6), (-1, -1), None) for k in range(6)]
    results = [jnp.array([float(k), k + 6.0]) for k in range(6)]
    found = Forest(strands, jnp.float64).gather(results, nodes, root=-1.0)
    assert found.tolist() == list(nodes)


def test_like_links_on_many_kinds_of_joints():
    """Six hinges beside one another, each on a body that moves by another joint."""
    mech = mbs.Mechanism("fan", gravity=(1.0, 0.5, -9.81))
    x, y, _ = np.eye(3)
    kinds = (
        mbs.Revolute(y),
        mbs.Prismatic(x),
        mbs.Cylindrical(x),
        mbs.Universal(x, y),
        mbs.Planar(),
        mbs.Helical(x, 0.1),
    )
    for k, kind in enumerate(kinds):
        mech.add_body(f"a{k}", 1.0 + k, (0.1, 0, 0.2), (0.2, 0.3, 0.25))
        mech.add_joint(f"j{k}", kind, "world", f"a{k}")
    for k in range(6):
        mech.add_body(f"b{k}", 2.0 - 0.1 * k, (0.1, 0.2, 0), (0.2, 0.3, 0.25))
        mech.add_joint(f"k{k}", mbs.Revolute(y), f"a{k}", f"b{k}", mbs.Pose((0.1 * k, 0, 0.5)))
    model = mech.build()
    q, v, a = np.random.default_rng(4).normal(size=(3, model.nv))
    tau = np.array(scalar.inverse_dynamics(model, q.tolist(), v.tolist(), a.tolist()), float)

    @jax.jit
    def evaluate(q, v, tau):
        state = State(Tree(model, jnp.float64, unrolled=5), q, v)
        return aba.forward_dynamics(state, tau)

    assert relative(evaluate(q, v, tau), a) < 1e-9
    tree = Tree(model, jnp.float64, unrolled=5)
    assert len({tree.at[parent][0] for parent in tree.blocks[-1].parents}) == 6
