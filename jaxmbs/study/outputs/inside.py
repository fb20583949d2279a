"""The gap between a shape and the inner side of a hollow one that contains it: a ball, a box or a tube."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.batching.lookup import Table, lookup
from jaxmbs.geometry import Piece
from jaxmbs.geometry.tables import choose
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.known import accepting
from jaxmbs.study.outputs.base import normals
from jaxmbs.study.outputs.hollow import Gap
from jaxmbs.study.outputs.path import Numbers, point
from jaxmbs.study.outputs.rim import rim_gap
from jaxmbs.study.outputs.shapes import Ball, Box, Disc, Shape, Tube

Scalar = Any
Hollow = Ball | Box | Tube
SIDES = 64  # of the polygons around circles, which lie outside them by 0.12 % of the radius


class Corners(NamedTuple):
    """Corners of the pieces of a shape, and their edges. points (n, 3) [m], in axes of the body; balls (n,) [m]: the radius
    of a ball about each point; the hulls of the balls of each piece contain the shape. edges (m, 2): numbers of the two ends
    of each edge of a hull."""

    points: np.ndarray
    balls: np.ndarray
    edges: np.ndarray

    @classmethod
    def of(cls, shape: Shape) -> Corners:
        pieces = shape.pieces()
        each = [_corners(x) for x in pieces]
        firsts = np.cumsum([0, *map(len, each)])
        edges = [first + np.array(list(_edges(x))) for first, x in zip(firsts, each, strict=False)]
        balls = np.concatenate([np.full(len(x), piece.ball) for x, piece in zip(each, pieces, strict=True)])
        return cls(np.concatenate(each), balls, np.concatenate(edges))


def gap_in(shape: Shape, hollow: Hollow, opened: bool, placed: Numbers) -> Gap:
    """The gap of a shape in a hollow one. placed: the shape's body in axes of the hollow one's body; opened: the ends of a
    hollow tube are open, and only what lies between them counts."""
    if opened and isinstance(shape, Disc) and isinstance(hollow, Tube):
        return rim_gap(shape, hollow, placed)
    corners = Corners.of(shape)
    if opened and isinstance(hollow, Tube):
        return _InTube(corners, hollow, placed).between_the_ends()
    return _Placed(corners, hollow, placed).all_round()


class _Placed:
    """Corners in axes of a hollow body, relative to its centre."""

    def __init__(self, corners: Corners, hollow: Hollow, placed: Numbers):
        dtype = jnp.result_type(*placed)
        self.number, self.hollow, self.placed = len(corners.points), hollow, placed
        self.points, self.balls = Table(corners.points.astype(dtype).reshape(-1)), Table(corners.balls.astype(dtype))
        self.edges, self.edge_number = Table(corners.edges.astype(np.int32).reshape(-1)), len(corners.edges)
        self.fixed = jax.lax.stop_gradient(placed)
        self.zero = jnp.zeros((), dtype)

    def corner(self, k: Any, placed: Numbers) -> Vector3:
        own = Vector3(*(lookup(self.points, 3 * k + c) for c in range(3)))
        return point(placed, own) - Vector3.of(self.hollow.center)

    def all_round(self) -> Gap:
        """All corners count."""

        def turn(x: Any) -> Any:
            k, best, least = x
            value = self._wall(self.corner(k, self.fixed)) - lookup(self.balls, k)
            return k + 1, *choose(value < least, (k, value), (best, least))

        none = jnp.int32(0)
        _, k, _ = jax.lax.while_loop(lambda x: x[0] < self.number, turn, (none, none, self.zero + jnp.inf))
        value = self._wall(self.corner(k, self.placed)) - lookup(self.balls, k)
        return Gap(value, jnp.ones_like(value, bool), value)

    def _wall(self, p: Vector3) -> Scalar:
        """How far a point is from the nearest wall."""
        hollow = self.hollow
        if isinstance(hollow, Ball):
            return hollow.radius - p.norm()
        if isinstance(hollow, Tube):
            axis = Vector3.of(hollow.axis)
            return jnp.minimum(hollow.radius - _across(p, axis), hollow.length / 2 - jnp.abs(axis @ p))
        edges = [Vector3.of(e.tolist()) for e in hollow.edges()]
        walls = [size / 2 - accepting(jnp.abs)(e @ p) for size, e in zip(hollow.size, edges, strict=True)]
        return functools.reduce(jnp.minimum, walls)


class _InTube(_Placed):
    """Corners in a tube with open ends."""

    def __init__(self, corners: Corners, tube: Tube, placed: Numbers):
        super().__init__(corners, tube, placed)
        self.tube = tube

    def between_the_ends(self) -> Gap:
        """Only what lies between the ends of the tube counts: of an edge, the part between them, which is nearest to the
        wall at one of its own ends; of a ball, the whole ball while any of it is between them."""

        def turn(x: Any) -> Any:
            number, *found = x
            for first in (True, False):
                value, counts = self._end(number, first, self.fixed)
                nearer = counts & (value < found[0])
                found = [*choose(nearer, (value, number, jnp.asarray(first)), found)]
            return number + 1, *found

        none = jnp.int32(0)
        start = none, self.zero + jnp.inf, none, jnp.asarray(True)
        _, least, number, first = jax.lax.while_loop(lambda x: x[0] < self.edge_number, turn, start)
        (value, _), (other, _) = (self._end(number, x, self.placed) for x in (True, False))
        # a state that is not finite must show in the result instead of counting as "out"
        broken = ~jnp.isfinite(sum(self.fixed[1:], self.fixed[0]))
        value = jnp.where(broken, jnp.nan, jnp.where(first, value, other))
        return Gap(value, (least < jnp.inf) | broken, self._depth())

    def _end(self, number: Any, first: bool, placed: Numbers) -> tuple[Scalar, Scalar]:
        """The gap at one end of the part of an edge that lies between the ends of the tube, and whether there is one."""
        i, j = (lookup(self.edges, 2 * number + c) for c in (0, 1))
        ball = lookup(self.balls, i)
        a, b = (self.corner(k, placed) for k in (i, j))
        axis, half = Vector3.of(self.tube.axis), self.tube.length / 2 + ball
        low, high = axis @ a, axis @ b
        mine = low if first else high
        beyond = jnp.abs(mine) > half
        rise = jnp.where(beyond & (high != low), high - low, 1.0)
        share = jnp.where(beyond, (jnp.where(mine > 0, half, -half) - low) / rise, 0.0 if first else 1.0)
        out = ((low > half) & (high > half)) | ((low < -half) & (high < -half))
        return self.tube.radius - _across(a + (b - a) * share, axis) - ball, ~out

    def _depth(self) -> Scalar:
        """How far the shape is from being wholly beyond one end of the tube [m]."""
        axis = Vector3.of(self.tube.axis)

        def height(k: Any, placed: Numbers) -> tuple[Scalar, Scalar]:
            z, ball = axis @ self.corner(k, placed), lookup(self.balls, k)
            return z - ball, -z - ball

        def turn(x: Any) -> Any:
            k, *found = x
            low, high = height(k, self.fixed)
            lowest = choose(low < found[0], (low, k), found[:2])
            return k + 1, *lowest, *choose(high < found[2], (high, k), found[2:])

        none, far = jnp.int32(0), self.zero + jnp.inf
        _, _, low, _, high = jax.lax.while_loop(lambda x: x[0] < self.number, turn, (none, far, none, far, none))
        return self.tube.length / 2 - jnp.maximum(height(low, self.placed)[0], height(high, self.placed)[1])


def _across(p: Vector3, axis: Vector3) -> Scalar:
    """The distance of a point from an axis through the origin."""
    return (p - axis * (axis @ p)).norm()


def _corners(piece: Piece) -> np.ndarray:
    """Its points, and polygons for its discs that contain them."""
    turns = 2 * np.pi * np.arange(SIDES) / SIDES
    out = []
    for center, radius, axis in zip(piece.centers, piece.radii, piece.axes, strict=True):
        u, w = normals(axis)
        around = np.outer(np.cos(turns), u) + np.outer(np.sin(turns), w)
        out.append(center + radius / math.cos(math.pi / SIDES) * around if radius else center[None])
    return np.concatenate(out)


def _edges(points: np.ndarray) -> Iterator[tuple[int, int]]:
    """The ends of the edges of the hull of points; of all segments between them if it is flat. A point is an edge, too."""
    from scipy.spatial import ConvexHull, QhullError

    if len(points) == 1:
        return iter([(0, 0)])
    try:
        faces = ConvexHull(points).simplices
    except (QhullError, ValueError):
        return itertools.combinations(range(len(points)), 2)
    return iter(sorted({(min(x), max(x)) for face in faces.tolist() for x in itertools.combinations(face, 2)}))
