"""The [mechanism] of a TOML file: one table per body, joint and force element, and the model they build."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from jaxmbs.io.errors import InputError, Problem, dotted
from jaxmbs.io.tables import (
    Inertia,
    Name,
    NotNegative,
    Number,
    Numbers,
    Positive,
    Rotation,
    Table,
    Vector,
)
from jaxmbs.model import ModelError

if TYPE_CHECKING:
    from jaxmbs.model import Mechanism, Model

ORIGIN: tuple[float, float, float] = (0.0, 0.0, 0.0)


class PoseTable(Table):
    """position [m] and rotation (quaternion w, x, y, z or 3x3) of a joint frame in its body."""

    position: Vector = ORIGIN
    rotation: Rotation = (1.0, 0.0, 0.0, 0.0)

    def build(self) -> Any:
        from jaxmbs.model import Pose

        return Pose(self.position, self.rotation)


class BodyTable(Table):
    """mass [kg], centre of mass [m] in the body's frame, inertia about it [kg m2]: principal values or 3x3."""

    name: Name
    mass: NotNegative = 0.0
    com: Vector = ORIGIN
    inertia: Inertia = ORIGIN


class Element(Table):
    """A table that stands for an object of the model: same fields, class named by `makes`."""

    makes: ClassVar[str]
    placed: ClassVar[frozenset[str]] = frozenset({"name", "type"})  # keys that are not the object's fields

    def build(self) -> Any:
        from jaxmbs.model import forces, joints

        fields = {k: getattr(self, k) for k in type(self).model_fields if k not in self.placed}
        built = {k: v.build() if isinstance(v, (PoseTable, Element)) else v for k, v in fields.items()}
        return getattr(joints if isinstance(self, JointTable) else forces, self.makes)(**built)


class JointTable(Element):
    placed: ClassVar[frozenset[str]] = frozenset({"name", "type", "parent", "child", "parent_pose", "child_pose"})
    name: Name
    parent: Name
    child: Name
    parent_pose: PoseTable = PoseTable()
    child_pose: PoseTable = PoseTable()


class ForceTable(Element):
    name: Name


class FixedTable(JointTable):
    makes = "Fixed"
    type: Literal["fixed"]


class RevoluteTable(JointTable):
    makes = "Revolute"
    type: Literal["revolute"]
    axis: Vector


class PrismaticTable(JointTable):
    makes = "Prismatic"
    type: Literal["prismatic"]
    axis: Vector


class HelicalTable(JointTable):
    makes = "Helical"
    type: Literal["helical"]
    axis: Vector
    pitch: Number


class CylindricalTable(JointTable):
    makes = "Cylindrical"
    type: Literal["cylindrical"]
    axis: Vector


class UniversalTable(JointTable):
    makes = "Universal"
    type: Literal["universal"]
    axis_1: Vector
    axis_2: Vector


class SphericalTable(JointTable):
    makes = "Spherical"
    type: Literal["spherical"]


class PlanarTable(JointTable):
    makes = "Planar"
    type: Literal["planar"]


class FreeTable(JointTable):
    makes = "Free"
    type: Literal["free"]


class LinearSpringTable(ForceTable):
    makes = "LinearSpring"
    type: Literal["linear_spring"]
    body_a: Name
    body_b: Name
    point_a: Vector = ORIGIN
    point_b: Vector = ORIGIN
    stiffness: Number
    rest_length: NotNegative = 0.0
    damping: Number = 0.0


class TorsionSpringTable(ForceTable):
    makes = "TorsionSpring"
    type: Literal["torsion_spring"]
    joint: Name
    stiffness: Number
    damping: Number = 0.0
    rest_angle: Number = 0.0


class DamperTable(ForceTable):
    makes = "Damper"
    type: Literal["damper"]
    joint: Name
    damping: Number


