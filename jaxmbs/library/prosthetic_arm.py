"""The prosthetic arm of [Wi, example 5.2]: shoulder, elbow and wrist on a trunk that moves as a function of time."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from jaxmbs.building import Mechanism
from jaxmbs.dynamics.formulations.moving_base import MovingBase
from jaxmbs.library.drawing import bar
from jaxmbs.library.shapes import cylinder
from jaxmbs.model import Pose
from jaxmbs.model.forces import Damper, TorsionSpring
from jaxmbs.model.joints import General, Revolute, Universal

GRAVITY = (0.0, 0.0, -9.81)
SHOULDER = (0.0, 0.2, 0.4)  # m, in the trunk


def bryant(angles: jax.Array) -> jax.Array:
    """Rotation (3, 3) by Bryant angles [rad]: about x, then the new y, then the new z; singular at pi/2 about y."""
    (ca, cb, cc), (sa, sb, sc) = jnp.cos(angles), jnp.sin(angles)
    return jnp.stack([
        jnp.stack([cb * cc, -cb * sc, sb]),
        jnp.stack([ca * sc + sa * sb * cc, ca * cc - sa * sb * sc, -sa * cb]),
        jnp.stack([sa * sc - ca * sb * cc, sa * cc + ca * sb * sc, ca * cb]),
    ])  # fmt: skip


def bryant_joint() -> General:
    """A spherical joint in Bryant angles, with 3 degrees of freedom and v = dq/dt.

    >>> print(mbs.library.bryant_joint().G(jnp.array([jnp.pi / 2, 0.0, 0.0]), 0.0)[2].round(3))
    [0. 1. 0.]
    """
    return General(_no_displacement, _turned, 3)


def _no_displacement(q: jax.Array, t: jax.Array) -> jax.Array:
    return jnp.zeros(3, q.dtype)


def _turned(q: jax.Array, t: jax.Array) -> jax.Array:
    return bryant(q)


def prosthetic_arm(trunk: MovingBase | None = None, gravity: Sequence[float] = GRAVITY) -> Mechanism:
    """An arm with six degrees of freedom: shoulder (Bryant angles), elbow (revolute), wrist (universal).

    x points forward, y to the left, across the shoulders; at q = 0 the arm hangs along -z. The elbow rotates about y, the
    wrist about x (fixed in the forearm) and then y (fixed in the hand). The arm has the size of an adult's, with dampers at
    its three joints and a spring at the elbow. Bodies "upper_arm", "forearm", "hand"; joints "shoulder", "elbow", "wrist".

    trunk: if None, the trunk is the world, at rest unless `moving_base_dynamics` moves it. Otherwise the motion of the
    trunk is part of the shoulder, a joint that depends on time, for use with `forward_dynamics` and `simulate`.

    >>> mbs.library.prosthetic_arm().build()
    <Model 'prosthetic arm': 3 bodies (upper_arm, forearm, hand), nq = 6, nv = 6>
    """
    mech = Mechanism("prosthetic arm", gravity=tuple(gravity))
    for name, mass, length, radius in (
        ("upper_arm", 2.0, 0.30, 0.045), ("forearm", 1.2, 0.26, 0.035), ("hand", 0.4, 0.18, 0.03),
    ):  # fmt: skip
        mech.add_body(name, mass, (0, 0, -length / 2), cylinder(mass, radius, length))
        bar(mech, name, (0, 0, 0), (0, 0, -length), radius)
    if trunk is None:
        mech.add_joint("shoulder", bryant_joint(), "world", "upper_arm", Pose(SHOULDER))
    else:
        mech.add_joint("shoulder", _carried_shoulder(trunk), "world", "upper_arm")
    mech.add_joint("elbow", Revolute((0, 1, 0)), "upper_arm", "forearm", Pose((0, 0, -0.30)))
    mech.add_joint("wrist", Universal((1, 0, 0), (0, 1, 0)), "forearm", "hand", Pose((0, 0, -0.26)))
    mech.add_force("shoulder_friction", Damper("shoulder", 0.15))
    mech.add_force("elbow_spring", TorsionSpring("elbow", stiffness=1.0, damping=0.05, rest_angle=-0.6))
    mech.add_force("wrist_friction", Damper("wrist", 0.01))
    return mech


def _carried_shoulder(trunk: MovingBase) -> General:
    def z(q: jax.Array, t: jax.Array) -> jax.Array:
        return trunk.position(t) + trunk.rotation(t) @ jnp.asarray(SHOULDER, q.dtype)

    def G(q: jax.Array, t: jax.Array) -> jax.Array:
        return trunk.rotation(t) @ bryant(q)

    return General(z, G, 3)
