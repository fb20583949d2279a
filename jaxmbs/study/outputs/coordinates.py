"""Coordinates and rates of joints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jaxmbs.model.fields import element, field
from jaxmbs.model.kinds import Kind
from jaxmbs.study.outputs.base import Output

_RATES_OF = {"length": "velocity", "angle": "angular rate", "number": "number"}
_COORDINATES = {
    "Revolute": ("angle",), "Prismatic": ("length",), "Helical": ("angle",), "Cylindrical": ("angle", "length"),
    "Universal": ("angle", "angle"), "Planar": ("length", "length", "angle"), "Spherical": ("number",) * 4,
    "Free": ("length",) * 3 + ("number",) * 4,
}  # fmt: skip
_RATES = {"Spherical": ("angular rate",) * 3, "Free": ("angular rate",) * 3 + ("velocity",) * 3}


def coordinate_quantities(joint_type: str) -> tuple[str, ...]:
    """What the components of a joint's q measure."""
    return _COORDINATES.get(joint_type, ())


def rate_quantities(joint_type: str) -> tuple[str, ...]:
    """What the components of a joint's v measure."""
    return _RATES.get(joint_type) or tuple(_RATES_OF[c] for c in coordinate_quantities(joint_type))


@element
class Coordinate(Output):
    """Base of the outputs of one component of a joint's q or v."""

    joint: str = field(Kind.JOINT, "", "joint of the tree")
    component: int = field(Kind.COUNT, "", "counted from 0 in the order of the joint's coordinates", default=0)

    def quantities(self, joint_types: Mapping[str, str]) -> tuple[str, ...]:
        """What the components measure."""
        raise NotImplementedError

    def quantity(self, joint_types: Mapping[str, str]) -> str:
        return self.quantities(joint_types)[self.component]

    def faults(self, joint_types: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        size = len(self.quantities(joint_types))
        if self.component >= size:
            yield "component", f'{self.component} is out of range; joint "{self.joint}" has components 0 to {size - 1}'
