"""How a flexible body is deformed: displacements of its nodes, and whatever is linear in its modes, such as stresses.

The dynamics are imported when a motion is measured, so that a study can be read and described without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import jax.numpy as jnp

from jaxmbs.io.errors import choices
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.given import Vector
from jaxmbs.model.joints import Joint
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.scalar import total
from jaxmbs.spatial.vectors import grouped
from jaxmbs.study import units
from jaxmbs.study.outputs.base import Scalar
from jaxmbs.study.outputs.of_state import OfState

if TYPE_CHECKING:
    from jaxmbs.dynamics.state.scene import TreeScene
    from jaxmbs.model import Mode, Model

DIRECTIONS = ("total", "x", "y", "z")


@element
class ElasticDisplacement(OfState):
    """How far a node of a flexible body is displaced by its deformation [m], or with part = "rotation" by which angle it is
    rotated [rad]: the magnitude, or the component along an axis of the body's floating frame."""

    node: str = field(Kind.BODY, "", 'body of the node: "wing_tip" is the node tip of the flexible body wing')
    part: str = field(
        Kind.CHOICE, "", "displacement or rotation", default="displacement", choices=("displacement", "rotation")
    )
    direction: str = field(Kind.CHOICE, "", "the magnitude, or a component", default="total", choices=DIRECTIONS)

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return "length" if self.part == "displacement" else "angle"

    def unfit(self, model: Model) -> Iterator[tuple[str, str]]:
        nodes = [k.body for k in model.structure.links if k.joint.follows]
        if self.node not in nodes:
            said = (
                f"; {choices(self.node, nodes, 'nodes')}"
                if nodes
                else "; the mechanism has no flexible body with nodes"
            )
            yield "node", f'"{self.node}" is not a node of a flexible body{said}'

    def of_state(self, state: TreeScene, model: Model, mode: Mode | None) -> tuple[Scalar, Scalar]:
        s = model.structure
        link = s.links[s.find_body(self.node)]
        numbers = state.tree.values.of(link.name, link.joint.numbers)
        q, _ = state.joint(s.links[link.parent].name)
        if self.part == "displacement":  # to second order, too, if the part has that
            vector = link.joint.motion(numbers, q, [0.0] * len(q), 0.0).placement.position
        else:
            shapes = grouped(numbers["rotation"])
            vector = Vector3(*(total(*(getattr(x, c) * y for x, y in zip(shapes, q, strict=True))) for c in "xyz"))
        along = state.tree.values.pose(f"{link.name}.parent_pose").rotation @ vector
        found = along.norm() if self.direction == "total" else getattr(along, self.direction)
        return found * jnp.ones((), state.tree.dtype), True


@element
class ModalSum(OfState):
    """A quantity that is linear in the modal coordinates of a flexible body, such as a stress, a strain or a section load:
    one row of the recovery matrix of the finite-element model, times the coordinates.

    >>> from jaxmbs.study.outputs import ModalSum
    >>> ModalSum("wing", coefficients=[2.1e6, -4.0e5, 0.0, 9.0e4], unit="Pa").quantity({})
    'pressure'
    """

    body: str = field(Kind.BODY, "", "the flexible body")
    coefficients: Vector = field(
        Kind.LIST, "", "for each mode, the quantity per unit of its coordinate, which is in m kg^0.5; SI"
    )
    unit: str = field(Kind.TEXT, "", 'SI unit of the quantity: "Pa", "N m"; "" for a strain', default="", kw_only=True)

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return units.quantity(self.unit) or "number"

    def faults(self, joints: Mapping[str, Joint]) -> Iterator[tuple[str, str]]:
        flexible = {name: joint for name, joint in joints.items() if joint.elastic}
        known = self.unit in units.UNITS and units.UNITS[self.unit].factor == 1.0
        if not known and self.unit:
            yield "unit", f'"{self.unit}" is not an SI unit; {choices(self.unit, _SI, "units")}'
        if self.body not in flexible:
            said = choices(self.body, flexible, "flexible bodies") if flexible else "the mechanism has no flexible body"
            yield "body", f'"{self.body}" is not a flexible body; {said}'
        elif len(self.coefficients) != (modes := flexible[self.body].nv):
            yield (
                "coefficients",
                f'{len(self.coefficients)} numbers; "{self.body}" has {modes} modes, give one for each',
            )

    def of_state(self, state: TreeScene, model: Model, mode: Mode | None) -> tuple[Scalar, Scalar]:
        q, _ = state.joint(self.body)
        return total(*(c * x for c, x in zip(self.coefficients, q, strict=True))), True


_SI = [name for name, unit in units.UNITS.items() if unit.factor == 1.0 and name]
