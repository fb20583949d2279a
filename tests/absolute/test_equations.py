"""The elementary equations against derivatives along a motion of two bodies."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbs import absolute
from jaxmbs.absolute.equations import small_rotation
from tests.absolute.helpers import quick

RNG = np.random.default_rng(7)
ARMS = jnp.asarray(RNG.normal(size=(3, 1, 3)))
TWISTS, SHIFTS = RNG.normal(size=(2, 2, 3, 3))  # per body: coefficients of 1, t, t²
COSINE = jnp.asarray([0.3])


def axes(c):
    """Cayley's rotation by the vector 2 c."""
    K = jnp.cross(c[None] * jnp.ones((3, 1)), jnp.eye(3))
    return jnp.eye(3) + 2 / (1 + c @ c) * (K.T + K.T @ K.T)


def bodies(t):
    """Both bodies in a smooth motion; velocities by differentiation."""
    out = []
    for twist, shift in zip(TWISTS, SHIFTS, strict=True):

        def placed(t, twist=twist, shift=shift):
            powers = jnp.stack([jnp.ones_like(t), t, t * t])
            return powers @ shift, axes(0.4 * powers @ twist)

        (r, A), (v, dA) = jax.jvp(placed, (t,), (jnp.ones_like(t),))
        W = A.T @ dA
        omega = jnp.stack([W[2, 1], W[0, 2], W[1, 0]])
        out.append(absolute.Body(*(x[None] for x in (r, A, omega, v))))
    return out


def in_plane(body):
    """A plane body that borrows the spatial one's numbers: r, v in xy and the angle x + y."""
    angle, rate = body.r[:, 0] + body.r[:, 1], body.v[:, 0] + body.v[:, 1]
    A = jnp.stack([jnp.stack([jnp.cos(angle), -jnp.sin(angle)], 1), jnp.stack([jnp.sin(angle), jnp.cos(angle)], 1)], 1)
    return absolute.Body(body.r[:, :2], A, rate, body.v[:, :2])


def aligned(i, j):
    return small_rotation(jnp.swapaxes(i.A, 1, 2) @ j.A, 0.5 * jnp.eye(3)[None])


SPACE = {
    "point_plane": lambda i, j: absolute.point_plane(i, j, *ARMS),
    "constant_angle": lambda i, j: absolute.constant_angle(i, j, ARMS[0], ARMS[1], COSINE),
    "relative_rotation": lambda i, j: absolute.relative_rotation(i, j, ARMS[0], aligned(i, j)),
}
PLANE = {
    "point_line": lambda i, j: absolute.point_line(i, j, *ARMS[..., :2]),
    "equal_angles": lambda i, j: absolute.equal_angles(i, j, j.r[:, 0] + j.r[:, 1] - i.r[:, 0] - i.r[:, 1]),
}


@pytest.mark.parametrize("name", [*SPACE, *PLANE])
def test_right_hand_side_is_what_the_accelerations_leave(name):
    """d/dt (Q X') = Q X" - b; and the residual's rate is Q X' (of a rotation: where it is small)."""
    flat = name in PLANE

    def state(t):
        i, j = map(in_plane, bodies(t)) if flat else bodies(t)
        velocity = [
            jnp.concatenate([b.v, b.omega[:, None]] if flat else [b.omega, b.v], axis=1)[0] for b in (i, j)
        ]  # fmt: skip
        e = (PLANE if flat else SPACE)[name](i, j)
        return e, velocity, e.Q_i[0] @ velocity[0] + e.Q_j[0] @ velocity[1]

    def all_of(t):
        (e, _, rate), (de, a, drift) = jax.jvp(state, (t,), (jnp.ones_like(t),))
        return rate, de.residual[0], drift, e.Q_i[0] @ a[0] + e.Q_j[0] @ a[1] - e.b[0]

    rate, slope, drift, want = quick(all_of)(jnp.asarray(0.37))
    np.testing.assert_allclose(drift, want, rtol=1e-11)
    if name != "relative_rotation":
        np.testing.assert_allclose(slope, rate, rtol=1e-11)


def test_a_small_rotation_has_the_rate_of_its_equation():
    i, _ = bodies(jnp.asarray(0.2))
    omega = ARMS[1, 0]
    i = i._replace(omega=jnp.zeros((1, 3)))

    def equation(s):
        j = i._replace(A=i.A @ axes(s * omega / 2)[None], omega=omega[None])
        e = absolute.relative_rotation(i, j, ARMS[0], aligned(i, j))
        return e.residual[0], e.Q_j[0, :3] @ omega

    (_, rate), (slope, _) = quick(lambda s: jax.jvp(equation, (s,), (jnp.ones_like(s),)))(jnp.asarray(0.0))
    np.testing.assert_allclose(slope, rate, rtol=1e-12)


def test_no_universal_joint_from_one_relative_rotation():
    """A universal joint turns about w of body j and u of body i; n = w x u, frozen in i when both angles are zero, has a
    relative rotation as soon as the second angle is not zero: (2.28) with a fixed n is another, nonholonomic joint."""
    w, u = jnp.asarray([1.0, 0, 0]), jnp.asarray([0.0, 1, 0])
    n, second, rates = jnp.cross(w, u), 0.5, (1.3, 0.7)
    C = axes(jnp.tan(second / 2) * u)  # j to i after the second angle
    relative = rates[0] * (C @ w) + rates[1] * u
    i = absolute.Body(*(x[None] for x in (jnp.zeros(3), jnp.eye(3), jnp.zeros(3), jnp.zeros(3))))
    j = i._replace(A=C[None], omega=(C.T @ relative)[None])
    turn = absolute.relative_rotation(i, j, n[None], jnp.zeros((1, 3)))
    angle = absolute.constant_angle(i, j, u[None], w[None], jnp.zeros(1))
    velocity = jnp.concatenate([j.omega[0], j.v[0]])
    assert abs(turn.Q_j[0] @ velocity) > 0.5
    assert abs(angle.Q_j[0] @ velocity) < 1e-15 and abs(angle.residual[0]) < 1e-15
