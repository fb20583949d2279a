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
Pair = tuple[Shape, Shape, Scene]
Separated = Callable[[Numbers, Before], Separation]  # of a pair with the second body placed so


def signed_distances(pairs: Sequence[Pair]) -> list[Scalar]:
    """Distance [m] between the two shapes of each pair, negative where they overlap.

    One program serves all pairs. The derivative is that of the distance of the nearest points, which are fixed to the
    bodies, along the line between them; where there are several nearest points, of one pair of them.
    """
    placements = [placement(a.body, b.body, scene) for a, b, scene in pairs]
    found = separations(pairs, placements)
    return [differentiable(*x) for x in zip(found, placements, strict=True)]


def separations(pairs: Sequence[Pair], placements: Sequence[Numbers]) -> list[Separation]:
    """The separation of each pair, with the second body so placed in axes of the first."""
    return over_pairs(pairs, placements, lambda placed, separated: separated(placed, Before()))


def over_pairs(pairs: Sequence[Pair], rows: Sequence[Any], fn: Callable[[Any, Separated], Any]) -> list[Any]:
    """fn(row, separated) for each pair and its row, all trees of numbers, in one program for all pairs. The results have no
    derivatives, and their numbers are of one dtype."""
    rows = jax.lax.stop_gradient(rows)
    dtype = jnp.result_type(*jax.tree.leaves(rows))
    shapes = list({id(x): x for a, b, _ in pairs for x in (a, b)}.values())
    number = {id(x): np.int32(k) for k, x in enumerate(shapes)}
    unions = Unions([x.union for x in shapes], dtype)
    like = jax.tree.structure(rows[0])
    kinds: list[Any] = []

    def found(x: Sequence[Scalar], first: Any, second: Any) -> list[Scalar]:
        def separated(placed: Numbers, before: Before) -> Separation:
            start = before._replace(piece_b=jnp.asarray(before.piece_b).astype(jnp.int32))
            return separation(unions, first, second, Matrix3(*placed[:9]), Vector3(*placed[9:]), start)

        leaves, kind = jax.tree.flatten(fn(jax.tree.unflatten(like, x), separated))
        kinds.append(kind)
        return [jnp.asarray(y, dtype) for y in leaves]

    given = [[jnp.asarray(x, dtype) for x in jax.tree.leaves(row)] for row in rows]
    ends = [np.array([number[id(pair[k])] for pair in pairs]) for k in (0, 1)]
    if len(pairs) == 1:
        each = [found(given[0], *(jnp.int32(end[0]) for end in ends))]
    else:
        stacked = jnp.stack([jnp.stack(x) for x in given]), *map(jnp.asarray, ends)
        _, results = jax.lax.scan(lambda _, x: (None, found(list(x[0]), *x[1:])), None, stacked)
        each = [[x[k] for x in results] for k in range(len(pairs))]
    return [jax.tree.unflatten(kinds[0], x) for x in each]


def on_second(s: Separation, placed: Numbers) -> Vector3:
    """The nearest point of the second body, in its axes."""
    return Matrix3(*placed[:9]).T @ (s.point_b - Vector3(*placed[9:]))


def differentiable(s: Separation, placed: Numbers) -> Scalar:
    """The distance as a function of the placement."""
    moved = s.normal @ (point(placed, on_second(s, jax.lax.stop_gradient(placed))) - s.point_a)
    return s.gap + (moved - jax.lax.stop_gradient(moved))
