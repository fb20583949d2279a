"""Shapes fixed to bodies: unions of convex pieces."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator

import numpy as np

from jaxmbs.geometry import Piece, Union
from jaxmbs.geometry.forms import corners_of, flat_panels
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.given import Rows, Vector
from jaxmbs.study.outputs.base import Described, normals


@element
class Shape(Described):
    """Base of the shapes."""

    body: str = field(Kind.BODY_OR_WORLD, "", "body that carries it")

    def pieces(self) -> tuple[Piece, ...]:
        """Convex pieces, in body axes, that together are the shape or, if the class says so, contain it."""
        raise NotImplementedError

    @functools.cached_property
    def union(self) -> Union:
        return Union.of(self.pieces())

    def faults(self) -> Iterator[tuple[str, str]]:
        """(key, remedy) for each field that does not fit the others."""
        yield from ()


@element
class Ball(Shape):
    """A sphere."""

    center: Vector = field(Kind.VECTOR, "m", "centre, in body axes", default=(0.0, 0.0, 0.0))
    radius: float = field(Kind.POSITIVE, "m", "radius", kw_only=True)

    def pieces(self) -> tuple[Piece, ...]:
        return (Piece.of_points([self.center], self.radius),)


@element
class Box(Shape):
    """A box, with its edges along the body's axes unless it is rotated."""

    center: Vector = field(Kind.VECTOR, "m", "centre, in body axes", default=(0.0, 0.0, 0.0))
    size: Vector = field(Kind.VECTOR, "m", "lengths of its edges", kw_only=True)
    rotation: Vector | Rows = field(
        Kind.ROTATION, "", "from its axes to those of the body", default=(1.0, 0.0, 0.0, 0.0), kw_only=True
    )

    def faults(self) -> Iterator[tuple[str, str]]:
        if min(self.size) <= 0:
            yield "size", f"{list(self.size)}: the lengths of edges must be more than zero"

    def edges(self) -> np.ndarray:
        """(3, 3) unit vectors along the edges, in body axes, one per row."""
        return edges_of(self.rotation)

    def pieces(self) -> tuple[Piece, ...]:
        half = self.edges() * np.asarray(self.size)[:, None] / 2
        signs = itertools.product((-1, 1), repeat=3)
        return (Piece.of_points(np.asarray(self.center) + np.array([half.T @ x for x in signs])),)


@element
class Tube(Shape):
    """A cylinder."""

    center: Vector = field(Kind.VECTOR, "m", "middle of its axis, in body axes", default=(0.0, 0.0, 0.0))
    axis: Vector = field(Kind.AXIS, "", "axis, in body axes", default=(1.0, 0.0, 0.0), kw_only=True)
    radius: float = field(Kind.POSITIVE, "m", "radius", kw_only=True)
    length: float = field(Kind.POSITIVE, "m", "from end to end", kw_only=True)

    def pieces(self) -> tuple[Piece, ...]:
        return (Piece.of_discs(_ends(self), (self.radius, self.radius), self.axis),)


@element
class Disc(Shape):
    """A flat disc, such as the exit of a nozzle. In a hollow shape, what counts is its rim."""

    center: Vector = field(Kind.VECTOR, "m", "centre, in body axes", default=(0.0, 0.0, 0.0))
    axis: Vector = field(Kind.AXIS, "", "across it, in body axes", default=(1.0, 0.0, 0.0), kw_only=True)
    radius: float = field(Kind.POSITIVE, "m", "radius", kw_only=True)

    def pieces(self) -> tuple[Piece, ...]:
        return (Piece.of_discs([self.center], (self.radius,), self.axis),)


@element
class Capsule(Shape):
    """A cylinder with a hemisphere on each end."""

    center: Vector = field(Kind.VECTOR, "m", "middle of its axis, in body axes", default=(0.0, 0.0, 0.0))
    axis: Vector = field(Kind.AXIS, "", "axis, in body axes", default=(1.0, 0.0, 0.0), kw_only=True)
    radius: float = field(Kind.POSITIVE, "m", "radius", kw_only=True)
    length: float = field(Kind.NOT_NEGATIVE, "m", "of the straight part", kw_only=True)

    def pieces(self) -> tuple[Piece, ...]:
        return (Piece.of_points(_ends(self), self.radius),)


