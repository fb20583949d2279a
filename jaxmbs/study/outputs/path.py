"""How one body moves past another during a step."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxmbs.geometry.tables import choose
from jaxmbs.model.forces.base import Scene
from jaxmbs.spatial import ZERO3, Matrix3, Vector3
from jaxmbs.spatial.known import bare
from jaxmbs.spatial.vectors import skew

Scalar = Any
Numbers = tuple[Scalar, ...]  # twelve: nine of a rotation and three of a position, or their rates
ZERO: Numbers = (0.0,) * 12


def placement(a: str, b: str, scene: Scene) -> Numbers:
    """Rotation and position of the body b in axes of the body a."""
    back = scene.rotation(a).T
    apart = back @ (scene.point(b, ZERO3) - scene.point(a, ZERO3))
    return _numbers(back @ scene.rotation(b), apart)


def rates(a: str, b: str, scene: Scene) -> Numbers:
    """The derivatives of `placement` with respect to time."""
    back, turning = scene.rotation(a).T, scene.angular(a)
    apart = scene.point(b, ZERO3) - scene.point(a, ZERO3)
    linear = scene.velocity(b, ZERO3) - scene.velocity(a, ZERO3) - turning.cross(apart)
    return _numbers(skew(back @ (scene.angular(b) - turning)) @ (back @ scene.rotation(b)), back @ linear)


def _numbers(rotation: Matrix3, position: Vector3) -> Numbers:
    return tuple(jnp.asarray(bare(x)) for x in (*rotation, *position))


def point(placed: Numbers, p: Vector3) -> Vector3:
    """A point of the second body, given in its axes, in axes of the first; or with rates, its velocity there."""
    return Matrix3(*placed[:9]) @ p + Vector3(*placed[9:])


class Path(NamedTuple):
    """The placements of the second body in axes of the first during a step: cubic polynomials of s, 0 ... 1, with the
    values and the rates of both ends. leaving, arriving: rates times the length of the step."""

    begin: Numbers
    leaving: Numbers
    end: Numbers
    arriving: Numbers

    def at(self, s: Scalar) -> Numbers:
        """The placement: at s = 1 exactly the last one; between, with the matrix of the polynomials after a step of Newton's
        method towards the nearest rotation."""
        r = 1 - s
        weights = (1 + 2 * s) * r * r, s * r * r, s * s * (3 - 2 * s), -(s * s * r)
        x = self._sum(weights)
        R = Matrix3(*x[:9])
        rotation = tuple(1.5 * a - 0.5 * b for a, b in zip(R, R @ (R.T @ R), strict=True))
        return choose(s < 1, (*rotation, *x[9:]), self.end)

    def rate(self, s: Scalar) -> Numbers:
        """The derivative with respect to s."""
        r = 1 - s
        return self._sum((-6 * s * r, r * (1 - 3 * s), 6 * s * r, s * (3 * s - 2)))

    def _sum(self, weights: tuple[Scalar, ...]) -> Numbers:
        return tuple(sum(w * x for w, x in zip(weights, each, strict=True)) for each in zip(*self, strict=True))

    def corners(self) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Placements whose convex combinations contain the path: those of its Bézier form."""
        second = tuple(a + b / 3 for a, b in zip(self.begin, self.leaving, strict=True))
        third = tuple(a - b / 3 for a, b in zip(self.end, self.arriving, strict=True))
        return self.begin, second, third, self.end


def since(pair: tuple[str, str, Scene], time: Scalar, placed: Numbers, before: Numbers) -> tuple[Path, Numbers, Scalar]:
    """(the path of two bodies from the last time to that of the scene, the rates at its end, how long it took [s]). pair:
    the bodies and the scene; time, placed, before: the last time, and the placement and rates then. If `time` is NaN, as
    before the first time, the path is a point."""
    rate = rates(*pair)
    path, h = between(time, placed, before, jnp.asarray(pair[2].t), placement(*pair), rate)
    return path, rate, h


def between(
    time: Scalar, placed: Numbers, before: Numbers, t: Scalar, here: Numbers, rate: Numbers
) -> tuple[Path, Scalar]:
    """(the path, how long it took [s]), as `since`. here, rate: the placement and its rates at the present time t."""
    first = jnp.isnan(time)
    h = jnp.where(first, 0.0, t - jnp.where(first, t, time))
    begin = choose(first, here, placed)
    leaving = choose(first, ZERO, tuple(h * x for x in before))
    return Path(begin, leaving, here, tuple(h * x for x in rate)), h
