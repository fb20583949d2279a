"""Straight-line formulas as data: sums of products of literals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from jaxmbs.symbolic.constants import Constant, Number
from jaxmbs.symbolic.factoring import Polynomial, cost
from jaxmbs.symbolic.quantities import Definition, Trig, Workspace

ROUNDING = 1e-14  # rounding error of a sum that cancels, relative to its terms


@dataclass
class Formulas:
    """Formulas over literals. literals[i] states what literal i is: ("atom", index in the workspace), ("temp", number),
    ("output", index) or, for negative i, ("constant", Constant).

    sums: {literal: polynomial}; opaque: {literal: Definition}, definitions that are not sums, whose operands are
    ("number", x) or ("literal", rational factor, i); outputs: {index: literal}; numeric: whether the constants are
    numbers.
    """

    workspace: Workspace
    numeric: bool
    literals: dict[int, tuple[str, Any]] = field(default_factory=dict)
    sums: dict[int, Polynomial] = field(default_factory=dict)
    opaque: dict[int, Definition] = field(default_factory=dict)
    outputs: dict[tuple[int, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._index: dict[tuple[str, Any], int] = {}
        self._values: dict[str, tuple[float, Constant]] = {}

    def literal(self, kind: str, content: Any) -> int:
        key = (kind, content)
        if key not in self._index:
            number = len(self.literals)
            self._index[key] = ~number if kind == "constant" else number
            self.literals[self._index[key]] = key
        return self._index[key]

    def temp(self) -> int:
        return self.literal("temp", len(self.literals))

    def constant(self, c: Any) -> tuple[Number, int | None]:
        """(rational, literal of a constant or None) of a coefficient.

        If constants are numbers, a constant that is 0 to rounding or exactly +-1 becomes that number, and constants
        that are equal up to sign share a literal.
        """
        if not isinstance(c, Constant):
            return c, None
        r, c = c.primitive()
        if not self.numeric:
            return r, self.literal("constant", c)
        value, scale = c.value(self.workspace.values), c.scale(self.workspace.values)
        if abs(value) <= ROUNDING * scale:
            return 0, None
        if value in (1.0, -1.0):
            return r * int(value), None
        known, literal = self._values.setdefault(f"{abs(value):.14e}", (value, c))
        return (r if (known > 0) == (value > 0) else -r), self.literal("constant", literal)

    def needs(self, k: int) -> set[int]:
        """Literals in the formula of literal k."""
        if k in self.sums:
            return {x for cube in self.sums[k] for x in cube}
        if k in self.opaque:
            d = self.opaque[k]
            operands = d.content[1:] if d.kind == "select" else (d.content,)
            return {o[2] for o in operands if o[0] == "literal"}
        return set()

    def uses(self) -> dict[int, set[int]]:
        """For every literal, the literals whose formulas contain it."""
        out: dict[int, set[int]] = {}
        for k in (*self.sums, *self.opaque):
            for x in self.needs(k):
                out.setdefault(x, set()).add(k)
        return out

    def prune(self) -> None:
        """Remove the formulas that no output needs."""
        reached, stack = set(), list(self.outputs.values())
        while stack:
            k = stack.pop()
            if k not in reached:
                reached.add(k)
                stack += self.needs(k)
        self.sums = {k: p for k, p in self.sums.items() if k in reached}
        self.opaque = {k: d for k, d in self.opaque.items() if k in reached}

    def polynomial(self, terms: dict[tuple[int, ...], Any]) -> Polynomial:
        """The polynomial of terms {atoms of the workspace: coefficient}."""
        out: Polynomial = {}
        for atoms, c in terms.items():
            r, constant = self.constant(c)
            if r:
                cube = [self.literal("atom", a) for a in atoms] + ([] if constant is None else [constant])
                out[tuple(sorted(cube))] = r
        return out

    def price(self, sums: dict[int, Polynomial]) -> int:
        """Number of operations; the sine or cosine of a sum of angles counts as three, those of the addition
        theorem."""
        literals = {x for p in sums.values() for cube in p for x in cube}
        contents = (self.workspace.atoms[c] for kind, c in map(self.literals.__getitem__, literals) if kind == "atom")
        return cost(sums) + 3 * sum(isinstance(c, Trig) and len(c.angle) > 1 for c in contents)

    def is_constant(self, literal: int) -> bool:
        return literal < 0
