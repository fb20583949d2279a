"""Dynamics under constraints: accelerations and multipliers of the index-1 equations [Y 3.190].

    A a + bias = tau + Jᵀ lambda,    J a + drift = 0

are solved by the Schur complement J A⁻¹ Jᵀ, in components for small systems. If rows depend on one another, at a
singular configuration or for certain parameter values, the motion is still unique; the multipliers are then those of
least norm, where 1 N m counts as much as 1 N.
"""

from __future__ import annotations

import operator
from typing import Any

from jaxmbs.dynamics.constrained.base import Constraints, Metric
from jaxmbs.dynamics.constrained.constraints import constraints
from jaxmbs.dynamics.constrained.stabilisation import stabilised
from jaxmbs.dynamics.recursive import rnea
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.state import Struck
from jaxmbs.dynamics.state.vectors import each
from jaxmbs.spatial.scalar import where


def constrained_dynamics(
    state: State, tau: Any, prescribed: Any = None, baumgarte: Any = None
) -> tuple[Any, Any, Constraints]:
    """(accelerations, multipliers of least norm, constraints) at the state.

    baumgarte: rate w [rad/s] at which violations decay (`stabilisation`); None for g'' = 0.
    """
    metric, a, multipliers, found = _solved(state, tau, prescribed, baumgarte)
    return a, metric.least_norm(multipliers), found


def accelerations(
    state: State, tau: Any, prescribed: Any = None, baumgarte: Any = None
) -> tuple[Any, Any, Constraints]:
    """As `constrained_dynamics`, but the multipliers of redundant rows are not reduced to least norm."""
    return _solved(state, tau, prescribed, baumgarte)[1:]


def _solved(state: State, tau: Any, prescribed: Any, baumgarte: Any) -> tuple[Metric, Any, Any, Constraints]:
    found, bias = constraints(state), rnea.inverse_dynamics(state, None)
    force = each(operator.neg, bias) if tau is None else each(operator.sub, tau, bias)
    drift = found.drift if baumgarte is None else stabilised(found, baumgarte)
    if isinstance(state, Struck):  # the jump must end the velocities along the rows
        drift = each(lambda rate, x: where(state.now, rate, x), found.rate_of(state.before), drift)
    metric = found.metric(prescribed)
    return metric, *metric.closest(force, each(operator.neg, drift)), found
