"""The joint of [Y fig. 1.4]: motion of a point along a curve, and rotation about the curve's tangent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.building import Mechanism
from jaxmbs.library.drawing import bar, block
from jaxmbs.library.shapes import box
from jaxmbs.model import ModelError, Pose
from jaxmbs.model.functions import check_arguments, evaluated
from jaxmbs.model.given import Vector
from jaxmbs.model.joints import General

GRAVITY = (0.0, 0.0, -9.81)


def curve_joint(curve: Callable[[jax.Array], Vector], up: Sequence[float] = (0.0, 0.0, 1.0)) -> tuple[General, Pose]:
    """The joint (2 degrees of freedom) and the pose of its frame on the body that carries the curve.

    curve: function of a parameter u -> (3,) [m] in the axes of that body, smooth, with a tangent that is nowhere zero
    and nowhere along `up`. Coordinates: u and the angle [rad] about the tangent. The child frame is at curve(u), with x
    along the tangent and, at angle 0, y along the cross product up x tangent. Raises ModelError if there is no such
    frame at u = 0.

    >>> joint, pose = mbs.library.curve_joint(lambda u: jnp.stack([u, 0 * u, u**2]))
    >>> joint.dof
    2
    """
    check_arguments(curve, "curve_joint: curve", ("u",))
    with jax.enable_x64(True):
        start, first = (np.asarray(x, float) for x in _placed(curve, up, jnp.asarray(0.0)))
    if not np.all(np.isfinite(first)):
        raise ModelError(
            f"curve_joint: at u = 0 the tangent is zero or parallel to up = {tuple(up)}; choose another `up`"
        )

    def z(q: jax.Array, t: jax.Array) -> jax.Array:
        return jnp.asarray(first.T, q.dtype) @ (_placed(curve, up, q[0])[0] - jnp.asarray(start, q.dtype))

    def G(q: jax.Array, t: jax.Array) -> jax.Array:
        c, s, one, zero = jnp.cos(q[1]), jnp.sin(q[1]), jnp.ones_like(q[1]), jnp.zeros_like(q[1])
        turn = jnp.stack([jnp.stack(row) for row in ((one, zero, zero), (zero, c, -s), (zero, s, c))])
        return jnp.asarray(first.T, q.dtype) @ _placed(curve, up, q[0])[1] @ turn

    return General(z, G, 2), Pose(tuple(start), first)


def _placed(curve: Callable[[Any], Any], up: Sequence[float], u: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Point and frame at u; the columns of the frame are the tangent, up x tangent and the third axis."""
    point, tangent = jax.jvp(
        lambda u: evaluated(curve, "curve_joint: curve", (3,), u.dtype, u), (u,), (jnp.ones_like(u),)
    )
    x = tangent / jnp.sqrt(tangent @ tangent)
    y = jnp.cross(jnp.asarray(up, u.dtype), x)
    y = y / jnp.sqrt(y @ y)
    return point, jnp.stack([x, y, jnp.cross(x, y)], axis=1)


def helix(u: Any, radius: float = 1.0, rise: float = 0.25) -> jax.Array:
    """A helix about z of the given radius [m]; u is the angle [rad], and the helix descends by `rise` [m/rad]."""
    return jnp.stack([radius * jnp.cos(u), radius * jnp.sin(u), -rise * u])


def helix_slide(curve: Callable[[jax.Array], Vector] = helix, gravity: Sequence[float] = GRAVITY) -> Mechanism:
    """A slide of 1 kg on a wire, about which it can swing: body "slide", joint "wire"; the wire is fixed to the world.

    curve: as in `curve_joint`. The centre of mass hangs 0.1 m below the wire.

    >>> mbs.library.helix_slide().build()
    <Model 'slide on a curve': 1 body (slide), nq = 2, nv = 2>
    """
    joint, pose = curve_joint(curve)
    mech = Mechanism("slide on a curve", gravity=tuple(gravity))
    mech.add_body("slide", 1.0, (0, 0, -0.1), box(1.0, 0.2, 0.1, 0.1))
    block(mech, "slide", (0.2, 0.1, 0.1), (0, 0, -0.1))
    bar(mech, "slide", (0, 0, 0.01), (0, 0, -0.05), 0.01)
    mech.add_joint("wire", joint, "world", "slide", pose)
    return mech
