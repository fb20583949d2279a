"""Cases for the dense formulations, and A, bias and accelerations of a method."""

import functools

import jax
import numpy as np

import jaxmbs as mbs
from jaxmbs.dynamics.formulations.methods import METHODS
from jaxmbs.dynamics.trees import _state
from tests.cases import case

# compiled once and run once: half the time without optimisation
quick = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
ROTATIONAL = ("Revolute", "Universal", "Spherical", "Fixed")
EXACT = 1e-11


@functools.cache
def rotational(n=3):
    """R, U, S and Fixed joints, two subtrees on the world."""
    return first_with(lambda c: roots(c) == 2 and len(kinds(c)) >= 3, n, kinds=ROTATIONAL, free_base=False)


@functools.cache
def free_and_rotational(n=4):
    """A free subtree beside a grounded one."""
    return first_with(
        lambda c: sum(j.kind == "Free" for j in c.mechanism.joints) == 1 and roots(c) == 2 and len(kinds(c)) >= 3,
        n, kinds=("Free", *ROTATIONAL), free_base=True,
    )  # fmt: skip


@functools.cache
def general(n=3):
    """Joints of every kind, none of them free and one General."""
    kind = ("Prismatic", "Cylindrical", "Planar", "Helical", "General", "Spherical")
    return first_with(
        lambda c: "General" in kinds(c) and len(kinds(c)) >= 3 and roots(c) == 1,
        n,
        kinds=kind,
        free_base=False,
        massless=0.0,
    )


@functools.cache
def free_and_general(n=3):
    kind = ("Free", "Prismatic", "Cylindrical", "Planar", "Spherical")
    return first_with(lambda c: len(kinds(c)) >= 3 and roots(c) == 1, n, kinds=kind, free_base=True, massless=0.0)


@functools.cache
def small_arm():
    """Three freedoms with springs and a cable: quick to compile. Joints "shoulder" (universal) and "elbow"."""
    mech = mbs.Mechanism("small arm", gravity=(1.0, 0.5, -9.81))
    mech.add_body("upper", 2.0, (0.05, 0, -0.15), (0.02, 0.03, 0.01))
    mech.add_body("lower", 1.2, (0, 0.02, -0.13), (0.015, 0.02, 0.01))
    mech.add_joint("shoulder", mbs.Universal((1, 0, 0), (0, 0.6, 0.8)), "world", "upper", mbs.Pose((0, 0.2, 0.4)))
    mech.add_joint("elbow", mbs.Revolute((0, 1, 0)), "upper", "lower", mbs.Pose((0, 0.1, -0.3)))
    mech.add_force("spring", mbs.TorsionSpring("elbow", stiffness=1.0, damping=0.05, rest_angle=-0.6))
    mech.add_force("friction", mbs.Damper("shoulder", 0.15))
    mech.add_force("cable", mbs.LinearSpring("lower", "world", (0, 0, -0.1), (1, 0, 0), stiffness=40.0, damping=2.0))
    return mech.build()


@functools.cache
def planar(n=5):
    """Revolutes about one axis and rigid connections, on two hinges of the world."""
    rng = np.random.default_rng(5)
    mech = mbs.Mechanism("planar", gravity=(1.0, -9.0, 2.0))
    parents = ["world", "b0", "b0", "world", "b3", "b4", "b5"][:n]
    for i, parent in enumerate(parents):
        mech.add_body(
            f"b{i}", rng.uniform(0.5, 2), rng.normal(size=3) * 0.2 * (i != 1), np.diag(rng.uniform(1, 1.5, 3))
        )
        joint = mbs.Fixed() if i == 2 else mbs.Revolute((0, 0, -1) if i == 1 else (0, 0, 1))
        mech.add_joint(
            f"j{i}", joint, parent, f"b{i}", mbs.Pose(rng.normal(size=3)), mbs.Pose(rng.normal(size=3) * 0.3)
        )
    return mech.build()


def first_with(wanted, n, **options):
    return next(c for c in (case(seed, n, **options) for seed in range(500, 900)) if wanted(c))


def kinds(c):
    return {j.kind for j in c.mechanism.joints}


def roots(c):
    return sum(j.parent == "world" for j in c.mechanism.joints)


def all_roots_free(c):
    return sum(j.kind == "Free" for j in c.mechanism.joints) == roots(c)


def serving(model):
    """Names of the methods that can serve a model."""
    return [name for name, m in METHODS.items() if m.obstacle(model) is None]


def equations(model, names, q, v, t=0.0, mode=None):
    """{method: (A, bias)}, to be compiled together."""
    state = _state(model, q, v, t, mode)
    return {name: (METHODS[name].mass_matrix(state), METHODS[name].bias(state)) for name in names}


def directional(f, q, v, dq, dv):
    """(forward-mode, reverse-mode) derivative of a scalar function along a direction."""
    forward = jax.jvp(f, (q, v), (dq, dv))[1]
    gq, gv = jax.grad(f, argnums=(0, 1))(q, v)
    return forward, gq @ dq + gv @ dv
