"""Smooth one-sided contact of a point with a surface."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.scalar import Scalar, add, div, maximum, mul, safe_divide, sqrt, sub, where


@dataclass(frozen=True)
class Surface:
    """A surface fixed to a body: its depth and outward normal at a point."""

    numbers: ClassVar[Mapping[str, str]] = {}

    def structural(self) -> Surface:
        return dataclasses.replace(self, **dict.fromkeys(self.numbers))

    def depth(self, p: Numbers, x: Vector3) -> tuple[Scalar, Vector3]:
        """Penetration [m] (negative outside) of the point x and the unit normal that pushes it out."""
        raise NotImplementedError


@dataclass(frozen=True)
class Plane(Surface):
    """Half space below a plane through `point` [m] with the outward unit `normal`."""

    point: Any = (0.0, 0.0, 0.0)
    normal: Any = (0.0, 0.0, 1.0)
    numbers: ClassVar[Mapping[str, str]] = {"point": "vector", "normal": "unit"}

    def depth(self, p: Numbers, x: Vector3) -> tuple[Scalar, Vector3]:
        return p["surface.normal"] @ (p["surface.point"] - x), p["surface.normal"]


def _round(p: Numbers, r: Vector3, inside: bool) -> tuple[Scalar, Vector3]:
    distance = r.norm()
    outward = Vector3(*(safe_divide(c, distance) for c in r))
    if inside:
        return sub(distance, p["surface.radius"]), -outward
    return sub(p["surface.radius"], distance), outward


@dataclass(frozen=True)
class Sphere(Surface):
    """Ball of `radius` [m] about `center`; inside=True keeps the point within it."""

    center: Any = (0.0, 0.0, 0.0)
    radius: Any = 1.0
    inside: bool = False
    numbers: ClassVar[Mapping[str, str]] = {"center": "vector", "radius": "positive"}

    def depth(self, p: Numbers, x: Vector3) -> tuple[Scalar, Vector3]:
        return _round(p, x - p["surface.center"], self.inside)


@dataclass(frozen=True)
class Cylinder(Surface):
    """Infinite cylinder of `radius` [m] about the line through `point` along the unit `axis`."""

    point: Any = (0.0, 0.0, 0.0)
    axis: Any = (0.0, 0.0, 1.0)
    radius: Any = 1.0
    inside: bool = False
    numbers: ClassVar[Mapping[str, str]] = {"point": "vector", "axis": "unit", "radius": "positive"}

    def depth(self, p: Numbers, x: Vector3) -> tuple[Scalar, Vector3]:
        a, r = p["surface.axis"], x - p["surface.point"]
        return _round(p, r - a * (a @ r), self.inside)


@dataclass(frozen=True)
class Contact(Force):
    """A point of a body against a surface of another (or of the world).

    point (3,) [m] in body axes; surface: Plane, Sphere or Cylinder in axes of `other`; stiffness [N/m]; damping [s/m]:
    the normal force is stiffness depth (1 + damping d(depth)/dt), never pulling (Hunt-Crossley); friction: Coulomb
    coefficient, reached smoothly over transition_velocity [m/s]. The force rises from zero over +-smoothing [m]
    around the surface, so that its derivatives exist.
    """

    body: str
    point: Any
    surface: Surface
    other: str = "world"
    stiffness: Any = 0.0
    damping: Any = 0.0
    friction: Any = 0.0
    transition_velocity: Any = 1e-2
    smoothing: Any = 1e-4
    numbers: ClassVar[Mapping[str, str]] = {
        "point": "vector", "surface": "nested", "stiffness": "positive", "damping": "positive",
        "friction": "positive", "transition_velocity": "above zero", "smoothing": "above zero",
    }  # fmt: skip
    bodies: ClassVar[tuple[str, ...]] = ("body", "other")

    def _state(self, p: Numbers, scene: Scene) -> tuple[Scalar, Vector3, Vector3, Vector3]:
        """Depth, normal and relative velocity (world axes), point in axes of `other`."""
        x = scene.local_point(self.other, scene.point(self.body, p["point"]))
        depth, normal = self.surface.depth(p, x)
        relative = scene.velocity(self.body, p["point"]) - scene.velocity(self.other, x)
        return depth, scene.rotation(self.other) @ normal, relative, x

    def _elastic(self, p: Numbers, depth: Scalar) -> Scalar:
        e = p["smoothing"]
        rising = div(mul(add(depth, e), add(depth, e)), mul(4, e))
        one_sided = where(depth > e, depth, where(depth > -e, rising, 0.0))
        return mul(p["stiffness"], one_sided)

    def _force(self, p: Numbers, scene: Scene) -> tuple[Vector3, Vector3, Vector3, Vector3]:
        """Elastic force, whole force on the body, relative velocity, point of action on `other`."""
        depth, normal, relative, x = self._state(p, scene)
        elastic = self._elastic(p, depth)
        closing = mul(-1, normal @ relative)
        push = mul(elastic, maximum(add(1, mul(p["damping"], closing)), 0.0))
        slip = relative + normal * closing
        speed = sqrt(add(slip @ slip, mul(p["transition_velocity"], p["transition_velocity"])))
        whole = normal * push - slip * div(mul(p["friction"], push), speed)
        return normal * elastic, whole, relative, x

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        _, whole, _, x = self._force(p, scene)
        loads.force(self.body, whole, p["point"])
        loads.force(self.other, -whole, x)

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        depth, e = self._state(p, scene)[0], p["smoothing"]
        raised = add(depth, e)
        rising = div(mul(raised, mul(raised, raised)), mul(12, e))
        deep = add(mul(0.5, mul(depth, depth)), div(mul(e, e), 6))
        return mul(p["stiffness"], where(depth > e, deep, where(depth > -e, rising, 0.0)))

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        elastic, whole, relative, _ = self._force(p, scene)
        return (whole - elastic) @ relative
