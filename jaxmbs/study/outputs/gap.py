"""The signed distances of pairs of shapes in a state of the mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.geometry import Before, Separation, Unions, separation
from jaxmbs.model.forces.base import Scene
from jaxmbs.spatial import ZERO3, Matrix3, Vector3
from jaxmbs.spatial.known import bare
from jaxmbs.study.outputs.shapes import Shape

Scalar = Any
AHEAD = 10.0  # steps: a search is made such that it need not be made again for about so many
UNKNOWN = -1e30  # [m]
Pair = tuple[Shape, Shape, Scene]


class Memory(NamedTuple):
    """What a run remembers of a pair of shapes, of the last search for their distance.

    placement (12): the rotation and the position of the second body in axes of the first; steps: how many were made since.
    Pairs of pieces were at least `gap` [m] apart, and at least `ahead` [m] after a displacement [m] of the second body;
    those that were passed over were `passed` [m] apart. piece_b: which piece of the second body was the nearest.
    """

    placement: tuple[Scalar, ...]
    steps: Scalar
    displacement: tuple[Scalar, ...]
    gap: Scalar
    ahead: Scalar
    passed: Scalar
    piece_b: Scalar

    @classmethod
    def none(cls) -> Memory:
        return cls((0.0,) * 12, 0.0, (0.0,) * 3, UNKNOWN, UNKNOWN, UNKNOWN, 0.0)


def signed_distances(pairs: Sequence[Pair]) -> list[Scalar]:
    """Distance [m] between the two shapes of each pair, negative where they overlap.

    One program serves all pairs. The derivative is that of the distance of the nearest points, which are fixed to the
    bodies, along the line between them; where there are several nearest points, of one pair of them.
    """
    placements = [_placement(*pair) for pair in pairs]
    found = separations(pairs, placements, [Before()] * len(pairs))
    return [_differentiable(*x) for x in zip(found, placements, strict=True)]


def least_distances(
    pairs: Sequence[Pair], memories: Sequence[Memory], least: Sequence[Scalar]
) -> tuple[list[Scalar], list[Memory]]:
    """Distances as from `signed_distances` where they may be less than `least`, the least distance so far of each pair;
    else a lower bound, which is at least that. Also the new memories.

    The planes between two pieces, fixed to the first body, still separate them when the second body has moved, with a gap
    that has changed by no more than the motion across the planes. As long as no gap can thus have become less than the
    least distance, there is nothing to compute.
    """
    placements = [_placement(*pair) for pair in pairs]
    fixed = jax.lax.stop_gradient(placements)
    starts, far, values, new = [], [], [], []
    for (_, b, _), m, now, x in zip(pairs, memories, fixed, least, strict=True):
        bound, moved, displacement = _bound(b, m, now)
        values.append(bound)
        far.append(bound >= x)
        a_step = AHEAD / (m.steps + 1)
        # where there is nothing to compute, the search ends at once
        exact, enough = (jnp.where(far[-1], -jnp.inf, y) for y in (x, x + a_step * moved))
        starts.append(Before(exact, enough, tuple(displacement * a_step), m.piece_b))
    for k, x in enumerate(separations(pairs, fixed, starts)):
        value = jnp.where(x.gap > starts[k].enough, starts[k].enough, _differentiable(x, placements[k]))
        values[k] = jnp.where(far[k], values[k], value)
        gap, ahead = (jnp.minimum(y, x.passed) for y in (x.gap, x.ahead))
        now = Memory(tuple(fixed[k]), 0.0, starts[k].displacement, gap, ahead, x.passed, x.piece_b)
        old = memories[k]._replace(steps=memories[k].steps + 1)
        new.append(jax.tree.map(lambda y, z, far=far[k]: jnp.where(far, y, z), old, now))
    return values, jax.lax.stop_gradient(new)


def _bound(shape: Shape, m: Memory, now: Sequence[Scalar]) -> tuple[Scalar, Scalar, Vector3]:
    """How far the shapes are apart at least [m], the most that a point of the second one has moved [m], and its middle's
    displacement, in axes of the first body."""
    box = shape.union.tree.boxes
    middle, reach = Vector3.of(box.middles[0].tolist()), float(np.linalg.norm(box.halves[0]))
    turned = Matrix3(*now[:9]) - Matrix3(*m.placement[:9])
    displacement = turned @ middle + Vector3(*now[9:]) - Vector3(*m.placement[9:])
    moved = displacement.norm()
    planned = Vector3(*m.displacement)
    square = planned @ planned
    share = jnp.clip(planned @ displacement / jnp.where(square > 0, square, 1.0), 0.0, 1.0)
    beside = (displacement - planned * share).norm()
    # the least of gaps that change linearly with the displacement is concave
    along = (1 - share) * m.gap + share * m.ahead - beside
    turning = reach * jnp.sqrt(sum(x * x for x in turned) / 2)  # the norm of a difference of two rotations
    size = reach + middle.norm() + Vector3(*now[9:]).norm()
    bound = jnp.minimum(jnp.maximum(along, m.gap - moved), m.passed - moved)
    return bound - turning - 32 * jnp.finfo(size.dtype).eps * size, moved + turning, displacement


def separations(
    pairs: Sequence[Pair], placements: Sequence[Sequence[Scalar]], before: Sequence[Before]
) -> list[Separation]:
    """The separation of each pair, all fields as numbers of one kind. placements: rotation (9) and position (3) of the
    second body in axes of the first."""
    dtype = jnp.result_type(*(x for placement in placements for x in placement))
    shapes = list({id(x): x for a, b, _ in pairs for x in (a, b)}.values())
    number = {id(x): np.int32(k) for k, x in enumerate(shapes)}
    unions = Unions([x.union for x in shapes], dtype)

    def found(x: Sequence[Scalar], first: Any, second: Any) -> list[Scalar]:
        start = Before(x[12], x[13], tuple(x[14:17]), x[17].astype(jnp.int32))
        s = separation(unions, first, second, Matrix3(*x[:9]), Vector3(*x[9:12]), start)
        return [jnp.asarray(y, dtype) for y in jax.tree.leaves(s)]

    rows = [
        [jax.lax.stop_gradient(jnp.asarray(x, dtype)) for x in (*placement, *jax.tree.leaves(start))]
        for placement, start in zip(placements, before, strict=True)
    ]
    ends = [np.array([number[id(pair[k])] for pair in pairs]) for k in (0, 1)]
    if len(pairs) == 1:
        each = [found(rows[0], *(jnp.int32(end[0]) for end in ends))]
    else:
        given = jnp.stack([jnp.stack(x) for x in rows]), *map(jnp.asarray, ends)
        _, stacked = jax.lax.scan(lambda _, x: (None, found(list(x[0]), *x[1:])), None, given)
        each = [[x[k] for x in stacked] for k in range(len(pairs))]
    return [Separation(x[0], *(Vector3(*x[k : k + 3]) for k in (1, 4, 7)), *x[10:]) for x in each]


def _placement(a: Shape, b: Shape, scene: Scene) -> list[Any]:
    """Rotation and position of the second shape's body in axes of the first one's."""
    back = scene.rotation(a.body).T
    apart = back @ (scene.point(b.body, ZERO3) - scene.point(a.body, ZERO3))
    return [jnp.asarray(bare(x)) for x in (*(back @ scene.rotation(b.body)), *apart)]


def _differentiable(s: Separation, placement: Sequence[Scalar]) -> Scalar:
    """The distance as a function of the placement."""
    fixed = jax.lax.stop_gradient(placement)
    on_b = Matrix3(*fixed[:9]).T @ (s.point_b - Vector3(*fixed[9:]))
    moved = s.normal @ (Matrix3(*placement[:9]) @ on_b + Vector3(*placement[9:]) - s.point_a)
    return s.gap + (moved - jax.lax.stop_gradient(moved))
