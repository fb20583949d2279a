"""Several forms as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import Kind, checked
from jaxmbs.model.fields import Element, element, field
from jaxmbs.model.pose import HERE, Pose
from jaxmbs.model.solids import Outline, Solid


@element
class Placing(Element):
    """Where a form is in a compound."""

    pose: Pose = field(Kind.PART, "", "the form in the frame of the compound", default=HERE, of=Pose)


@element
class Compound(Solid):
    """Several forms as one; a form without a body, used like `Ball`. Each part has its middle at the origin of the compound,
    or is given with its pose.

    What `mbs.collision_shapes` gives for a body can be the parts of a compound.

    >>> mech = mbs.library.double_pendulum()
    >>> rod, bob = mbs.Capsule(0.02, 1.0), (mbs.Ball(0.1), mbs.Pose((0, 0, -0.5)))
    >>> mech.add_visual("upper", mbs.Compound([rod, bob]), pose=mbs.Pose((0, 0, -0.5)))
    """

    parts: Sequence[Solid | tuple[Solid, Pose]] = field(
        Kind.PARTS, "", "forms, or pairs of a form and its pose", of=Solid
    )

    def __post_init__(self) -> None:
        if not isinstance(self.parts, (tuple, list)) or not self.parts:
            raise ModelError(f"Compound: {self.parts!r} is not a list of forms, or of pairs (form, pose)")
        given: list[Any] = [x if isinstance(x, (tuple, list)) else (x, HERE) for x in self.parts]
        for x in given:
            if len(x) != 2 or not isinstance(x[0], Solid) or not isinstance(x[1], Pose):
                raise ModelError(f"Compound: {x!r} is neither a form such as mbs.Ball(...) nor a pair (form, pose)")
            checked(Kind.VECTOR, x[1].position, "Compound: pose.position")
            checked(Kind.ROTATION, x[1].rotation, "Compound: pose.rotation")
        object.__setattr__(self, "parts", tuple((solid, pose.within(HERE)) for solid, pose in given))

    def outlines(self) -> tuple[Outline, ...]:
        pairs: Any = self.parts
        return tuple(x._replace(pose=x.pose.within(pose)) for solid, pose in pairs for x in solid.outlines())
