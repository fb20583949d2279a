"""Joints that follow others by a polynomial, against the same constraint as a function."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs

C = np.array([0.1, -2.0, 0.3, 0.4])


def linkage(constraint):
    mech = mbs.library.double_pendulum()
    mech.add_force("coil", mbs.TorsionSpring("elbow", 3.0, 0.1, 0.2))
    mech.add_constraint("cam", constraint)
    return mech.build()


def test_as_the_same_constraint_written_as_a_function():
    """Accelerations, and their derivatives in both modes, by the state and by the coefficients."""
    cam = linkage(mbs.Coupling("elbow", "shoulder", C))
    written = linkage(mbs.Holonomic(lambda model, t, q, v: q[1] - jnp.polyval(C[::-1], q[0])))
    q, v = np.array([0.5, np.polyval(C[::-1], 0.5)]), np.array([0.7, 0.7 * np.polyval(np.polyder(C[::-1]), 0.5)])
    tau = np.array([0.3, -0.2])

    def accelerations(model, v):
        return mbs.constrained_dynamics(model, q, v, tau)[0]

    want, slope = jax.jit(lambda v: (accelerations(written, v), jax.jacfwd(accelerations, 1)(written, v)))(v)

    @jax.jit
    def of_cam(v, c):
        def f(v, c):
            return accelerations(mbs.set(cam, {"cam.coefficients": c}), v)

        return f(v, c), jax.jacfwd(f)(v, c), jax.jacrev(f, argnums=(0, 1))(v, c)

    got, forward, (backward, by_c) = of_cam(v, C)
    np.testing.assert_allclose(got, want, rtol=1e-12)
    np.testing.assert_allclose(forward, slope, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(backward, forward, rtol=1e-10, atol=1e-12)
    h = 1e-6 * np.eye(4)[2]
    np.testing.assert_allclose(by_c[:, 2], (of_cam(v, C + h)[0] - of_cam(v, C - h)[0]) / 2e-6, rtol=1e-6)


def test_without_a_driver_the_joint_stays():
    model = linkage(mbs.Coupling("elbow", None, (0.4,)))
    q, v, status, _ = mbs.assemble(model, [0.5, 0.0], [1.0, 2.0], fixed=["shoulder"])
    assert status == 0 and q[1] == pytest.approx(0.4) and v[1] == pytest.approx(0)


def test_joints_that_cannot_follow_are_refused():
    def built(*arguments):
        mech = mbs.library.double_pendulum()
        mech.add_body("ball", 1.0, inertia=(1, 1, 1))
        mech.add_joint("free", mbs.Spherical(), "lower", "ball")
        mech.add_constraint("cam", mbs.Coupling(*arguments))
        return mech.build()

    for arguments, said in ((("elbw", "shoulder"), "did you mean 'elbow'"), (("elbow", "elbow"), "named twice"),
                            (("elbow", "free"), "Spherical with 3 degrees of freedom")):  # fmt: skip
        with pytest.raises(mbs.ModelError, match=said):
            built(*arguments)


def test_a_gear_drives_the_inertia_that_it_carries():
    """Two wheels on parallel axles in step: one freedom with the inertia I_a + r² I_b."""
    mech = mbs.Mechanism("gear")
    for name, inertia in (("a", 0.4), ("b", 0.1)):
        mech.add_body(name, 1.0, inertia=(inertia, inertia, inertia))
        mech.add_joint(name, mbs.Revolute((0, 0, 1)), "world", name)
    mech.add_force("coil", mbs.TorsionSpring("b", stiffness=2.0))
    mech.add_constraint("gear", mbs.Coupling("b", "a", coefficients=(0.0, -3.0)))
    run = mbs.simulate(mech.build(), [0.1, -0.3], [0.0, 0.0], 2.0, 0.01)
    w = np.sqrt(9 * 2.0 / (0.4 + 9 * 0.1))
    assert np.abs(run.q[:, 0] - 0.1 * np.cos(w * run.t)).max() < 1e-7
    assert np.abs(run.q[:, 1] + 3 * run.q[:, 0]).max() < 1e-14 and run.status == mbs.Status.OK
    assert np.abs(run.energy_error).max() < 1e-8