@element
class Cone(Shape):
    """A cone, truncated if it has an `end_radius`; its base is about `center`."""

    center: Vector = field(Kind.VECTOR, "m", "centre of its base, in body axes", default=(0.0, 0.0, 0.0))
    axis: Vector = field(Kind.AXIS, "", "from the base to its end, in body axes", default=(1.0, 0.0, 0.0), kw_only=True)
    radius: float = field(Kind.NOT_NEGATIVE, "m", "radius of its base", kw_only=True)
    end_radius: float = field(Kind.NOT_NEGATIVE, "m", "radius of its end", default=0.0, kw_only=True)
    length: float = field(Kind.POSITIVE, "m", "from the base to the end", kw_only=True)

    def faults(self) -> Iterator[tuple[str, str]]:
        if not self.radius and not self.end_radius:
            yield "radius", "both radii are zero, so the cone is a line; give one of them, or use a capsule"

    def pieces(self) -> tuple[Piece, ...]:
        base = np.asarray(self.center, float)
        centers = np.stack([base, base + np.asarray(self.axis) * self.length])
        return (Piece.of_discs(centers, (self.radius, self.end_radius), self.axis),)


@element
class Panel(Shape):
    """A curved panel: a part of the wall of a cylinder or of a cone, such as half a fairing, an interstage or a nozzle. It
    is replaced by flat panels that contain it and are nowhere farther from it than `error`.

    >>> from jaxmbs.study.outputs import Panel
    >>> half = Panel("half", radius=1.0, length=3.0, thickness=0.02, angle=3.14159, error=1e-3)
    >>> len(half.pieces())
    36
    """

    center: Vector = field(Kind.VECTOR, "m", "centre of its base, in body axes", default=(0.0, 0.0, 0.0))
    axis: Vector = field(
        Kind.AXIS, "", "axis, from the base to the end, in body axes", default=(1.0, 0.0, 0.0), kw_only=True
    )
    radius: float = field(Kind.POSITIVE, "m", "inner radius at the base", kw_only=True)
    end_radius: float | None = field(
        Kind.NOT_NEGATIVE, "m", "inner radius at the end; as at the base if there is none", default=None, kw_only=True
    )
    length: float = field(Kind.POSITIVE, "m", "from the base to the end, along the axis", kw_only=True)
    thickness: float = field(Kind.POSITIVE, "m", "across the axis, outwards from the inner radius", kw_only=True)
    angle: float = field(
        Kind.POSITIVE, "rad", "about the axis; the whole circle by default", default=2 * math.pi, kw_only=True
    )
    middle: Vector | None = field(
        Kind.AXIS, "", "direction from the axis to the middle of the panel, in body axes; any if there is none",
        default=None, kw_only=True,
    )  # fmt: skip
    error: float = field(Kind.POSITIVE, "m", "by how much the flat panels may be larger", default=1e-3, kw_only=True)

    def faults(self) -> Iterator[tuple[str, str]]:
        if self.angle > 2 * math.pi + 1e-9:
            yield "angle", f"{self.angle} rad is more than the whole circle, 2 pi"
        if self.middle is not None and np.linalg.norm(self._across()) < 1e-6:
            yield "middle", "is along the axis; give a direction across it"

    def _across(self) -> np.ndarray:
        axis, middle = np.asarray(self.axis), np.asarray(self.middle, float)
        return middle - axis * (axis @ middle)

    def pieces(self) -> tuple[Piece, ...]:
        base, ends = np.asarray(self.center, float), (self.radius, self.end_radius)
        u = normals(self.axis)[0] if self.middle is None else self._across()
        size = (self.length, self.thickness, self.angle)
        return flat_panels(base, np.asarray(self.axis), u / np.linalg.norm(u), ends, *size, self.error)


@element
class Hull(Shape):
    """The convex hull of points, such as the corners of a scan or a drawing."""

    points: Rows | np.ndarray = field(Kind.POINTS, "m", "the points, in body axes", kw_only=True)
    radius: float = field(Kind.NOT_NEGATIVE, "m", "how far it is thickened", default=0.0, kw_only=True)

    def pieces(self) -> tuple[Piece, ...]:
        return (Piece.of_points(corners_of(np.asarray(self.points, float)), self.radius),)


def edges_of(rotation: Vector | Rows) -> np.ndarray:
    """(3, 3) unit vectors along the axes of a rotated frame, one per row. rotation: from these axes to the others, a
    quaternion or a matrix."""
    x = np.asarray(rotation, float)
    if x.shape == (3, 3):
        return x.T
    w, v = x[0] / np.linalg.norm(x), x[1:] / np.linalg.norm(x)
    K = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return (np.eye(3) + 2 * w * K + 2 * K @ K).T


def _ends(shape: Tube | Capsule) -> np.ndarray:
    half = np.asarray(shape.axis) * shape.length / 2
    return np.asarray(shape.center) + np.stack([-half, half])
