"""Formulas as Python, C and LaTeX text."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from jaxmbs.symbolic.constants import Coefficient, Constant, Number
from jaxmbs.symbolic.names import Names
from jaxmbs.symbolic.quantities import Angle, Trig
from jaxmbs.symbolic.statements import Statement, Sum, Term, angle_parts


class Code:
    """Expressions in a programming language; `function` and `choice` write its calls and selections."""

    def __init__(self, names: Names, function: Callable[[str, str], str], choice: Callable[[str, str, str], str]):
        self.names, self.function, self.choice = names, function, choice

    def number(self, x: Number) -> str:
        return repr(float(x))

    def sum(self, s: Sum) -> str:
        text = ""
        for k, term in enumerate(s.terms):
            sign = "-" if term.coefficient < 0 else ("+" if k else "")
            text += f" {sign} " if k else sign
            text += self._term(term)
        return text or "0.0"

    def _term(self, term: Term) -> str:
        parts = [f"({self.sum(f)})" if isinstance(f, Sum) else self.names.code[f] for f in term.factors]
        if abs(term.coefficient) != 1 or not parts:
            parts.insert(0, self.number(abs(term.coefficient)))
        return "*".join(parts) + "".join(f"/{self.names.code[d]}" for d in term.divisors)

    def formula(self, s: Statement) -> str:
        f = s.formula
        if isinstance(f, Sum):
            return self.sum(f)
        if f.kind == "reciprocal":
            return f"1.0/{self._operand(f.content, bracket=True)}"
        if f.kind == "select":
            relation, left, right, a, b = f.content
            return self.choice(f"{self._operand(left)} {relation} {self._operand(right)}", *map(self._operand, (a, b)))
        return self.function(f.kind, self._operand(f.content))

    def _operand(self, o: tuple[Any, ...], bracket: bool = False) -> str:
        if o[0] == "number":
            return self.number(o[1])
        _, c, literal = o
        name = self.names.code[literal]
        text = name if c == 1 else f"-{name}" if c == -1 else f"{self.number(c)}*{name}"
        return f"({text})" if bracket and c != 1 else text

    def angle(self, angle: Angle) -> str:
        """A sum of angles, written in terms of an earlier sum if there is one."""
        text = ""
        for n, part in angle_parts(angle, self.names.listing.angles):
            name = f"q[{part}]" if isinstance(part, int) else self.names.angle(part)
            sign = ("- " if n < 0 else "+ ") if text else ("-" if n < 0 else "")
            text += (" " if text else "") + sign + (name if abs(n) == 1 else f"{abs(n)}*{name}")
        return text

    def trig(self, trig: Trig) -> str:
        ((i, n), *more) = trig.angle
        argument = self.names.angle(trig.angle) if more else f"q[{i}]" if n == 1 else f"{n}*q[{i}]"
        return self.function(trig.function, argument)

    def constant(self, c: Coefficient) -> str:
        """A polynomial in the parameters."""
        if not isinstance(c, Constant):
            return self.number(c)
        text = ""
        for key, value in c.terms.items():
            factors = [self.names.parameters[i][0] for i in key]
            if abs(value) != 1 or not factors:
                factors.insert(0, self.number(abs(value)))
            sign = ("- " if value < 0 else "+ ") if text else ("-" if value < 0 else "")
            text += (" " if text else "") + sign + "*".join(factors)
        return text

    def body(self) -> list[str]:
        """The lines "name = expression" of the whole evaluation."""
        listing = self.names.listing
        lines = [f"{self.names.angle(a)} = {self.angle(a)}" for a in listing.angles]
        lines += [f"{self.names.code[x]} = {self.trig(t)}" for x, t in listing.trig]
        return lines + [f"{self.names.code[s.literal]} = {self.formula(s)}" for s in listing.statements]

    def constants(self) -> list[str]:
        """The lines "name = expression" that compute the constants from the parameters."""
        w, lines = self.names.formulas.workspace, []
        for i, (name, *_) in self.names.parameters.items():
            kind, content = w.parameters[i]
            if isinstance(content, Constant):
                value = self.constant(content)
                lines.append(f"{name} = " + (f"1.0/({value})" if kind == "reciprocal" else self.function(kind, value)))
        listing = self.names.listing
        lines += [f"{self.names.code[x]} = {self.constant(listing.formulas.literals[x][1])}" for x in listing.constants]
        return lines


def python_code(names: Names, module: str) -> Code:
    def choice(condition: str, a: str, b: str) -> str:
        return f"where({condition}, {a}, {b})" if module == "numpy" else f"{a} if {condition} else {b}"

    return Code(names, lambda f, x: f"{f}({x})", choice)


def c_code(names: Names) -> Code:
    return Code(names, lambda f, x: f"{f}({x})", lambda condition, a, b: f"({condition}) ? {a} : {b}")


class Latex:
    """The same expressions as LaTeX equations."""

    def __init__(self, names: Names):
        self.names = names

    def number(self, x: Number) -> str:
        x = Fraction(x)
        return str(x.numerator) if x.denominator == 1 else rf"\tfrac{{{x.numerator}}}{{{x.denominator}}}"

    def sum(self, s: Sum) -> str:
        text = ""
        for term in s.terms:
            parts = [rf"\left({self.sum(f)}\right)" if isinstance(f, Sum) else self.names.tex[f] for f in term.factors]
            if abs(term.coefficient) != 1 or not parts:
                parts.insert(0, self.number(abs(term.coefficient)))
            product = r" \, ".join(parts)
            if term.divisors:
                product = rf"\frac{{{product}}}{{{' '.join(self.names.tex[d] for d in term.divisors)}}}"
            text += (" - " if term.coefficient < 0 else " + ") + product
        return text.removeprefix(" + ").strip() or "0"

    def formula(self, s: Statement) -> str:
        f = s.formula
        if isinstance(f, Sum):
            return self.sum(f)
        if f.kind == "select":
            relation, left, right, a, b = f.content
            relation = {">=": r"\ge", "<=": r"\le"}.get(relation, relation)
            said = rf"{self._operand(a)} & {self._operand(left)} {relation} {self._operand(right)} \\ "
            return rf"\begin{{cases}} {said}{self._operand(b)} & \text{{otherwise}} \end{{cases}}"
        return _applied(f.kind, self._operand(f.content))

    def _operand(self, o: tuple[Any, ...]) -> str:
        if o[0] == "number":
            return self.number(o[1])
        _, c, literal = o
        name = self.names.tex[literal]
        return name if c == 1 else f"-{name}" if c == -1 else rf"{self.number(c)} \, {name}"

    def trig(self, trig: Trig) -> str:
        text = ""
        for i, n in trig.angle:
            text += (" - " if n < 0 else " + ") + (str(abs(n)) if abs(n) != 1 else "") + f"q_{{{i + 1}}}"
        text = text.removeprefix(" + ").strip()
        return rf"\{trig.function} " + (rf"\left({text}\right)" if len(trig.angle) > 1 else text)

    def derived(self) -> list[str]:
        """The lines that define the functions of parameters from which the constants are built."""
        w, lines = self.names.formulas.workspace, []
        for i, (_, tex, _) in self.names.parameters.items():
            kind, content = w.parameters[i]
            if isinstance(content, Constant):
                lines.append(f"{tex} &= {_applied(kind, self.constant(content))}")
        return lines

    def constant(self, c: Coefficient) -> str:
        if not isinstance(c, Constant):
            return self.number(c)
        text = ""
        for key, value in c.terms.items():
            factors = [
                f"{{{self.names.parameters[i][1]}}}^{{{key.count(i)}}}"
                if key.count(i) > 1
                else self.names.parameters[i][1]
                for i in dict.fromkeys(key)
            ]
            if abs(value) != 1 or not factors:
                factors.insert(0, self.number(abs(value)))
            text += (" - " if value < 0 else " + ") + r" \, ".join(factors)
        return text.removeprefix(" + ").strip()


def _applied(function: str, x: str) -> str:
    named = {"reciprocal": rf"\frac{{1}}{{{x}}}", "sqrt": rf"\sqrt{{{x}}}"}
    return named.get(function, rf"\{function}\left({x}\right)")
