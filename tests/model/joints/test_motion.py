"""Every joint's motion: columns of S and the velocity-product term against the pose that they are derivatives of."""

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import scalar
from tests.cases import relative
from tests.mechanisms import GENERAL_MOTIONS, KINDS, build, random_mechanism, random_q, rates

pytestmark = pytest.mark.interpreted

MOVING = tuple(k for k in KINDS if k not in ("Fixed", "General"))
ALL = (*MOVING, *(f"General {m}" for m in GENERAL_MOTIONS))


def one_joint(name, seed=0):
    """A body on one joint with arbitrary poses, without weight."""
    kind, _, like = name.partition(" ")
    for attempt in range(seed * 1000, seed * 1000 + 1000):
        mechanism = random_mechanism(attempt, 1, kinds=(kind,), aligned=0.0, massless=0.0, free_base=False)
        if mechanism.joints[0].like == like:
            return replace(mechanism, gravity=np.zeros(3))
    raise AssertionError(name)


def state(mechanism, seed=1):
    rng = np.random.default_rng(seed)
    return random_q(mechanism, rng), rng.normal(size=mechanism.nv), rng.normal(size=mechanism.nv)


def derivative(values, h):
    """Fourth-order central difference from rows at -2h, -h, h, 2h."""
    return np.tensordot(np.array([1, -8, 8, -1]) / (12 * h), np.asarray(values), 1)


@pytest.mark.parametrize("name", ALL)
def test_motion_is_the_derivative_of_the_pose(name):
    mechanism = one_joint(name)
    model, body = build(mechanism), mechanism.bodies[0]
    q, v, a = state(mechanism)
    h = 1e-3
    path = q + h * np.array([0, -2, -1, 1, 2])[:, None] * rates(mechanism, q, v)

    def along(q):
        return mbs.body_poses(model, q), mbs.jacobian(model, q, body.name, point=body.com)

    poses, jacobians = jax.tree.map(np.asarray, jax.jit(jax.vmap(along))(path))
    tau = mbs.inverse_dynamics(model, q, v, a)
    R, J = poses.rotation[0, 0], jacobians[0]

    # velocity of the centre of mass and angular velocity from the poses: J v
    centres = poses.position[1:, 0] + poses.rotation[1:, 0] @ body.com
    W = derivative(poses.rotation[1:, 0], h) @ R.T
    omega = np.array([W[2, 1] - W[1, 2], W[0, 2] - W[2, 0], W[1, 0] - W[0, 1]]) / 2
    assert relative(J @ v, [*omega, *derivative(centres, h)]) < 1e-9

    # acceleration: J a + (dJ/dt) v; the drive must then supply Newton's and Euler's forces
    acceleration = J @ a + derivative(jacobians[1:], h) @ v
    inertia = R @ body.inertia @ R.T
    moment = inertia @ acceleration[:3] + np.cross(omega, inertia @ omega)
    assert relative(tau, J.T @ [*moment, *(body.mass * acceleration[3:])]) < 1e-8


BUILT_IN = tuple(m for m in GENERAL_MOTIONS if m != "Bryant")


@pytest.mark.parametrize("motion", BUILT_IN)
def test_general_joint_reproduces_the_built_in(motion):
    general = one_joint(f"General {motion}")
    built_in = replace(general, joints=(replace(general.joints[0], kind=motion, like=""),))
    x = [y.tolist() for y in state(general)]
    one, other = build(general), build(built_in)
    for function, count in ((scalar.mass_matrix, 1), (scalar.inverse_dynamics, 3), (scalar.forward_dynamics, 3)):
        assert relative(function(one, *x[:count]), function(other, *x[:count])) < 1e-12
    ((position, rotation),), ((position_2, rotation_2),) = (scalar.body_poses(m, x[0]) for m in (one, other))
    assert relative([*position, *rotation], [*position_2, *rotation_2]) < 1e-12


# --- rheonomic joints ------------------------------------------------------------------------------------------------


