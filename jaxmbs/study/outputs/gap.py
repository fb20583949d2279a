"""The signed distances of pairs of shapes in a state of the mechanism."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.geometry import Before, Separation, Unions, separation
from jaxmbs.model.forces.base import Scene
from jaxmbs.spatial import Matrix3, Vector3
from jaxmbs.study.outputs.path import Numbers, placement, point
from jaxmbs.study.outputs.shapes import Shape

Scalar = Any
Z = Vector3(0, 0, 0)
KIND = jax.tree.structure(Separation(0, Z, Z, Z, 0, 0, 0, 0))
Pair = tuple[Shape, Shape, Scene]
Separated = Callable[[Numbers, Before], Separation]  # of a pair, from the placement of its second body


def signed_distances(pairs: Sequence[Pair]) -> list[Scalar]:
    """Distance [m] between the two shapes of each pair, negative where they overlap.

    One program serves all pairs. The derivative is that of the distance of the nearest points, which are fixed to the
    bodies, along the line between them; where there are several nearest points, of one pair of them.
    """
    placements = of_bodies(pairs, placement)
    return list(each(differentiable, over_pairs(pairs, placements, _found), placements))


def of_bodies(pairs: Sequence[Pair], fn: Callable[..., Numbers]) -> jax.Array:
    """fn(body a, body b, scene) of each pair, (pairs, numbers), computed once for pairs of the same bodies in the same
    scene."""
    keys = [(a.body, b.body, id(scene)) for a, b, scene in pairs]
    scenes = {key: pair[2] for key, pair in zip(keys, pairs, strict=True)}
    found = jnp.stack([jnp.stack(fn(*key[:2], scene)) for key, scene in scenes.items()])
    if len(found) == 1:
        return jnp.broadcast_to(found, (len(pairs), found.shape[1]))
    return found[np.array([list(scenes).index(key) for key in keys])]


def separations(pairs: Sequence[Pair], placements: Sequence[Numbers]) -> list[Separation]:
    """The separation of each pair. placements: for each, that of the second body in axes of the first."""
    rows = over_pairs(pairs, jnp.stack([jnp.stack(x) for x in placements]), _found)
    return [jax.tree.unflatten(KIND, list(row)) for row in rows]


def _found(placed: Sequence[Scalar], separated: Separated) -> list[Scalar]:
    return jax.tree.leaves(separated(tuple(placed), Before()))


def over_pairs(
    pairs: Sequence[Pair], rows: jax.Array, fn: Callable[[Sequence[Scalar], Separated], Sequence[Scalar]]
) -> jax.Array:
    """fn(row, separated) for each pair and its row of numbers, (pairs, numbers), in one program for all pairs. The results
    have no derivatives; they are of the dtype of the rows."""
    rows, dtype = jax.lax.stop_gradient(rows), rows.dtype
    shapes = list({id(x): x for a, b, _ in pairs for x in (a, b)}.values())
    number = {id(x): np.int32(k) for k, x in enumerate(shapes)}
    unions = Unions([x.union for x in shapes], dtype)

    def found(row: jax.Array, first: Any, second: Any) -> jax.Array:
        def separated(placed: Numbers, before: Before) -> Separation:
            start = before._replace(piece_b=jnp.asarray(before.piece_b).astype(jnp.int32))
            return separation(unions, first, second, Matrix3(*placed[:9]), Vector3(*placed[9:]), start)

        return jnp.stack([jnp.asarray(y, dtype) for y in fn(list(row), separated)])

    ends = [np.array([number[id(pair[k])] for pair in pairs]) for k in (0, 1)]
    return each(found, rows, *map(jnp.asarray, ends))


def each(fn: Callable[..., Any], *rows: jax.Array) -> Any:
    """fn of each row of some arrays, in one program for all."""
    if len(rows[0]) == 1:
        return jax.tree.map(lambda x: x[None], fn(*(x[0] for x in rows)))
    return jax.lax.map(lambda x: fn(*x), rows)


def on_second(s: Separation, placed: Numbers) -> Vector3:
    """The nearest point of the second body, in its axes."""
    return Matrix3(*placed[:9]).T @ (s.point_b - Vector3(*placed[9:]))


def differentiable(numbers: jax.Array, placement: jax.Array) -> Scalar:
    """The distance as a function of the placement, from the numbers of the separation."""
    s, placed = jax.tree.unflatten(KIND, list(numbers)), tuple(placement)
    moved = s.normal @ (point(placed, on_second(s, jax.lax.stop_gradient(placed))) - s.point_a)
    return s.gap + (moved - jax.lax.stop_gradient(moved))
