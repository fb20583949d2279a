"""Interpretation of a solution: what the conditions fix, by which relations, and what they do not fix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from jaxmbs.batching.compiling import compiled
from jaxmbs.design.problem import Prepared
from jaxmbs.design.recognition import Given, Recognised, recognised
from jaxmbs.design.variables import Coordinate
from jaxmbs.model import Model

SETS = 6  # number of sets of given numbers for which coefficients are computed
RANK = 1e-9  # relative singular value below which the conditions do not fix a direction
AFFINE = 1e-9  # relative departure from linearity that counts as rounding


@dataclass(frozen=True)
class Relation:
    """One combination of coordinates that the conditions fix.

    text: the relation in words; coefficients: {coordinate: number}; value: required value of the combination; residual:
    by how much the solution misses it [unit]; exact: whether all its numbers were recognised as expressions in the
    given masses and lengths, so that it holds for other masses and lengths, too; std: standard deviation of the value
    if it was measured with noise, else None.

    >>> print(mbs.design.Relation("a.h_x + b.h_x = 0", {"a.h_x": 1.0, "b.h_x": 1.0}, 0.0, 1e-17, "kg m", True))
    a.h_x + b.h_x = 0   (residual 1.0e-17 kg m)
    """

    text: str
    coefficients: dict[str, float]
    value: float
    residual: float
    unit: str
    exact: bool
    std: float | None = None

    def __str__(self) -> str:
        """The relation and its residual."""
        if self.std is not None:
            return f"{self.text}   (standard deviation {self.std:.2g} {self.unit})"
        return f"{self.text}   (residual {self.residual:.1e} {self.unit})"


@dataclass(frozen=True)
class Findings:
    """What the conditions fix and what they do not fix.

    coordinates: the quantities (c of them) in which relations are expressed; rank: number of independent combinations
    that the conditions fix; singular_values: of the conditions' derivative, largest first, with the coordinates in
    units of their usual size; linear: whether the conditions are linear in the coordinates, so that the relations hold
    everywhere and not only at this solution; fixed (rank, c): the fixed combinations; free (c - rank, c): a basis of
    the directions that are not fixed; indifferent: coordinates on which no condition depends; sensitivity: {coordinate:
    norm of the change of all conditions per unit of the coordinate}; relations: `Relation`.

    >>> here = (mbs.design.Coordinate("a.mass", "kg", (1, 0)),)
    >>> print(mbs.design.Findings(here, 0, np.zeros(1), True, np.zeros((0, 1)), np.eye(1), (), {}, ()))
    the conditions fix 0 independent combinations of 1 numbers everywhere; 1 remain free
    """

    coordinates: tuple[Coordinate, ...]
    rank: int
    singular_values: np.ndarray
    linear: bool
    fixed: np.ndarray
    free: np.ndarray
    indifferent: tuple[str, ...]
    sensitivity: dict[str, float]
    relations: tuple[Relation, ...]

    def __str__(self) -> str:
        """The findings as text."""
        n = len(self.coordinates)
        where = "everywhere" if self.linear else "at this solution"
        lines = [
            (
                f"the conditions fix {self.rank} independent combinations of {n} numbers {where}; {n - self.rank} remain "
                "free"
            )
        ]
        if self.indifferent:
            lines.append("without any effect on the conditions: " + ", ".join(self.indifferent))
        return "\n".join([*lines, *map(str, self.relations)])


def findings(prepared: Prepared, state: Any, best: int) -> Findings:
    """Rank, null space and relations of the objectives at the best solution.

    Relations are found if all objectives are conditions on parameters alone, or if all are measurements with noise.
    If an objective simulates motions, the findings come from the normal matrix of the search: they are about the
    variables instead of the coordinates, and have no relations.
    """
    if any(o.simulates for o in prepared.objectives):
        return _from_search(prepared, state, best)
    variables, n = prepared.variables, prepared.variables.size
    x = state.x[best]
    here = variables.coordinates_at(x)
    names, powers, nominal = given_numbers(variables.model, variables.names)
    rng = np.random.default_rng(prepared.problem.seed)
    sets = np.vstack([nominal, nominal * (1 + 0.4 * rng.uniform(-1, 1, (SETS - 1, len(nominal))))])
    scale = _sizes(prepared, here)
    elsewhere = here + 0.1 * scale * rng.standard_normal(len(here))
    noisy = all(o.noisy for o in prepared.objectives)
    data = prepared.data()

    def conditions(c: Any, given: Any) -> tuple[Any, Any]:
        model = variables.at(c, _as_parameters(variables.model, names, given))
        found = prepared.measured(model, jnp.asarray(x), data)
        chosen = zip(prepared.objectives, found, prepared.constants, strict=True)
        r = jnp.concatenate([o.conditions(m, k) for o, m, k in chosen])
        return r, r

    def own(unknowns: Any) -> Any:
        whole = jnp.concatenate([jnp.asarray(x[:n]), unknowns])
        found = prepared.measured(variables.at(jnp.asarray(here)), whole, data)
        chosen = zip(prepared.objectives, found, prepared.constants, strict=True)
        return jnp.concatenate([o.conditions(m, k) for o, m, k in chosen])

    local = compiled(jax.vmap(jax.jacfwd(conditions, has_aux=True)))
    points = np.vstack([np.tile(here, (SETS, 1)), elsewhere])
    J, r = (np.asarray(a) for a in local(points, np.vstack([sets, nominal])))
    if len(x) > n:  # combinations that the additional unknowns can compensate are no conditions on the parameters
        Q, R = np.linalg.qr(np.asarray(compiled(jax.jacfwd(own))(x[n:])), mode="complete")
        beyond = Q[:, np.linalg.matrix_rank(R) :]
        J, r = np.einsum("rk,src->skc", beyond, J), r @ beyond
    departure = np.abs(r[-1] - r[0] - J[0] @ (elsewhere - here)).max()
    linear = len(x) == n and bool(departure <= AFFINE * max(np.abs(J[0] @ (elsewhere - here)).max(), 1e-300))
    J, r = J[:-1], r[:-1]

    _, sigma, V = np.linalg.svd(J[0] * scale, full_matrices=True)
    sigma = np.pad(sigma, (0, len(scale) - len(sigma)))
    rank = int(np.sum(sigma > RANK * max(sigma[0], 1e-300)))
    fixed, pivots = _reduced(V[:rank], variables.coordinates)
    noise = None
    if noisy:
        inverse = np.linalg.pinv(J[0] * scale, rcond=RANK)
        noise = np.sqrt(np.diagonal(fixed @ (inverse @ inverse.T) @ fixed.T)) * scale[pivots]
    known = Given(names, powers, sets)
    relations: tuple[Relation, ...] = ()
    if noisy or (prepared.conditions.all() and len(x) == n):
        relations = _relations(J, r, here, scale, rank, pivots, variables.coordinates, known, linear, noise)
    still = tuple(c.name for c, column in zip(variables.coordinates, (J[0] * scale).T, strict=True)
                  if np.abs(column).max() <= RANK * max(sigma[0], 1e-300))  # fmt: skip
    lengths = np.linalg.norm(J[0], axis=0)
    return Findings(
        variables.coordinates, rank, sigma, linear, fixed * scale[pivots][:, None] / scale, V[rank:] * scale, still,
        {c.name: float(s) for c, s in zip(variables.coordinates, lengths, strict=True)}, relations,
    )  # fmt: skip


def _from_search(prepared: Prepared, state: Any, best: int) -> Findings:
    """Rank and sensitivities with respect to the variables, from the normal matrix of the search."""
    n = prepared.variables.size
    values, vectors = np.linalg.eigh(np.asarray(state.normal[best])[:n, :n])
    sigma, V = np.sqrt(np.maximum(values[::-1], 0.0)), vectors[:, ::-1].T
    rank = int(np.sum(sigma > 1e-6 * max(sigma[0], 1e-300)))  # the normal matrix holds their squares
    labels = prepared.variables.labels()
    each = np.sqrt(np.diagonal(state.normal[best])[:n])
    names = tuple(Coordinate(f"{label}[{labels[:k].count(label)}]" if labels.count(label) > 1 else label, "")
                  for k, label in enumerate(labels))  # fmt: skip
    still = tuple(c.name for c, s in zip(names, each, strict=True) if s <= 1e-6 * max(each.max(), 1e-300))
    steep = {c.name: float(s) for c, s in zip(names, each, strict=True)}
    return Findings(names, rank, sigma, False, V[:rank], V[rank:], still, steep, ())


def given_numbers(model: Model, free: Sequence[str]) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...], np.ndarray]:
    """(names, powers of kg and m, values) of all masses and lengths that are neither free nor zero, without the
    components of centres of mass."""
    names, powers, values = [], [], []
    for p in model.structure.parameters:
        if p.name in free or p.unit not in ("kg", "m"):
            continue
        x = np.asarray(mbs.get(model, p.name), float)
        own = (1, 0) if p.unit == "kg" else (0, 1)
        if p.name.endswith(".com"):
            continue
        for k in np.flatnonzero(x.reshape(-1)):
            names.append(p.name if x.ndim == 0 else f"{p.name}.{'xyz'[k] if x.size == 3 else k}")
            powers.append(own)
            values.append(x.reshape(-1)[k])
    return tuple(names), tuple(powers), np.array(values, float)


def _as_parameters(model: Model, names: Sequence[str], given: Any) -> dict[str, Any]:
    """{parameter: value} in which the numbers with these names have the values `given`."""
    found: dict[str, Any] = {}
    for k, name in enumerate(names):
        if name in model.structure.table:
            found[name] = given[k]
        else:
            parameter, _, axis = name.rpartition(".")
            if parameter not in found:
                found[parameter] = jnp.asarray(np.asarray(mbs.get(model, parameter), float))
            found[parameter] = found[parameter].at["xyz".index(axis) if axis in "xyz" else int(axis)].set(given[k])
    return found


def _sizes(prepared: Prepared, here: np.ndarray) -> np.ndarray:
    """Usual sizes of the coordinates (c,): the largest nominal or present value of the same kind in the same part."""
    found, start = np.ones(len(here)), 0
    nominal = prepared.variables.coordinates_at(prepared.variables.nominal)
    for part in prepared.variables.parts:
        own = slice(start, start + len(part.coordinates))
        kinds = [c.powers or c.unit for c in part.coordinates]
        both = np.maximum(np.abs(here[own]), np.abs(nominal[own]))
        sizes = [max(b for b, other in zip(both, kinds, strict=True) if other == k) for k in kinds]
        found[own] = [s if s > 0 else 1.0 for s in sizes]
        start = own.stop
    return found


def _reduced(rows: np.ndarray, coordinates: Sequence[Coordinate]) -> tuple[np.ndarray, np.ndarray]:
    """(reduced row echelon form of orthonormal rows (r, c), its pivots: inertias first, then first moments of mass,
    then masses)."""
    M, pivots = rows.copy(), []
    order = sorted(range(M.shape[1]), key=lambda k: -sum(coordinates[k].powers or (0, 0)))
    for k in order:
        row = len(pivots)
        if row == len(M):
            break
        best = row + int(np.argmax(np.abs(M[row:, k])))
        if np.abs(M[best, k]) > 1e-6:
            M[[row, best]] = M[[best, row]]
            M[row] /= M[row, k]
            for other in range(len(M)):
                if other != row:
                    M[other] -= M[other, k] * M[row]
            pivots.append(k)
    M[np.abs(M) < 1e-9] = 0.0
    return M, np.array(pivots, int)


def _relations(
    J: np.ndarray, r: np.ndarray, here: np.ndarray, scale: np.ndarray, rank: int, pivots: np.ndarray,
    coordinates: Sequence[Coordinate], given: Given, linear: bool, noise: np.ndarray | None,
) -> tuple[Relation, ...]:  # fmt: skip
    """The fixed combinations as relations. Every coefficient is known for all sets of given numbers, and is recognised
    from these values."""
    rows, values = [], []
    for own, rest in zip(J, r, strict=True):
        V = np.linalg.svd(own * scale, full_matrices=False)[2]
        R = np.linalg.lstsq(V[:rank][:, pivots], V[:rank], rcond=None)[0]
        inverse = np.linalg.pinv(own * scale, rcond=RANK)
        rows.append(R * scale[pivots][:, None] / scale)
        values.append(scale[pivots] * (R @ (here / scale - inverse @ rest)))
    R, b = np.array(rows), np.array(values)
    out = []
    for i, p in enumerate(pivots):
        own = np.where(np.abs(R[:, i] * scale / scale[p]) < 1e-8, 0.0, R[:, i])
        constant = np.where(np.abs(b[:, i]) < 1e-9 * scale[p], 0.0, b[:, i])
        sign = -1.0 if constant[0] < 0 and np.count_nonzero(own[0]) > 1 else 1.0
        unit, size = coordinates[p].unit, coordinates[p].powers
        found: dict[int, Recognised] = {}
        for k in np.flatnonzero(np.abs(own[0]) > 0):
            theirs = coordinates[int(k)].powers
            ratio = (size[0] - theirs[0], size[1] - theirs[1]) if size and theirs else None
            found[int(k)] = recognised(sign * own[:, k], ratio, given)
        if linear and noise is None:
            value = recognised(sign * constant, size, given)
        else:
            value = Recognised(f"{sign * constant[0]:.10g}", float(sign * constant[0]), False)
        missed = abs(sum(c.value * here[k] for k, c in found.items()) - value.value)
        text = _sum([(c, coordinates[k].name) for k, c in found.items()]) + f" = {value.text}"
        out.append(Relation(
            text, {coordinates[k].name: c.value for k, c in found.items()}, value.value, float(missed), unit,
            linear and value.exact and all(c.exact for c in found.values()), None if noise is None else float(noise[i]),
        ))  # fmt: skip
    return tuple(out)


def _sum(terms: Sequence[tuple[Recognised, str]]) -> str:
    """The terms as a sum: "a.I_yy - a.I_xx + 2 b.h_z"."""
    text = ""
    for c, name in sorted(terms, key=lambda t: t[0].value < 0):
        factor = c.text.removeprefix("-")
        several = " + " in factor or " - " in factor
        factor = "" if factor == "1" else (f"({c.text}) " if several else f"{factor} ")
        minus = c.text.startswith("-") and not several
        text += (" - " if minus else " + ") + factor + name
    return text.removeprefix(" + ") if text.startswith(" + ") else "-" + text.removeprefix(" - ")