@functools.cache
def moving_arm():
    """A pendulum whose support shakes along x and turns about z as given functions of time (a General joint), and the
    same machine with the support as two bodies of their own."""
    shake, tilt = lambda t: 0.3 * jnp.sin(2 * t), lambda t: 0.5 * t * t

    def turn_z(x):
        c, s, o, e = jnp.cos(x), jnp.sin(x), jnp.zeros_like(x), jnp.ones_like(x)
        return jnp.stack([jnp.stack([c, -s, o]), jnp.stack([s, c, o]), jnp.stack([o, o, e])])

    def turn_y(x):
        c, s, o, e = jnp.cos(x), jnp.sin(x), jnp.zeros_like(x), jnp.ones_like(x)
        return jnp.stack([jnp.stack([c, o, s]), jnp.stack([o, e, o]), jnp.stack([-s, o, c])])

    def z(q, t):
        o = jnp.zeros_like(t)
        return jnp.stack([shake(t), o, o])

    def G(q, t):
        return turn_z(tilt(t)) @ turn_y(q[0])

    arm = ("arm", 2.0, (0.1, 0.2, -0.6), (0.3, 0.2, 0.1))
    given = mbs.Mechanism("driven", gravity=(0, -1.0, -9.81))
    given.add_body(*arm)
    given.add_joint("joint", mbs.General(z, G, 1), "world", "arm", child_pose=mbs.Pose((0, 0, 0.1)))
    explicit = mbs.Mechanism("explicit", gravity=(0, -1.0, -9.81))
    for name in ("slide", "table"):
        explicit.add_body(name, 1.0, inertia=(0.1, 0.1, 0.1))
    explicit.add_body(*arm)
    explicit.add_joint("shake", mbs.Prismatic((1, 0, 0)), "world", "slide")
    explicit.add_joint("tilt", mbs.Revolute((0, 0, 1)), "slide", "table")
    explicit.add_joint("joint", mbs.Revolute((0, 1, 0)), "table", "arm", child_pose=mbs.Pose((0, 0, 0.1)))

    def base(t):
        """Coordinates, rates and accelerations of the two given motions."""
        first = [jax.grad(f) for f in (shake, tilt)]
        return [[f(t) for f in level] for level in ((shake, tilt), first, [jax.grad(f) for f in first])]

    return given.build(), explicit.build(), base


@pytest.mark.parametrize("t", [0.0, 0.7])
def test_rheonomic_joint_equals_a_moving_base(t):
    given, explicit, base = moving_arm()
    (q0, v0, a0), (q, v, a) = base(t), (0.4, 1.1, -0.8)
    one = [np.array([x]) for x in (q, v, a)]
    all_ = [np.array([*x, y]) for x, y in ((q0, q), (v0, v), (a0, a))]
    want = mbs.inverse_dynamics(explicit, *all_)
    tau = mbs.inverse_dynamics(given, *one, t=t)
    assert relative(tau, want[2:]) < 1e-12
    assert relative(mbs.forward_dynamics(given, *one[:2], tau, t=t), one[2]) < 1e-12
    assert relative(mbs.energy(given, *one[:2], t=t)[0], arm_kinetic(explicit, *all_[:2])) < 1e-12
    (pose,), poses = (mbs.body_poses(given, one[0], t=t).position, mbs.body_poses(explicit, all_[0]).position)
    assert relative(pose, poses[2]) < 1e-13
    wrench = mbs.joint_reactions(given, *one[:2], tau, t=t)
    assert relative(wrench[0], mbs.joint_reactions(explicit, *all_[:2], want)[2]) < 1e-11


def arm_kinetic(explicit, q, v):
    """Kinetic energy of the arm alone."""
    J = np.asarray(mbs.jacobian(explicit, q, "arm", point=(0.1, 0.2, -0.6)))
    R = np.asarray(mbs.body_poses(explicit, q).rotation[2])
    omega, velocity = np.split(J @ v, 2)
    return (2.0 * velocity @ velocity + omega @ R @ np.diag([0.3, 0.2, 0.1]) @ R.T @ omega) / 2


def test_pendulum_on_a_shaken_support_in_closed_form():
    """m l^2 a + m l x0'' cos q + m g l sin q = 0 with x0 = sin(3 t) / 2."""

    def G(q, t):
        c, s, o, e = jnp.cos(q[0]), jnp.sin(q[0]), jnp.zeros_like(q[0]), jnp.ones_like(q[0])
        return jnp.stack([jnp.stack([c, o, -s]), jnp.stack([o, e, o]), jnp.stack([s, o, c])])

    mech = mbs.Mechanism("shaken", gravity=(0, 0, -9.81))
    mech.add_body("bob", 0.8, (0, 0, -1.2))
    shaken = mbs.General(lambda q, t: jnp.stack([jnp.sin(3 * t) / 2, 0 * t, 0 * t]), G, 1)
    mech.add_joint("joint", shaken, "world", "bob")
    q, t = 0.6, 0.35
    a = mbs.forward_dynamics(mech.build(), np.array([q]), np.array([0.9]), t=t)
    support = -4.5 * np.sin(3 * t)
    assert relative(a, [-(support * np.cos(q) + 9.81 * np.sin(q)) / 1.2]) < 1e-12
