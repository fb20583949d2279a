"""Wheels and blades on planes of bodies: rows against Jacobians of points, motions against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs

NORMAL, POINT, AXIS = np.array([0.6, 0.0, 0.8]), np.array([0.1, -0.2, 0.3]), np.array([0.0, 0.6, 0.8])
RADIUS, TUBE = 0.4, 0.1


def carried():
    """A wheel and a blade on a tilted plane of a table that moves."""
    mech = mbs.Mechanism("table")
    mech.add_body("table", 2.0, inertia=(0.2, 0.3, 0.4))
    mech.add_body("wheel", 1.0, inertia=(0.1, 0.2, 0.1))
    mech.add_joint("ground", mbs.Free(), "world", "table")
    mech.add_joint("free", mbs.Free(), "world", "wheel")
    wheel = mbs.RollingDisc(
        "wheel", RADIUS, tuple(AXIS), tube=TUBE, on="table", point=tuple(POINT), normal=tuple(NORMAL)
    )
    mech.add_constraint("tyre", wheel)
    mech.add_constraint("blade", mbs.KnifeEdge("wheel", (0.1, 0.2, 0.3), tuple(NORMAL), on="table"))
    return mech.build()


def test_rows_are_velocities_of_the_point_that_touches():
    """J v of the contact point relative to the table, drift its rate by JAX, the residual its height above the plane."""
    model = carried()
    q = jax.random.normal(jax.random.key(0), (14,)) * jnp.array([1.0] * 3 + [1.0] * 4 + [1.0] * 3 + [1.0] * 4)
    q = q.at[3:7].divide(jnp.linalg.norm(q[3:7])).at[10:14].divide(jnp.linalg.norm(q[10:14]))
    v = jax.random.normal(jax.random.key(1), (12,))

    def contact(q):
        """(in the table's axes: velocity of the wheel's point that touches, per v; height), and of the blade's point."""
        table, wheel = (jax.tree.map(lambda x, k=k: x[k], mbs.body_poses(model, q)) for k in (0, 1))
        n, up = wheel.rotation @ AXIS, table.rotation @ NORMAL
        down = n * (n @ up) - up
        low = wheel.position + RADIUS * down / jnp.sqrt(down @ down) - TUBE * up
        edge = wheel.position + wheel.rotation @ jnp.array([0.1, 0.2, 0.3])
        out = []
        for p, along in ((low, table.rotation), (edge, wheel.rotation)):
            ends = [
                mbs.jacobian(model, q, b, x.rotation.T @ (p - x.position))
                for b, x in (("table", table), ("wheel", wheel))
            ]
            out.append(along.T @ (ends[1] - ends[0])[3:])
        height = (low - table.position) @ up - POINT @ NORMAL
        return out[0], NORMAL @ out[1], height

    @jax.jit
    def both(q, v):
        J, drift = mbs.constraint_jacobian(model, q, v)
        residual = mbs.constrained_dynamics(model, q, v)[2]
        slope = jax.jvp(lambda q: mbs.constraint_jacobian(model, q, v)[0] @ v, (q,), (mbs.rates(model, q, v),))[1]
        return J, drift, slope, residual[2], contact(q)

    J, drift, slope, residual, (touching, blade, height) = both(q, v)
    np.testing.assert_allclose(drift, slope, rtol=0, atol=1e-12)
    np.testing.assert_allclose(residual, height, rtol=0, atol=1e-13)
    np.testing.assert_allclose(J[2], NORMAL @ touching, rtol=0, atol=1e-13)
    np.testing.assert_allclose(J[3], blade, rtol=0, atol=1e-13)
    # the other two span the plane
    across = J[:2] @ jnp.linalg.pinv(touching)
    np.testing.assert_allclose(across @ across.T, np.eye(2), rtol=0, atol=1e-12)
    np.testing.assert_allclose(across @ NORMAL, 0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(across @ touching, J[:2], rtol=0, atol=1e-12)


def test_a_torus_without_a_hole_is_a_ball_on_a_slope():
    """It rolls down with 5/7 g sin(slope), whatever its axis."""
    slope, g, r = 0.3, 9.81, 0.25
    mech = mbs.Mechanism("ball", gravity=(0, 0, -g))
    mech.add_body("ball", 1.5, inertia=(0.4 * 1.5 * r**2,) * 3)
    mech.add_joint("free", mbs.Free(), "world", "ball")
    normal = (float(np.sin(slope)), 0.0, float(np.cos(slope)))
    mech.add_constraint("rim", mbs.RollingDisc("ball", 1e-9, (0, 0.8, 0.6), tube=r, normal=normal))
    q = jnp.concatenate([r * jnp.array(normal), jnp.array([1.0, 0, 0, 0])])
    a, multipliers, residual = mbs.constrained_dynamics(mech.build(), q, jnp.zeros(6))
    np.testing.assert_allclose(np.linalg.norm(a[3:]), 5 / 7 * g * np.sin(slope), rtol=1e-7)
    np.testing.assert_allclose(a[1] * r, np.linalg.norm(a[3:]), rtol=1e-7)
    np.testing.assert_allclose(multipliers[2], 1.5 * g * np.cos(slope), rtol=1e-7)
    assert np.abs(residual).max() < 1e-8


def test_impact_with_a_given_velocity_after_it():
    """A slider is kicked through its guide, a locked crank takes up the rate of its drive."""
    model, q, still, turning = mbs.library.crank_slider().build(), jnp.zeros(3), jnp.zeros(3), jnp.array([0.1, 0, 0])
    v, impulses = mbs.impact(model, q, still, target={"pin": [0.0, 0.2]})
    J = mbs.constraint_jacobian(model, q)[0]
    np.testing.assert_allclose(J @ v, [0.0, 0.2], rtol=0, atol=1e-14)
    np.testing.assert_allclose(mbs.mass_matrix(model, jnp.zeros(3)) @ v, J.T @ impulses, rtol=0, atol=1e-14)
    driven, _ = mbs.impact(model, q, turning, on="pin", target={"bearing": 3.0}, mode=model.mode(lock="bearing"))
    np.testing.assert_allclose(driven, [3.0, -4.0, 0.0], rtol=0, atol=1e-13)
    with pytest.raises(mbs.ModelError, match="joint 'bearing' of target is not locked"):
        mbs.impact(model, q, turning, target={"bearing": 3.0})
    with pytest.raises(mbs.ModelError, match="did you mean 'pin'"):
        mbs.impact(model, q, turning, target={"pine": 3.0})
    with pytest.raises(mbs.ModelError, match="pass a number, or 2"):
        mbs.impact(model, q, turning, target={"pin": [3.0]})


def test_a_wheel_needs_another_body():
    mech = mbs.Mechanism("wheel")
    mech.add_body("wheel", 1.0, inertia=(0.1, 0.2, 0.1))
    mech.add_joint("free", mbs.Free(), "world", "wheel")
    mech.add_constraint("tyre", mbs.RollingDisc("wheel", 0.3, on="wheel"))
    with pytest.raises(mbs.ModelError, match="both ends are on 'wheel'"):
        mech.build()
