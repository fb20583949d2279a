"""Small motions about a steady one, on the manifold of loops and nonholonomic constraints.

The equations A a + bias = tau + Jᵀ lambda, J v + free = 0, g = 0 are linearised in changes that the constraints allow: y,
that of the displacement (in the coordinates of v, moved by `integrate`), and u, that of the velocity. Nonholonomic rows
restrict only velocities, so that there are more y than u (a wheel can be put anywhere on the plane, but cannot slide there):

    M du/dt + C u + K y = Zᵀ dtau,    dy/dt = T u + S y

y and u are the changes of independent components of the displacement and of v; the others follow them. Multiplication
by Zᵀ, where the columns of Z are velocities that the rows allow, eliminates the changes of the multipliers; what
remains is the effect of the multipliers themselves, because Jᵀ changes with the displacement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics import integrate, mass_matrix, rates
from jaxmbs.dynamics.state.calling import compiles_itself, require_model, vector, vectors
from jaxmbs.model import Mode, Model
from jaxmbs.model.functions import check_arguments
from jaxmbs.model.given import Coordinates, GeneralizedForces, Law, Number, Rates, Vector
from jaxmbs.model.shapes import Complex, Float, Int
from jaxmbs.simulate import Status
from jaxmbs.stability.freedoms import count, locked, partition, positions
from jaxmbs.stability.loads import Load
from jaxmbs.stability.rows import Rows, rows


class Linearization(NamedTuple):
    """Linear equations of small motions: M du/dt + C u + K y = inputs dtau, dy/dt = T u + S y.

    u (n,): change of the independent speeds; y (m,): change of the independent displacements; m = n without
    nonholonomic rows, and then dy/dt = u: M y'' + C y' + K y = inputs dtau. M, C (n, n), K (n, m), inputs (n, nv),
    T (m, n), S (m, m). speeds (n,), displacements (m,): positions in v of the independent components, named by
    model.speeds. The basis, in the coordinates of v: the displacement is shapes y, shapes (nv, m), with a 1 for each
    independent component, and v changes by velocities u + carried y, (nv, n) and (nv, m). acceleration (nv,): that of
    the motion itself, zero if it is steady; status: int32, OK, INCONSISTENT (the state violates constraints), UNSTEADY,
    SINGULAR or NOT_FINITE.

    >>> model = mbs.library.double_pendulum().build()
    >>> linear = mbs.linearize(model, [0.0, 0.0])
    >>> A, B, C, D = linear.state_space()  # control.ss(A, B, C, D)
    >>> A.shape, B.shape
    ((4, 4), (4, 2))
    """

    M: Float[jax.Array, "n n"]
    C: Float[jax.Array, "n n"]
    K: Float[jax.Array, "n m"]
    inputs: Float[jax.Array, "n nv"]
    T: Float[jax.Array, "m n"]
    S: Float[jax.Array, "m m"]
    speeds: Int[jax.Array, " n"]
    displacements: Int[jax.Array, " m"]
    shapes: Float[jax.Array, "nv m"]
    velocities: Float[jax.Array, "nv n"]
    carried: Float[jax.Array, "nv m"]
    acceleration: Float[jax.Array, " nv"]
    status: Int[jax.Array, ""]

    def state_space(
        self,
    ) -> tuple[
        Float[jax.Array, "states states"],
        Float[jax.Array, "states nv"],
        Float[jax.Array, "outputs states"],
        Float[jax.Array, "outputs nv"],
    ]:
        """(A, B, C, D) of dx/dt = A x + B dtau, x = (y, u), with all displacements and velocities (2 nv,) as outputs."""
        n, m, nv = self.M.shape[0], self.K.shape[1], self.inputs.shape[1]
        right = jnp.linalg.solve(self.M, jnp.concatenate([-self.K, -self.C, self.inputs], 1))
        A = jnp.concatenate([jnp.concatenate([self.S, self.T], 1), right[:, : m + n]])
        B = jnp.concatenate([jnp.zeros((m, nv), A.dtype), right[:, m + n :]])
        above = jnp.concatenate([self.shapes, jnp.zeros((nv, n), A.dtype)], 1)
        C = jnp.concatenate([above, jnp.concatenate([self.carried, self.velocities], 1)])
        return A, B, C, jnp.zeros((2 * nv, nv), A.dtype)

    def response(self, frequencies: Number | Vector) -> Complex[jax.Array, "k outputs nv"]:
        """Complex response (k, 2 nv, nv) of displacements and velocities to dtau of unit amplitude; frequencies (k,) [Hz].

        At a natural frequency, the response of an undamped mechanism is unbounded.
        """
        A, B, C, _ = self.state_space()
        w = 2j * jnp.pi * jnp.atleast_1d(jnp.asarray(frequencies, A.dtype))
        wide = w[:, None, None] * jnp.eye(A.shape[0])[None] - A[None]
        states = jnp.linalg.solve(wide, jnp.broadcast_to(B[None], (w.shape[0], *B.shape)).astype(wide.dtype))
        return jnp.einsum("ij,kjl->kil", C.astype(wide.dtype), states)


def linearize(
    model: Model,
    q: Coordinates,
    v: Rates | None = None,
    tau: GeneralizedForces | Law | None = None,
    *,
    t: Number = 0.0,
    mode: Mode | None = None,
    fixed: Iterable[str] = (),
    independent: Iterable[str] | None = None,
) -> Linearization:
    """Small motions about rest or a steady motion: a `Linearization`, with M, C, K, inputs and the basis of the motion.

    q (nq,), v (nv,), None for rest: a state that satisfies loops and constraints and persists: an equilibrium (see
    `equilibrium`) or a steady motion, with constant v. tau: None, (nv,), or a function (model, t, q, v) -> (nv,), a
    control law, which is linearised along with the mechanism. fixed: names of joints that are held. independent: speeds
    ("hinge.angle_rate"), or joints, in whose changes the equations are written; None for those that the rows determine
    least, found by pivoting. The equations are exact, by automatic differentiation, and can be differentiated in both
    modes. Works under jit and vmap, where constraints that depend on one another need `independent`. Quaternions and
    free joints move in body axes, in which a steady rotation has constant coefficients. Raises ModelError for wrong
    shapes or names, and if nothing can move.

    >>> model = mbs.library.crank_slider().build()
    >>> q, *_ = mbs.assemble(model, [0.0, 0.0, 0.0])
    >>> linear = mbs.linearize(model, q, independent="bearing")
    >>> linear.M.shape, [model.speeds[int(k)].name for k in linear.speeds]
    ((1, 1), ['bearing.angle_rate'])
    """
    require_model(model, "linearize")
    q, v = vectors(model, q=q, v=v)
    dtype = q.dtype
    v = jnp.zeros(model.nv, dtype) if v is None else v
    held = positions(model, fixed, "linearize(fixed=...)") + locked(mode, "linearize")
    named = None if independent is None else positions(model, independent, "linearize(independent=...)")
    counts = count(model, _rows(model, q, v, t, mode, held=held), named, "linearize")
    law = tau if callable(tau) else None
    if law is not None:
        check_arguments(law, "linearize: tau")
    tau = None if callable(tau) or tau is None else vector(model, "tau", tau, model.nv, dtype)
    return _linearize(model, q, v, tau, t, mode, law=law, held=held, named=named, counts=counts)


@compiles_itself("held", as_rows=False)
def _rows(model: Model, q: Any, v: Any, t: Any, mode: Mode | None, *, held: tuple[int, ...]) -> Rows:
    return rows(model, q, v, t, mode, held)


@compiles_itself("law", "held", "named", "counts")
def _linearize(
    model: Model, q: Any, v: Any, tau: Any, t: Any, mode: Mode | None, *,
    law: Callable[..., Any] | None, held: tuple[int, ...], named: tuple[int, ...] | None, counts: tuple[int, int],
) -> Linearization:  # fmt: skip
    dtype, nv, (m, n) = q.dtype, model.nv, counts
    own = rows(model, q, v, t, mode, held)
    both = own.only(own.holonomic)
    kept = np.zeros(nv, bool)
    kept[list(named or ())] = True
    # holonomic rows determine the dependent displacements; nonholonomic rows determine some of the other speeds
    places = partition(both.J, nv - m, kept)
    shapes = places.basis(both.J)
    left = partition(own.J @ shapes, m - n, jnp.asarray(kept)[places.independent])
    speeds = places.independent[left.independent]
    ways = places._replace(
        independent=speeds, dependent=jnp.concatenate([places.dependent, places.independent[left.dependent]])
    )
    Z = ways.basis(own.J)

    load = Load(tau, law, t, mode)
    A = mass_matrix(model, q, t=t, mode=mode)
    M = Z.T @ A @ Z
    bias, needed = load.missing(model, q, v, jnp.zeros(nv, dtype)), ways.follow(own.J, -own.drift[:, None])[:, 0]
    a = needed - Z @ jnp.linalg.solve(M, Z.T @ (bias + A @ needed))
    multipliers = jnp.linalg.pinv(own.J.T) @ (bias + A @ a)

    def changed(y: Any, u: Any) -> tuple[Any, ...]:
        moved, rate = integrate(model, q, shapes @ y), v + u
        here = rows(model, moved, rate, t, mode, held)
        force = load.missing(model, moved, rate, a) - here.J.T @ multipliers
        return force, here.J @ a + here.drift, here.velocity

    (force_y, force_u), (drift_y, drift_u), (velocity_y, _) = jax.jacfwd(changed, (0, 1))(
        jnp.zeros(m, dtype), jnp.zeros(nv, dtype)
    )
    W = ways.follow(own.J, -velocity_y)
    turning = _turning(model, q, v)
    S, T = (W + turning @ shapes)[places.independent], Z[places.independent]
    # accelerations that the rows require, in addition to those of the independent speeds
    along_y = ways.follow(own.J, -(drift_y + drift_u @ W))
    along_u = ways.follow(own.J, -drift_u @ Z)
    C = Z.T @ (force_u @ Z + A @ along_u)
    K = Z.T @ (force_y + force_u @ W + A @ along_y)
    if m == n:  # speeds are rates of the displacements: u = T⁻¹ (dy/dt - S y), and T is 1
        C, K, W = C - M @ S, K - C @ S, W - Z @ S
        S = jnp.zeros_like(S)
    eps = float(jnp.finfo(dtype).eps)
    off = jnp.maximum(_largest(own.residual), _largest(own.velocity))
    size = jnp.minimum(places.size, left.size)
    status = Status.of(
        (~jnp.isfinite(jnp.sum(M) + jnp.sum(C) + jnp.sum(K)), Status.NOT_FINITE),
        (~(off <= eps**0.5 * (1 + _largest(v))), Status.INCONSISTENT),
        (~(size >= eps**0.5), Status.SINGULAR),
        (~(_largest(a) <= eps**0.5 * (1 + _largest(v) ** 2)), Status.UNSTEADY),
    )
    return Linearization(M, C, K, Z.T, T, S, speeds, places.independent, shapes, Z, W, a, status)


def _turning(model: Model, q: Any, v: Any) -> jax.Array:
    """L (nv, nv) in dx/dt = dv + L x, with x the displacement between two motions and dv the difference of their v.

    L x is there because the axes of x move with v: x changes even if both motions have the same constant v.
    """

    def along(x: Any) -> jax.Array:
        return jax.jvp(lambda d: rates(model, integrate(model, q, d), v), (jnp.zeros_like(v),), (x,))[1]

    E = jax.jacfwd(lambda v: rates(model, q, v))(v)
    moves = jax.vmap(along, 1, 1)(jnp.eye(model.nv, dtype=v.dtype))
    carried = jax.jvp(lambda q: jax.jacfwd(lambda v: rates(model, q, v))(v), (q,), (rates(model, q, v),))[1]
    return jnp.linalg.solve(E.T @ E, E.T @ (moves - carried)) if E.size else jnp.zeros((0, 0), v.dtype)


def _largest(x: Any) -> Any:
    return jnp.max(jnp.abs(x), initial=0.0)
