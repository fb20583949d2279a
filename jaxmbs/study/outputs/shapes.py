"""Convex shapes fixed to bodies, each described by how far it reaches in a direction."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Scene
from jaxmbs.model.given import Rows, Vector
from jaxmbs.spatial import ZERO3, Vector3
from jaxmbs.spatial.scalar import Scalar
from jaxmbs.study.outputs.base import Described, normals, turned


class Reach(NamedTuple):
    """A convex shape in world axes, with centre c. In the direction of a unit vector n it reaches c.n + sum w |e.n| +
    sum r sqrt(1 - (e.n)²) + ball + the largest p.n of its points p.

    along: half lengths and directions (w, e) of segments; discs: radii and axes (r, e); points: relative to the centre.
    """

    center: Vector3
    along: tuple[tuple[float, Vector3], ...] = ()
    discs: tuple[tuple[float, Vector3], ...] = ()
    ball: float = 0.0
    points: tuple[Vector3, ...] = ()


@element
class Shape(Described):
    """Base of the shapes."""

    body: str = field(Kind.BODY_OR_WORLD, "", "body that carries it")

    def reach(self, scene: Scene) -> Reach:
        """The shape at its present position."""
        raise NotImplementedError

    def corners(self, scene: Scene) -> tuple[tuple[Vector3, ...], float]:
        """Points, in world axes, and a radius: the shape is the hull of the balls of this radius about the points. For
        a cylinder, the points are the corners of polygons with 64 sides around its ends, which lie outside it by 0.12 %
        of its radius."""
        raise NotImplementedError

    def _there(self, scene: Scene, vectors: Any) -> tuple[Vector3, ...]:
        R = scene.rotation(self.body)
        return tuple(turned(R, Vector3.of([float(x) for x in v])) for v in vectors)


@element
class Ball(Shape):
    """A sphere."""

    center: Vector = field(Kind.VECTOR, "m", "centre, in body axes", default=(0.0, 0.0, 0.0))
    radius: float = field(Kind.POSITIVE, "m", "radius", kw_only=True)

    def reach(self, scene: Scene) -> Reach:
        return Reach(scene.point(self.body, Vector3.of(self.center)), ball=self.radius)

    def corners(self, scene: Scene) -> tuple[tuple[Vector3, ...], float]:
        return (scene.point(self.body, Vector3.of(self.center)),), self.radius


@element
class Box(Shape):
    """A box, with its edges along the body's axes unless it is rotated."""

    center: Vector = field(Kind.VECTOR, "m", "centre, in body axes", default=(0.0, 0.0, 0.0))
    size: Vector = field(Kind.VECTOR, "m", "lengths of its edges", kw_only=True)
    rotation: Vector | Rows = field(
        Kind.ROTATION, "", "from its axes to those of the body", default=(1.0, 0.0, 0.0, 0.0), kw_only=True
    )

    def edges(self) -> np.ndarray:
        """(3, 3) unit vectors along the edges, in body axes, one per row."""
        x = np.asarray(self.rotation, float)
        if x.shape == (3, 3):
            return x.T
        w, v = x[0] / np.linalg.norm(x), x[1:] / np.linalg.norm(x)
        K = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
        return (np.eye(3) + 2 * w * K + 2 * K @ K).T

    def reach(self, scene: Scene) -> Reach:
        along = zip((float(s) / 2 for s in self.size), self._there(scene, self.edges()), strict=True)
        return Reach(scene.point(self.body, Vector3.of(self.center)), tuple(along))

    def corners(self, scene: Scene) -> tuple[tuple[Vector3, ...], float]:
        half = self.edges() * np.asarray(self.size)[:, None] / 2
        center = scene.point(self.body, Vector3.of(self.center))
        vectors = [half.T @ (x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
        return tuple(center + v for v in self._there(scene, vectors)), 0.0


@element
class Tube(Shape):
    """A cylinder."""

    center: Vector = field(Kind.VECTOR, "m", "middle of its axis, in body axes", default=(0.0, 0.0, 0.0))
    axis: Vector = field(Kind.AXIS, "", "axis, in body axes", default=(1.0, 0.0, 0.0), kw_only=True)
    radius: float = field(Kind.POSITIVE, "m", "radius", kw_only=True)
    length: float = field(Kind.POSITIVE, "m", "from end to end", kw_only=True)

    def reach(self, scene: Scene) -> Reach:
        (e,) = self._there(scene, [self.axis])
        return Reach(scene.point(self.body, Vector3.of(self.center)), ((self.length / 2, e),), ((self.radius, e),))

    def corners(self, scene: Scene) -> tuple[tuple[Vector3, ...], float]:
        u, w = normals(self.axis)
        r, half = self.radius / math.cos(math.pi / 64), np.asarray(self.axis) * self.length / 2
        turns = (2 * math.pi * k / 64 for k in range(64))
        rim = [r * (math.cos(x) * u + math.sin(x) * w) for x in turns]
        center = scene.point(self.body, Vector3.of(self.center))
        return tuple(center + v for v in self._there(scene, [p + s * half for p in rim for s in (-1, 1)])), 0.0


@element
class Capsule(Shape):
    """A cylinder with a hemisphere on each end."""

    center: Vector = field(Kind.VECTOR, "m", "middle of its axis, in body axes", default=(0.0, 0.0, 0.0))
    axis: Vector = field(Kind.AXIS, "", "axis, in body axes", default=(1.0, 0.0, 0.0), kw_only=True)
    radius: float = field(Kind.POSITIVE, "m", "radius", kw_only=True)
    length: float = field(Kind.NOT_NEGATIVE, "m", "of the straight part", kw_only=True)

    def reach(self, scene: Scene) -> Reach:
        (e,) = self._there(scene, [self.axis])
        return Reach(scene.point(self.body, Vector3.of(self.center)), ((self.length / 2, e),), ball=self.radius)

    def corners(self, scene: Scene) -> tuple[tuple[Vector3, ...], float]:
        (half,) = self._there(scene, [np.asarray(self.axis) * self.length / 2])
        center = scene.point(self.body, Vector3.of(self.center))
        return (center + half, center - half), self.radius


@element
class Hull(Shape):
    """The convex hull of points, such as the corners of a scan or a drawing."""

    points: Rows | np.ndarray = field(Kind.POINTS, "m", "the points, in body axes", kw_only=True)
    radius: float = field(Kind.NOT_NEGATIVE, "m", "how far it is thickened", default=0.0, kw_only=True)

    def reach(self, scene: Scene) -> Reach:
        x = np.asarray(self.points, float)
        middle = x.mean(0)
        center = scene.point(self.body, Vector3.of(middle.tolist()))
        return Reach(center, ball=self.radius, points=self._there(scene, x - middle))

    def corners(self, scene: Scene) -> tuple[tuple[Vector3, ...], float]:
        origin = scene.point(self.body, ZERO3)
        return tuple(origin + v for v in self._there(scene, self.points)), self.radius


def farthest(points: tuple[Vector3, ...], n: Vector3) -> Scalar:
    """How far points reach in the direction n."""
    import jax.numpy as jnp

    found = points[0] @ n
    for p in points[1:]:
        found = jnp.maximum(found, p @ n)
    return found
