"""The scalar that records formulas: a polynomial in the quantities of the motion.

Running an algorithm of `jaxmbs.dynamics` on these scalars records its formulas. The coefficients are constants of the
model (`Constant`), so everything that depends only on parameters is gathered in them. Sines and cosines of parallel
hinges combine by the addition theorems, which makes sums canonical: equal terms are recognised, and terms that cancel
vanish.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from jaxmbs.model.errors import ModelError
from jaxmbs.spatial.known import ZERO, Known, bare
from jaxmbs.symbolic.constants import Coefficient, Constant, Number, exact, parameter

Monomial = tuple[tuple[int, ...], tuple[int, ...]]  # trigonometric atoms, one per group of hinges; other atoms, sorted
Angle = tuple[tuple[int, int], ...]  # ((atom of a coordinate, integer multiple), ...), sorted, the first one positive

ONE: Monomial = ((), ())


class Overgrown(Exception):
    """Raised when formulas become too long to be useful."""


@dataclass(frozen=True)
class Trig:
    """sin or cos of an integer combination of angles."""

    function: str
    angle: Angle


@dataclass
class Definition:
    """The formula of a named intermediate result.

    kind "sum": content is a Quantity; "reciprocal", "sqrt", "tanh", "sin", "cos": an operand; "select": (relation, left,
    right, value if it holds, value otherwise), the last four of them operands. An operand is a number, a constant or an
    atom, as `Workspace.operand` returns it.
    """

    kind: str
    content: Any


@dataclass
class Workspace:
    """Everything that is named while an algorithm runs.

    limit: a product of two sums is multiplied out if this gives at most that many terms; otherwise the longer sum is named
    first; longest: the limit in place of this one if the other factor is a constant; keep_sums: whether sums of inputs
    (rates of parallel hinges) are named whenever they are multiplied; budget: number of products that may still be formed
    before Overgrown is raised.
    """

    limit: int
    longest: int
    keep_sums: bool
    budget: int
    groups: dict[int, int] = field(default_factory=dict)  # atom of an angle -> group of parallel hinges
    atoms: list[Any] = field(default_factory=list)  # (name, index) of an input, Trig, or Definition
    parameters: list[Any] = field(default_factory=list)  # name of a parameter, or (function, Coefficient)
    values: list[float] = field(default_factory=list)  # of the parameters

    def __post_init__(self) -> None:
        self._known: dict[Any, int] = {}
        self._products: dict[tuple[int, int], tuple[tuple[int | None, Number], ...]] = {}

    def atom(self, content: Any, key: Any = None) -> int:
        """Index of the atom with this content, which is added if it is new."""
        key = content if key is None else key
        if key not in self._known:
            self._known[key] = len(self.atoms)
            self.atoms.append(content)
        return self._known[key]

    def input(self, key: tuple[str, int]) -> Quantity:
        """A quantity that the formulas start from: (name of the vector, index)."""
        return self.single(self.atom(key))

    def single(self, atom: int) -> Quantity:
        return Quantity(self, {((), (atom,)): 1})

    def parameter(self, content: Any, value: float) -> Quantity:
        """A number of the model."""
        key = ("parameter", content)
        if key not in self._known:
            self._known[key] = len(self.parameters)
            self.parameters.append(content)
            self.values.append(value)
        return Quantity(self, {ONE: parameter(self._known[key])})

    def lift(self, x: Any) -> Quantity:
        if isinstance(x, Quantity):
            return x
        value = exact(bare(x))
        return Quantity(self, {ONE: value} if value else {})

    def settled(self, terms: dict[Monomial, Coefficient]) -> Any:
        """The quantity with these terms, or a known number if they are only a number that a float represents
        exactly."""
        if not terms:
            return ZERO
        if len(terms) == 1 and ONE in terms and not isinstance(terms[ONE], Constant):
            value = terms[ONE]
            return Known(value) if isinstance(value, int) else _as_float(self, value)
        return Quantity(self, terms)

    def named(self, x: Quantity) -> tuple[Number, int]:
        """(sign, atom) with x = sign atom; equal sums get one name."""
        if len(x.terms) == 1:
            ((trigs, rest), c), *_ = x.terms.items()
            if not trigs and len(rest) == 1 and c in (1, -1):
                return c, rest[0]
        sign = 1 if _leading_sign(x) > 0 else -1
        x = x if sign > 0 else -x
        return sign, self.atom(Definition("sum", x), ("sum", frozenset(x.terms.items())))

    def named_sum(self, x: Quantity) -> Quantity:
        """x, or, if it is a sum of inputs, a quantity of one atom that names it."""
        plain = all(not trigs and len(rest) == 1 and isinstance(self.atoms[rest[0]], tuple) for trigs, rest in x.terms)
        if len(x.terms) < 2 or not plain:
            return x
        return self.short(x)

    def short(self, x: Any) -> Any:
        """The same value as a number, a constant or one atom."""
        if not isinstance(x, Quantity) or set(x.terms) == {ONE}:
            return x
        sign, atom = self.named(x)
        return Quantity(self, {((), (atom,)): sign})

    def function(self, name: str, x: Quantity) -> Quantity:
        """1/x, sqrt, tanh, sin or cos of a quantity as a new atom, or of a constant as a new parameter."""
        if set(x.terms) == {ONE}:
            c = x.terms[ONE]
            return self.parameter((name, c), _VALUE[name](_constant_value(c, self.values)))
        operand = self.operand(x)
        return self.single(self.atom(Definition(name, operand), (name, operand)))

    def operand(self, x: Any) -> tuple[Any, ...]:
        """x as ("number", value), ("constant", Constant) or ("atom", sign, atom); other quantities get a name."""
        x = self.lift(x)
        if not x.terms:
            return ("number", 0)
        if set(x.terms) == {ONE}:
            c = x.terms[ONE]
            return ("constant", c) if isinstance(c, Constant) else ("number", c)
        return ("atom", *self.named(x))

    def angle_function(self, function: str, x: Quantity) -> Any:
        """sin or cos of x: a `Trig` if x is an integer combination of angles of one group, else a function of a named
        x."""
        angle = {}
        for (trigs, rest), c in x.terms.items():
            if trigs or len(rest) != 1 or rest[0] not in self.groups or not isinstance(c, int):
                return self.function(function, x)
            angle[rest[0]] = c
        if len({self.groups[i] for i in angle}) != 1:
            return self.function(function, x)
        atom, sign = self.trig(function, angle)
        return Quantity(self, {((atom,), ()): sign})

    def trig(self, function: str, angle: dict[int, int]) -> tuple[int, int]:
        """(atom, sign) of sin or cos of a combination that is not zero."""
        items = tuple(sorted((i, n) for i, n in angle.items() if n))
        flipped = items[0][1] < 0
        if flipped:
            items = tuple((i, -n) for i, n in items)
        return self.atom(Trig(function, items)), -1 if flipped and function == "sin" else 1

    def group(self, trig: int) -> int:
        return self.groups[self.atoms[trig].angle[0][0]]

    def times(self, a: Monomial, b: Monomial) -> list[tuple[Monomial, Number]]:
        """Product of two monomials; functions of the same group of hinges combine."""
        rest = tuple(sorted(a[1] + b[1])) if a[1] and b[1] else a[1] or b[1]
        if not a[0] or not b[0]:
            return [((a[0] or b[0], rest), 1)]
        factors: list[tuple[tuple[int, ...], Number]] = [(a[0], 1)]
        for t in b[0]:
            factors = [(x, c * d) for trigs, c in factors for x, d in self._with_trig(trigs, t)]
        return [((trigs, rest), c) for trigs, c in factors]

    def _with_trig(self, trigs: tuple[int, ...], t: int) -> list[tuple[tuple[int, ...], Number]]:
        group = self.group(t)
        for k, other in enumerate(trigs):
            if self.group(other) == group:
                rest = trigs[:k] + trigs[k + 1 :]
                return [(tuple(sorted((*rest, x))) if x is not None else rest, c) for x, c in self.product(other, t)]
        return [(tuple(sorted((*trigs, t))), 1)]

    def product(self, a: int, b: int) -> tuple[tuple[int | None, Number], ...]:
        """Product of two functions of one group as a sum: cos a cos b = (cos(a-b) + cos(a+b))/2 and the like."""
        a, b = min(a, b), max(a, b)
        if (a, b) not in self._products:
            x, y = self.atoms[a], self.atoms[b]
            if x.function == "cos" and y.function == "sin":
                x, y = y, x
            f, g = x.function, y.function
            minus, plus = _combined(x.angle, y.angle, -1), _combined(x.angle, y.angle, 1)
            half = Fraction(1, 2)
            if f == g:
                parts = [("cos", minus, half), ("cos", plus, half if f == "cos" else -half)]
            else:  # sin x cos y
                parts = [("sin", minus, half), ("sin", plus, half)]
            out: list[tuple[int | None, Number]] = []
            for function, angle, c in parts:
                if angle:
                    atom, sign = self.trig(function, angle)
                    out.append((atom, sign * c))
                elif function == "cos":
                    out.append((None, c))
            self._products[a, b] = tuple(out)
        return self._products[a, b]


def _combined(a: Angle, b: Angle, sign: int) -> dict[int, int]:
    out = dict(a)
    for i, n in b:
        out[i] = out.get(i, 0) + sign * n
    return {i: n for i, n in out.items() if n}


def _as_float(w: Workspace, value: Fraction) -> Any:
    return Known(float(value)) if Fraction(float(value)) == value else Quantity(w, {ONE: value})


def _leading_sign(x: Quantity) -> int:
    c = x.terms[min(x.terms)]
    if isinstance(c, Constant):
        return -1 if c.primitive()[0] < 0 else 1
    return -1 if c < 0 else 1


def _constant_value(c: Coefficient, values: list[float]) -> float:
    return c.value(values) if isinstance(c, Constant) else float(c)


def _functions() -> dict[str, Any]:
    return {"reciprocal": lambda x: 1.0 / x, **{name: getattr(math, name) for name in ("sqrt", "tanh", "sin", "cos")}}


_VALUE = _functions()


class Quantity:
    """A polynomial {monomial: coefficient} in one workspace, with the operators that the algorithms use."""

    __slots__ = ("terms", "w")

    def __init__(self, w: Workspace, terms: dict[Monomial, Coefficient]):
        self.w, self.terms = w, terms

    def __add__(self, other: Any) -> Any:
        if type(other) is Known:
            return NotImplemented
        other = self.w.lift(other)
        out = dict(self.terms)
        for m, c in other.terms.items():
            if m in out:
                total = out[m] + c
                if _is_zero(total):
                    del out[m]
                else:
                    out[m] = total
            else:
                out[m] = c
        return self.w.settled(out)

    __radd__ = __add__

    def __neg__(self) -> Quantity:
        return Quantity(self.w, {m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Any) -> Any:
        if type(other) is Known:
            return NotImplemented
        return self + (-self.w.lift(other))

    def __rsub__(self, other: Any) -> Any:
        return self.w.lift(other) + (-self)

    def __mul__(self, other: Any) -> Any:
        if type(other) is Known:
            return NotImplemented
        w, a = self.w, self
        b = w.lift(other)
        if len(b.terms) < len(a.terms):
            a, b = b, a
        if not a.terms:
            return ZERO
        if w.keep_sums:
            a, b = w.named_sum(a), w.named_sum(b)
        while len(b.terms) > 1 and len(a.terms) * len(b.terms) > (w.longest if _is_constant(a) else w.limit):
            sign, atom = w.named(b)
            b = Quantity(w, {((), (atom,)): sign})
            if len(b.terms) < len(a.terms):
                a, b = b, a
        w.budget -= _size(a) * _size(b)
        if w.budget < 0:
            raise Overgrown
        out: dict[Monomial, Coefficient] = {}
        for m, x in a.terms.items():
            for n, y in b.terms.items():
                xy = x * y
                for p, c in w.times(m, n):
                    total = out[p] + xy * c if p in out else xy * c
                    if _is_zero(total):
                        del out[p]
                    else:
                        out[p] = total
        return w.settled(out)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if type(other) is Known:
            return NotImplemented
        if not isinstance(other, Quantity):
            return self * (1 / Fraction(other))
        return self * self.w.function("reciprocal", other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.w.lift(other) * self.w.function("reciprocal", self)

    def sin(self) -> Any:
        return self.w.angle_function("sin", self)

    def cos(self) -> Any:
        return self.w.angle_function("cos", self)

    def sqrt(self) -> Any:
        return self.w.function("sqrt", self)

    def tanh(self) -> Any:
        return self.w.function("tanh", self)

    def __gt__(self, other: Any) -> Condition:
        return Condition(self.w, ">", self, other)

    def __lt__(self, other: Any) -> Condition:
        return Condition(self.w, "<", self, other)

    def __ge__(self, other: Any) -> Condition:
        return Condition(self.w, ">=", self, other)

    def __le__(self, other: Any) -> Condition:
        return Condition(self.w, "<=", self, other)

    def __float__(self) -> float:
        raise ModelError("a formula has no value yet: a function that needs numbers cannot be written out")

    __array__ = None  # NumPy and JAX refuse it instead of wrapping it


def _size(x: Quantity) -> int:
    """Number of terms if the coefficients were multiplied out in the parameters."""
    return sum(len(c.terms) if isinstance(c, Constant) else 1 for c in x.terms.values())


def _is_constant(x: Quantity) -> bool:
    return len(x.terms) == 1 and ONE in x.terms


def _is_zero(c: Coefficient) -> bool:
    return not isinstance(c, Constant) and c == 0


@dataclass(frozen=True)
class Condition:
    """left relation right, decided when the formulas are evaluated."""

    w: Workspace
    relation: str
    left: Any
    right: Any

    def select(self, a: Any, b: Any) -> Any:
        """a where the relation holds, else b."""
        content = (self.relation, *(self.w.operand(x) for x in (self.left, self.right, a, b)))
        return self.w.single(self.w.atom(Definition("select", content), ("select", content)))
