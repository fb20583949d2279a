"""Forms of stages, nozzles and fairings without the bodies: cones, curved panels and hulls, drawn as triangles."""

from __future__ import annotations

import math

import numpy as np

from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.given import Rows
from jaxmbs.model.solids import Outline, Solid, plain_triangles

SIDES = 64  # of a circle in pictures


@element
class Cone(Solid):
    """A cone along z, truncated if it has an `end_radius`; a form without a body, used like `Ball`. Its middle is half-way
    along the axis.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_visual("upper", mbs.Cone(0.2, 0.5, end_radius=0.1), pose=mbs.Pose((0, 0, -0.5)))
    """

    radius: float = field(Kind.NOT_NEGATIVE, "m", "radius of its base, at the lower end")
    length: float = field(Kind.POSITIVE, "m", "from the base to the end, along z")
    end_radius: float = field(Kind.NOT_NEGATIVE, "m", "radius of its end", default=0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.radius and not self.end_radius:
            raise ModelError(
                "Cone: radius: both radii are zero, so the cone is a line; give one of them, or use a Capsule"
            )

    def outlines(self) -> tuple[Outline, ...]:
        if not self.end_radius:
            return (Outline("cone", (2 * self.radius, 2 * self.radius, self.length)),)
        half = self.length / 2
        return (_swept([(0.0, -half), (self.radius, -half), (self.end_radius, half), (0.0, half)], 2 * math.pi),)


@element
class Disc(Solid):
    """A flat disc across z, such as the exit of a nozzle; a form without a body, used like `Ball`.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_visual("upper", mbs.Disc(0.2), pose=mbs.Pose((0, 0, -1.0)))
    """

    radius: float = field(Kind.POSITIVE, "m", "radius")

    def outlines(self) -> tuple[Outline, ...]:
        turns, k = 2 * np.pi * np.arange(SIDES) / SIDES, np.arange(1, SIDES - 1)
        circle = self.radius * np.stack([np.cos(turns), np.sin(turns), 0 * turns], 1)
        fan = np.stack([0 * k, k, k + 1], 1)  # seen from both sides
        return (Outline("mesh", (1.0,) * 3, "", *plain_triangles(circle, np.concatenate([fan, fan[:, ::-1]]))),)


@element
class Panel(Solid):
    """A part of the wall of a cylinder or a cone about z, such as half a fairing, an interstage or a nozzle; a form without
    a body, used like `Ball`. Its middle is half-way along the axis of the wall; the panel is on the side of positive x.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_visual("upper", mbs.Panel(radius=0.2, length=0.5, thickness=0.01, angle=3.14159))
    """

    radius: float = field(Kind.POSITIVE, "m", "inner radius at the lower end")
    length: float = field(Kind.POSITIVE, "m", "along z")
    thickness: float = field(Kind.POSITIVE, "m", "across the axis, outwards from the inner radius")
    angle: float = field(Kind.POSITIVE, "rad", "about the axis; the whole circle by default", default=2 * math.pi)
    end_radius: float | None = field(
        Kind.NOT_NEGATIVE, "m", "inner radius at the upper end; as at the lower one if there is none", default=None
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.angle > 2 * math.pi + 1e-9:
            raise ModelError(f"Panel: angle: {self.angle} rad is more than the whole circle, 2 pi")

    def outlines(self) -> tuple[Outline, ...]:
        end = self.radius if self.end_radius is None else self.end_radius
        ends = ((self.radius, -self.length / 2), (end, self.length / 2))
        (inner, low), (upper, high) = ends
        outer = [(inner + self.thickness, low), (upper + self.thickness, high)]
        return (_swept([ends[0], *outer, ends[1]], self.angle),)


@element
class Hull(Solid):
    """The convex hull of points, such as the corners of a drawing; a form without a body, used like `Ball`.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_visual("upper", mbs.Hull([[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]]))
    """

    points: Rows | np.ndarray = field(Kind.POINTS, "m", "(n, 3), at least four that are not in one plane")

    def __post_init__(self) -> None:
        try:
            points = np.atleast_2d(np.asarray(self.points, float))
        except (TypeError, ValueError):
            raise ModelError("Hull: points must be rows of 3 numbers: x, y, z") from None
        object.__setattr__(self, "points", tuple(map(tuple, points.tolist())))
        self._triangles()

    def outlines(self) -> tuple[Outline, ...]:
        return (Outline("mesh", (1.0,) * 3, "", *plain_triangles(self.points, self._triangles())),)

    def _triangles(self) -> np.ndarray:
        """The triangles of the surface, counterclockwise from outside."""
        from scipy.spatial import ConvexHull, QhullError

        points = np.asarray(self.points)
        if points.ndim != 2 or points.shape[1] != 3:
            raise ModelError(f"Hull: points {points.shape} must have 3 columns: x, y, z")
        if not np.isfinite(points).all():
            raise ModelError(f"Hull: point {int(np.flatnonzero(~np.isfinite(points).all(1))[0])} is not finite")
        try:
            hull = ConvexHull(points)
        except (QhullError, ValueError) as error:
            said = "they lie in one plane, or are fewer than four; give at least four that do not"
            raise ModelError(f"Hull: points: {said}") from error
        corners = points[hull.simplices]
        inwards = np.einsum("ij,ij->i", np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]),
                            hull.equations[:, :3]) < 0  # fmt: skip
        return np.where(inwards[:, None], hull.simplices[:, ::-1], hull.simplices)


def _swept(profile: list[tuple[float, float]], angle: float) -> Outline:
    """The closed surface that a convex polygon of points (radius, height), counterclockwise, sweeps about z, to both sides
    of x."""
    number = max(3, math.ceil(SIDES * angle / (2 * math.pi)))
    whole, k = angle > 2 * math.pi - 1e-9, len(profile)
    turns = np.linspace(-angle / 2, angle / 2, number + 1)[: number if whole else None]
    vertices = [(r * math.cos(a), r * math.sin(a), z) for a in turns for r, z in profile]
    triangles = []
    for i in range(number):
        here, there = k * i, k * ((i + 1) % len(turns))
        for a, b in zip(range(k), (*range(1, k), 0), strict=True):
            triangles += [(here + a, there + b, here + b), (here + a, there + a, there + b)]
    if not whole:
        last = k * number
        triangles += [x for j in range(1, k - 1) for x in ((0, j, j + 1), (last, last + j + 1, last + j))]
    points = np.array(vertices)
    sides = [t for t in triangles if len({tuple(points[x]) for x in t}) == 3]
    return Outline("mesh", (1.0,) * 3, "", *plain_triangles(points, np.array(sides)))
