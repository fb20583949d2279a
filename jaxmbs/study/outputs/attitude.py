"""Attitude of a body, and its angular rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import WORLD, Scene
from jaxmbs.model.given import Vector
from jaxmbs.model.joints import Joint
from jaxmbs.spatial import Matrix3, Vector3
from jaxmbs.study.outputs.base import Output, Scalar, turned

SEQUENCES = ("xyz", "xzy", "yxz", "yzx", "zxy", "zyx")


@element
class Turned(Output):
    """Base of the outputs that measure a body's rotation relative to another body's axes."""

    body: str = field(Kind.BODY_OR_WORLD, "", "body that turns")
    relative_to: str = field(Kind.BODY_OR_WORLD, "", "what the rotation is relative to", default=WORLD, kw_only=True)

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return "angle"

    def rotation(self, scene: Scene) -> Matrix3:
        """Rotation matrix from the body's axes to those of the other body."""
        return scene.rotation(self.relative_to).T @ scene.rotation(self.body)


@element
class Attitude(Turned):
    """Angle [rad] by which a body is rotated, or by which an axis fixed in it is tilted; 0 to pi."""

    axis: Vector | None = field(Kind.AXIS, "", "in body axes: its tilt instead of the whole rotation", default=None)

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        R = self.rotation(scene)
        if self.axis is not None:
            axis = Vector3.of(self.axis)
            there = turned(R, axis)
            return jnp.arctan2(axis.cross(there).norm(), axis @ there), True
        (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = (tuple(row) for row in R.rows())
        return jnp.arctan2(Vector3(zy - yz, xz - zx, yx - xy).norm() / 2, (xx + yy + zz - 1) / 2), True


@element
class EulerAngle(Turned):
    """One of the angles [rad] of three successive rotations about the body's own axes, -pi to pi. The second angle is
    from -pi/2 to pi/2; near these ends, the other two are poorly determined."""

    sequence: str = field(Kind.CHOICE, "", "axes of the turns, in their order", default="zyx", choices=SEQUENCES)
    component: int = field(Kind.COUNT, "", "which turn: 0, 1 or 2", default=0)

    def faults(self, joints: Mapping[str, Joint]) -> Any:
        if self.component > 2:
            yield "component", f"{self.component} is out of range; the turns are 0, 1 and 2"

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        R = [tuple(row) for row in self.rotation(scene).rows()]
        i, j, k = ("xyz".index(c) for c in self.sequence)
        sign = 1 if (j - i) % 3 == 1 else -1
        if self.component == 0:
            return jnp.arctan2(-sign * R[j][k], 1.0 * R[k][k]), True
        if self.component == 2:
            return jnp.arctan2(-sign * R[i][j], 1.0 * R[i][i]), True
        return jnp.arctan2(1.0 * sign * R[i][k], Vector3(R[i][i], R[i][j], 0.0).norm()), True


@element
class AngularRate(Output):
    """Angular rate of a body [rad/s]: the magnitude of the whole rate or of its part transverse to an axis fixed in the
    body, or the component along that axis, with its sign."""

    body: str = field(Kind.BODY_OR_WORLD, "", "body that turns")
    part: str = field(
        Kind.CHOICE, "", "the whole rate, or a part of it", default="total", choices=("total", "transverse", "axial")
    )
    axis: Vector = field(Kind.AXIS, "", "axis of the parts, in body axes", default=(1.0, 0.0, 0.0))
    relative_to: str = field(Kind.BODY_OR_WORLD, "", "what the rate is relative to", default=WORLD)

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return "angular rate"

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        rate = scene.angular(self.body)
        if self.relative_to != WORLD:
            rate = rate - scene.angular(self.relative_to)
        if self.part == "total":
            return rate.norm(), True
        axis = turned(scene.rotation(self.body), Vector3.of(self.axis))
        spin = axis @ rate
        return (spin if self.part == "axial" else (rate - axis * spin).norm()), True
