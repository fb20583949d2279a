"""Mechanisms and the absolute motion that generalized coordinates give."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from jaxmbs.absolute.solvers import SOLVERS
from jaxmbs.dynamics.recursive import rnea
from jaxmbs.dynamics.recursive.scalar import _state
from jaxmbs.spatial import IDENTITY, ZERO_MOTION, Motion, Transform, Vector3
from tests.mechanisms import build, random_mechanism

# compiled once and run once: half the time without optimisation
quick = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
EXACT = 1e-11


def spatial_loop():
    """A crank, a coupler on a universal joint and a rocker about a skew axis; the loop closes by a ball joint."""
    mech = mbs.Mechanism("spatial loop", gravity=(0.0, 1.0, -9.81))
    mech.add_body("crank", 1.0, (0.1, 0.0, 0.02), (0.01, 0.02, 0.02))
    mech.add_body("coupler", 2.0, (0.3, 0.01, 0.0), np.diag([0.02, 0.2, 0.2]) + 0.002 * (np.ones((3, 3)) - np.eye(3)))
    mech.add_body("rocker", 1.5, (0.0, 0.1, 0.2), (0.1, 0.08, 0.03))
    mech.add_joint("motor", mbs.Revolute((0, 0, 1)), "world", "crank")
    mech.add_joint("cross", mbs.Universal((0, 1, 0), (0.6, 0, 0.8)), "crank", "coupler", mbs.Pose((0.2, 0, 0)))
    mech.add_joint("pivot", mbs.Revolute((0, 0.8, 0.6)), "world", "rocker", mbs.Pose((0.8, 0.1, -0.4)))
    pose = mbs.Pose((0.0, 0.0, 0.4), (1.0, 0.1, 0.2, 0.0))
    mech.close_loop("ball", mbs.Spherical(), "coupler", "rocker", mbs.Pose((0.6, 0, 0)), pose)
    mech.add_force("spring", mbs.LinearSpring("crank", "rocker", stiffness=30.0, rest_length=0.5, damping=1.0))
    return mech


MODELS = {
    "double pendulum": lambda: mbs.library.chain(2, axes=((0, 1, 0),)).build(),
    "point masses": lambda: mbs.library.double_pendulum().build(),
    "crank-slider": lambda: mbs.library.crank_slider().build(),
    "solar array": lambda: mbs.library.solar_array_linkage().build(),
    "spatial loop": lambda: spatial_loop().build(),
    "grounded tree": lambda: first_tree(
        {"Universal", "Spherical", "Prismatic", "Fixed"}, ("Revolute", "Universal", "Spherical", "Prismatic", "Fixed")
    ),
    "free tree": lambda: first_tree(
        {"Free", "Cylindrical", "Helical", "Planar"}, ("Free", "Cylindrical", "Helical", "Planar", "Universal")
    ),
}


def first_tree(wanted, kinds, n=5):
    """The first random tree that has all wanted joints, a joint on the world that holds, and a branch."""
    for seed in range(1000):
        m = random_mechanism(seed, n, kinds=kinds, massless=0.0, free_base="Free" in kinds)
        chain = all(j.parent in ("world", m.joints[i - 1].child) for i, j in enumerate(m.joints))
        if wanted <= {j.kind for j in m.joints} and not chain:
            return build(m)
    raise LookupError(wanted)


@functools.cache
def case(name):
    """(model, q, v, tau): a consistent state."""
    model = MODELS[name]()
    rng = np.random.default_rng(len(name))
    q = np.asarray(model.random(jax.random.key(len(name))))
    v, tau = rng.normal(size=(2, model.nv))
    if model.loop_names:
        q, v = closed(name, model, np.asarray(model.neutral()) + 0.3 * rng.normal(size=model.nq), v)
    return model, jnp.asarray(q), jnp.asarray(v), jnp.asarray(tau)


def closed(name, model, q, v):
    """The state next to (q, v) that closes the loops (tree joints with v = dq/dt): Newton, then the velocities."""
    zero, rows = np.zeros(model.nv), np.zeros(0)
    for k in range(12):
        s, _ = equations(name)(model, q, zero, zero)
        tree = sum(s.counts[: len(model.joint_names)])
        J = np.asarray(s.Q)[tree:] @ motion(model, q, zero, zero)[1]
        rows = np.asarray(s.residual[s.rows])[tree:]
        if k < 11:
            q = q - np.linalg.pinv(J) @ rows
    assert np.abs(rows).max() < 1e-14
    return q, v - np.linalg.pinv(J) @ (J @ v)


@functools.cache
def equations(name, planar=False):
    """Function (model, q, v, tau) -> (system, {solver: (X", multipliers)})."""

    def both(model, q, v, tau):
        s = mbs.absolute.system(model, q, v, tau, planar=planar)
        return s, all_solvers(s)

    return quick(both)


def motion(model, q, v, a):
    """(X", P) of the generalized accelerations a, with X' = P v: the recursion on Python floats, nothing compiled."""
    s, state = model.structure, _state(model, q.tolist(), v.tolist())
    placed, carried, columns = {-1: IDENTITY}, {-1: ZERO_MOTION}, {-1: np.zeros((6, model.nv))}
    X, P = [], []
    for i, (link, m, B) in enumerate(zip(s.links, state.motions, state.tree.body_in_link, strict=True)):
        placed[i] = placed[link.parent] @ m.X
        carried[i] = m.X.motion_to_child(carried[link.parent]) + m.c
        for S, rate in zip(m.S, a[s.v_slices[i]].tolist(), strict=True):
            carried[i] += S * rate
        columns[i] = np.array([m.X.motion_to_child(_as_motion(c)).scalars() for c in columns[link.parent].T], float).T
        for k, S in enumerate(m.S, s.v_slices[i].start):
            columns[i][:, k] += S.scalars()
        to_com = Transform(B.rotation, B.point(state.tree.values[f"{link.body}.com"]))
        turn = placed[i].rotation @ B.rotation
        velocity, A = to_com.motion_to_child(m.V), to_com.motion_to_child(carried[i])
        X.append([*A.angular, *(turn @ (A.linear + velocity.angular.cross(velocity.linear)))])
        own = [to_com.motion_to_child(_as_motion(c)) for c in columns[i].T]
        P.append(np.array([[*c.angular, *(turn @ c.linear)] for c in own]).T)
    return np.array(X, float), np.concatenate(P)


def _as_motion(c):
    return Motion(Vector3.of(c[:3].tolist()), Vector3.of(c[3:].tolist()))


def joint_reactions(model, q, v, a):
    """Wrenches (n, 6) of `mbs.joint_reactions`, on Python floats."""
    wrenches, _ = rnea.joint_wrenches(_state(model, q.tolist(), v.tolist()), a.tolist())
    return np.array([w.scalars() for w in wrenches], float)


def all_solvers(s):
    """{solver: (X", multipliers)} of a system."""
    return {name: (X, multipliers[s.rows]) for name in SOLVERS for X, multipliers in [SOLVERS[name](s)]}


@functools.cache
def solved(name, planar=False):
    """(system, {solver: (X", multipliers)}) of a case."""
    return equations(name, planar)(*case(name))