class BushingTable(ForceTable):
    makes = "Bushing"
    type: Literal["bushing"]
    body_a: Name
    body_b: Name
    pose_a: PoseTable = PoseTable()
    pose_b: PoseTable = PoseTable()
    stiffness: Vector = ORIGIN
    rotational_stiffness: Vector = ORIGIN
    damping: Vector = ORIGIN
    rotational_damping: Vector = ORIGIN


class PusherTable(ForceTable):
    makes = "Pusher"
    type: Literal["pusher"]
    body_a: Name
    body_b: Name
    point_a: Vector
    point_b: Vector
    direction: Vector
    stiffness: NotNegative
    preload: NotNegative
    stroke: Positive
    delay: Number = 0.0
    friction: NotNegative = 0.0


class ThrusterTable(ForceTable):
    makes = "Thruster"
    type: Literal["thruster"]
    body: Name
    point: Vector
    direction: Vector
    thrust: Number
    times: Numbers = (0.0,)
    values: Numbers = (1.0,)


class PlaneTable(Element):
    makes = "Plane"
    type: Literal["plane"]
    point: Vector
    normal: Vector


class SphereTable(Element):
    makes = "Sphere"
    type: Literal["sphere"]
    center: Vector
    radius: Positive
    inside: bool = False


class CylinderTable(Element):
    makes = "Cylinder"
    type: Literal["cylinder"]
    point: Vector
    axis: Vector
    radius: Positive
    inside: bool = False


class ContactTable(ForceTable):
    makes = "Contact"
    type: Literal["contact"]
    body: Name
    point: Vector
    surface: Annotated[PlaneTable | SphereTable | CylinderTable, Field(discriminator="type")]
    other: Name = "world"
    stiffness: NotNegative
    damping: NotNegative = 0.0
    friction: NotNegative = 0.0
    transition_velocity: Positive = 1e-2
    smoothing: Positive = 1e-4


class CentralGravityTable(ForceTable):
    makes = "CentralGravity"
    type: Literal["central_gravity"]
    mu: Number
    center: Vector = ORIGIN


AnyJoint = Annotated[
    FixedTable | RevoluteTable | PrismaticTable | HelicalTable | CylindricalTable
    | UniversalTable | SphericalTable | PlanarTable | FreeTable,
    Field(discriminator="type"),
]  # fmt: skip
AnyForce = Annotated[
    LinearSpringTable | TorsionSpringTable | DamperTable | BushingTable | PusherTable
    | ThrusterTable | ContactTable | CentralGravityTable,
    Field(discriminator="type"),
]  # fmt: skip


class MechanismTable(Table):
    """[mechanism]: name, gravity [m/s2] and lists of bodies, joints and forces."""

    name: str = "mechanism"
    gravity: Vector = ORIGIN
    bodies: list[BodyTable] = Field(min_length=1)
    joints: list[AnyJoint] = Field(min_length=1)
    forces: list[AnyForce] = Field(default_factory=list)

    def build(self) -> Model:
        """The model. Raises InputError: the path of the table that the model refuses, and why."""
        from jaxmbs.model import Mechanism

        mech = Mechanism(self.name, gravity=self.gravity)
        for kind in ("bodies", "joints", "forces"):
            for i, table in enumerate(getattr(self, kind)):
                with _located("mechanism", kind, i):
                    _add(mech, table)
        with _located("mechanism"):
            return mech.build()


def _add(mech: Mechanism, table: BodyTable | JointTable | ForceTable) -> None:
    if isinstance(table, BodyTable):
        mech.add_body(table.name, mass=table.mass, com=table.com, inertia=table.inertia)
    elif isinstance(table, JointTable):
        mech.add_joint(
            table.name,
            table.build(),
            parent=table.parent,
            child=table.child,
            parent_pose=table.parent_pose.build(),
            child_pose=table.child_pose.build(),
        )
    else:
        mech.add_force(table.name, table.build())


class _located:
    """Gives a model's error the path of the table that caused it."""

    def __init__(self, *path: str | int) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ModelError):
            raise InputError(Problem(dotted(self.path), str(error))) from error
