"""Several shapes as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxmbs.errors import ModelError
from jaxmbs.geometry import Piece
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.study.outputs.shapes import Shape


@element
class Compound(Shape):
    """Several shapes on one body as one: the gap to it is the least of the gaps to its parts. The parts may overlap.

    >>> from jaxmbs.study.outputs import Ball, Compound, Tube
    >>> tank = Compound([Tube("stage", radius=0.5, length=2.0), Ball("stage", center=(1, 0, 0), radius=0.5)])
    >>> tank.body, len(tank.parts)
    ('stage', 2)
    """

    parts: Sequence[Shape] = field(Kind.PARTS, "", "its parts, all on one body", of=Shape)
    body: str = field(Kind.TEXT, "", "that of its parts; found by itself", default="", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.parts, (tuple, list)) or not self.parts:
            raise ModelError(f"Compound: {self.parts!r} is not a list of shapes")
        for x in self.parts:
            if not isinstance(x, Shape):
                raise ModelError(f"Compound: {x!r} is no shape on a body; pass one such as outputs.shape_on(BODY, ...)")
        parts = tuple(y for x in self.parts for y in (x.parts if isinstance(x, Compound) else (x,)))
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "body", self.body or parts[0].body)

    def pieces(self) -> tuple[Piece, ...]:
        return tuple(piece for x in self.parts for piece in x.pieces())

    def part_of(self, piece: int) -> tuple[int, int]:
        """Which part has a piece, and which of its own pieces it is."""
        of_pieces = [(i, k) for i, x in enumerate(self.parts) for k in range(len(x.union.pieces))]
        return of_pieces[piece]

    def faults(self) -> Iterator[tuple[str, str]]:
        others = {x.body for x in self.parts} - {self.body}
        if others:
            said = (
                f"some are on {min(others)!r} and not on {self.body!r}; name clearances of one body each in a min_over"
            )
            yield "parts", said
        for i, x in enumerate(self.parts):
            yield from ((f"parts[{i}].{key}", remedy) for key, remedy in x.faults())
