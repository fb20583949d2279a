"""Formulas as SymPy expressions."""

from __future__ import annotations

from typing import Any

from jaxmbs.symbolic.names import Names
from jaxmbs.symbolic.statements import Sum


def sympy_module() -> Any:
    """The module SymPy. Raises ImportError, with the command that installs it, if it is missing."""
    try:
        import sympy
    except ImportError as error:
        raise ImportError("SymPy is missing; install it with: pip install 'jaxmbs[symbolic]'") from error
    return sympy


def expressions(names: Names) -> list[tuple[Any, Any]]:
    """(Symbol, expression) of every formula, in order; inputs are named q_1, v_1, ..., t, and constants k_1, ...."""
    sympy = sympy_module()
    listing = names.listing
    w = names.formulas.workspace
    symbols: dict[int, Any] = {}

    def symbol(literal: int) -> Any:
        if literal not in symbols:
            kind, content = names.formulas.literals[literal]
            source = w.atoms[content] if kind == "atom" else None
            plain = names.code[literal]
            if isinstance(source, tuple):
                plain = "t" if source[0] == "t" else f"{source[0]}_{source[1] + 1}"
            symbols[literal] = sympy.Symbol(plain, real=True)
        return symbols[literal]

    def number(x: Any) -> Any:
        return sympy.Rational(x.numerator, x.denominator)

    def written(s: Sum) -> Any:
        terms = []
        for t in s.terms:
            factors = [written(f) if isinstance(f, Sum) else symbol(f) for f in t.factors]
            factors += [sympy.Pow(symbol(d), -1) for d in t.divisors]
            factors = ([number(t.coefficient)] if t.coefficient != 1 or not factors else []) + factors
            terms.append(factors[0] if len(factors) == 1 else sympy.Mul(*factors, evaluate=False))
        if not terms:
            return sympy.Integer(0)
        return terms[0] if len(terms) == 1 else sympy.Add(*terms, evaluate=False)

    def operand(o: tuple[Any, ...]) -> Any:
        return number(o[1]) if o[0] == "number" else number(o[1]) * symbol(o[2])

    def formula(f: Any) -> Any:
        if isinstance(f, Sum):
            return written(f)
        if f.kind == "reciprocal":
            return 1 / operand(f.content)
        if f.kind == "select":
            relation, left, right, a, b = f.content
            holds = sympy.Rel(operand(left), operand(right), relation)
            return sympy.Piecewise((operand(a), holds), (operand(b), True))
        return getattr(sympy, f.kind)(operand(f.content))

    angles = [sum(n * sympy.Symbol(f"q_{i + 1}", real=True) for i, n in t.angle) for _, t in listing.trig]
    out = [(symbol(x), getattr(sympy, t.function)(a)) for (x, t), a in zip(listing.trig, angles, strict=True)]
    return out + [(symbol(s.literal), formula(s.formula)) for s in listing.statements]
