"""Constraint rows written out in components, with their Jacobian; for small mechanisms, and for constraints of any kind."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.constrained import functions
from jaxmbs.dynamics.constrained.base import Constraints, Metric
from jaxmbs.dynamics.constrained.metric import MatrixMetric
from jaxmbs.dynamics.constrained.rows import kinematics, rows, switched
from jaxmbs.dynamics.recursive import crba
from jaxmbs.dynamics.state import State
from jaxmbs.model.constraint_rows import Rows, Site, sites
from jaxmbs.spatial import Force, kernel
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar, total


class Part(NamedTuple):
    """One constraint. span: its rows; found: None for a user-defined function."""

    site: Site
    span: range
    found: Rows | None


@dataclass(frozen=True, eq=False)
class Written(Constraints):
    """The rows in components. J: one tuple (nv) per row; free: see `Constraints`; parts: the constraints to which the rows
    belong."""

    state: State
    J: tuple[tuple[Scalar, ...], ...]
    drift: tuple[Scalar, ...]
    free: tuple[Scalar, ...]
    residual: tuple[Scalar, ...]
    holonomic: np.ndarray
    parts: tuple[Part, ...] = ()

    @functools.cached_property
    def rate(self) -> Any:
        return self.rate_of(self.state.v)  # fewer operations than from the relative velocities

    def rate_of(self, v: Any) -> Any:
        return tuple(_velocity(row, free, tuple(v)) for row, free in zip(self.J, self.free, strict=True))

    def jacobian(self) -> jax.Array:
        tree = self.state.tree
        found = [tree.vector(list(row)) for row in self.J]
        return jnp.stack(found) if found else jnp.zeros((0, tree.structure.nv), tree.dtype)

    def of_positions(self) -> Written:
        rows = np.flatnonzero(self.holonomic)
        kept = {f: tuple(getattr(self, f)[k] for k in rows) for f in ("J", "drift", "free", "residual")}
        return dataclasses.replace(self, **kept, holonomic=self.holonomic[rows], parts=())

    def metric(self, prescribed: Any = None) -> Metric:
        state, s = self.state, self.state.tree.structure
        A = tuple(map(tuple, crba.written_out(state)))
        known = {"singular": s.singular, "redundant": s.redundant}
        return MatrixMetric(A, self.J, state.tree.dtype, **known, lock=state.locks, prescribed=prescribed)

    def power(self, multipliers: Any) -> Scalar:
        return _power(self.free, tuple(multipliers))


def written(state: State) -> Written:
    """The rows at a state of a tree that is not rolled."""
    motions, parts, every = kinematics(state), [], []
    for k, site in enumerate(sites(state.tree.structure)):
        on = None if state.holds is None else state.holds[k]
        found = None
        if site.is_function:
            own = functions.rows(state, site)
            own = own if on is None else [(*switched(row[:4], on), row[4]) for row in own]
        else:
            found = rows(state, [site], motions)
            found = found if on is None else switched(found, on)
            own = [spread(state, site, found, r) for r in range(site.rows)]
        every += own
        parts.append(Part(site, range(len(every) - len(own), len(every)), found))
    J, drift, free, residual = (tuple(row[k] for row in every) for k in range(4))
    holonomic = np.array([row[4] for row in every], bool)
    return Written(state, J, drift, free, residual, holonomic, tuple(parts))


def spread(state: State, site: Site, found: Rows, r: int, root: int = -1) -> tuple[Any, ...]:
    """(J, drift, free, residual, holonomic) of one row. root: a link that carries both ends, so that joints between it and
    the world need not be considered; -1: the world."""
    s = state.tree.structure
    column: dict[int, Scalar] = {}
    for i, end in zip(site.links, found.ends, strict=True):
        if site.on_joints:
            column[s.v_slices[i].start] = end[r]
        else:
            _add(state, column, i, end[r], root)
    J = tuple(column.get(k, ZERO) for k in range(s.nv))
    residual, free = found.residual[r], ZERO
    if s.rheonomic:
        free = found.rate[r] - total(*(x * state.v[k] for k, x in column.items()))
    return J, found.drift[r], free, ZERO if residual is None else residual, residual is not None


def _add(state: State, column: dict[int, Scalar], i: int, F: Force, root: int) -> None:
    """Add the generalized forces of the wrench F on link i, at the joints up to the link `root`, to the column."""
    s, motions = state.tree.structure, state.motions
    while i != root:
        m = state.tree.pick(motions, i)
        for k, x in enumerate((S @ F for S in m.S), s.motion_v[i].start):
            column[k] = column.get(k, ZERO) + x
        F, i = m.X.force_to_parent(F), s.links[i].parent


@kernel
def _velocity(row: tuple[Scalar, ...], free: Scalar, v: tuple[Scalar, ...]) -> Scalar:
    return free + total(*(x * y for x, y in zip(row, v, strict=True)))


@kernel
def _power(free: Sequence[Scalar], multipliers: tuple[Scalar, ...]) -> Scalar:
    return total(*(-f * x for f, x in zip(free, multipliers, strict=True)))
