"""Public functions of the dense formulations beyond A and bias: reactions, moving body 0, free systems, body loads."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.formulations import barycentric, configuration, general_joints, wittenburg
from jaxmbs.dynamics.formulations.free_systems import in_free_subtree
from jaxmbs.dynamics.formulations.moving_base import MovingBase
from jaxmbs.dynamics.formulations.system import System, refuse_constraints, system
from jaxmbs.dynamics.recursive import aba
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.calling import compiles_itself, vectors
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Model, ModelError
from jaxmbs.model.errors import unknown
from jaxmbs.model.given import Coordinates, GeneralizedForces, Number, Rates
from jaxmbs.model.refusals import refuse_armature, refuse_flexible
from jaxmbs.model.shapes import Float

_DENSE = ("barycentric", "configuration")


def _carried(function: str) -> str:
    """What to do instead where the base moves."""
    return (
        "let the mechanism stand on a body whose joint is locked, and prescribe the accelerations of this joint: "
        f"mbs.{function}(mode=model.mode(lock=[joint]), prescribed=...)"
    )


def _dense(method: str, model: Model) -> Any:
    """The module of the method, if it can serve the model."""
    if method not in _DENSE:
        raise unknown("method", method, _DENSE)
    if method == "configuration":
        return general_joints
    reason = wittenburg.obstacle(model)
    if reason:
        raise ModelError(f"method 'barycentric' does not support model {model.name!r}: {reason}; use 'configuration'")
    return wittenburg


def _system(model: Model, q: Any, v: Any, tau: Any, t: Any, base: MovingBase | None) -> tuple[State, System, jax.Array]:
    refuse_constraints(
        model, "dense formulations of bodies", "use mbs.constrained_dynamics, or mbs.joint_reactions without a method"
    )
    refuse_armature(
        model, "dense formulations of bodies", "use mbs.forward_dynamics or mbs.textbook.controlled_dynamics"
    )
    q, v, tau = vectors(model, q=q, v=v, tau=tau)
    state = State(Tree(model, q.dtype), q, v, t)
    s = system(state, base)
    if base is not None and in_free_subtree(s).any():
        free = [link.name for link in model.structure.links if link.parent < 0 and link.joint.free]
        raise ModelError(f"a moving base cannot carry bodies with Free joints, such as {free}; leave base out")
    return state, s, jnp.zeros_like(v) if tau is None else tau


def _accelerations(module: Any, s: System, tau: jax.Array) -> jax.Array:
    return jnp.linalg.solve(module.mass_matrix(s), tau - module.bias(s))


@compiles_itself("base", "method")
def moving_base_dynamics(
    model: Model,
    q: Coordinates,
    v: Rates,
    tau: GeneralizedForces | None = None,
    *,
    base: MovingBase,
    t: Number = 0.0,
    method: str = "configuration",
) -> Float[jax.Array, " nv"]:
    """Accelerations a (nv,) when body 0, the world of the model, moves as given [Y 3.88-3.89, 3.165].

    q (nq,), v (nv,): joint coordinates and rates, relative to body 0; tau (nv,) or None; base: its motion; method:
    "configuration" (any joint) or "barycentric" (rotational joints). Raises ModelError for a root on a Free joint,
    which the base does not carry, and for constraints, flexible bodies and armature.

    >>> model = mbs.library.double_pendulum().build()
    >>> cart = mbs.textbook.MovingBase(position=lambda t: jnp.stack([jnp.sin(t), 0 * t, 0 * t]))
    >>> print(mbs.textbook.moving_base_dynamics(model, [0.0, 0.0], [0.0, 0.0], base=cart, t=1.0).round(3))
    [ 0.841 -0.841]
    """
    refuse_flexible(model, "moving_base_dynamics", _carried("forward_dynamics"))
    module = _dense(method, model)
    _, s, tau = _system(model, q, v, tau, t, base)
    return _accelerations(module, wittenburg.hinged(s) if module is wittenburg else s, tau)


def reactions(
    model: Model, q: Any, v: Any, tau: Any, base: MovingBase | None, t: Any, method: str
) -> Float[jax.Array, "n 6"]:
    """`joint_reactions` from the explicit formulas for X^c and Y^c [Y 3.4, 3.86; W 3.1]."""
    refuse_flexible(
        model, f"joint_reactions with {'a method' if base is None else 'a base'}",
        "leave the method out" if base is None else _carried("joint_reactions"),
    )  # fmt: skip
    module = _dense(method, model)
    _, s, tau = _system(model, q, v, tau, t, base)
    s = wittenburg.hinged(s) if module is wittenburg else s
    X, Y = module.reactions(s, _accelerations(module, s, tau))
    return -jnp.concatenate([jnp.einsum("ixy,ix->iy", s.A, Y), jnp.einsum("ixy,ix->iy", s.A, X)], axis=1)


@compiles_itself("method")
def free_dynamics(
    model: Model,
    q: Coordinates,
    v: Rates,
    tau: GeneralizedForces | None = None,
    *,
    t: Number = 0.0,
    method: str = "barycentric",
) -> Float[jax.Array, " nv"]:
    """Accelerations a (nv,) of free systems, with centres of mass and rotations decoupled [Y 3.2.3, 3.4.5].

    At q (nq,), v (nv,) under tau (nv,) or None. Every joint on the world must be a Free joint. method: "barycentric"
    (the other joints are rotational [Y 3.64-3.67]) or "configuration" (any joints, [Y 3.4.5]). Raises ModelError for other
    joints, constraints, flexible bodies and armature.

    >>> model = mbs.library.stage_separation().build()
    >>> a = mbs.textbook.free_dynamics(model, model.neutral(), jnp.zeros(12), method="configuration")
    >>> print(a[model.v_slice("interface")][3].round(3))  # pushed off [m/s²]
    13.9
    """
    refuse_flexible(model, "free_dynamics")
    module = _dense(method, model)
    _, s, tau = _system(model, q, v, tau, t, None)
    if not in_free_subtree(s).all():
        held = [x.name for x in model.structure.links if x.parent < 0 and not x.joint.free]
        raise ModelError(f"free_dynamics: joints {held} connect bodies to the world; use forward_dynamics")
    if module is wittenburg:
        return wittenburg.free_accelerations(wittenburg.hinged(s), tau)
    return general_joints.fictitious_accelerations(s, tau)


@compiles_itself()
def body_loads(
    model: Model, q: Coordinates, v: Rates, tau: GeneralizedForces | None = None, *, t: Number = 0.0
) -> configuration.BodyLoads:
    """The loads on every body taken alone: the dynamically equivalent decomposition of [W 4], in world axes.

    For rotational joints, and Free joints on the world; at q (nq,), v (nv,) under tau (nv,) or None. For body i,
    about its inward hinge: momentum_rate_i = moment_i + c_i x at_centre_i + sum over the hinges j on it of
    b_j x at_hinge_j [W 4.2]. Raises ModelError for other joints, constraints, flexible bodies and armature.

    >>> model = mbs.library.double_pendulum().build()
    >>> print(mbs.textbook.body_loads(model, [0.0, 0.0], [0.0, 0.0]).at_centre.round(3))
    [[ 0.    0.   -9.81]
     [ 0.    0.   -9.81]]
    """
    refuse_flexible(model, "body_loads", "use mbs.joint_reactions")
    reason = wittenburg.obstacle(model)
    if reason:
        raise ModelError(f"body_loads: {reason}; use joint_reactions, which supports every joint")
    state, s, tau = _system(model, q, v, tau, t, None)
    s = wittenburg.hinged(s)
    a = state.tree.vector(aba.forward_dynamics(state, tau))
    return configuration.body_loads(s, a, wittenburg.reactions(s, a)[1])


class AugmentedBodies(NamedTuple):
    """Constants of the augmented bodies [Y 3.2]; those of body i are in the axes of its body frame.

    d (n, n, 3): d_ij; b (n, n, 3): b_ij; b0 (n, 3): b_i0 [m]; K (n, 3, 3): inertia about the inward hinge, K_i, or, in
    free systems, about the barycentre, K*_i [kg m²]. The barycentre lies at -b_ii from the centre of mass.

    >>> bodies = mbs.textbook.augmented_bodies(mbs.library.double_pendulum(mass_1=1.0, mass_2=2.0).build())
    >>> print(bodies.K[0].round(3))  # the upper rod with both masses
    [[3. 0. 0.]
     [0. 3. 0.]
     [0. 0. 0.]]
    """

    d: Float[jax.Array, "n n 3"]
    b: Float[jax.Array, "n n 3"]
    b0: Float[jax.Array, "n 3"]
    K: Float[jax.Array, "n 3 3"]


@compiles_itself()
def augmented_bodies(model: Model) -> AugmentedBodies:
    """The augmented bodies of a tree whose hinge points are fixed in both bodies; Free joints on the world are allowed.

    Raises ModelError for other joints and for flexible bodies.

    >>> bodies = mbs.textbook.augmented_bodies(mbs.library.double_pendulum().build())
    >>> bodies.d.shape, bodies.K.shape
    ((2, 2, 3), (2, 3, 3))
    """
    refuse_flexible(model, "augmented_bodies", barycentric.RIGID)
    reason = wittenburg.obstacle(model)
    if reason:
        raise ModelError(f"augmented_bodies: {reason}")
    dtype = jnp.result_type(float)
    q = jnp.asarray([c for link in model.structure.links for c in link.joint.neutral()], dtype)
    state = State(Tree(model, dtype), q, jnp.zeros(model.nv, dtype))
    s = wittenburg.hinged(system(state))
    of = barycentric.of_system(s)
    rows = [[jnp.asarray(x, dtype) for x in B.rotation] for B in state.tree.body_in_link]
    A = s.A @ jnp.stack([jnp.stack(row) for row in rows]).reshape(-1, 3, 3)
    K = jnp.einsum("iixy->ixy", barycentric.K(s, of))
    return AugmentedBodies(
        jnp.einsum("iyx,ijy->ijx", A, of.d), jnp.einsum("iyx,ijy->ijx", A, of.b), jnp.einsum("iyx,iy->ix", A, of.b0),
        jnp.swapaxes(A, 1, 2) @ K @ A,
    )  # fmt: skip
