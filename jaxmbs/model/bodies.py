"""What a mechanism declares in addition to its elements: surroundings, bodies, and where joints are located."""

from __future__ import annotations

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import Element, element, field
from jaxmbs.model.given import Number, Rows, Vector
from jaxmbs.model.pose import Pose

_HERE = Pose()


@element
class Surroundings(Element):
    """The surroundings of a mechanism, which act on all bodies."""

    gravity: Vector = field(Kind.VECTOR, "m/s2", "uniform acceleration, in world axes", default=(0.0, 0.0, 0.0))


@element
class Body(Element):
    """A rigid body; it may be massless if it carries other bodies."""

    mass: Number = field(Kind.NOT_NEGATIVE, "kg", "mass", default=0.0)
    com: Vector = field(Kind.VECTOR, "m", "centre of mass, in the body's frame", default=(0.0, 0.0, 0.0))
    inertia: Vector | Rows = field(
        Kind.INERTIA,
        "kg m2",
        "principal moments or matrix, about the centre of mass along the body's axes",
        default=(0.0, 0.0, 0.0),
    )


@element
class Hinge(Element):
    """Where a tree joint is located: its two frames coincide at q = 0."""

    parent: str = field(Kind.BODY_OR_WORLD, "", "body that carries the joint")
    child: str = field(Kind.BODY, "", "body that the joint moves")
    parent_pose: Pose = field(Kind.PART, "", "joint frame in the parent's frame", default=_HERE, of=Pose)
    child_pose: Pose = field(Kind.PART, "", "joint frame in the child's frame", default=_HERE, of=Pose)
    releasable: bool = field(
        Kind.FLAG, "", "a free joint that moves as this one in runs until a Release", default=False
    )
    armature: Number = field(
        Kind.NOT_NEGATIVE, "kg m2 or kg", "inertia of a geared rotor, along each degree of freedom", default=0.0
    )


@element
class Closure(Element):
    """Where a cut joint is located; a is the parent side."""

    body_a: str = field(Kind.BODY_OR_WORLD, "", "body on the parent's side")
    body_b: str = field(Kind.BODY_OR_WORLD, "", "body on the child's side")
    pose_a: Pose = field(Kind.PART, "", "joint frame in the frame of body_a", default=_HERE, of=Pose)
    pose_b: Pose = field(Kind.PART, "", "joint frame in the frame of body_b", default=_HERE, of=Pose)
