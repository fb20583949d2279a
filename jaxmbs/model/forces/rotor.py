"""Rotor of a drive that turns with a joint, through a gear."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from jaxmbs.model.constraints.coupling import Coupling
from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.given import Number, Vector
from jaxmbs.model.joints import Revolute
from jaxmbs.model.pose import Pose
from jaxmbs.spatial import ZERO3, RigidInertia, Symmetric3, Vector3

if TYPE_CHECKING:
    from jaxmbs.building.mechanism import Mechanism


@element
class Rotor(Force):
    """A balanced rotor on a body, such as that of a motor, which turns `ratio` times as fast as a joint.

    `add_force("motor", Rotor("arm", axis, inertia, ratio, joint="elbow"))` adds a body "motor_rotor" on a joint "motor_spin"
    and the constraint "motor_gear", a Coupling with the coefficients (0, ratio). The joint then feels ratio² times the
    inertia, and the body feels the moment of the rotor's acceleration and its gyroscopic moment, which `armature` leaves
    out. The mass and the inertia of the body are those with the rotor, as if it were fixed.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_force("motor", mbs.Rotor("upper", axis=(0, 1, 0), inertia=1e-3, ratio=100.0, joint="elbow"))
    >>> model = mech.build()
    >>> model.joint_names, model.constraint_names
    (('shoulder', 'elbow', 'motor_spin'), ('motor_gear',))
    """

    body: str = field(Kind.BODY, "", "body that carries it")
    axis: Vector = field(Kind.AXIS, "", "its axis, in body axes", default=(0.0, 0.0, 1.0))
    inertia: Number = field(Kind.POSITIVE, "kg m2", "its moment of inertia about the axis", default=1e-3)
    ratio: Number = field(Kind.NUMBER, "", "its speed relative to the body over the rate of the joint", default=1.0)
    joint: str = field(Kind.JOINT, "", "joint of the tree with which it turns", default="", kw_only=True)

    def added(self, mech: Mechanism, name: str) -> GearedRotor:
        if not self.joint:
            raise ModelError(f"force {name!r}: give the joint with which the rotor turns, Rotor(..., joint=...)")
        made = GearedRotor(self.body, self.axis, self.inertia, rotor=f"{name}_rotor", spin=f"{name}_spin")
        mech.add_body(f"{name}_rotor", 0.0)
        place = Pose().turned_to(self.axis)
        mech.add_joint(f"{name}_spin", Revolute((0, 0, 1)), self.body, f"{name}_rotor", parent_pose=place)
        coefficients: Any = (0.0, self.ratio)
        mech.add_constraint(f"{name}_gear", Coupling(f"{name}_spin", self.joint, coefficients))
        return made


@element
class GearedRotor(Force):
    """The inertia of a Rotor in a mechanism: the part about the axis belongs to a body of its own."""

    takes: ClassVar[bool] = True
    body: str = field(Kind.BODY, "", "body that carries it")
    axis: Vector = field(Kind.AXIS, "", "its axis, in body axes", default=(0.0, 0.0, 1.0))
    inertia: Number = field(Kind.POSITIVE, "kg m2", "its moment of inertia about the axis", default=1e-3)
    rotor: str = field(Kind.BODY, "", "the body that turns", default="", kw_only=True)
    spin: str = field(Kind.JOINT, "", "its joint", default="", kw_only=True)

    def masses(self, p: Numbers) -> Mapping[str, RigidInertia]:
        axis = Vector3(*Pose().turned_to(self.axis).rotation[:, 2].tolist())
        return {
            self.body: RigidInertia(0.0, ZERO3, Symmetric3.outer(axis, -p["inertia"])),
            self.rotor: RigidInertia(0.0, ZERO3, Symmetric3(0.0, 0.0, p["inertia"], 0.0, 0.0, 0.0)),
        }

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        """It acts by its inertia alone."""
