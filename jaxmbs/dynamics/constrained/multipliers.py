"""Dynamics under constraints: accelerations and multipliers of the index-1 equations [Y 3.190].

    A a + bias = tau + Jᵀ lambda,    J a + drift = 0

are solved by the Schur complement J A⁻¹ Jᵀ, in components for small systems. If rows depend on one another, at a
singular configuration or for certain parameter values, the motion is still unique; the multipliers are then those of
least norm, where 1 N m counts as much as 1 N.
"""

from __future__ import annotations

from typing import Any

import jax

from jaxmbs.dynamics.constrained.constraints import Constraints, constraints, velocities
from jaxmbs.dynamics.constrained.metric import Metric
from jaxmbs.dynamics.recursive import rnea
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.state import Struck
from jaxmbs.spatial import kernel
from jaxmbs.spatial.factorization import Vector
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar, where


def constrained_dynamics(state: State, tau: Any, prescribed: Any = None, baumgarte: Any = None) -> tuple[Any, Any, Any]:
    """(accelerations, multipliers of least norm, constraints) at the state.

    baumgarte: rate w [rad/s] at which violations decay, g'' + 2 w g' + w² g = 0; None for g'' = 0.
    """
    metric, a, multipliers, found = _solved(state, tau, prescribed, baumgarte)
    return _listed(a), _listed(metric.least_norm(multipliers)), found


def accelerations(state: State, tau: Any, prescribed: Any = None, baumgarte: Any = None) -> tuple[Any, Any, Any]:
    """As `constrained_dynamics`, but the multipliers of redundant rows are not reduced to least norm."""
    _, a, multipliers, found = _solved(state, tau, prescribed, baumgarte)
    return _listed(a), _listed(multipliers), found


def _listed(x: Any) -> Any:
    return x if isinstance(x, jax.Array) else list(x)


def _solved(state: State, tau: Any, prescribed: Any, baumgarte: Any) -> tuple[Any, Any, Any, Any]:
    found = constraints(state)
    bias = rnea.inverse_dynamics(state, None)
    if state.tree.rolled:
        metric = Metric.of(state, found, prescribed)
        drift = found.drift if baumgarte is None else found.stabilised(baumgarte)
        return metric, *metric.closest((0.0 if tau is None else tau) - bias, -drift), found
    force = [(ZERO if tau is None else tau[k]) - bias[k] for k in range(state.tree.structure.nv)]
    metric = Metric.of(state, found, prescribed)
    drift = found.drift if baumgarte is None else _stabilised(found, velocities(state, found), baumgarte)
    if isinstance(state, Struck):  # the jump must end the velocities along the rows
        rates = velocities(State(state.tree, state.q, state.before), found)
        drift = [where(state.now, x, y) for x, y in zip(rates, drift, strict=True)]
    return metric, *metric.closest(force, tuple(-x for x in drift)), found


@kernel
def _stabilised(found: Constraints, rates: Vector, w: Scalar) -> Vector:
    """The drift with Baumgarte's terms; the velocity along a nonholonomic row decays at the rate w."""
    out = []
    for drift, rate, g, on in zip(found.drift, rates, found.residual, found.holonomic, strict=True):
        pull = 2 * w * rate + w * w * g if on else w * rate
        out.append(drift + pull)
    return tuple(out)
