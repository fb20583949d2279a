"""The final formulas: ordered, named and counted in operations; formulas that are used only once are inlined."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from jaxmbs.symbolic.constants import Number
from jaxmbs.symbolic.formulas import Formulas
from jaxmbs.symbolic.quantities import Angle, Trig

LONGEST_INLINE = 3  # largest number of terms of a sum that is written in brackets where it is used, if used only once


@dataclass(frozen=True)
class Term:
    """coefficient times factors over divisors; a factor is a literal or a Sum in brackets."""

    coefficient: Number
    factors: tuple[Any, ...]
    divisors: tuple[int, ...] = ()


@dataclass(frozen=True)
class Sum:
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Statement:
    """literal = formula: a Sum, or a Definition of another kind."""

    literal: int
    formula: Any


@dataclass(frozen=True)
class Operations:
    """Number of operations of one evaluation of the formulas; constants are computed beforehand and not counted.

    additions, multiplications, divisions; trigonometric: sines and cosines; angle_sums: additions of angles in their
    arguments, which additions does not include; functions: square roots, hyperbolic tangents and choices between two
    values.

    >>> print(mbs.textbook.Operations(additions=3, multiplications=4), mbs.textbook.Operations(3, 4).total)
    3 additions, 4 multiplications 7
    """

    additions: int = 0
    multiplications: int = 0
    divisions: int = 0
    trigonometric: int = 0
    angle_sums: int = 0
    functions: int = 0

    @property
    def total(self) -> int:
        """Additions, multiplications and divisions."""
        return self.additions + self.multiplications + self.divisions

    def __str__(self) -> str:
        names = [
            (self.additions, "additions"), (self.multiplications, "multiplications"), (self.divisions, "divisions"),
            (self.trigonometric, "sines and cosines"), (self.angle_sums, "sums of angles"), (self.functions, "functions"),
        ]  # fmt: skip
        return ", ".join(f"{n} {name}" for n, name in names if n or name in ("additions", "multiplications"))


@dataclass(frozen=True)
class Listing:
    """Everything that is printed. angles: sums of angles, in order; trig: [(literal, Trig)]; constants: literals in the
    order of first use."""

    formulas: Formulas
    angles: tuple[Angle, ...]
    trig: tuple[tuple[int, Trig], ...]
    statements: tuple[Statement, ...]
    constants: tuple[int, ...]
    operations: Operations


@dataclass
class _Writer:
    formulas: Formulas
    uses: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        p = self.formulas
        for k, polynomial in list(p.sums.items()):
            p.sums[k] = self._absorbed(polynomial)
        for polynomial in p.sums.values():
            for cube in polynomial:
                for x in cube:
                    self.uses[x] = self.uses.get(x, 0) + 1
        for k in p.opaque:
            for x in p.needs(k):
                self.uses[x] = self.uses.get(x, 0) + 2  # 2: an operand keeps its name and is never inlined

    def _absorbed(self, polynomial: dict) -> dict:
        """The polynomial with rational coefficients merged into the constant of their cube."""
        out: dict = {}
        for cube, c in polynomial.items():
            constant = next((x for x in cube if self.formulas.is_constant(x)), None)
            if constant is None or c in (1, -1):
                out[cube] = c
            else:
                scaled = self.formulas.literal("constant", self.formulas.literals[constant][1] * c)
                out[tuple(sorted([scaled, *(x for x in cube if x != constant)]))] = 1
        return out

    def inlined(self, literal: int) -> bool:
        p = self.formulas
        kind = p.literals[literal][0]
        return literal in p.sums and kind != "output" and self.uses.get(literal, 0) == 1

    def sum(self, polynomial: dict) -> Sum:
        terms: list[Term] = []
        for cube, c in polynomial.items():
            terms += self._terms(cube, c)
        return Sum(tuple(sorted(terms, key=lambda t: t.coefficient < 0)))

    def _terms(self, cube: tuple[int, ...], c: Number) -> list[Term]:
        """One term, or several if the cube is merely a sum that is used once."""
        p = self.formulas
        if len(cube) == 1 and c in (1, -1) and self.inlined(cube[0]):
            return [Term(t.coefficient * c, t.factors, t.divisors) for t in self.sum(p.sums[cube[0]]).terms]
        factors: list[Any] = []
        divisors: list[int] = []
        for x in sorted(cube, key=lambda x: (not p.is_constant(x), x)):
            if self.inlined(x) and len(p.sums[x]) == 1:
                (inner,) = self.sum(p.sums[x]).terms
                if inner.coefficient in (1, -1):
                    c = c * inner.coefficient
                    factors += inner.factors
                    divisors += inner.divisors
                    continue
            if self.inlined(x) and len(p.sums[x]) <= LONGEST_INLINE:
                factors.append(self.sum(p.sums[x]))
            elif x in p.opaque and p.opaque[x].kind == "reciprocal" and self.uses[x] == 1 and len(cube) > 1:
                _, sign, divisor = p.opaque[x].content
                c = c * sign
                divisors.append(divisor)
            else:
                factors.append(x)
        return [Term(c, tuple(factors), tuple(divisors))]


def needed(formula: Any) -> Iterator[int]:
    """Literals in a formula, in reading order."""
    if isinstance(formula, Sum):
        for term in formula.terms:
            for factor in term.factors:
                if isinstance(factor, Sum):
                    yield from needed(factor)
                else:
                    yield factor
            yield from term.divisors
    else:
        operands = formula.content[1:] if formula.kind == "select" else (formula.content,)
        yield from (o[2] for o in operands if o[0] == "literal")


def listing(formulas: Formulas) -> Listing:
    """The statements in an order in which they can be computed."""
    writer = _Writer(formulas)
    found: dict[int, Any] = {}
    order: list[int] = []
    done: set[int] = set()
    stack = [(k, False) for k in reversed(list(formulas.outputs.values()))]
    while stack:
        k, ready = stack.pop()
        if ready:
            order.append(k)
            continue
        if k in done or (k not in formulas.sums and k not in formulas.opaque):
            continue
        done.add(k)
        found[k] = _formula(writer, formulas, k)
        stack.append((k, True))
        stack += [(x, False) for x in reversed(list(needed(found[k])))]
    statements = tuple(Statement(k, found[k]) for k in order)
    read = list(dict.fromkeys(x for s in statements for x in needed(s.formula)))
    trig = [(x, _content(formulas, x)) for x in read if isinstance(_content(formulas, x), Trig)]
    trig.sort(key=lambda item: (item[1].angle[-1][0], len(item[1].angle), item[1].function))
    constants = tuple(x for x in read if formulas.is_constant(x))
    angles = _angles([t.angle for _, t in trig])
    return Listing(formulas, angles, tuple(trig), statements, constants, _count(statements, len(trig), angles))


def _formula(writer: _Writer, formulas: Formulas, k: int) -> Any:
    if k in formulas.sums:
        return writer.sum(formulas.sums[k])
    return formulas.opaque[k]


def _content(formulas: Formulas, literal: int) -> Any:
    kind, content = formulas.literals[literal]
    return formulas.workspace.atoms[content] if kind == "atom" else None


def _angles(used: list[Angle]) -> tuple[Angle, ...]:
    """Sums of angles, ordered so that each can be formed from an earlier one if there is one."""
    return tuple(sorted({a for a in used if len(a) > 1}, key=lambda a: (len(a), a)))


def angle_parts(angle: Angle, angles: tuple[Angle, ...]) -> list[tuple[int, Any]]:
    """The sum as [(factor, part)]: the longest of the shorter `angles` that it contains, if any, and single angles."""
    for other in sorted((a for a in angles if len(a) < len(angle)), key=len, reverse=True):
        for sign in (1, -1):
            if {(i, sign * n) for i, n in other} <= set(angle):
                rest = [x for x in angle if x[0] not in dict(other)]
                return [(sign, other), *((n, i) for i, n in rest)]
    return [(n, i) for i, n in angle]


def _count(statements: tuple[Statement, ...], trig: int, angles: tuple[Angle, ...]) -> Operations:
    additions = multiplications = divisions = functions = 0

    def count(s: Sum) -> None:
        nonlocal additions, multiplications, divisions
        additions += max(len(s.terms) - 1, 0)
        for t in s.terms:
            multiplications += max(len(t.factors) - 1, 0) + (t.coefficient not in (1, -1) and bool(t.factors))
            divisions += len(t.divisors)
            for factor in t.factors:
                if isinstance(factor, Sum):
                    count(factor)

    for s in statements:
        if isinstance(s.formula, Sum):
            count(s.formula)
        elif s.formula.kind == "reciprocal":
            divisions += 1
        elif s.formula.kind in ("sin", "cos"):
            trig += 1
        else:
            functions += 1
    sums = sum(len(angle_parts(a, angles)) - 1 for a in angles)
    return Operations(additions, multiplications, divisions, trig, sums, functions)
