"""Base class of the joints: their numbers, coordinates and motion, and the methods that each of their uses requires."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import jax

from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import Element, element
from jaxmbs.model.joints.equations import Equations, rows_of
from jaxmbs.model.rows import Row
from jaxmbs.spatial import ZERO_MOTION, Force, Motion, Transform, Vector3
from jaxmbs.spatial.components import components
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar

Numbers = Mapping[str, Any]
Scalars = Sequence[Scalar]


@components
class JointMotion:
    """Motion of the child joint frame relative to the parent joint frame.

    placement: child frame in the parent frame; S: one twist per degree of freedom, in child axes at the child frame's
    origin; velocity: S v plus the rheonomic part; bias: the acceleration at dv/dt = 0, as the rate of change of the
    velocity seen in the child frame [Y 3.99-3.105 in child axes].
    """

    placement: Transform
    S: tuple[Motion, ...]
    velocity: Motion
    bias: Motion


class Coordinate(NamedTuple):
    """A component of q or v: its name, its SI unit ("" for none), and the part of the joint's state to which it
    belongs.

    Components of one part are dispersed together: "attitude" for a quaternion, "" if q or v has only one part.
    """

    name: str
    unit: str = ""
    part: str = ""


class InPlane(NamedTuple):
    """How a joint moves in a plane: whether it rotates, and along which directions of the joint frame it slides."""

    turns: bool
    slides: tuple[Vector3, ...] = ()


@element
class Joint(Element):
    """Base of all joints. A joint type is a class with declared fields, decorated with
    `jaxmbs.elements.element`.

    A user-defined joint needs nq, nv and `motion`, written in the component algebra of `jaxmbs.spatial` (or, with
    formulas = False, with jax.numpy): it then works in trees with every recursive and dense formulation, simulation,
    derivatives, batches and files. Other uses need more methods, and raise an error that names a missing one:

    equations (or rows)          closing loops; with equations also absolute coordinates
    coordinates_of (and duals)   force elements and outputs on cut joints
    coordinates, speeds          names and units in outputs, initial values, dispersions, `info`, `model.coordinates`
    in_plane                     absolute coordinates in a plane
    rates, moved, bracket, neutral, normalised   coordinates whose rates are not v or that obey a condition: quaternions

    Some formulations need class variables: fixed_hinge_point ("barycentric", "wang"), turning_axis (a revolute,
    together with fixed_hinge_point and nv = 1: "telegin", "planar"), keeps_orientation (fewer constants in written-out
    formulas).

    In all methods p holds the numbers by field name; frames a and b are the joint frames on the parent and the child.
    """

    nq: ClassVar[int] = 0
    nv: ClassVar[int] = 0
    quaternion: ClassVar[int | None] = None  # index of the quaternion's first component in q
    formulas: ClassVar[bool] = True  # motion and rows are formulas in scalars of any kind, not functions of arrays
    rheonomic: ClassVar[bool] = False  # its motion depends explicitly on time
    rheonomic_rows: ClassVar[bool] = False  # its constraint rows depend explicitly on time
    free: ClassVar[bool] = False  # has no constraint; v is the angular and the linear velocity in child axes
    fixed_hinge_point: ClassVar[bool] = False  # the frames have a point in common, at rest in both
    turning_axis: ClassVar[str | None] = (
        None  # name of the field with the axis, fixed in both frames, of the first coordinate [rad]
    )
    keeps_orientation: ClassVar[bool] = False  # the frames do not rotate relative to each other
    elastic: ClassVar[bool] = False  # its coordinates deform a flexible body, and do not move the child's frame
    follows: ClassVar[bool] = False  # it moves with the coordinates of the parent's joint, and has none of its own
    # which of the six degrees of freedom of a Free joint it has, with its axis along z; None: it cannot be releasable
    within_free: ClassVar[tuple[int, ...] | None] = None

    @property
    def needed(self) -> Mapping[str, Kind]:
        """The numbers that the equations of motion need: all of them, unless some are for outputs alone."""
        return self.numbers

    # --- motion -------------------------------------------------------------------------------------------------------

    def motion(self, p: Numbers, q: Scalars, v: Scalars, t: Scalar) -> JointMotion:
        """Placement, S, velocity and bias at coordinates q, rates v, time t."""
        raise self.lacks("motion")

    def rates(self, q: Scalars, v: Scalars, m: JointMotion) -> tuple[Scalar, ...]:
        """dq/dt, given the motion at (q, v)."""
        return tuple(v)

    def moved(self, q: Scalars, change: Scalars) -> tuple[Scalar, ...]:
        """Coordinates after a unit of time at the constant rates v = change."""
        return tuple(a + b for a, b in zip(q, change, strict=True))

    def bracket(self, a: Scalars, b: Scalars) -> tuple[Scalar, ...]:
        """Lie bracket [a, b] of rates, in the group whose exponential is `moved`; zero where coordinates add up."""
        return (ZERO,) * self.nv

    # --- coordinates --------------------------------------------------------------------------------------------------

    def coordinates(self) -> tuple[Coordinate, ...]:
        """The components of q."""
        return tuple(Coordinate(f"q{k}") for k in range(self.nq))

    def speeds(self) -> tuple[Coordinate, ...]:
        """The components of v; by default the rates of the coordinates."""
        if self.nq != self.nv:
            return tuple(Coordinate(f"v{k}") for k in range(self.nv))
        return tuple(Coordinate(f"{c.name}_rate", c.unit and f"{c.unit}/s", c.part) for c in self.coordinates())

    def neutral(self) -> tuple[float, ...]:
        """Coordinates at which both joint frames coincide."""
        return (0.0,) * self.nq

    def random(self, key: jax.Array) -> jax.Array:
        """Random coordinates: angles in (-pi, pi), all others in (-1, 1), uniform orientations."""
        scale = jax.numpy.asarray([math.pi if c.unit == "rad" else 1.0 for c in self.coordinates()])
        return jax.random.uniform(key, (self.nq,), minval=-1.0, maxval=1.0) * scale

    def normalised(self, q: Scalars) -> tuple[Scalar, ...]:
        """The coordinates, corrected to satisfy their condition: quaternions of unit length."""
        return tuple(q)

    def coordinates_of(self, p: Numbers, X: Transform) -> tuple[Scalar, ...]:
        """Coordinates at which frame b is placed at X in a, if the joint can reach X; angles in (-pi, pi]."""
        raise self.lacks("coordinates_of")

    def duals(self, p: Numbers, X: Transform) -> tuple[Force, ...]:
        """For each degree of freedom, the wrench on b, in its axes, that has unit power on the rate of this one and
        none on the rates of the others, if b is placed at X.

        By default, with one degree of freedom, the wrench of least norm: S / (S @ S).
        """
        if self.nv != 1:
            raise self.lacks("duals")
        (S,) = self.motion(p, self.coordinates_of(p, X), (ZERO,), ZERO).S
        F = Force(S.angular, S.linear)
        return (F * (1 / (S @ F)),)

    # --- constraints --------------------------------------------------------------------------------------------------

    def equations(self, p: Numbers) -> tuple[Equations, ...]:
        """The elementary equations that define the joint, 6 - nv rows in all [Y 2.6.1]."""
        raise self.lacks("equations")

    def rows(self, p: Numbers, X: Transform, V: Motion, t: Scalar) -> tuple[Row, ...]:
        """The 6 - nv rows of the joint as a cut joint, with b placed at X in a and moving with V relative to a."""
        return rows_of(self.equations(p), X, V)

    def in_plane(self, p: Numbers, normal: int) -> InPlane | str:
        """How it moves in the plane normal to axis `normal` (0, 1 or 2) of the joint frame, or why it does not."""
        return f"is {self.type_name}, whose motion in a plane is not defined"

    # --- questions ----------------------------------------------------------------------------------------------------

    @property
    def type_name(self) -> str:
        return type(self).__name__

    @property
    def constraints(self) -> int:
        """Number of its constraint rows."""
        return 6 - self.nv

    @property
    def rigid(self) -> bool:
        """Whether there is no relative motion."""
        return not self.nv and not self.rheonomic

    @property
    def revolute(self) -> bool:
        """Whether it only rotates about one axis, which is fixed in both frames."""
        return self.nv == 1 and self.fixed_hinge_point and self.turning_axis is not None

    @property
    def closes_loops(self) -> bool:
        return self.gives("equations") or self.gives("rows")

    @property
    def is_measured(self) -> bool:
        """Whether the class can compute the coordinates and rates from the placement and velocity of the frames."""
        return self.gives("coordinates_of") and (self.nv == 1 or self.gives("duals")) and not self.rheonomic

    def gives(self, method: str) -> bool:
        """Whether the class of the joint defines this optional method."""
        return getattr(type(self), method) is not getattr(Joint, method)

    def lacks(self, method: str) -> ModelError:
        """The error for a method that the class does not define."""
        return ModelError(
            f"{self.type_name} joints do not define {_USES[method]}; write the method `{method}` of the class"
        )

    def fault(self) -> str | None:
        """What is wrong with the joint, or None; evaluated when a function of a model is first traced."""
        return None


_USES = {
    "motion": "their motion",
    "coordinates_of": "their coordinates for given poses of their frames",
    "duals": "the wrenches that act along their degrees of freedom",
    "equations": "their constraint equations",
}


def velocity_of(S: Sequence[Motion], v: Scalars) -> Motion:
    """S v."""
    total = ZERO_MOTION
    for column, rate in zip(S, v, strict=True):
        total = total + column * rate
    return total


def fixed_motion(placement: Transform, S: tuple[Motion, ...], v: Scalars) -> JointMotion:
    """Motion of a joint whose S is constant in the child frame."""
    return JointMotion(placement, S, velocity_of(S, v), ZERO_MOTION)


def speeds_of(joint: Joint, p: Numbers, X: Transform, V: Motion) -> tuple[Scalar, ...]:
    """v of a joint from the motion V of frame b relative to a, in axes of b."""
    return tuple(V @ F for F in joint.duals(p, X))


def wrench_along(joint: Joint, p: Numbers, X: Transform, values: Scalars) -> Force:
    """The wrench on frame b, in its axes, of generalized forces `values` of the joint [Y 3.199]."""
    first, *rest = (F * x for F, x in zip(joint.duals(p, X), values, strict=True))
    for F in rest:
        first = first + F
    return first
