"""The joint that users define by two functions [Y 3.4]."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.model.errors import ModelError
from jaxmbs.model.fields import element, field
from jaxmbs.model.joints.base import Joint, JointMotion
from jaxmbs.model.kinds import Kind
from jaxmbs.spatial import Matrix3, Motion, Transform, Vector3
from jaxmbs.spatial.scalar import Scalar


@element
class General(Joint):
    """Any joint of 1 to 6 freedoms, rheonomic if the functions use t [Y 3.99-3.105].

    q and v = dq/dt have shape (dof,). Derivatives come from JAX; the functions must be smooth and written with
    jax.numpy. The frames should coincide at q = 0, t = 0. A closure is needed to close a loop with the joint [Y 3.194].

    >>> slope = lambda q, t: jnp.stack([q[0], 0 * q[0], -(q[0] ** 2)])  # a parabola
    >>> mech = mbs.Mechanism("bead", gravity=(0, 0, -9.81))
    >>> mech.add_body("bead", mass=1.0)
    >>> mech.add_joint("wire", mbs.General(slope, lambda q, t: jnp.eye(3), dof=1), "world", "bead")
    >>> print(mbs.mass_matrix(mech.build(), [0.5]))
    [[2.]]
    """

    z: Callable[[jax.Array, jax.Array], Any] = field(
        Kind.FUNCTION, "m", "(q, t) -> (3,), position of the child joint frame in the parent joint frame"
    )
    G: Callable[[jax.Array, jax.Array], Any] = field(
        Kind.FUNCTION, "", "(q, t) -> (3, 3), rotation from child to parent joint frame"
    )
    dof: int = field(Kind.COUNT, "", "number of coordinates")
    closure: Callable[[jax.Array, jax.Array, jax.Array], Any] | None = field(
        Kind.FUNCTION, "", "(z, G, t) -> (6 - dof,) of position and rotation, zero where the joint can be", default=None
    )

    def __post_init__(self) -> None:
        if not (isinstance(self.dof, int) and 1 <= self.dof <= 6):
            raise ModelError(f"General joint: dof is {self.dof!r}; a joint has 1 to 6 degrees of freedom")
        for name, function in (("z", self.z), ("G", self.G), ("closure", self.closure)):
            if not callable(function) and not (name == "closure" and function is None):
                arguments = "(z, G, t)" if name == "closure" else "(q, t)"
                raise ModelError(f"General joint: {name} is {function!r}; pass a function {arguments}")

    @property
    def nq(self) -> int:  # type: ignore[override]
        return self.dof

    @property
    def nv(self) -> int:  # type: ignore[override]
        return self.dof

    @property
    def rheonomic(self) -> bool:
        return _uses_time(self)

    def motion(self, p: Mapping[str, Any], q: Sequence[Scalar], v: Sequence[Scalar], t: Scalar) -> JointMotion:
        if any(isinstance(x, jax.Array) for x in (*q, *v, t)):
            return _motion(self, q, v, t)
        if not all(isinstance(x, (int, float)) for x in (*q, *v, t)):
            raise ModelError("a General joint cannot be written out with symbols; its functions need numbers")
        with jax.enable_x64(True):
            leaves, treedef = jax.tree_util.tree_flatten(_motion(self, q, v, t))
            return treedef.unflatten([float(x) for x in leaves])


def _vee(W: jax.Array) -> jax.Array:
    """Vector of a skew matrix (the mean of its two copies)."""
    return jnp.stack([W[2, 1] - W[1, 2], W[0, 2] - W[2, 0], W[1, 0] - W[0, 1]]) / 2


def _motion(joint: General, q: Sequence[Scalar], v: Sequence[Scalar], t: Scalar) -> JointMotion:
    dtype = jnp.result_type(*(x for x in (*q, *v) if isinstance(x, jax.Array)), jnp.float32)
    if not any(isinstance(x, jax.Array) for x in (*q, *v)):
        dtype = jnp.result_type(float)
    qa, va = jnp.stack([jnp.asarray(x, dtype) for x in q]), jnp.stack([jnp.asarray(x, dtype) for x in v])
    ta = jnp.asarray(t, dtype)

    def placement(q: jax.Array, t: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.asarray(joint.z(q, t), dtype).reshape(3), jnp.asarray(joint.G(q, t), dtype).reshape(3, 3)

    def velocity(q: jax.Array, t: jax.Array, rate: jax.Array, flow: jax.Array) -> jax.Array:
        (_, G), (dz, dG) = jax.jvp(placement, (q, t), (rate, flow))
        return jnp.concatenate([_vee(G.T @ dG), G.T @ dz])

    one, zero = jnp.ones_like(ta), jnp.zeros_like(ta)
    z, G = placement(qa, ta)
    columns = [velocity(qa, ta, e, zero) for e in jnp.eye(joint.dof, dtype=dtype)]
    vel, bias = jax.jvp(lambda q, t: velocity(q, t, va, one), (qa, ta), (va, one))
    return JointMotion(
        Transform(Matrix3.of(list(G.reshape(9))), Vector3.of(list(z))),
        tuple(_as_motion(c) for c in columns),
        _as_motion(vel),
        _as_motion(bias),
    )


def _as_motion(x: jax.Array) -> Motion:
    return Motion(Vector3(x[0], x[1], x[2]), Vector3(x[3], x[4], x[5]))


@functools.lru_cache(maxsize=256)
def _uses_time(joint: General) -> bool:
    """Whether the outputs of z or G depend on t, read from the traced program."""
    shape = jax.ShapeDtypeStruct
    closed = jax.make_jaxpr(lambda q, t: (joint.z(q, t), joint.G(q, t)))(
        shape((joint.dof,), jnp.float32), shape((), jnp.float32)
    )
    reached = {closed.jaxpr.invars[1]}
    for equation in closed.jaxpr.eqns:
        if any(x in reached for x in equation.invars if not hasattr(x, "val")):
            reached.update(equation.outvars)
    return any(x in reached for x in closed.jaxpr.outvars if not hasattr(x, "val"))
