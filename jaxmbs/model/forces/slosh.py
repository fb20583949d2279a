"""Liquid that sloshes in a tank."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field, state
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.forces.motor import LOCATED
from jaxmbs.model.given import Number, Vector
from jaxmbs.model.joints import Prismatic, Revolute
from jaxmbs.model.parameters import is_traced
from jaxmbs.model.pose import Pose
from jaxmbs.spatial import Matrix3, RigidInertia, Symmetric3, Transform, Vector3
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar, maximum, sqrt, tanh, total, where

if TYPE_CHECKING:
    from jaxmbs.building.mechanism import Mechanism

ROOT = 1.841183781340659  # first zero of the derivative of the Bessel function J1
FLOWS = "flow: the pendulum's hinge does not follow the level; leave the flow at 0, or use model='spring'"


class Mode(NamedTuple):
    """The moving mass [kg], its height [m] above the bottom, the square of its frequency [rad²/s²], and the length [m] of
    the pendulum that has this frequency."""

    mass: Scalar
    height: Scalar
    square: Scalar
    length: Scalar


@element
class Slosh(Force):
    """Liquid in an upright tank: a part that is fixed to the tank, and a mass that moves across the tank's axis against a
    spring, as the first mode of the free surface does.

    `add_force("tank", Slosh("stage", ...))` adds a body "tank_liquid" with the joints "tank_x" and "tank_y", whose
    coordinates are the displacements [m] of the moving mass across the axis. With the depth h = fill * height, the moving
    mass is a share s tanh(k h) / (k h) of the liquid, at the height h - 2 tanh(k h / 2) / k above the bottom, and its
    frequency is the square root of a k tanh(k h), where a is the acceleration along the axis. A cylinder has
    k = 1.8412 / radius and s = 0.8368, a square box k = pi / (2 radius) and s = 0.8106 [Abramson 1966, chapter 6; Dodge
    2000, chapter 3]. A rectangle has k = pi / side_x along tank_x and pi / side_y along tank_y: two masses, heights and
    frequencies [Graham and Rodriguez 1952]. The direction of tank_x is given by `along`; without it, tank_x is as close as
    possible to the body axis that is most nearly perpendicular to the tank's axis: to x, if the tank's axis is the body's z
    axis.

    The rest is fixed, so that the centre of mass at rest is that of the liquid. Together they have the inertia of the frozen
    liquid across the axis, and none about it. The stiffness of the spring follows from the given acceleration, not from that
    of the motion. The mass and the inertia of the body are those without liquid.

    With model="pendulum" the moving mass hangs at the same height on a pendulum of the length 1 / (k tanh(k h)), and the
    coordinates are its angles [rad] towards tank_x and tank_y. For small motions it behaves as the spring model does, except
    that its frequency follows the actual acceleration and gravity; the given acceleration only sets the damping. Its hinge
    stays where it is for the level at which the tank was added, so that no flow is allowed, and another level needs another
    mechanism.

    The level falls with the flow, down to the residual: the share of the height that no outlet draws off, and the least
    with which the moving mass has a motion of its own. What leaves has the velocity of the place where it was, and
    exerts no force on the tank.

    >>> mech = mbs.Mechanism("tank", gravity=(0.0, 0.0, -9.81))
    >>> mech.add_body("stage", mass=100.0, inertia=(50.0, 50.0, 20.0))
    >>> mech.add_joint("stand", mbs.Fixed(), "world", "stage")
    >>> mech.add_force("tank", mbs.Slosh("stage", radius=0.5, height=1.0, fill=0.8, acceleration=9.81))
    >>> model = mech.build()
    >>> print(mbs.modes(mbs.set(model, {"tank.fill": 0.5}), [0.0, 0.0]).frequency[::2].round(3))  # Hz
    [0.933 0.933]
    """

    trials: ClassVar[int] = 24
    body: str = field(Kind.BODY, "", "body that the tank is part of")
    point: Vector = field(Kind.PLACE, "m", "centre of the tank's bottom, in body axes", default=(0.0, 0.0, 0.0))
    axis: Vector = field(Kind.AXIS, "", "from the bottom to the surface, in body axes", default=(0.0, 0.0, 1.0))
    shape: str = field(Kind.CHOICE, "", "of the tank", default="cylinder", choices=("cylinder", "box", "rectangle"))
    radius: Number = field(Kind.POSITIVE, "m", "of the cylinder, or half the side of the square", default=0.5)
    height: Number = field(Kind.POSITIVE, "m", "of the tank", default=1.0)
    fill: Number = state("", "share of the height that is full", default=0.5, kind=Kind.POSITIVE)
    density: Number = field(Kind.POSITIVE, "kg/m3", "of the liquid", default=1000.0)
    acceleration: Number = field(
        Kind.NOT_NEGATIVE, "m/s2", "of the stage along the axis, minus gravity's, for the frequency", default=9.80665
    )
    damping: Number = field(Kind.NOT_NEGATIVE, "", "share of critical damping", default=0.0)
    flow: Number = field(Kind.NOT_NEGATIVE, "kg/s", "mass that leaves", default=0.0)
    residual: Number = field(
        Kind.POSITIVE, "", "share of the height at which the flow ends", default=0.001, kw_only=True
    )
    side_x: Number = field(Kind.POSITIVE, "m", "longer side of the rectangle, along tank_x", default=1.0, kw_only=True)
    side_y: Number = field(Kind.POSITIVE, "m", "its other side, along tank_y", default=1.0, kw_only=True)
    model: str = field(
        Kind.CHOICE, "", "of the moving mass", default="spring", choices=("spring", "pendulum"), kw_only=True
    )
    along: Vector | None = field(
        Kind.AXIS, "", "direction of tank_x, across the axis, in body axes", default=None, kw_only=True
    )
    liquid: str | None = field(Kind.BODY, "", "the body that is added", default=None, kw_only=True)
    along_x: str | None = field(Kind.JOINT, "", "the joint that is added", default=None, kw_only=True)
    along_y: str | None = field(Kind.JOINT, "", "the joint that is added", default=None, kw_only=True)
    between: str | None = field(
        Kind.BODY, "", "the body between these joints, if the tank is a rectangle", default=None, kw_only=True
    )
    hinge: Vector | None = field(
        Kind.PLACE, "m", "where the pendulum hangs, in body axes; added", default=None, kw_only=True
    )

    def added(self, mech: Mechanism, name: str) -> Slosh:
        if self.liquid is not None:  # read from a file in which they are
            if self.shape == "rectangle" and self.between is None:
                raise ModelError(
                    f"force {name!r}: between is missing; pass the body between {self.along_x!r} and the liquid"
                )
            if (self.model == "pendulum") != (self.hinge is not None):
                raise ModelError(
                    f"force {name!r}: hinge is for pendulums; pass the place of its joint, or none for a spring"
                )
            return self
        if self.model == "pendulum" and self.shape == "rectangle":
            raise ModelError(f"force {name!r}: the pendulums of a rectangle hang at two heights; use model='spring'")
        if self.model == "pendulum" and is_traced(self.flow):
            raise ModelError(f"force {name!r}: {FLOWS}")
        between, liquid = f"{name}_between", f"{name}_liquid"
        mech.add_body(between, 0.0)
        mech.add_body(liquid, 0.0)
        place, hinge = self._tank(f"force {name!r}: "), None
        ways = Prismatic((1, 0, 0)), Prismatic((0, 1, 0))
        if self.model == "pendulum":
            hinge = self._hung(place)
            place, ways = replace(place, position=hinge), (Revolute((0, -1, 0)), Revolute((1, 0, 0)))
        mech.add_joint(f"{name}_x", ways[0], self.body, between, parent_pose=place)
        mech.add_joint(f"{name}_y", ways[1], between, liquid)
        carrier = between if self.shape == "rectangle" else None
        added = replace(self, liquid=liquid, along_x=f"{name}_x", along_y=f"{name}_y", between=carrier)
        return replace(added, hinge=hinge)

    def _hung(self, tank: Pose) -> Vector:
        """The place of the pendulum's hinge, from the numbers that are given."""
        try:
            p = {name: float(np.asarray(getattr(self, name))) for name in ("radius", "height", "fill", "density")}
        except (TypeError, ValueError):
            return self.point  # what is not a number is refused afterwards, by name
        if not all(0 < x < math.inf for x in p.values()):
            return self.point
        up = np.asarray(tank.rotation)[:, 2] * float(self._hinge_height(p))
        return tuple((np.asarray(self.point, float) + up).tolist())

    def _hinge_height(self, p: Numbers) -> Scalar:
        mode, _ = self._modes({**p, "acceleration": 0.0})
        return mode.height + mode.length

    def _tank(self, where: str = "") -> Pose:
        """The frame at the tank's bottom, in body axes: x along tank_x, z along the axis."""
        tank = Pose(self.point).turned_to(self.axis)
        if self.along is None:
            return tank
        z = np.asarray(tank.rotation)[:, 2]
        x = np.asarray(self.along, float) - (z @ np.asarray(self.along, float)) * z
        if np.linalg.norm(x) < 1e-6 * np.linalg.norm(np.asarray(self.along)):
            raise ModelError(f"{where}along lies along the tank's axis; pass a direction across it")
        x = x / np.linalg.norm(x)
        return Pose(self.point, np.stack([x, np.cross(z, x), z], axis=1))

    def _area(self, p: Numbers) -> Scalar:
        if self.shape == "rectangle":
            return p["side_x"] * p["side_y"]
        return (math.pi if self.shape == "cylinder" else 4.0) * (p["radius"] * p["radius"])

    def _depth(self, p: Numbers) -> Scalar:
        return p["fill"] * p["height"]

    def _whole(self, p: Numbers) -> Scalar:
        """Mass of the liquid."""
        return p["density"] * self._area(p) * self._depth(p)

    def _modes(self, p: Numbers) -> tuple[Mode, Mode]:
        """Along tank_x, and along tank_y."""
        if self.shape == "rectangle":
            x, y = (self._mode(p, math.pi / p[side], 8.0 / math.pi**2) for side in ("side_x", "side_y"))
            return x, y
        round_ = self.shape == "cylinder"
        k = (ROOT if round_ else 0.5 * math.pi) / p["radius"]
        both = self._mode(p, k, 2.0 / (ROOT * ROOT - 1.0) if round_ else 8.0 / math.pi**2)
        return both, both

    def _mode(self, p: Numbers, k: Scalar, share: float) -> Mode:
        h = self._depth(p)
        whole, half = tanh(k * h), tanh(0.5 * k * h)
        moving = self._whole(p) * share * whole / (k * h)
        height = h - 2.0 * half / k
        return Mode(moving, height, p["acceleration"] * k * whole, 1.0 / (k * whole))

    def masses(self, p: Numbers) -> Mapping[str, RigidInertia]:
        assert self.liquid is not None  # once it is part of a mechanism
        (moving, height, _, length), along_y = self._modes(p)
        all_of_it, h, r = self._whole(p), self._depth(p), p["radius"]
        if self.between is not None:
            return self._of_rectangle(p, (moving, height), (along_y.mass, along_y.height))
        fixed = all_of_it - moving
        low = (0.5 * all_of_it * h - moving * height) / fixed
        about = (moving + fixed) * ((0.25 if self.shape == "cylinder" else 1 / 3) * (r * r) + h * h / 12.0)
        for mass, at in ((moving, height), (fixed, low)):
            about = about - mass * ((at - 0.5 * h) * (at - 0.5 * h))
        z = Vector3(*Pose(self.point).turned_to(self.axis).rotation[:, 2].tolist())
        across = Symmetric3.diagonal(about, about, about) - Symmetric3.outer(z, about)
        bottom = Vector3(*map(float, self.point))
        none = Symmetric3.diagonal(0.0, 0.0, 0.0)
        where_it_is = -length if self.hinge is not None else height  # in the frame that moves
        return {
            self.body: RigidInertia.at_com(fixed, bottom + z * low, across),
            self.liquid: RigidInertia.at_com(moving, Vector3(0.0, 0.0, 1.0) * where_it_is, none),
        }

    def _of_rectangle(
        self, p: Numbers, x: tuple[Scalar, Scalar], y: tuple[Scalar, Scalar]
    ) -> Mapping[str, RigidInertia]:
        """Both bodies move along tank_x, the liquid alone along tank_y; the one between has the difference of the masses,
        which is positive because tank_x is along the longer side. x, y: (moving mass, its height)."""
        assert self.liquid is not None and self.between is not None
        h, whole, side_x, side_y = self._depth(p), self._whole(p), p["side_x"], p["side_y"]
        square = whole * (h * h) / 3.0
        all_of_it = RigidInertia(
            whole,
            Vector3(0.0, 0.0, 0.5 * whole * h),
            Symmetric3.diagonal(
                whole * (side_y * side_y) / 12.0 + square, whole * (side_x * side_x) / 12.0 + square, 0.0
            ),
        )
        fixed = all_of_it + _upon_the_axis(-x[0], x[1])
        tank = self._tank()
        place = Transform(Matrix3.of(np.ravel(tank.rotation).tolist()), Vector3(*map(float, self.point)))
        return {
            self.body: fixed.to_parent(place),
            self.between: _upon_the_axis(*x) + _upon_the_axis(-y[0], y[1]),
            self.liquid: _upon_the_axis(*y),
        }

    def requirements(self, p: Numbers) -> Mapping[str, Any]:
        full = {"fill: a tank is full at 1; pass a share of the height, more than 0 and at most 1": p["fill"] <= 1}
        if self.hinge is not None:
            off = self._hinge_height(p) - float(np.linalg.norm(np.asarray(self.hinge) - np.asarray(self.point)))
            moved = "the pendulum's hinge belongs to the radius, height and fill with which the tank was added"
            return {
                **full,
                f"{moved}; build another mechanism": abs(off) <= 1e-5 * self._hinge_height(p),
                FLOWS: p["flow"] <= 0,
            }
        if self.shape != "rectangle":
            return full
        longer = "side_x must not be shorter than side_y; exchange them, and turn tank_x by `along`"
        return {**full, longer: p["side_x"] >= p["side_y"]}

    def unchecked(self, traced: Collection[str]) -> str | None:
        return FLOWS if self.hinge is not None and "flow" in traced else None

    def corners(self, p: Numbers, scene: Scene) -> tuple[tuple[Scalar, Scalar | None], ...]:
        """The end of the outflow. As for the propellant of a Motor, what remains by rounding makes no second corner."""
        left = p["fill"] - p["residual"]
        if scene.sides:
            return ((where(scene.sides[0], left, -1.0), where(scene.sides[0], -self._fall(p), 0.0)),)
        rest = LOCATED + 8 * float(np.finfo(getattr(left, "dtype", float)).eps) * maximum(scene.t, -scene.t)
        return ((left - rest * self._fall(p), None),)

    def _fall(self, p: Numbers) -> Scalar:
        """Rate [1/s] at which the level falls while there is an outflow, in heights of the tank."""
        return p["flow"] / (p["density"] * self._area(p) * p["height"])

    def rates(self, p: Numbers, scene: Scene) -> Mapping[str, Any]:
        return {"fill": where(self.sides(p, scene)[0], -self._fall(p), 0.0)}

    def _displaced(self, p: Numbers, scene: Scene) -> list[tuple[str, Mode, Scalar, Scalar]]:
        """(joint, mode, displacement, rate) along both axes."""
        assert self.along_x is not None and self.along_y is not None
        pairs = zip((self.along_x, self.along_y), self._modes(p), strict=True)
        return [(joint, mode, scene.coordinates(joint)[0], scene.rates(joint)[0]) for joint, mode in pairs]

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        for joint, mode, x, rate in self._displaced(p, scene):
            drag = self._drag(p, mode) * rate
            spring = -(mode.mass * mode.square) * x if self.hinge is None else 0.0
            loads.joint(joint, (spring - drag,))

    def _drag(self, p: Numbers, mode: Mode) -> Scalar:
        """Damping force per rate, or moment per angular rate of a pendulum."""
        drag = 2.0 * p["damping"] * mode.mass * sqrt(mode.square)
        return drag if self.hinge is None else drag * (mode.length * mode.length)

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        if self.hinge is not None:
            return ZERO
        return total(*(0.5 * mode.mass * mode.square * (x * x) for _, mode, x, _ in self._displaced(p, scene)))

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        return -total(*(self._drag(p, mode) * (rate * rate) for _, mode, _, rate in self._displaced(p, scene)))


def _upon_the_axis(mass: Scalar, height: Scalar) -> RigidInertia:
    """Inertia about the bottom's centre of a mass on the tank's axis, which does not turn with the tank."""
    second = mass * (height * height)
    return RigidInertia(mass, Vector3(0.0, 0.0, mass * height), Symmetric3.diagonal(second, second, 0.0))
