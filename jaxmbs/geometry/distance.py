"""Distance of two bodies that are unions of convex pieces.

Groups of pieces whose boxes are farther apart than the least gap found so far are passed over. Everything is computed in
scalars, so that a batch of positions is one loop of machine code that stops when no row needs another iteration.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.geometry.closest import Limits, widest_gap
from jaxmbs.geometry.tables import Unions, choose
from jaxmbs.spatial import Matrix3, Vector3

Scalar = Any


class Separation(NamedTuple):
    """gap [m]: the widest gap found between parallel planes that separate the bodies' nearest pieces, never more than
    their distance; negative where they overlap. normal: unit vector across the planes, from the first to the second
    body; point_a, point_b: the nearest points. All in axes of the first body. piece_a, piece_b: which pieces.

    ahead [m]: the least gap between the planes of any two pieces after `Before.displacement`, with the planes fixed to the
    first body. passed [m]: the planes between pieces that were passed over are at least this far apart, now and after it.
    """

    gap: Scalar
    normal: Vector3
    point_a: Vector3
    point_b: Vector3
    piece_a: Scalar
    piece_b: Scalar
    ahead: Scalar
    passed: Scalar


class Before(NamedTuple):
    """What a search begins with.

    A gap of less than `exact` [m] is computed as well as it can be. For a wider one, the result is a lower bound, which
    exceeds `exact` as well. Pieces are passed over if they are proven to be more than `enough` [m] apart, both now and after
    a displacement [m] of the second body. If `enough` is minus infinity, nothing is computed. piece_b: the piece of the
    second body that is probably the nearest.
    """

    exact: Scalar = np.inf
    enough: Scalar = np.inf
    displacement: tuple[Scalar, ...] = (0.0,) * 3
    piece_b: Any = 0


def separation(
    unions: Unions, first: Any, second: Any, rotation: Matrix3, position: Vector3, before: Before
) -> Separation:
    """The separation of the bodies with the numbers `first` and `second` among the unions. rotation, position: of the second
    in axes of the first; before: what the search begins with."""
    u, zero = unions, jnp.asarray(0.0, unions.dtype)
    group, last_group = u.groups(first)
    piece, last_piece = u.pieces(second)

    def limit(found: Any) -> Scalar:
        return jnp.where(found[0] < before.exact, jnp.minimum(found[0], before.enough), before.enough)

    frame = u.frame(first)
    turned, moved = frame @ rotation, frame @ position
    displacement = Vector3(*before.displacement)
    along = frame @ displacement

    def with_all(x: Any) -> Any:
        """The least gap so far and what belongs to it, after the pairs of all pieces of the first body with the piece j of
        the second."""
        number, j, *found = x
        box = u.box(j)
        span, box = box.placed(turned, moved).span(), box.placed(rotation, position)

        def passing(x: Any) -> Any:
            """The next group that may be nearer than the limit, and whether it is a single piece."""
            k, _, most = x
            near = u.group(k).apart(box, displacement)[0] < most
            single = near & (u.single(k) >= 0)
            return jnp.where(single, k, jnp.where(near, k + 1, u.after(k))), single, most

        def following(x: Any) -> Any:
            """The next such piece, and whether it may be nearer than the limit, with the widest gap between the boxes."""
            k, near, most, *_ = x
            k, single, _ = jax.lax.while_loop(lambda x: (x[0] < last_group) & ~x[1], passing, (k, near, most))
            i = u.single(k)
            wide, across = u.box(i).apart(box, displacement)
            near = single & (wide < most) & ~u.span(i).beside(span, along, most)
            return jnp.where(single, u.after(k), k), near, most, i, wide, *across

        def pair(x: Any) -> Any:
            k, *found = x
            start = k, k < 0, limit(found), jnp.int32(0), zero, zero, zero, zero
            k, near, most, i, wide, *across = jax.lax.while_loop(
                lambda x: (x[0] < last_group) & ~x[1], following, start
            )
            own = u.box(i)
            center, size = box.middle - own.middle, own.size() + box.size()
            starts = Vector3(*choose(wide > 0, across, center)), center
            gap, n, p, v = widest_gap(
                u, i, j, rotation, position, starts, size, near, Limits(before.exact, most, displacement)
            )
            new = (gap - u.ball(i) - u.ball(j), *n, *(p + n * u.ball(i)), *(p + v - n * u.ball(j)), i, j)
            *nearest, ahead = found
            then = jnp.where(near, jnp.minimum(ahead, new[0] + n @ displacement), ahead)
            return (k, *choose(near & (new[0] < found[0]), new, nearest), then)

        after = jnp.where(j + 1 == last_piece, piece, j + 1)
        return (number + 1, after, *jax.lax.while_loop(lambda x: x[0] < last_group, pair, (group, *found))[1:])

    first_pieces, far = u.pieces(first)[0], zero + jnp.inf
    done = jnp.where(before.enough > -jnp.inf, 0, last_piece - piece)
    start = (done, piece + before.piece_b, far, zero + 1, *(zero,) * 8, first_pieces, piece, far)
    _, _, *found = jax.lax.while_loop(lambda x: x[0] < last_piece - piece, with_all, start)
    normal, point_a, point_b = (Vector3(*found[k : k + 3]) for k in (1, 4, 7))
    pieces = found[10] - first_pieces, found[11] - piece
    return Separation(found[0], normal, point_a, point_b, *pieces, found[12], limit(found))
