"""Clearance between two shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from jaxmbs.errors import ModelError
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Scene
from jaxmbs.model.joints import Joint
from jaxmbs.model.solids import Solid
from jaxmbs.study.outputs import hollow
from jaxmbs.study.outputs.base import REDUCTION, REDUCTIONS, Output, Scalar
from jaxmbs.study.outputs.gap import signed_distances
from jaxmbs.study.outputs.hollow import since_last
from jaxmbs.study.outputs.inside import gap_in
from jaxmbs.study.outputs.least import Memory, least_distances
from jaxmbs.study.outputs.path import Numbers, placement
from jaxmbs.study.outputs.shapes import Ball, Box, Shape, Tube


@element
class Clearance(Output):
    """Gap [m] between two shapes; where they overlap, minus the shortest displacement that separates them. If `inside`,
    the gap between the first shape and the inner side of the second, which contains it.

    The result is never larger than the true gap. Outside, it is the widest gap between parallel planes that separate the
    nearest convex pieces of the shapes. Where pieces overlap, the depth (minus the gap) may be found larger than the
    shortest displacement that separates them. Inside, the gap is found from the corners and edges of the first shape. Its
    circles are replaced by polygons that contain them and exceed them by at most 0.12 % of the radius; only the rim of a
    disc in a tube with open ends is exact.

    The least gap of a whole run, and its time, are found between the steps too, where the bodies are taken to move on
    cubics; a step in which velocities jump at an event is divided at that event. With a tolerance, these are the steps of
    `dt`, not the integrator's own. In a window, the gap counts at the steps only.
    """

    always_defined: ClassVar[bool] = False

    shape_a: Shape = field(Kind.PART, "", "one shape", of=Shape)
    shape_b: Shape = field(Kind.PART, "", "the other", of=Shape)
    inside: bool = field(Kind.FLAG, "", "the first lies in the second, which is hollow", default=False)
    open: bool = field(
        Kind.FLAG, "", "the ends of a hollow tube are open: only what lies between them counts", default=False
    )
    reduce: str = field(Kind.CHOICE, "", REDUCTION, default="min", choices=REDUCTIONS, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("shape_a", "shape_b"):
            if isinstance(shape := getattr(self, key), Solid):
                said = f"a {type(shape).__name__} alone is on no body; pass outputs.shape_on(BODY, ...)"
                raise ModelError(f"Clearance: {key}: {said}")

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return "length"

    def faults(self, joints: Mapping[str, Joint]) -> Iterator[tuple[str, str]]:
        if self.inside and not isinstance(self.shape_b, (Ball, Box, Tube)):
            yield "shape_b", "a hollow shape must be a ball, a box or a tube"
        if self.open and not (self.inside and isinstance(self.shape_b, Tube)):
            yield "open", "is only for inside = true with a tube as shape_b"
        for key in ("shape_a", "shape_b"):
            yield from ((f"{key}.{field}", remedy) for field, remedy in getattr(self, key).faults())

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        if self.inside:
            gap = self._gap_at(placement(self.shape_b.body, self.shape_a.body, scene))
            return gap.value, gap.counts
        return signed_distances([(self.shape_a, self.shape_b, scene)])[0], True

    @classmethod
    def measure_all(
        cls, outputs: Sequence[Output], scenes: Sequence[Scene], recalling: Mapping[int, Scalar], memory: Any
    ) -> tuple[list[tuple[Scalar, ...]], Any]:
        given: list[Any] = list(outputs)
        found: dict[int, tuple[Scalar, ...]] = {}
        before: tuple[Any, Any] = memory or ((), None)
        earlier, apart = iter(before[0]), before[1]
        new = []
        for k, o in enumerate(given):
            if o.inside and k in recalling:
                found[k], now = since_last(o._gap_at, (o.shape_b.body, o.shape_a.body, scenes[k]), next(earlier))
                new.append(now)
            elif o.inside:
                found[k] = o.measure(scenes[k])
        pairs = {k: (o.shape_a, o.shape_b, scenes[k]) for k, o in enumerate(given) if not o.inside}
        always = {k: pair for k, pair in pairs.items() if k not in recalling}
        some = {k: pair for k, pair in pairs.items() if k in recalling}
        if always:
            found |= {k: (x, True) for k, x in zip(always, signed_distances(list(always.values())), strict=True)}
        if some:
            values, apart = least_distances(list(some.values()), apart, [recalling[k] for k in some])
            found |= {k: (x, True, t) for k, (x, t) in zip(some, values, strict=True)}
        return [found[k] for k in range(len(given))], (tuple(new), apart)

    @classmethod
    def memory(cls, outputs: Sequence[Output]) -> Any:
        given: list[Any] = list(outputs)
        hollows = tuple(hollow.Memory.none() for o in given if o.inside)
        apart = [Memory.none().numbers() for o in given if not o.inside]
        return hollows, np.array(apart) if apart else None

    def _gap_at(self, placed: Numbers) -> hollow.Gap:
        """The gap inside, where `placed` is the placement of the first shape's body in axes of the second shape's body."""
        shell: Any = self.shape_b
        return gap_in(self.shape_a, shell, self.open, placed)
