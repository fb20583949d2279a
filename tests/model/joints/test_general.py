"""What a General joint's functions must be, and what is said where they are not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from tests.model.joints.joints import VariableScrew

pytestmark = pytest.mark.interpreted


def turn(q, t):
    c, s, o, e = jnp.cos(q[0]), jnp.sin(q[0]), jnp.zeros_like(q[0]), jnp.ones_like(q[0])
    return jnp.stack([jnp.stack([c, -s, o]), jnp.stack([s, c, o]), jnp.stack([o, o, e])])


def still(q, t):
    return 0 * jnp.stack([q[0]] * 3)


def pendulum(G, z=still):
    mech = mbs.Mechanism("pendulum", gravity=(0, -9.81, 0))
    mech.add_body("bob", 1.0, com=(1, 0, 0), inertia=(0.1, 0.1, 0.1))
    mech.add_joint("pivot", mbs.General(z, G, 1), "world", "bob")
    return mech.build()


FAULTY = {
    "a reflection": lambda q, t: turn(q, t) @ jnp.diag(jnp.array([1.0, 1.0, -1.0])),
    "a rotation to first order": lambda q, t: jnp.eye(3) + q[0] * jnp.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 0]]),
    "a scaled rotation": lambda q, t: 1.01 * turn(q, t),
}


@pytest.mark.parametrize("what", FAULTY)
def test_a_matrix_that_is_no_rotation_is_refused(what):
    model = pendulum(FAULTY[what])
    for call in (
        lambda: mbs.body_poses(model, np.array([0.3])),
        lambda: jax.make_jaxpr(lambda q: mbs.mass_matrix(model, q))(np.array([0.3])),
    ):
        with pytest.raises(
            mbs.ModelError, match=r"joint 'pivot' \(General\): at q = .* G is not a proper rotation matrix"
        ):
            call()


def test_wrong_shapes_are_refused_by_name():
    with pytest.raises(
        mbs.ModelError, match=r"joint 'pivot' \(General\): z returned shape \(2,\); it must return \(3,\)"
    ):
        mbs.body_poses(pendulum(turn, lambda q, t: jnp.zeros(2)), np.zeros(1))
    with pytest.raises(
        mbs.ModelError, match=r"joint 'pivot' \(General\): G returned shape \(4,\); it must return \(3, 3\)"
    ):
        mbs.body_poses(pendulum(lambda q, t: jnp.zeros(4)), np.zeros(1))


def test_functions_may_be_undefined_away_from_zero_and_hold_traced_numbers():
    def narrow(q, t):
        return turn(jnp.arcsin(10 * q[:1]), t)  # not a number beyond 0.1

    assert np.isfinite(mbs.mass_matrix(pendulum(narrow), np.array([0.05]))).all()

    @jax.jit
    def reach(scale):
        model = pendulum(lambda q, t: turn(scale * q, t))
        return mbs.body_poses(model, jnp.array([0.3])).rotation[0, 1, 0]

    assert reach(0.5) == pytest.approx(np.sin(0.15))


def test_what_depends_on_what_is_read_from_the_program():
    shaken = mbs.General(lambda q, t: jnp.stack([jnp.sin(t), 0 * t, 0 * t]), turn, 1, lambda z, R, t: z[:1] * t)
    assert shaken.rheonomic and shaken.rheonomic_rows and not shaken.fixed_hinge_point
    hinge = mbs.General(lambda q, t: jnp.array([0.1, 0.0, 0.0]), turn, 1, lambda z, R, t: z[:1])
    assert not hinge.rheonomic and not hinge.rheonomic_rows and hinge.fixed_hinge_point


def test_a_loop_needs_a_closure():
    mech = mbs.Mechanism("loop")
    mech.add_body("a", 1.0, inertia=(1, 1, 1))
    with pytest.raises(mbs.ModelError, match=r"loop 'cut': .*closure=f"):
        mech.close_loop("cut", mbs.General(still, turn, 1), "a", "world")


# --- zero quaternions -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("joint", "dtype"), [(mbs.Spherical(), np.float32), (mbs.Free(), np.float64)])
def test_a_zero_quaternion_is_no_rotation_with_finite_derivatives(joint, dtype):
    def both(q):
        placement = joint.motion({}, q, (0.0,) * joint.nv, 0.0).placement
        return jnp.stack([*placement.rotation, *joint.normalised(tuple(q))[-4:]])

    zero = jnp.zeros(joint.nq, dtype)
    for mode in (jax.jacfwd, jax.jacrev):
        found = jax.jit(mode(both))(zero)
        assert np.isfinite(found).all() and found.dtype == dtype
    np.testing.assert_array_equal(both(zero), [*np.eye(3).ravel(), 1, 0, 0, 0])
    tiny = [0.0] * (joint.nq - 4) + [1e-150, 1e-150, 0.0, 0.0]
    np.testing.assert_allclose(joint.normalised(tiny)[-4:], [0.5**0.5, 0.5**0.5, 0, 0])
    assert joint.normalised([0.0] * joint.nq)[-4:] == (1, 0, 0, 0)
    assert np.isnan(both(zero * np.nan)).all()


def test_own_joints_are_full_citizens_of_errors():
    mech = mbs.Mechanism("screw")
    mech.add_body("nut", 1.0, inertia=(1, 1, 1))
    mech.add_joint("screw", VariableScrew(pitch=0.1, growth=0.1), "world", "nut")
    model = mech.build()
    with pytest.raises(mbs.ModelError, match=r"hinge point of joint 'screw' \(VariableScrew\) is not fixed"):
        mbs.mass_matrix(model, np.zeros(1), method="barycentric")
    with pytest.raises(mbs.ModelError, match=r"joint 'screw' has constraint equations of type Advance"):
        mbs.absolute.system(model, np.zeros(1), np.zeros(1))
