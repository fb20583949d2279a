"""User-defined functions for ascent.toml: the laws that both autopilots follow.

Axes of the world do not rotate: x east, y north and z up at the launch pad, at t = 0. The nose is x of the body, z is down.
"""

import jax.numpy as jnp

import jaxmbs as mbs


def pitch_programme(model, t, q, v, state, readings, parameters):
    """Commands of a gimbal that turn the nose from the horizon at the pad upwards by `angles` [rad], linear between
    `times` [s]."""
    times, angles = parameters["times"], parameters["angles"]
    slopes = jnp.diff(angles) / jnp.diff(times)
    passed = jnp.clip(t - times[:-1], 0.0, jnp.diff(times))  # of each interval; no number is looked up by its place, so
    now = (t >= times[:-1]) & (t < times[1:])  # that the whole flight is one program of arithmetic on numbers
    pitch, rate = angles[0] + jnp.sum(slopes * passed), jnp.sum(jnp.where(now, slopes, 0.0))
    return state, steered(model, t, q, v, readings, parameters, pitch, 0.0 * t, rate)


def to_orbit(model, t, q, v, state, readings, parameters):
    """Commands of a gimbal that lead to a circular orbit of the `radius` [m] in the plane through the pad and its east:
    the acceleration upwards, and across the plane, changes linearly over the time to go, so that both the distance and its
    rate are then as wanted. The law knows the nominal thrust, exhaust velocity and mass of the stage."""
    mu, radius, center = (parameters[name] for name in ("mu", "radius", "center"))
    r, velocity = q[:3] - center, rotated(q[3:7], v[3:6])
    normal = jnp.stack([0.0 * t, -center[2], center[1]]) / jnp.linalg.norm(center)
    d = jnp.linalg.norm(r)
    up = r / d
    climb, aside = velocity @ up, velocity @ normal
    along = jnp.linalg.norm(velocity - climb * up - aside * normal)
    exhaust, burnt = parameters["exhaust"], jnp.maximum(t - parameters["ignition"], 0.0)
    flow = parameters["thrust"] / exhaust
    mass = parameters["mass"] - flow * burnt
    missing = jnp.maximum(jnp.sqrt(mu / radius) - along, 0.0)
    left = jnp.maximum(mass / flow * (1 - jnp.exp(-missing / exhaust)), 10.0)  # [s]
    weight = mu / d**2 - along**2 / d
    upwards = (6 * (radius - d) / left - 4 * climb) / left + weight
    across = (-6 * (r @ normal) / left - 4 * aside) / left
    share = jnp.clip(jnp.stack([upwards, across]) * mass / parameters["thrust"], -0.6, 0.6)
    forward = jnp.sqrt(1 - share @ share)
    nose = share[0] * up + share[1] * normal + forward * jnp.cross(normal, up)
    pitch, yaw = jnp.arctan2(nose[2], nose[0]), -jnp.arcsin(nose[1])
    return state, steered(model, t, q, v, readings, parameters, pitch, yaw, 0.0 * t)


def steered(model, t, q, v, readings, parameters, pitch, yaw, rate):
    """Commands of the gimbal for the angles of the nose, pitch upwards from the east and yaw to the south, and the rate of
    pitch; from the readings of a star tracker and a gyroscope."""
    c, s, cy, sy = jnp.cos(pitch / 2), jnp.sin(pitch / 2), jnp.cos(yaw / 2), jnp.sin(yaw / 2)
    target = jnp.stack([-s * sy, c * cy, -c * sy, s * cy])
    attitude, turning = readings.values()
    turning = turning[:3] - jnp.stack([0.0 * t, rate, 0.0 * t])
    given = {"attitude": attitude, "turning": turning}
    return mbs.laws.quaternion_feedback(model, t, q, v, None, given, {**parameters, "target": target})[1]


def rotated(quaternion, x):
    """x turned by a unit quaternion."""
    w, e = quaternion[0], quaternion[1:]
    return x + 2 * jnp.cross(e, jnp.cross(e, x) + w * x)
