"""Clearance between two shapes."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import jax.numpy as jnp

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Scene
from jaxmbs.model.joints import Joint
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.known import accepting
from jaxmbs.study.outputs.base import REDUCTION, REDUCTIONS, Output, Scalar, turned
from jaxmbs.study.outputs.gap import signed_distance
from jaxmbs.study.outputs.shapes import Ball, Box, Shape, Tube


@element
class Clearance(Output):
    """Gap [m] between two shapes; where they overlap, minus the shortest displacement that separates them. If `inside`,
    the gap between the first shape and the inner side of the second, which contains it.

    Shapes are convex. The result is never larger than the true gap. Outside, it is the widest gap between parallel
    planes; inside, it is found from the corners of the first shape.
    """

    always_defined: ClassVar[bool] = False

    shape_a: Shape = field(Kind.PART, "", "one shape", of=Shape)
    shape_b: Shape = field(Kind.PART, "", "the other", of=Shape)
    inside: bool = field(Kind.FLAG, "", "the first lies in the second, which is hollow", default=False)
    open: bool = field(
        Kind.FLAG, "", "the ends of a hollow tube are open: corners count while they are between them", default=False
    )
    reduce: str = field(Kind.CHOICE, "", REDUCTION, default="min", choices=REDUCTIONS, kw_only=True)

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return "length"

    def faults(self, joints: Mapping[str, Joint]) -> Iterator[tuple[str, str]]:
        if self.inside and not isinstance(self.shape_b, (Ball, Box, Tube)):
            yield "shape_b", "a hollow shape must be a ball, a box or a tube"
        if self.open and not (self.inside and isinstance(self.shape_b, Tube)):
            yield "open", "is only for inside = true with a tube as shape_b"
        for key in ("shape_a", "shape_b"):
            shape = getattr(self, key)
            if isinstance(shape, Box) and min(shape.size) <= 0:
                yield f"{key}.size", f"{list(shape.size)}: the lengths of edges must be more than zero"

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        if self.inside:
            return _inside(self, scene)
        return signed_distance(self.shape_a.reach(scene), self.shape_b.reach(scene)), True


def _inside(c: Clearance, scene: Scene) -> tuple[Scalar, Scalar]:
    """Smallest distance of the balls about the first shape's corners from the walls, and whether any of them counts:
    all do, except in a tube with open ends, where only corners between the ends count."""
    points, ball = c.shape_a.corners(scene)
    shell: Any = c.shape_b
    center, back = scene.point(shell.body, Vector3.of(shell.center)), scene.rotation(shell.body).T
    local = [turned(back, p - center) for p in points]
    if isinstance(shell, Ball):
        return shell.radius - ball - _most([p.norm() for p in local]), True
    if isinstance(shell, Tube):
        axis = Vector3.of(shell.axis)
        out = [(p - axis * (axis @ p)).norm() for p in local]
        ends = [shell.length / 2 - accepting(jnp.abs)(axis @ p) for p in local]
        if c.open:
            counts = [~(x < 0) for x in ends]  # a state that is not finite counts, so that it shows in the result
            most = _most([accepting(jnp.where)(on, x, -jnp.inf) for on, x in zip(counts, out, strict=True)])
            return shell.radius - most - ball, functools.reduce(jnp.logical_or, counts)
        return accepting(jnp.minimum)(shell.radius - _most(out), -_most([-x for x in ends])) - ball, True
    edges = [Vector3.of(e.tolist()) for e in shell.edges()]
    walls = [s / 2 - _most([accepting(jnp.abs)(e @ p) for p in local]) for s, e in zip(shell.size, edges, strict=True)]
    return -_most([-w for w in walls]) - ball, True


def _most(values: list[Scalar]) -> Scalar:
    return functools.reduce(accepting(jnp.maximum), values)
