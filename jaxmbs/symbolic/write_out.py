"""The public function: a model's dynamics as formulas."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from jaxmbs.dynamics.formulations.telegin import obstacle
from jaxmbs.dynamics.recursive import scalar
from jaxmbs.model import Model, ModelError
from jaxmbs.model.errors import unknown
from jaxmbs.model.forces import ShapeContact
from jaxmbs.model.functions import WithParameters
from jaxmbs.symbolic.formulas import Formulas
from jaxmbs.symbolic.names import Names
from jaxmbs.symbolic.passes import factored, flatten, optimised
from jaxmbs.symbolic.quantities import Overgrown
from jaxmbs.symbolic.statements import listing
from jaxmbs.symbolic.tracing import ALGORITHMS, INPUTS, Trace, Way, trace
from jaxmbs.symbolic.written import WrittenOut

EVERYTHING = 1000
# `limit` and `longest` of a way: sums that are multiplied out gather constants if axes are parallel, but for arbitrary
# placements it is better not to multiply them out
LIMITS = ((1, 2), (1, EVERYTHING), (2, EVERYTHING), (4, EVERYTHING), (EVERYTHING, EVERYTHING))
BUDGET = 1_000_000  # largest number of products that the first way may form
# a way is abandoned when it forms this many times more products, or has this many times more terms, than the smallest
# way so far; the ways that proved best stayed below 10 and 1.7
OPERATIONS_MARGIN, TERMS_MARGIN = 16, 2
POLISHED = 3  # number of the best ways, which are factored thoroughly
AGREEMENT = 1e-9  # relative difference allowed between the formulas and the function


def write_out(model: Model, what: str, *, constants: str = "symbols", method: str | None = None) -> WrittenOut:
    """Formulas of one function of the model, with few operations, as LaTeX, Python and C [T 1-4].

    what: "mass_matrix", "bias_forces", "inverse_dynamics" or "forward_dynamics", like the functions of these names, or
    "kinetic_energy", the first result of `energy`. The algorithms run on symbols; everything that depends only on
    parameters is gathered in named constants, which are not counted; hinges with parallel axes give sines and cosines of
    sums of angles; common parts and common factors are named. Several ways of writing are tried, and the one with the
    fewest operations is returned.

    constants: "symbols" for formulas that hold for any values of the parameters that are not structurally 0 or +-1 (the
    constants are computed from the parameters by generated code), or "numbers" for formulas that also exploit which
    values are equal, 0 or 1 in this model. method: the algorithm to write out, instead of choosing one: "crba" or
    "telegin" for the mass matrix, "newton_euler" or "rnea" for bias forces and inverse dynamics, "aba" or "crba" for
    forward dynamics, "velocities" or "crba" for the kinetic energy.

    Returns a WrittenOut with .latex(), .python(), .c(), .function(), .formulas (SymPy) and .operations. Every result
    has been evaluated at a random state and compared with the function itself. Locks and switches are not written out:
    the formulas are those of the model without locks and with every element switched on.

    Raises ModelError for joints that are defined by functions (General); for force elements without a formula, such as
    External, LineForce, ShapeContact and Aerodynamics, except in the mass matrix and the kinetic energy; for flexible
    bodies, traced or batched numbers, forward dynamics with constraints, a model without a degree of freedom, and an unknown
    name. It takes from a fraction of a second (three links) to some seconds (seven axes).

    >>> formulas = mbs.textbook.write_out(mbs.library.double_pendulum().build(), "mass_matrix")
    >>> print(formulas.operations)
    2 additions, 2 multiplications, 1 sines and cosines
    """
    if what not in ALGORITHMS:
        raise unknown("formula", what, ALGORITHMS, "write_out")
    if constants not in ("symbols", "numbers"):
        raise unknown("kind of constants", constants, ("symbols", "numbers"), "write_out")
    _check(model, what)
    algorithms = ALGORITHMS[what]
    if method is not None and method not in algorithms:
        raise unknown("method", method, algorithms, f"write_out of {what}")
    reason = obstacle(model) if "telegin" in algorithms else None
    if reason and method == "telegin":
        raise ModelError(f"write_out: method 'telegin' does not support model {model.name!r}: {reason}; use 'crba'")
    numeric = constants == "numbers"
    # algorithms that never give the fewest operations, or that do not apply
    left_out = {"rnea"} | ({"telegin"} if reason else set())
    found = _cheapest(model, what, _ways([method] if method else [a for a in algorithms if a not in left_out]), numeric)
    inputs = [(name, model.nq if name == "q" else model.nv) for name in INPUTS[what]]
    if ("atom", found.formulas.workspace.atom(("t", 0))) in (found.formulas.literals[x] for x in found.formulas.uses()):
        inputs.append(("t", 1))
    names = Names(listing(found.formulas), what, model)
    out = WrittenOut(what, model.name, tuple(inputs), found.trace.shape, found.way.algorithm, numeric, names)
    _compare(out, model)
    return out


def _check(model: Model, what: str) -> None:
    if not isinstance(model, Model):
        raise ModelError(f"write_out: needs a model, not {type(model).__name__}; pass what build() returns")
    if not model.nv:
        raise ModelError(f"write_out: model {model.name!r} has no degree of freedom; its formulas would be empty")
    try:
        model.values()
    except ModelError as error:
        raise ModelError(f"write_out: {error}; write out the model before mbs.vary") from None
    s = model.structure
    for link in s.links:
        if not link.joint.formulas:
            raise ModelError(
                f"write_out: joint {link.name!r} is {link.joint.type_name}, whose motion is given by functions and not "
                "by formulas; use one of the other joints, or a chain of them"
            )
    for force in s.forces:
        if isinstance(force.element, (WithParameters, ShapeContact)) and what not in ("mass_matrix", "kinetic_energy"):
            raise ModelError(
                f"write_out: force {force.name!r} is {type(force.element).__name__}, which has no formula; build "
                "the model without it and add its generalized forces to the result"
            )
    if s.constrained and what == "forward_dynamics":
        raise ModelError(
            f"write_out: model {model.name!r} has loops or constraints, whose multipliers are solved for in numbers; "
            "write out mass_matrix and bias_forces, which are those of its tree"
        )


@dataclass
class _Candidate:
    way: Way
    trace: Trace
    formulas: Formulas
    price: int


def _ways(algorithms: list[str]) -> list[Way]:
    ways = [Way(a, *limits, keep) for limits in LIMITS for a in algorithms for keep in (False, True)]
    return [way for way in ways if way.algorithm != "aba" or way.limit < EVERYTHING]  # pivots would be multiplied out


def _cheapest(model: Model, what: str, ways: list[Way], numeric: bool) -> _Candidate:
    """The way with the fewest operations: all ways are factored once, the best ones thoroughly."""
    found: list[_Candidate] = []
    budget, largest = BUDGET, BUDGET
    for way in ways:
        if way.keep_sums and "v" not in INPUTS[what]:
            continue
        try:
            traced = trace(model, what, way, numeric, budget)
            formulas = flatten(traced, largest)
        except Overgrown:
            continue
        terms, used = sum(map(len, formulas.sums.values())), budget - traced.workspace.budget
        budget, largest = min(budget, OPERATIONS_MARGIN * used + 1000), min(largest, TERMS_MARGIN * terms + 100)
        if all(formulas.sums != c.formulas.sums for c in found):
            found.append(_Candidate(way, traced, formulas, formulas.price(factored(formulas))))
    if not found:
        raise ModelError(
            f"write_out: the formulas of {what} for {model.name!r} are too long; write out parts of the model"
        )
    found.sort(key=lambda c: c.price)
    for c in found[:POLISHED]:
        optimised(c.formulas)
        c.price = c.formulas.price(c.formulas.sums)
    return min(found[:POLISHED], key=lambda c: c.price)


def _compare(out: WrittenOut, model: Model) -> None:
    """Evaluate the formulas and the function itself at a random state; raises AssertionError if they differ."""
    dice = random.Random(0)
    q = [c + dice.uniform(-1, 1) for link in model.structure.links for c in link.joint.neutral()]
    arguments = {
        name: q if name == "q" else [dice.uniform(-1, 1) for _ in range(model.nv)] for name in INPUTS[out.what]
    }
    wanted = getattr(scalar, "energy" if out.what == "kinetic_energy" else out.what)(model, *arguments.values())
    wanted = wanted[0] if out.what == "kinetic_energy" else wanted
    time = [0.0] if ("t", 1) in out.inputs else []
    got, want = np.asarray(out.function()(*arguments.values(), *time), float), np.asarray(wanted, float)
    if not np.allclose(got, want, rtol=AGREEMENT, atol=AGREEMENT * max(1.0, float(np.abs(want).max(initial=0.0)))):
        raise AssertionError(
            f"write_out: the formulas of {out.what} for {model.name!r} differ from the function by {got - want}"
        )
