"""Constants of a formula: polynomials in the model's parameters with rational coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm
from typing import Any

Number = int | Fraction
Coefficient = Any  # int, Fraction or Constant


def exact(x: float | int | Fraction) -> Number:
    """A number as an exact rational: an int if it is whole, else a Fraction."""
    if type(x) is int:
        return x
    x = Fraction(x)
    return x.numerator if x.denominator == 1 else x


def quotient(a: Number, b: Number) -> Number:
    """a / b, exactly."""
    if b in (1, -1):
        return a * b
    if type(a) is int and type(b) is int and a % b == 0:
        return a // b
    return exact(Fraction(a, b))


class Constant:
    """A polynomial in the parameters with rational coefficients that is not merely a number.

    terms: {sorted indices of parameters, with repetition: rational}. Immutable. A sum or product that has no parameters
    left is returned as a plain number.
    """

    __slots__ = ("_hash", "_primitive", "terms")

    def __init__(self, terms: dict[tuple[int, ...], Number]):
        self.terms = terms
        self._hash: int | None = None
        self._primitive: tuple[Number, Constant] | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and self.terms == other.terms

    def __add__(self, other: Coefficient) -> Coefficient:
        out = dict(self.terms)
        for key, value in _terms(other).items():
            total = out.get(key, 0) + value
            if total:
                out[key] = total
            else:
                del out[key]
        return _reduced(out)

    __radd__ = __add__

    def __neg__(self) -> Constant:
        return Constant({key: -value for key, value in self.terms.items()})

    def __sub__(self, other: Coefficient) -> Coefficient:
        return self + (-other)

    def __mul__(self, other: Coefficient) -> Coefficient:
        if not isinstance(other, Constant):
            return Constant({key: value * other for key, value in self.terms.items()}) if other else 0
        out: dict[tuple[int, ...], Number] = {}
        for a, x in self.terms.items():
            for b, y in other.terms.items():
                key = tuple(sorted(a + b))
                total = out.get(key, 0) + x * y
                if total:
                    out[key] = total
                else:
                    del out[key]
        return _reduced(out)

    __rmul__ = __mul__

    def primitive(self) -> tuple[Number, Constant]:
        """(rational r, constant c) with self = r c; c has coprime integer coefficients, the first of them positive."""
        if self._primitive is None:
            values = [Fraction(v) for v in self.terms.values()]
            top, bottom = gcd(*(v.numerator for v in values)), lcm(*(v.denominator for v in values))
            content = exact(Fraction(top, bottom))
            if self.terms[min(self.terms)] < 0:
                content = -content
            same = content == 1
            self._primitive = (
                content,
                self if same else Constant({key: quotient(v, content) for key, v in self.terms.items()}),
            )
        return self._primitive

    def scale(self, parameters: Sequence[float]) -> float:
        """The value without cancellation: the sum of the absolute values of all terms."""
        return Constant({key: abs(c) for key, c in self.terms.items()}).value([abs(p) for p in parameters])

    def value(self, parameters: Sequence[float]) -> float:
        """The value for the given values of the parameters."""
        out = 0.0
        for key, coefficient in self.terms.items():
            term = float(coefficient)
            for i in key:
                term *= parameters[i]
            out += term
        return out


def _terms(x: Coefficient) -> dict[tuple[int, ...], Number]:
    if isinstance(x, Constant):
        return x.terms
    return {(): x} if x else {}


def _reduced(terms: dict[tuple[int, ...], Number]) -> Coefficient:
    if not terms:
        return 0
    if len(terms) == 1 and () in terms:
        return terms[()]
    return Constant(terms)


def parameter(index: int) -> Constant:
    return Constant({(index,): 1})
