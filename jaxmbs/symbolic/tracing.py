"""Runs the algorithms of `jaxmbs.dynamics` on quantities, which record the computation as formulas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jaxmbs.dynamics.formulations import telegin
from jaxmbs.dynamics.recursive import aba, crba, energies, rnea
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Model, ModelError
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.parameters import Parameter
from jaxmbs.model.refusals import refuse_flexible
from jaxmbs.spatial.factorization import solve
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar, total
from jaxmbs.symbolic import newton_euler
from jaxmbs.symbolic.hinges import angles_of
from jaxmbs.symbolic.quantities import Angle, Workspace
from jaxmbs.symbolic.regroup import regrouped

ROUNDING = 1e-15  # a component of a direction this close to 0 or +-1 counts as 0 or +-1


@dataclass(frozen=True)
class Way:
    """One way of writing out a function: the algorithm, and the settings of the workspace in which it runs."""

    algorithm: str
    limit: int
    longest: int
    keep_sums: bool = False


@dataclass(frozen=True)
class Trace:
    """Formulas recorded by one run. outputs: {index: scalar} of an array of this `shape`; angles: combinations of
    angles of parallel hinges that occur between two bodies; numeric: as in `trace`."""

    workspace: Workspace
    outputs: dict[tuple[int, ...], Scalar]
    shape: tuple[int, ...]
    angles: set[Angle]
    numeric: bool


def trace(model: Model, what: str, way: Way, numeric: bool, budget: int) -> Trace:
    """Run one algorithm. numeric: whether parameters with equal values become one constant; budget: of the
    workspace."""
    refuse_flexible(model, "written-out formulas")
    w = Workspace(way.limit, way.longest, way.keep_sums, budget)
    q = [w.input(("q", k)) for k in range(model.nq)]
    vectors = {name: [w.input((name, k)) for k in range(model.nv)] for name in INPUTS[what][1:]}
    found = angles_of(model)
    atoms = [w.atom(("q", k)) for k in range(model.nq)]
    w.groups = {atoms[k]: group for k, group in found.groups.items()}
    tree = Tree(_with_quantities(model, w, numeric))
    tree.links = regrouped(tree.structure, tree.links)
    state = State(tree, q, vectors.get("v", [ZERO] * model.nv), w.input(("t", 0)))
    outputs, shape = ALGORITHMS[what][way.algorithm](state, vectors)
    return Trace(w, outputs, shape, {_normal([(atoms[k], n) for k, n in angle]) for angle in found.sums}, numeric)


def _normal(items: list[tuple[int, int]]) -> Angle:
    items = sorted(items)
    sign = -1 if items[0][1] < 0 else 1
    return tuple((i, sign * n) for i, n in items)


def _with_quantities(model: Model, w: Workspace, numeric: bool) -> Model:
    """The model with quantities in place of its numbers. Components of directions and rotations that are 0 or +-1 but
    for rounding, and if `numeric` all numbers that are exactly 0 or +-1, become structural numbers."""
    values = model.values()
    parameters, numbers = [], []
    for p in model.structure.parameters:
        pattern: list[float | None] = []
        for k, (c, pinned) in enumerate(zip(values.components(p.name), p.pattern, strict=True)):
            c = _number(p, c)
            whole = round(c) if abs(c) < 1.5 else 2
            off = abs(c - whole)
            rounded = p.kind in (Kind.DIRECTION, Kind.ROTATION) and 0 < off < ROUNDING
            if pinned is not None or rounded or (numeric and off == 0 and whole in (0, 1, -1)):
                pattern.append(whole)
                continue
            pattern.append(None)
            if numeric:  # equal values become one constant
                x = w.parameter(("value", abs(c)), abs(c))
                numbers.append(x if c > 0 else -x)
            else:
                numbers.append(w.parameter((p.name, k), c))
        parameters.append(replace(p, pattern=tuple(pattern)))
    structure = replace(model.structure, parameters=tuple(parameters))
    return replace(model, numbers=tuple(numbers), overrides={}, structure=structure)


def _number(p: Parameter, c: Any) -> float:
    try:
        return float(c)
    except TypeError:
        raise ModelError(
            f"write_out: {p.name!r} is traced, but formulas need a model of plain numbers; call write_out outside jit"
        ) from None


def _vector(x: Sequence[Scalar]) -> tuple[dict[tuple[int, ...], Scalar], tuple[int, ...]]:
    return {(i,): value for i, value in enumerate(x)}, (len(x),)


def _lower(rows: Sequence[Sequence[Scalar]]) -> tuple[dict[tuple[int, ...], Scalar], tuple[int, ...]]:
    n = len(rows)
    return {(i, j): rows[i][j] for i in range(n) for j in range(i + 1)}, (n, n)


def _solved(state: State, x: Any) -> Any:
    """Accelerations by U D Uᵀ of the mass matrix; its entries and the right-hand side get names first."""
    w: Workspace = x["tau"][0].w
    A, bias = crba.mass_matrix(state), newton_euler.inverse_dynamics(state, None)
    A = [[w.short(c) for c in row] for row in A]
    right = [w.short(f - b) for f, b in zip(x["tau"], bias, strict=True)]
    w.limit = 1
    return _vector(solve(A, right))


def _quadratic_form(state: State, x: Any) -> Any:
    A, v = crba.mass_matrix(state), x["v"]
    n = range(len(v))
    return {(): 0.5 * total(*(v[i] * total(*(A[i][j] * v[j] for j in n)) for i in n))}, ()


INPUTS = {
    "mass_matrix": ("q",),
    "bias_forces": ("q", "v"),
    "inverse_dynamics": ("q", "v", "a"),
    "forward_dynamics": ("q", "v", "tau"),
    "kinetic_energy": ("q", "v"),
}
ALGORITHMS: dict[str, dict[str, Callable[[State, Any], Any]]] = {
    "mass_matrix": {
        "crba": lambda state, x: _lower(crba.mass_matrix(state)),
        "telegin": lambda state, x: _lower(telegin.mass_matrix(state)),
    },
    "bias_forces": {
        "newton_euler": lambda state, x: _vector(newton_euler.inverse_dynamics(state, None)),
        "rnea": lambda state, x: _vector(rnea.inverse_dynamics(state, None)),
    },
    "inverse_dynamics": {
        "newton_euler": lambda state, x: _vector(newton_euler.inverse_dynamics(state, x["a"])),
        "rnea": lambda state, x: _vector(rnea.inverse_dynamics(state, x["a"])),
    },
    "forward_dynamics": {
        "crba": _solved,
        "aba": lambda state, x: _vector(aba.forward_dynamics(state, x["tau"])),
    },
    "kinetic_energy": {
        "velocities": lambda state, x: ({(): energies.kinetic(state)}, ()),
        "crba": _quadratic_form,
    },
}
