"""The constraints of a mechanism at one state, and their equations with the mass matrix: the interface of both layouts."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.vectors import each
from jaxmbs.spatial.scalar import Scalar, where


class Metric:
    """The equations A a = force + Jᵀ lambda, J a = target, factorised once for several right-hand sides.

    Without a force, the solution is the motion a closest to zero, in the metric of the mass matrix A, with J a = target.
    Locked degrees of freedom take the accelerations `prescribed`, None for zero, and their forces are left out.
    """

    def closest(self, force: Any, target: Any) -> tuple[Any, Any]:
        """(a, lambda); force: None for zero; lambda is not unique if rows are redundant."""
        raise NotImplementedError

    def least_norm(self, multipliers: Any) -> Any:
        """The multipliers of least norm (1 N m counts as much as 1 N) among those with the effect of the given ones."""
        raise NotImplementedError

    def conditioning(self) -> tuple[Scalar, Scalar]:
        """How far the rows are from depending on one another: the smallest pivot of J A⁻¹ Jᵀ divided by the largest
        diagonal entry, and the smallest quotient of a pivot and the diagonal entry of its own row. Both are roughly the
        square of the distance from a singular configuration; the second shows how many digits accelerations lose. Rows
        that depend on others to within rounding are left out."""
        raise NotImplementedError


class Constraints:
    """All rows: J a + drift = 0, rate = J v + free = 0 and, for holonomic rows, residual = 0.

    drift, rate, residual: vectors over the rows, in the order of model.constraint_names, as in
    `jaxmbs.dynamics.state.vectors`; holonomic (rows,): a mask; residual: zero for nonholonomic rows. All are zero for a
    constraint that the mode switches off. free: velocity along the row at v = 0 (rheonomic constraints).
    """

    state: State
    holonomic: np.ndarray
    drift: Any
    rate: Any
    residual: Any

    @property
    def violation(self) -> Any:
        """The residual of every holonomic row, in m or rad, and the velocity along every other row, in m/s or rad/s."""
        return each(where, self.holonomic, self.residual, self.rate)

    def rate_of(self, v: Any) -> Any:
        """The velocity along every row at other rates v."""
        raise NotImplementedError

    def jacobian(self) -> jax.Array:
        """J (rows, nv)."""
        raise NotImplementedError

    def of_positions(self) -> Constraints:
        """The constraints without the nonholonomic rows, which do not restrict positions; the rows may be left as zeros."""
        raise NotImplementedError

    def metric(self, prescribed: Any = None) -> Metric:
        """The equations with the mass matrix; prescribed (nv,): accelerations of locked degrees of freedom."""
        raise NotImplementedError

    def power(self, multipliers: Any) -> Scalar:
        """Power [W] of rheonomic constraints on the mechanism; structurally zero if there are none."""
        return 0
