"""Inverse dynamics by the accelerations of the poles, for formulas that are written out.

The forces are the same as those of `jaxmbs.dynamics.recursive.rnea`, whose spatial accelerations also need the velocities
of the poles. Here U = [alpha]x + [omega]x[omega]x gives the accelerations of all points as well as the torques, which takes
fewer operations when written out [Y 3.170-3.172 with r" in place of the spatial acceleration].
"""

from __future__ import annotations

from typing import Any

from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.kinematics import LinkMotion
from jaxmbs.model.joints.base import Joint
from jaxmbs.spatial import ZERO3, ZERO_FORCE, Force, Matrix3, Vector3
from jaxmbs.spatial.components import components
from jaxmbs.spatial.inertias import RigidInertia
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar


@components
class Carried:
    """Motion of a link, in its own axes: angular velocity, angular acceleration, and acceleration of the pole."""

    omega: Vector3
    alpha: Vector3
    a: Vector3


def spreading(omega: Vector3, alpha: Vector3) -> Matrix3:
    """U: the acceleration of a point p of the body is that of the pole plus U p."""
    x, y, z = omega
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    return Matrix3(
        -(yy + zz), xy - alpha.z, xz + alpha.y,
        xy + alpha.z, -(xx + zz), yz - alpha.x,
        xz - alpha.y, yz + alpha.x, -(xx + yy),
    )  # fmt: skip


def _moved(state: State, joint: Joint, base: Carried, m: LinkMotion, q: Any, v: Any, a: Any, numbers: Any) -> Carried:
    R = m.X.rotation.T
    turned = R @ base.omega
    relative = joint.motion(numbers, q, v, state.t)
    spin, slide = relative.velocity.angular, relative.velocity.linear
    omega = turned + spin
    alpha = R @ base.alpha + turned.cross(spin) + relative.bias.angular
    pole = R @ (base.a + spreading(base.omega, base.alpha) @ m.X.position)
    pole = pole + (omega + turned).cross(slide) + relative.bias.linear
    for S, rate in zip(m.S, a, strict=True):
        alpha, pole = alpha + S.angular * rate, pole + S.linear * rate
    return Carried(omega, alpha, pole)


def wrench(inertia: RigidInertia, c: Carried) -> Force:
    """Rate of change of the momentum of a link, as a wrench about its pole."""
    U, I, h, alpha, (x, y, z) = spreading(c.omega, c.alpha), inertia.inertia, inertia.moment, c.alpha, c.omega
    moment = Vector3(
        _dot((I.xx, I.zz - I.yy, -I.xy, I.xz, I.yz),
             (alpha.x, y * z, U.zx, U.yx, y * y - z * z)),
        _dot((I.yy, I.xx - I.zz, I.xy, -I.yz, I.xz),
             (alpha.y, x * z, U.zy, U.xy, z * z - x * x)),
        _dot((I.zz, I.yy - I.xx, I.yz, -I.xz, I.xy),
             (alpha.z, x * y, U.xz, U.yz, x * x - y * y)),
    )  # fmt: skip
    return Force(moment + h.cross(c.a), c.a * inertia.mass + U @ h)


def _dot(a: tuple[Scalar, ...], b: tuple[Scalar, ...]) -> Scalar:
    total: Scalar = ZERO
    for x, y in zip(a, b, strict=True):
        total += x * y
    return total


def inverse_dynamics(state: State, a: Any) -> list[Scalar]:
    """tau (nv,) = A a + bias; only the bias if a is None."""
    tree, s = state.tree, state.tree.structure
    q, v, rates = tree.split(state.q, s.q_slices), tree.split(state.v, s.v_slices), tree.split(a, s.v_slices)
    root = Carried(ZERO3, ZERO3, -tree.values["gravity"])
    carried: list[Carried] = []
    for i, link in enumerate(s.links):
        base = carried[link.parent] if link.parent >= 0 else root
        own = tree.links[i]
        carried.append(_moved(state, link.joint, base, state.motions[i], q[i], v[i], rates[i], own.numbers))
    handed = [ZERO_FORCE] * len(s.links)
    along: list[tuple[Scalar, ...]] = [()] * len(s.links)
    for i in reversed(range(len(s.links))):
        m = state.motions[i]
        f = wrench(tree.links[i].inertia, carried[i]) - state.wrenches[i] + handed[i]
        geared = tree.links[i].armature
        along[i] = tuple(S @ f + geared * x for S, x in zip(m.S, rates[i], strict=True))
        if s.links[i].parent >= 0:
            handed[s.links[i].parent] = handed[s.links[i].parent] + m.X.force_to_parent(f)
    return tree.flat(state.with_elements(along, -1))
