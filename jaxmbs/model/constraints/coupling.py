"""Joints that move in step: cables, gears, synchronisation of hinges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jaxmbs.model.constraints.base import JointConstraint
from jaxmbs.model.fields import element, field
from jaxmbs.model.kinds import Kind
from jaxmbs.spatial.scalar import Scalar, mul


@element
class Coupling(JointConstraint):
    """The coordinate of joint_b is ratio times that of joint_a, plus offset: a cable, a gear.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_constraint("cable", mbs.Coupling("shoulder", "elbow", ratio=-2.0))
    >>> mech.build().constraint_names
    ('cable',)
    """

    joint_a: str = field(Kind.JOINT, "", "joint of the tree with one degree of freedom")
    joint_b: str = field(Kind.JOINT, "", "another one")
    ratio: Any = field(Kind.NUMBER, "", "rate of joint_b over that of joint_a", default=1.0)
    offset: Any = field(Kind.NUMBER, "rad or m", "coordinate of joint_b where that of joint_a is 0", default=0.0)
    count: ClassVar[int] = 1

    def terms(self, p: Mapping[str, Any]) -> tuple[tuple[Mapping[str, Scalar], Scalar], ...]:
        return (({self.joint_a: mul(-1, p["ratio"]), self.joint_b: 1}, mul(-1, p["offset"])),)
