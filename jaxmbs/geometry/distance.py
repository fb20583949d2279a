"""Distance of two bodies that are unions of convex pieces.

Groups of pieces whose boxes are farther apart than the least gap found so far are passed over. Everything is written for
numbers, so that a batch of positions is one loop of machine code that stops as soon as no row needs another iteration.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxmbs.geometry.closest import widest_gap
from jaxmbs.geometry.tables import Box, Unions, choose
from jaxmbs.spatial import Matrix3, Vector3

Scalar = Any


class Separation(NamedTuple):
    """gap [m]: the widest gap found between parallel planes that separate the bodies' nearest pieces, never more than
    their distance; negative where they overlap. normal: unit vector across the planes, from the first to the second
    body; point_a, point_b: the nearest points. All in axes of the first body. piece_a, piece_b: which pieces."""

    gap: Scalar
    normal: Vector3
    point_a: Vector3
    point_b: Vector3
    piece_a: Scalar
    piece_b: Scalar


def separation(
    unions: Unions, first: Any, second: Any, rotation: Matrix3, position: Vector3, enough: Scalar
) -> Separation:
    """The separation of two bodies by their numbers; rotation, position: those of the second in axes of the first. Where
    the gap is proven to be more than `enough` [m], the result is only proven to be more than `enough`."""
    u, zero = unions, jnp.asarray(0.0, unions.dtype)
    group, last_group = u.groups(first)
    piece, last_piece = u.pieces(second)

    def examined(i: Any, j: Any, box: Box, found: Any, needed: Any) -> Any:
        """The least gap so far and what belongs to it, after a pair of pieces."""
        own = u.box(i)
        limit = jnp.minimum(found[0], enough)
        center = box.middle - own.middle
        most = own.size() + box.size()
        gap, n, p, v = widest_gap(u, i, j, rotation, position, center, most, needed, limit)
        new = (gap - u.ball(i) - u.ball(j), *n, *(p + n * u.ball(i)), *(p + v - n * u.ball(j)), i, j)
        return choose(needed & (new[0] < found[0]), new, found)

    def with_all(x: Any) -> Any:
        """The same after the pairs of all pieces of the first body with the piece j of the second."""
        j, *found = x
        box = u.box(j).placed(rotation, position)

        def passing(x: Any) -> Any:
            """The next group that may be nearer than the limit, and whether it is a single piece."""
            k, _, limit = x
            near = u.group(k).apart(box) < limit
            single = near & (u.single(k) >= 0)
            return jnp.where(single, k, jnp.where(near, k + 1, u.after(k))), single, limit

        def pair(x: Any) -> Any:
            k, *found = x
            limit = jnp.minimum(found[0], enough)
            k, single, _ = jax.lax.while_loop(lambda x: (x[0] < last_group) & ~x[1], passing, (k, k < 0, limit))
            found = examined(u.single(k), j, box, tuple(found), single)
            return (jnp.where(single, u.after(k), k), *found)

        return (j + 1, *jax.lax.while_loop(lambda x: x[0] < last_group, pair, (group, *found))[1:])

    none = jnp.int32(0)
    start = (piece, zero + jnp.inf, zero + 1, *(zero,) * 8, none, none)
    _, *found = jax.lax.while_loop(lambda x: x[0] < last_piece, with_all, start)
    own = found[10] - u.pieces(first)[0], found[11] - piece
    return Separation(found[0], Vector3(*found[1:4]), Vector3(*found[4:7]), Vector3(*found[7:10]), *own)
