"""Rows of the constraints between coordinates of joints."""

from __future__ import annotations

from typing import Any

from jaxmbs.dynamics.state import State
from jaxmbs.model.constraints import Coupling
from jaxmbs.spatial import kernel
from jaxmbs.spatial.known import ONE, ZERO
from jaxmbs.spatial.scalar import Scalar


@kernel
def followed(e: Any, p: Any, q: Scalar, q_driver: Scalar, v_driver: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """(residual, -slope, acceleration at dv/dt = 0) of q - f(q_driver)."""
    value, slope, curvature = e.followed(p, q_driver)
    return q - value, -slope, -curvature * (v_driver * v_driver)


def rows(state: State, name: str, e: Coupling) -> list[tuple[Any, ...]]:
    """(J, drift, free, residual, holonomic) of the coupling's only row."""
    s, p = state.tree.structure, state.tree.values.of(name, e.numbers)
    own = s.find_joint(e.joint)
    q = state.q[s.q_slices[own].start]
    J: list[Scalar] = [ZERO] * s.nv
    J[s.v_slices[own].start] = ONE
    if e.driver is None:
        return [(tuple(J), ZERO, ZERO, q - p["coefficients"][0], 1)]
    driver = s.find_joint(e.driver)
    k = s.v_slices[driver].start
    residual, J[k], drift = followed(e, p, q, state.q[s.q_slices[driver].start], state.v[k])
    return [(tuple(J), drift, ZERO, residual, 1)]
