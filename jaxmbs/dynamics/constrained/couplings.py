"""Rows of constraints that are linear in coordinates of joints."""

from __future__ import annotations

from typing import Any

from jaxmbs.dynamics.state import State
from jaxmbs.model.constraints.base import JointConstraint
from jaxmbs.model.structure import ConstraintElement
from jaxmbs.spatial.scalar import Scalar, add, mul


def rows(state: State, constraint: ConstraintElement) -> list[tuple[Any, ...]]:
    """(J, drift, free, residual, holonomic) per row."""
    s, e = state.tree.structure, constraint.element
    assert isinstance(e, JointConstraint)
    out = []
    for coefficients, residual in e.terms(state.tree.values.of(constraint.name, e.numbers)):
        J: list[Scalar] = [0] * s.nv
        for joint, x in coefficients.items():
            i = s.find_joint(joint)
            J[s.v_slices[i].start] = x
            residual = add(residual, mul(x, state.q[s.q_slices[i].start]))
        out.append((tuple(J), 0, 0, residual, 1))
    return out
