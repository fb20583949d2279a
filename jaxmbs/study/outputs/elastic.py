"""How a flexible body is deformed: displacements of its nodes, and whatever is linear in its modes, such as stresses.

The dynamics are imported when a motion is measured, so that a study can be read and described without them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import jax.numpy as jnp

from jaxmbs.io.errors import choices
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.given import Vector
from jaxmbs.model.joints import Joint
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.scalar import maximum, minimum, total
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
    """How far a node of a flexible body is displaced by its deformation [m] or, with part = "rotation", the angle by which
    it is rotated [rad]: the magnitude, or the component along an axis of the body's floating frame."""

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
        if self.unit and self.unit not in _SI:
            yield "unit", f'"{self.unit}" is not an SI unit; {choices(self.unit, _SI, "units")}'
        if self.body not in flexible:
            yield "body", _not_flexible(self.body, flexible)
        elif len(self.coefficients) != (modes := flexible[self.body].nv):
            yield (
                "coefficients",
                f'{len(self.coefficients)} numbers; "{self.body}" has {modes} modes, give one for each',
            )

    def of_state(self, state: TreeScene, model: Model, mode: Mode | None) -> tuple[Scalar, Scalar]:
        q, _ = state.joint(self.body)
        return total(*(c * x for c, x in zip(self.coefficients, q, strict=True))), True


@element
class ModalRecovery(OfState):
    """What the part of a flexible body recovers from its modal coordinates, by name: a stress, a strain, a section load
    (`Part.recovery`). If it has several rows, the largest, the least, or the largest magnitude of all of them.

    >>> from jaxmbs.study.outputs import ModalRecovery
    >>> ModalRecovery("wing", "root_stress", over_rows="magnitude", reduce="max").over_rows
    'magnitude'
    """

    body: str = field(Kind.BODY, "", "the flexible body")
    name: str = field(Kind.TEXT, "", "what is recovered: a name in the recovery of its part")
    over_rows: str = field(
        Kind.CHOICE, "", "which of several rows: the largest, the least, or the largest magnitude; only: there is one row",
        default="only", choices=("only", "largest", "least", "magnitude"),
    )  # fmt: skip

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return units.quantity(_recovered(joints, self.body).get(self.name, "")) or "number"

    def faults(self, joints: Mapping[str, Joint]) -> Iterator[tuple[str, str]]:
        flexible = {name: joint for name, joint in joints.items() if joint.elastic}
        if self.body not in flexible:
            yield "body", _not_flexible(self.body, flexible)
        elif self.name not in (known := _recovered(joints, self.body)):
            said = choices(self.name, known, "recoveries") if known else "its part has no recovery"
            yield "name", f'"{self.body}" recovers no "{self.name}"; {said}'
        elif (unit := known[self.name]) and unit not in _SI:
            yield (
                "name",
                f'its part gives "{self.name}" in "{unit}", which is not an SI unit; {choices(unit, _SI, "units")}',
            )

    def unfit(self, model: Model) -> Iterator[tuple[str, str]]:
        if (modes := model.structure.modes_of.get(self.body)) is None:
            return
        joint = model.structure.links[modes].joint
        if self.name not in getattr(joint, "recovered", {}):
            return
        size, modes = len(model.structure.table[f"{self.body}.{self.name}"][0].pattern), joint.nv
        if self.over_rows == "only" and size > modes:
            yield "over_rows", f'"{self.name}" has {size // modes} rows; write largest, least or magnitude'

    def of_state(self, state: TreeScene, model: Model, mode: Mode | None) -> tuple[Scalar, Scalar]:
        q, _ = state.joint(self.body)
        numbers, n = state.tree.values[f"{self.body}.{self.name}"], len(q)
        rows = [numbers[k : k + n] for k in range(0, len(numbers), n)]
        found = [total(*(c * x for c, x in zip(row, q, strict=True))) * jnp.ones((), state.tree.dtype) for row in rows]
        if self.over_rows == "magnitude":
            found = [abs(x) for x in found]
        pick = minimum if self.over_rows == "least" else maximum
        return functools.reduce(pick, found), True


def _recovered(joints: Mapping[str, Joint], body: str) -> dict[str, str]:
    return getattr(joints.get(body), "recovered", {})


def _not_flexible(body: str, flexible: Mapping[str, Joint]) -> str:
    said = choices(body, flexible, "flexible bodies") if flexible else "the mechanism has no flexible body"
    return f'"{body}" is not a flexible body; {said}'


_SI = [name for name, unit in units.UNITS.items() if unit.factor == 1.0 and name]
