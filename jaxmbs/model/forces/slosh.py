"""Liquid in a tank that moves to and fro."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field, state
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.forces.motor import LOCATED
from jaxmbs.model.given import Number, Vector
from jaxmbs.model.pose import Pose
from jaxmbs.spatial import RigidInertia, Symmetric3, Vector3
from jaxmbs.spatial.scalar import Scalar, maximum, sqrt, tanh, where

if TYPE_CHECKING:
    from jaxmbs.model.mechanism import Mechanism

ROOT = 1.841183781340659  # first zero of the derivative of the Bessel function J1


@element
class Slosh(Force):
    """Liquid in an upright tank: a part that is fixed to the tank, and a mass that moves across the tank's axis against a
    spring, as the first mode of the free surface does.

    `add_force("tank", Slosh("stage", ...))` adds a body "tank_liquid" with the joints "tank_x" and "tank_y", whose
    coordinates are the displacements [m] of the moving mass across the axis. With the depth h = fill height, the moving
    mass is a share s tanh(k h) / (k h) of the liquid, at the height h - 2 tanh(k h / 2) / k above the bottom, and its
    frequency is the square root of a k tanh(k h), where a is the acceleration along the axis. A cylinder has k = 1.8412
    / radius and s = 0.8368, a square box k = pi / (2 radius) and s = 0.8106 [Abramson 1966, chapter 6; Dodge 2000,
    chapter 3]. The rest is fixed, so that the centre of mass at rest is that of the liquid. Together they have the
    inertia of the frozen liquid across the axis, and none about it. The spring belongs to the given acceleration; it
    does not follow that of the motion. The mass and the inertia of the body are those without liquid.

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
    shape: str = field(Kind.CHOICE, "", "of the tank", default="cylinder", choices=("cylinder", "box"))
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
    liquid: str | None = field(Kind.BODY, "", "the body that is added", default=None, kw_only=True)
    along_x: str | None = field(Kind.JOINT, "", "the joint that is added", default=None, kw_only=True)
    along_y: str | None = field(Kind.JOINT, "", "the joint that is added", default=None, kw_only=True)

    def added(self, mech: Mechanism, name: str) -> Slosh:
        from jaxmbs.model.joints import Prismatic

        if self.liquid is not None:  # read from a file in which they are
            return self
        place = Pose(self.point).turned_to(self.axis)
        between, liquid = f"{name}_between", f"{name}_liquid"
        mech.add_body(between, 0.0)
        mech.add_body(liquid, 0.0)
        mech.add_joint(f"{name}_x", Prismatic((1, 0, 0)), self.body, between, parent_pose=place)
        mech.add_joint(f"{name}_y", Prismatic((0, 1, 0)), between, liquid)
        return replace(self, liquid=liquid, along_x=f"{name}_x", along_y=f"{name}_y")

    def _area(self, p: Numbers) -> Scalar:
        return (math.pi if self.shape == "cylinder" else 4.0) * (p["radius"] * p["radius"])

    def _parts(self, p: Numbers) -> tuple[Scalar, Scalar, Scalar, Scalar, Scalar]:
        """(moving mass, its height above the bottom, mass that is fixed, its height, square of the frequency)."""
        round_ = self.shape == "cylinder"
        k = (ROOT if round_ else 0.5 * math.pi) / p["radius"]
        share = 2.0 / (ROOT * ROOT - 1.0) if round_ else 8.0 / math.pi**2
        h = p["fill"] * p["height"]
        whole, half = tanh(k * h), tanh(0.5 * k * h)
        all_of_it = p["density"] * self._area(p) * h
        moving = all_of_it * share * whole / (k * h)
        height = h - 2.0 * half / k
        fixed = all_of_it - moving
        return moving, height, fixed, (0.5 * all_of_it * h - moving * height) / fixed, p["acceleration"] * k * whole

    def masses(self, p: Numbers) -> Mapping[str, RigidInertia]:
        moving, height, fixed, low, _ = self._parts(p)
        h, r = p["fill"] * p["height"], p["radius"]
        about = (moving + fixed) * ((0.25 if self.shape == "cylinder" else 1 / 3) * (r * r) + h * h / 12.0)
        for mass, at in ((moving, height), (fixed, low)):
            about = about - mass * ((at - 0.5 * h) * (at - 0.5 * h))
        z = Vector3(*Pose(self.point).turned_to(self.axis).rotation[:, 2].tolist())
        across = Symmetric3.diagonal(about, about, about) - Symmetric3.outer(z, about)
        bottom = Vector3(*map(float, self.point))
        assert self.liquid is not None  # once it is part of a mechanism
        none = Symmetric3.diagonal(0.0, 0.0, 0.0)
        return {
            self.body: RigidInertia.at_com(fixed, bottom + z * low, across),
            self.liquid: RigidInertia.at_com(moving, Vector3(0.0, 0.0, 1.0) * height, none),
        }

    def requirements(self, p: Numbers) -> Mapping[str, Any]:
        return {"fill: a tank is full at 1; pass a share of the height, more than 0 and at most 1": p["fill"] <= 1}

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

    def _displaced(self, scene: Scene) -> list[tuple[str, Scalar, Scalar]]:
        """(joint, displacement, rate) across the axis."""
        assert self.along_x is not None and self.along_y is not None
        return [(x, scene.coordinates(x)[0], scene.rates(x)[0]) for x in (self.along_x, self.along_y)]

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        moving, _, _, _, square = self._parts(p)
        drag = 2.0 * p["damping"] * moving * sqrt(square)
        for joint, x, rate in self._displaced(scene):
            loads.joint(joint, (-(moving * square) * x - drag * rate,))

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        moving, _, _, _, square = self._parts(p)
        (_, x, _), (_, y, _) = self._displaced(scene)
        return 0.5 * moving * square * (x * x + y * y)

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        moving, _, _, _, square = self._parts(p)
        (_, _, x), (_, _, y) = self._displaced(scene)
        return -2.0 * p["damping"] * moving * sqrt(square) * (x * x + y * y)
