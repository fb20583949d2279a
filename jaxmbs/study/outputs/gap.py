"""The signed distances of pairs of shapes in a state of the mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.geometry import Unions, separation
from jaxmbs.model.forces.base import Scene
from jaxmbs.spatial import ZERO3, Matrix3, Vector3
from jaxmbs.spatial.known import bare
from jaxmbs.study.outputs.shapes import Shape

Scalar = Any
AHEAD = 20.0  # distances are computed up to the least one and so many times the last movement
Pair = tuple[Shape, Shape, Scene]


class Memory(NamedTuple):
    """What a run remembers of a pair: the placement (12) at the last time at which the distance was computed, and the
    distance [m] then."""

    placement: tuple[Scalar, ...]
    distance: Scalar

    @classmethod
    def none(cls) -> Memory:
        return cls((0.0,) * 12, -np.inf)


def signed_distances(pairs: Sequence[Pair]) -> list[Scalar]:
    """Distance [m] between the two shapes of each pair, negative where they overlap.

    One program serves all pairs. The derivative is that of the distance of the nearest points, which are fixed to the
    bodies, along the line between them; where there are several nearest points, of one pair of them.
    """
    return _distances(pairs, [_placement(*pair) for pair in pairs], [jnp.inf] * len(pairs))


def least_distances(
    pairs: Sequence[Pair], memories: Sequence[Memory], least: Sequence[Scalar]
) -> tuple[list[Scalar], list[Memory]]:
    """Distances as from `signed_distances` where they may be less than `least`, the least distance so far of each pair;
    else a lower bound, which is at least that. Also the new memories.

    No point of the second shape has come nearer to the first by more than it has moved in its axes since the distance was
    computed last: as long as it then remains farther away than the least distance, there is nothing to compute.
    """
    placements = [_placement(*pair) for pair in pairs]
    fixed = jax.lax.stop_gradient(placements)
    moved = [_moved(b, m.placement, now) for (_, b, _), m, now in zip(pairs, memories, fixed, strict=True)]
    bounds = [m.distance - x for m, x in zip(memories, moved, strict=True)]
    far = [bound >= x for bound, x in zip(bounds, least, strict=True)]
    enough = [
        jnp.where(x, -jnp.inf, jax.lax.stop_gradient(y) + AHEAD * z) for x, y, z in zip(far, least, moved, strict=True)
    ]
    values, new = [], []
    for k, distance in enumerate(_distances(pairs, placements, enough)):
        value = jnp.where(far[k], bounds[k], jnp.where(distance > enough[k], enough[k], distance))
        now = Memory(tuple(fixed[k]), jax.lax.stop_gradient(value))
        values.append(value)
        new.append(jax.tree.map(lambda old, y, far=far[k]: jnp.where(far, old, y), memories[k], now))
    return values, new


def _moved(shape: Shape, then: Sequence[Scalar], now: Sequence[Scalar]) -> Scalar:
    """The most that a point of the shape has moved [m] in the axes in which its placements are given, and rounding."""
    box = shape.union.tree.boxes
    middle, reach = Vector3.of(box.middles[0].tolist()), float(np.linalg.norm(box.halves[0]))
    turned = Matrix3(*now[:9]) - Matrix3(*then[:9])
    by = (turned @ middle + Vector3(*now[9:]) - Vector3(*then[9:])).norm()
    by += reach * jnp.sqrt(sum(x * x for x in turned) / 2)  # the norm of a difference of two rotations
    size = reach + middle.norm() + Vector3(*now[9:]).norm()
    return by + 32 * jnp.finfo(size.dtype).eps * size


def _distances(pairs: Sequence[Pair], placements: Sequence[Sequence[Scalar]], enough: Sequence[Scalar]) -> list[Scalar]:
    """Distances, where they are not more than `enough`."""
    dtype = jnp.result_type(*(x for placement in placements for x in placement))
    shapes = list({id(x): x for a, b, _ in pairs for x in (a, b)}.values())
    number = {id(x): np.int32(k) for k, x in enumerate(shapes)}
    unions = Unions([x.union for x in shapes], dtype)

    def found(numbers: Any, first: Any, second: Any) -> Any:
        s = separation(unions, first, second, Matrix3(*numbers[:9]), Vector3(*numbers[9:12]), numbers[12])
        return s.gap, *s.normal, *s.point_a, *s.point_b

    given = [
        [jax.lax.stop_gradient(jnp.asarray(x, dtype)) for x in (*placement, limit)]
        for placement, limit in zip(placements, enough, strict=True)
    ]
    ends = [np.array([number[id(pair[k])] for pair in pairs]) for k in (0, 1)]
    if len(pairs) == 1:
        nearest = [found(given[0], *(jnp.int32(end[0]) for end in ends))]
    else:
        rows = jnp.stack([jnp.stack(x) for x in given])
        _, stacked = jax.lax.scan(lambda _, x: (None, found(list(x[0]), *x[1:])), None, (rows, *map(jnp.asarray, ends)))
        nearest = [tuple(x[k] for x in stacked) for k in range(len(pairs))]
    return [_differentiable(*x) for x in zip(nearest, placements, given, strict=True)]


def _placement(a: Shape, b: Shape, scene: Scene) -> list[Any]:
    """Rotation and position of the second shape's body in axes of the first one's."""
    back = scene.rotation(a.body).T
    apart = back @ (scene.point(b.body, ZERO3) - scene.point(a.body, ZERO3))
    return [jnp.asarray(bare(x)) for x in (*(back @ scene.rotation(b.body)), *apart)]


def _differentiable(nearest: Sequence[Scalar], placement: Sequence[Scalar], fixed: Sequence[Scalar]) -> Scalar:
    """The distance as a function of the placement."""
    gap, normal, point_a, point_b = nearest[0], *(Vector3(*nearest[k : k + 3]) for k in (1, 4, 7))
    on_b = Matrix3(*fixed[:9]).T @ (point_b - Vector3(*fixed[9:12]))
    moved = normal @ (Matrix3(*placement[:9]) @ on_b + Vector3(*placement[9:]) - point_a)
    return gap + (moved - jax.lax.stop_gradient(moved))
