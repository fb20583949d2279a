"""The passes that transform a trace into formulas with few operations."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from jaxmbs.symbolic.conversion import Conversion
from jaxmbs.symbolic.differences import rewrite
from jaxmbs.symbolic.factoring import Extraction, Polynomial, cost
from jaxmbs.symbolic.formulas import Formulas
from jaxmbs.symbolic.quantities import Definition, Overgrown, Quantity
from jaxmbs.symbolic.tracing import Trace


def flatten(trace: Trace, largest: int) -> Formulas:
    """Formulas of everything that the outputs need, as cubes. Raises Overgrown if there are more terms than `largest`."""
    w = trace.workspace
    formulas = Formulas(w, trace.numeric)
    sums: dict[int, Quantity] = {}
    for index, x in trace.outputs.items():
        formulas.outputs[index] = formulas.literal("output", index)
        sums[formulas.outputs[index]] = w.lift(x)
    needed = {atom for x in sums.values() for atom in _atoms(x)}
    for atom in reversed(range(len(w.atoms))):  # a definition needs only atoms with lower numbers
        if atom in needed and isinstance(w.atoms[atom], Definition):
            needed.update(_operand_atoms(w.atoms[atom]))
    for atom in sorted(needed):
        content = w.atoms[atom]
        if isinstance(content, Definition):
            literal = formulas.literal("atom", atom)
            if content.kind == "sum":
                sums[literal] = content.content
            else:
                formulas.opaque[literal] = _with_literals(formulas, content)
    if sum(len(x.terms) for x in sums.values()) > largest:
        raise Overgrown
    raw = {k: [([*t, *r], c) for (t, r), c in x.terms.items()] for k, x in sums.items()}
    converted = Conversion(w, trace.angles, raw.values())
    formulas.sums = {k: formulas.polynomial(converted.collected(terms)) for k, terms in raw.items()}
    return formulas


def _atoms(x: Quantity) -> Iterable[int]:
    return itertools.chain.from_iterable((*t, *r) for t, r in x.terms)


def _operand_atoms(d: Definition) -> list[int]:
    if d.kind == "sum":
        return list(dict.fromkeys(_atoms(d.content)))
    operands = d.content[1:] if d.kind == "select" else (d.content,)
    return [o[2] for o in operands if o[0] == "atom"]


def _with_literals(formulas: Formulas, d: Definition) -> Definition:
    def operand(o: tuple[Any, ...]) -> tuple[Any, ...]:
        if o[0] == "number":
            return o
        if o[0] == "constant":
            r, literal = formulas.constant(o[1])
            return ("number", r) if literal is None else ("literal", r, literal)
        return ("literal", o[1], formulas.literal("atom", o[2]))

    if d.kind == "select":
        return Definition(d.kind, (d.content[0], *map(operand, d.content[1:])))
    return Definition(d.kind, operand(d.content))


def factored(formulas: Formulas, seed: int = 0) -> dict[int, Polynomial]:
    """The sums after one pass of factoring; the formulas are not changed."""
    return Extraction(formulas.sums, formulas.temp, seed).run()


def optimised(formulas: Formulas) -> Formulas:
    """Factor and take differences in turn, as long as this saves operations; for short formulas, the best of several
    seeds."""
    size = sum(map(len, formulas.sums.values()))
    start, opaque = formulas.sums, formulas.opaque
    best = (formulas.price(start), start, opaque)
    for seed in range(12 if size < 120 else 4 if size < 300 else 1):
        formulas.sums, formulas.opaque = start, opaque
        before = None
        while before is None or cost(formulas.sums) < before:
            before = cost(formulas.sums)
            formulas.sums = factored(formulas, seed)
            while rewrite(formulas):
                formulas.prune()
            formulas.prune()
        if formulas.price(formulas.sums) < best[0]:
            best = (formulas.price(formulas.sums), formulas.sums, formulas.opaque)
    _, formulas.sums, formulas.opaque = best
    return formulas
