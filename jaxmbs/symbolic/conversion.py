"""Rewrites sines and cosines of angles that do not occur between two bodies as products of those of angles that do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jaxmbs.symbolic.constants import Number
from jaxmbs.symbolic.quantities import Angle, Trig, Workspace

Terms = list[tuple[list[int], Any]]  # [(atoms, coefficient)]


class Conversion:
    """Writes cos(a+b) as cos a cos b - sin a sin b, 2 cos a cos b - cos(a-b) or cos(a-b) - 2 sin a sin b, whichever
    leaves the fewest terms in the given sums, and the sine likewise. basic: the angles that occur between two
    bodies."""

    def __init__(self, workspace: Workspace, basic: set[Angle], sums: Iterable[Terms]):
        self.w, self.basic = workspace, basic
        self.variant: dict[int, int] = {}
        self._parts: dict[int, tuple[dict[int, int], dict[int, int]]] = {}
        self._known: dict[int, Terms] = {}
        where: dict[int, list[Terms]] = {}
        for terms in sums:
            for atom in dict.fromkeys(a for atoms, _ in terms for a in atoms if self._odd(a)):
                where.setdefault(atom, []).append(terms)
        for atom, affected in where.items():
            sizes = []
            for variant in (0, 1, 2):
                self._set(atom, variant)
                sizes.append(sum(len(self.collected(terms)) for terms in affected))
            self._set(atom, sizes.index(min(sizes)))

    def _set(self, atom: int, variant: int) -> None:
        self.variant[atom] = variant
        self._known.clear()

    def collected(self, terms: Terms) -> dict[tuple[int, ...], Any]:
        """{sorted atoms: coefficient} with basic angles only."""
        out: dict[tuple[int, ...], Any] = {}
        for atoms, c in terms:
            parts: Terms = [([], c)]
            for a in atoms:
                if self._odd(a):
                    parts = [(x + y, c * d) for x, c in parts for y, d in self._expanded(a)]
                else:
                    parts = [([*x, a], c) for x, c in parts]
            for x, d in parts:
                key = tuple(sorted(x))
                out[key] = out.get(key, 0) + d
        return out

    def _odd(self, atom: int) -> bool:
        content = self.w.atoms[atom]
        return isinstance(content, Trig) and content.angle not in self.basic

    def _expanded(self, atom: int) -> Terms:
        if atom not in self._known:
            self._known[atom] = self._expansion(atom)
        return self._known[atom]

    def _split(self, atom: int) -> tuple[dict[int, int], dict[int, int]]:
        """(basic angle, rest), with the basic angle that leaves the smallest rest."""
        if atom not in self._parts:
            whole = dict(self.w.atoms[atom].angle)
            signed = ({i: s * n for i, n in angle} for angle in self.basic for s in (1, -1))
            a = min(signed, key=lambda x: (sum(map(abs, _less(whole, x).values())), sorted(x.items())))
            self._parts[atom] = a, _less(whole, a)
        return self._parts[atom]

    def _expansion(self, atom: int) -> Terms:
        t: Trig = self.w.atoms[atom]
        a, b = self._split(atom)
        difference, sine, variant = _less(a, b), t.function == "sin", self.variant.get(atom, 0)
        sin_a, cos_a, sin_b, cos_b = (self._function(f, x) for x in (a, b) for f in ("sin", "cos"))
        if variant and (not difference or _normal(difference) in self.basic):
            rest = self._function(t.function, difference)
            if sine:
                main = _product(sin_a, cos_b, 2) if variant == 1 else _product(cos_a, sin_b, 2)
                return main + (_scaled(rest, -1) if variant == 1 else rest)
            return _product(cos_a, cos_b, 2) + _scaled(rest, -1) if variant == 1 else _product(sin_a, sin_b, -2) + rest
        if sine:
            return _product(sin_a, cos_b, 1) + _product(cos_a, sin_b, 1)
        return _product(cos_a, cos_b, 1) + _product(sin_a, sin_b, -1)

    def _function(self, name: str, angle: dict[int, int]) -> Terms:
        if not angle:
            return [] if name == "sin" else [([], 1)]
        atom, sign = self.w.trig(name, angle)
        return _scaled(self._expanded(atom), sign) if self._odd(atom) else [([atom], sign)]


def _product(a: Terms, b: Terms, c: Number) -> Terms:
    return [(x + y, c * u * v) for x, u in a for y, v in b]


def _scaled(a: Terms, c: Number) -> Terms:
    return [(x, c * u) for x, u in a]


def _less(a: dict[int, int], b: dict[int, int]) -> dict[int, int]:
    out = {i: a.get(i, 0) - b.get(i, 0) for i in {*a, *b}}
    return {i: n for i, n in out.items() if n}


def _normal(a: dict[int, int]) -> Angle:
    items = sorted(a.items())
    sign = -1 if items[0][1] < 0 else 1
    return tuple((i, sign * n) for i, n in items)
