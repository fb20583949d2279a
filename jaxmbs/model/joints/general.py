"""The joint that users define by two functions [Y 3.4]."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.given import Rows, Vector
from jaxmbs.model.joints.base import Joint, JointMotion, Numbers, Scalars
from jaxmbs.model.joints.equations import rows_of_function
from jaxmbs.model.rows import Row
from jaxmbs.spatial import Matrix3, Motion, Transform, Vector3
from jaxmbs.spatial.scalar import Scalar, is_number


@element
class General(Joint):
    """Any joint with 1 to 6 degrees of freedom, rheonomic if the functions use t [Y 3.99-3.105].

    q and v = dq/dt have shape (dof,). Derivatives come from JAX; the functions must be smooth and written with
    jax.numpy. The frames should coincide at q = 0, t = 0. A closure is needed to close a loop with the joint [Y 3.194].

    When a function of the model is first called, ModelError is raised if z or G has a wrong shape, or if G is not a rotation
    at q = 0 or at one of two points near it. At other q, the matrix G is not checked.

    >>> slope = lambda q, t: jnp.stack([q[0], 0 * q[0], -(q[0] ** 2)])  # a parabola
    >>> mech = mbs.Mechanism("bead", gravity=(0, 0, -9.81))
    >>> mech.add_body("bead", mass=1.0)
    >>> mech.add_joint("wire", mbs.General(slope, lambda q, t: jnp.eye(3), dof=1), "world", "bead")
    >>> print(mbs.mass_matrix(mech.build(), [0.5]))
    [[2.]]
    """

    z: Callable[[jax.Array, jax.Array], Vector] = field(
        Kind.FUNCTION, "m", "(q, t) -> (3,), position of the child joint frame in the parent joint frame"
    )
    G: Callable[[jax.Array, jax.Array], Rows | jax.Array] = field(
        Kind.FUNCTION, "", "(q, t) -> (3, 3), rotation from child to parent joint frame"
    )
    dof: int = field(Kind.COUNT, "", "number of coordinates")
    closure: Callable[[jax.Array, jax.Array, jax.Array], Vector] | None = field(
        Kind.FUNCTION, "", "(z, G, t) -> (6 - dof,) of position and rotation, zero where the joint can be", default=None
    )

    formulas: ClassVar[bool] = False

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
    def rheonomic(self) -> bool:  # type: ignore[override]
        return _uses(self.z, ((self.dof,), ()), (1,)) or _uses(self.G, ((self.dof,), ()), (1,))

    @property
    def rheonomic_rows(self) -> bool:  # type: ignore[override]
        return self.closure is not None and _uses(self.closure, ((3,), (3, 3), ()), (2,))

    @property
    def fixed_hinge_point(self) -> bool:  # type: ignore[override]
        return not _uses(self.z, ((self.dof,), ()), (0, 1))

    def motion(self, p: Numbers, q: Scalars, v: Scalars, t: Scalar) -> JointMotion:
        if any(isinstance(x, jax.Array) for x in (*q, *v, t)):
            return _motion(self, q, v, t)
        if not all(is_number(x) for x in (*q, *v, t)):
            raise ModelError("a General joint cannot be written out with symbols, because its functions need numbers")
        with jax.enable_x64(True):
            leaves, treedef = jax.tree_util.tree_flatten(_motion(self, q, v, t))
            return treedef.unflatten([float(x) for x in leaves])

    @property
    def closes_loops(self) -> bool:
        return self.closure is not None

    def rows(self, p: Numbers, X: Transform, V: Motion, t: Scalar) -> tuple[Row, ...]:
        if self.closure is None:
            raise self.lacks("equations")
        return rows_of_function(self.closure, 6 - self.dof, X, V, t)

    def lacks(self, method: str) -> ModelError:
        if method != "equations":
            return super().lacks(method)
        return ModelError(
            "a General joint needs its constraint equations to close a loop: pass General(z, G, dof, closure=f) with a "
            "function f(z, G, t) -> (6 - dof,) that is zero in every placement that the joint allows"
        )

    def fault(self) -> str | None:
        return _fault(self)


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


PLACES = np.array([0.0, 0.3, -0.2])  # values of every coordinate and time at which G is checked
TOLERANCE = 1e-4  # of the entries of G Gᵀ - 1; the functions may use single precision


@functools.lru_cache(maxsize=256)
def _fault(joint: General) -> str | None:
    """What is wrong with the shapes of z and G, or with G at q = 0 and nearby, or None; points where G is not finite are
    skipped."""
    for name, function, shape in (("z", joint.z, (3,)), ("G", joint.G, (3, 3))):
        found = jax.eval_shape(lambda *x, f=function: jnp.asarray(f(*x)), *_shapes(((joint.dof,), ())))
        if found.size != np.prod(shape):
            return f"{name} returned shape {found.shape}; it must return {shape}"
    q = np.arange(1, joint.dof + 1) ** 0.5 * PLACES[:, None]
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        try:
            G = np.asarray(jax.jit(jax.vmap(lambda q, t: jnp.asarray(joint.G(q, t))))(q, PLACES), float)
        except jax.errors.JAXTypeError:  # the function uses traced numbers
            return None
    for at, R in zip(q, G.reshape(-1, 3, 3), strict=True):
        if not np.all(np.isfinite(R)):
            continue
        off = np.abs(R @ R.T - np.eye(3)).max()
        if off > TOLERANCE or np.linalg.det(R) < 0:
            return (
                f"at q = {at.round(3).tolist()} G is not a proper rotation matrix (G Gᵀ differs from 1 by {off:.1e}, "
                f"det {np.linalg.det(R):+.3f}); return the rotation from the child to the parent joint frame"
            )
    return None


@functools.lru_cache(maxsize=256)
def _uses(function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...], which: tuple[int, ...]) -> bool:
    """Whether the results of a function of arrays of these shapes depend on the arguments `which`, according to its
    traced program."""
    program = jax.make_jaxpr(function)(*_shapes(shapes)).jaxpr
    reached = {program.invars[k] for k in which}
    for equation in program.eqns:
        if any(x in reached for x in equation.invars if not hasattr(x, "val")):
            reached.update(equation.outvars)
    return any(x in reached for x in program.outvars if not hasattr(x, "val"))


def _shapes(shapes: tuple[tuple[int, ...], ...]) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
