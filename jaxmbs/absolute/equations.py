"""Elementary constraint equations between two bodies i and j: Q_i X_i" + Q_j X_j" = b [Y 2.3-2.5].

All functions take and return batches with one row per equation. In space X' = (omega, r'): the angular velocity in body
axes and the velocity of the centre of mass in inertial axes (the source writes r' first); in a plane X' = (x', y', phi').
A is body to inertial axes. Corrections to the printed source: (2.29) has Q_i = (0, -n'), Q_j = (0, n' A_i' A_j) and
b = n' [omega_i]x A_i' A_j omega_j; b of (2.43) contains A, not its derivative.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.formulations.system import apply
from jaxmbs.model.shapes import Float


class Body(NamedTuple):
    """A batch of bodies: centres of mass r, axes A, angular velocities omega (body axes), velocities v of the centres.

    Space: (e, 3), (e, 3, 3), (e, 3), (e, 3). Plane: (e, 2), (e, 2, 2), (e,), (e, 2).

    >>> still = jnp.zeros((1, 3))
    >>> body = mbs.absolute.Body(r=still, A=jnp.eye(3)[None], omega=still, v=still)
    >>> body.at(slice(0, 1)).A.shape
    (1, 3, 3)
    """

    r: Float[jax.Array, "e d"]
    A: Float[jax.Array, "e d d"]
    omega: Float[jax.Array, "e ..."]
    v: Float[jax.Array, "e d"]

    def at(self, rows: object) -> Body:
        """The bodies of the given rows (any index of an array)."""
        return Body(*(x[rows] for x in self))


class Equation(NamedTuple):
    """A batch of equations Q_i X_i" + Q_j X_j" = b: the second time derivative of their residuals is zero.

    Q_i, Q_j (e, 6) or (e, 3); b (e,); residual (e,), in m, or in rad for small rotations.

    >>> still, x = jnp.zeros((1, 3)), jnp.array([[1.0, 0.0, 0.0]])
    >>> body = mbs.absolute.Body(still, jnp.eye(3)[None], still, still)
    >>> mbs.absolute.relative_rotation(body, body, x, still).Q_j.shape
    (1, 6)
    """

    Q_i: Float[jax.Array, "e k"]
    Q_j: Float[jax.Array, "e k"]
    b: Float[jax.Array, " e"]
    residual: Float[jax.Array, " e"]


def point_plane(
    i: Body, j: Body, n: Float[jax.Array, "e 3"], p: Float[jax.Array, "e 3"], rho: Float[jax.Array, "e 3"]
) -> Equation:
    """A point of body j stays in a plane of body i [Y 2.22].

    n, p (e, 3): the normal and a point of the plane, in axes of i, p from the centre of mass of i; rho (e, 3): the
    point of j, in axes of j, from the centre of mass of j. The multiplier is the force on j along n [N].

    >>> still, x = jnp.zeros((1, 3)), jnp.array([[1.0, 0.0, 0.0]])
    >>> body = mbs.absolute.Body(still, jnp.eye(3)[None], still, still)
    >>> print(mbs.absolute.point_plane(body, body, n=x, p=still, rho=0.2 * x).residual)  # 0.2 m off the plane
    [0.2]
    """
    arm = apply(j.A, rho)
    rho_i = _seen(i, j.r + arm - i.r)
    rate = _seen(i, j.v + apply(j.A, jnp.cross(j.omega, rho)) - i.v)
    direction = apply(i.A, n)
    n_j = _seen(j, direction)
    Q_i = jnp.concatenate([jnp.cross(n, rho_i), -direction], axis=1)
    Q_j = jnp.concatenate([jnp.cross(rho, n_j), direction], axis=1)
    own = 2 * jnp.cross(i.omega, rate) - jnp.cross(i.omega, jnp.cross(i.omega, rho_i))
    b = _dot(n, own) - _dot(n_j, jnp.cross(j.omega, jnp.cross(j.omega, rho)))
    return Equation(Q_i, Q_j, b, _dot(n, rho_i - p))


def relative_rotation(i: Body, j: Body, n: Float[jax.Array, "e 3"], turned: Float[jax.Array, "e 3"]) -> Equation:
    """Body j does not turn relative to body i about n (e, 3), fixed in i [Y 2.28, 2.29]. The multiplier is in N m.

    One such equation alone is nonholonomic; two or three of them in a joint together keep a small rotation `turned` (e, 3)
    of j relative to i, in axes of i, at zero (see `small_rotation`).

    >>> still, x = jnp.zeros((1, 3)), jnp.array([[1.0, 0.0, 0.0]])
    >>> body = mbs.absolute.Body(still, jnp.eye(3)[None], still, still)
    >>> print(mbs.absolute.relative_rotation(body, body, n=x, turned=0.1 * x).residual)
    [0.1]
    """
    n_j = _seen(j, apply(i.A, n))
    zero = jnp.zeros_like(n)
    Q_i, Q_j = jnp.concatenate([-n, zero], axis=1), jnp.concatenate([n_j, zero], axis=1)
    b = _dot(n, jnp.cross(i.omega, _seen(i, apply(j.A, j.omega))))
    return Equation(Q_i, Q_j, b, _dot(n, turned))


def small_rotation(C: jax.Array, G: jax.Array) -> jax.Array:
    """Small rotation (e, 3) of the rotation matrix C (e, 3, 3), in the axes to which C transforms: the sum of u x (C u)
    over some vectors u.

    G: the sum of u u' over these vectors: a a' if only an axis a is to stay parallel, half the unit matrix if all
    directions are.
    """
    M = C @ G
    return jnp.stack([M[:, 2, 1] - M[:, 1, 2], M[:, 0, 2] - M[:, 2, 0], M[:, 1, 0] - M[:, 0, 1]], axis=1)


def constant_angle(
    i: Body, j: Body, u: Float[jax.Array, "e 3"], w: Float[jax.Array, "e 3"], cosine: Float[jax.Array, " e"]
) -> Equation:
    """u (e, 3), fixed in i, and w (e, 3), fixed in j, keep the angle between them: u . w = cosine (e,).

    This is the equation of a universal joint: the relative angular velocity has no component along n = w x u, which is
    fixed in neither body. With n fixed in one of them, (2.28) would be a nonholonomic constraint, which is not the
    derivative of any function of the orientations, so that the axes would drift apart. The multiplier is the torque on j
    along w x u [N m].

    >>> still, x = jnp.zeros((1, 3)), jnp.array([[1.0, 0.0, 0.0]])
    >>> body = mbs.absolute.Body(still, jnp.eye(3)[None], still, still)
    >>> print(mbs.absolute.constant_angle(body, body, u=x, w=x, cosine=jnp.array([0.9])).residual.round(3))
    [0.1]
    """
    w_i = _seen(i, apply(j.A, w))
    omega_j = _seen(i, apply(j.A, j.omega))
    axis, relative = jnp.cross(w_i, u), omega_j - i.omega
    zero = jnp.zeros_like(u)
    Q_i = jnp.concatenate([-axis, zero], axis=1)
    Q_j = jnp.concatenate([_seen(j, apply(i.A, axis)), zero], axis=1)
    # seen from i, only w turns, with the relative angular velocity; omega_j is fixed in j except for its own rate
    b = _dot(axis, jnp.cross(i.omega, omega_j)) - _dot(jnp.cross(jnp.cross(relative, w_i), u), relative)
    return Equation(Q_i, Q_j, b, _dot(w_i, u) - cosine)


def point_line(
    i: Body, j: Body, n: Float[jax.Array, "e 2"], p: Float[jax.Array, "e 2"], rho: Float[jax.Array, "e 2"]
) -> Equation:
    """In a plane, a point of body j stays on a line of body i [Y 2.43].

    n, p, rho (e, 2): normal and a point of the line, and the point of j, as in `point_plane`.

    >>> still, x = jnp.zeros((1, 2)), jnp.array([[1.0, 0.0]])
    >>> body = mbs.absolute.Body(still, jnp.eye(2)[None], jnp.zeros(1), still)
    >>> print(mbs.absolute.point_line(body, body, n=x, p=still, rho=0.2 * x).residual)
    [0.2]
    """
    arm = apply(j.A, rho)
    offset = j.r + arm - i.r
    rate = j.v + j.omega[:, None] * _quarter(arm) - i.v
    direction = apply(i.A, n)
    Q_i = jnp.concatenate([-direction, -_dot(direction, _quarter(offset))[:, None]], axis=1)
    Q_j = jnp.concatenate([direction, _dot(direction, _quarter(arm))[:, None]], axis=1)
    own = i.omega[:, None] ** 2 * offset + 2 * i.omega[:, None] * _quarter(rate)
    b = _dot(direction, own + j.omega[:, None] ** 2 * arm)
    return Equation(Q_i, Q_j, b, _dot(n, _seen(i, offset) - p))


def equal_angles(i: Body, j: Body, turned: Float[jax.Array, " e"]) -> Equation:
    """In a plane, bodies i and j turn together: phi_j - phi_i = const [Y 2.32]; turned (e,): the deviation from it.

    >>> still = jnp.zeros((1, 2))
    >>> body = mbs.absolute.Body(still, jnp.eye(2)[None], jnp.zeros(1), still)
    >>> print(mbs.absolute.equal_angles(body, body, turned=jnp.array([0.1])).Q_j)
    [[0. 0. 1.]]
    """
    zero, one = jnp.zeros_like(i.v), jnp.ones_like(i.omega)[:, None]
    Q = jnp.concatenate([zero, one], axis=1)
    return Equation(-Q, Q, jnp.zeros_like(i.omega), turned)


def combined(a: Equation, b: Equation, weight: jax.Array) -> Equation:
    """a + weight b, weight (e,)."""
    return Equation(*(x + weight.reshape(-1, *[1] * (x.ndim - 1)) * y for x, y in zip(a, b, strict=True)))


def _seen(body: Body, x: jax.Array) -> jax.Array:
    """Vectors x, given in inertial axes, in the axes of the body."""
    return jnp.einsum("exy,ex->ey", body.A, x)


def _dot(a: jax.Array, b: jax.Array) -> jax.Array:
    return (a * b).sum(axis=-1)


def _quarter(x: jax.Array) -> jax.Array:
    """Omega x: plane vectors rotated by a right angle."""
    return jnp.stack([-x[..., 1], x[..., 0]], axis=-1)
