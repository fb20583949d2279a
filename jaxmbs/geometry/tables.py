"""Unions of pieces as tables of numbers, from which machine code reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.batching.lookup import Table, lookup
from jaxmbs.geometry.pieces import Union
from jaxmbs.spatial import Matrix3, Vector3
from jaxmbs.spatial.scalar import minimum

Scalar = Any


class Unions:
    """Unions of pieces, one after another in tables from which machine code reads. Each is known by its number."""

    def __init__(self, unions: Sequence[Union], dtype: Any):
        def table(arrays: Iterable[Any]) -> Table:
            return Table(np.concatenate([np.asarray(x, dtype).reshape(-1) for x in arrays]))

        def starts(sizes: Iterable[int]) -> Table:
            return Table(np.cumsum([0, *sizes], dtype=np.int32))

        self.dtype = dtype
        pieces = [x for u in unions for x in u.pieces]
        normals = [x.normals() for x in pieces]
        trees = [u.tree for u in unions]
        self.rounded = any(x.radii.any() for x in pieces)
        self._centers = table(x.centers for x in pieces)
        self._axes, self._radii = table(x.axes for x in pieces), table(x.radii for x in pieces)
        self._discs, self._faces = starts(len(x.radii) for x in pieces), starts(map(len, normals))
        self._normals, self._ball = table(normals), table(x.ball for x in pieces)
        self._boxes, self._group_boxes = table(_listed(u.boxes) for u in unions), table(_listed(x.boxes) for x in trees)
        self._spans, self._frames = (
            table(_spans(u.parallel) for u in unions),
            table(u.parallel.edges[0] for u in unions),
        )
        self._pieces, self._groups = starts(len(u.pieces) for u in unions), starts(len(x.after) for x in trees)
        firsts = zip(trees, self._groups.numbers, self._pieces.numbers, strict=False)
        numbered = [(x.after + group, np.where(x.piece < 0, -1, x.piece + piece)) for x, group, piece in firsts]
        self._after, self._single = (Table(np.concatenate(x).astype(np.int32)) for x in zip(*numbered, strict=True))

    def pieces(self, union: Any) -> tuple[Any, Any]:
        """The first of its pieces, and the one after its last."""
        return lookup(self._pieces, union), lookup(self._pieces, union + 1)

    def groups(self, union: Any) -> tuple[Any, Any]:
        return lookup(self._groups, union), lookup(self._groups, union + 1)

    def faces(self, piece: Any) -> tuple[Any, Any]:
        return lookup(self._faces, piece), lookup(self._faces, piece + 1)

    def normal(self, face: Any) -> Vector3:
        return _three(self._normals, face)

    def ball(self, piece: Any) -> Scalar:
        return lookup(self._ball, piece)

    def box(self, piece: Any) -> Box:
        return Box.of(self._boxes, piece)

    def group(self, number: Any) -> Box:
        return Box.of(self._group_boxes, number)

    def frame(self, union: Any) -> Matrix3:
        """The edges of the parallel boxes about its pieces, one per row."""
        return Matrix3(*(lookup(self._frames, union, 9, c) for c in range(9)))

    def span(self, piece: Any) -> Span:
        """Its parallel box, in axes along the edges."""
        return Span(_three(self._spans, piece, 6), _three(self._spans, piece, 6, 3))

    def after(self, group: Any) -> Any:
        """The group that follows if this one is passed over."""
        return lookup(self._after, group)

    def single(self, group: Any) -> Any:
        """The piece that a group consists of, -1 if it has more."""
        return lookup(self._single, group)

    def farthest(self, piece: Any, n: Vector3) -> Vector3:
        """The point of a piece, without its thickness, that is farthest in the direction n, of length one."""

        def turn(x: Any) -> Any:
            k, end, best, *point = x
            p = _three(self._centers, k)
            if self.rounded:
                e, r = _three(self._axes, k), lookup(self._radii, k)
                across = n - e * (e @ n)
                square = across @ across
                tiny = square <= 1e-24
                p = p + across * jnp.where(tiny, 0.0, r / jnp.sqrt(jnp.where(tiny, 1.0, square)))
            value = p @ n
            more = value > best
            return (k + 1, end, jnp.where(more, value, best), *choose(more, p, point))

        zero = jnp.asarray(0.0, self.dtype)
        first = (lookup(self._discs, piece), lookup(self._discs, piece + 1), zero - jnp.inf, zero, zero, zero)
        _, _, _, *point = jax.lax.while_loop(lambda x: x[0] < x[1], turn, first)
        return Vector3(*point)


class Box(NamedTuple):
    """A box: its middle, unit vectors along its edges, and halves of their lengths."""

    middle: Vector3
    edges: tuple[Vector3, ...]
    halves: Vector3

    @classmethod
    def of(cls, table: Table, k: Any) -> Box:
        x = [_three(table, k, 15, 3 * c) for c in range(5)]
        return cls(x[0], tuple(x[1:4]), x[4])

    def placed(self, rotation: Matrix3, position: Vector3) -> Box:
        return Box(rotation @ self.middle + position, tuple(rotation @ e for e in self.edges), self.halves)

    def apart(self, other: Box, displacement: Vector3) -> tuple[Scalar, Vector3]:
        """The widest gap between the boxes along any of their edges, which is never more than their distance, and that edge,
        pointing towards the other box. Each gap is the smaller of those now and after a displacement of the other box."""
        T = other.middle - self.middle
        C = [[abs(e @ f) for f in other.edges] for e in self.edges]
        h, g = tuple(self.halves), tuple(other.halves)
        best, edge = -jnp.inf, (1.0, 0.0, 0.0)
        for k in range(3):
            own = h[k] + (g[0] * C[k][0] + g[1] * C[k][1] + g[2] * C[k][2])
            others = g[k] + (h[0] * C[0][k] + h[1] * C[1][k] + h[2] * C[2][k])
            for along, size in ((self.edges[k], own), (other.edges[k], others)):
                ahead = T @ along
                towards = jnp.where(ahead < 0, -1.0, 1.0)
                gap = abs(ahead) - size + minimum(towards * (displacement @ along), 0.0)
                more = gap > best
                best, edge = jnp.where(more, gap, best), choose(more, along * towards, edge)
        return best, Vector3(*edge)

    def span(self) -> Span:
        """The box about it with edges along the axes in which it is given."""
        h, along = self.halves, zip(*self.edges, strict=True)
        return Span(self.middle, Vector3(*(abs(x) * h.x + abs(y) * h.y + abs(z) * h.z for x, y, z in along)))

    def size(self) -> Scalar:
        return self.halves.norm()


class Span(NamedTuple):
    """A box with its edges along the axes: its middle, and halves of their lengths."""

    middle: Vector3
    halves: Vector3

    def beside(self, other: Span, displacement: Vector3, least: Scalar) -> Any:
        """Whether two such boxes are at least `least` apart, in any direction, now and after a displacement of the other."""
        sides = zip(self.middle, other.middle, self.halves, other.halves, strict=True)
        beyond = Vector3(*(jnp.maximum(b - a - g - h, 0.0) - jnp.maximum(a - b - g - h, 0.0) for a, b, g, h in sides))
        square = beyond @ beyond
        after = square + minimum(beyond @ displacement, 0.0)  # times the gap
        return (least > 0) & (after > 0) & (after * after >= least * least * square)


def _spans(boxes: Any) -> np.ndarray:
    """Middles and halves of boxes with the same edges, in axes along these."""
    return np.concatenate([boxes.middles @ boxes.edges[0].T, boxes.halves], axis=1)


def _listed(boxes: Any) -> np.ndarray:
    n = len(boxes.middles)
    return np.concatenate([boxes.middles, boxes.edges.reshape(n, 9), boxes.halves], axis=1)


def _three(table: Table, k: Any, width: int = 3, first: int = 0) -> Vector3:
    """Three numbers in the row k of a table whose rows have `width` numbers."""
    return Vector3(*(lookup(table, k, width, first + c) for c in range(3)))


def choose(which: Any, yes: Any, no: Any) -> tuple[Scalar, ...]:
    """yes where `which` is true, else no, number by number."""
    return tuple(jnp.where(which, x, y) for x, y in zip(yes, no, strict=True))
