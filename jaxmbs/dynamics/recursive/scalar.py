"""The functions of trees on Python floats or SymPy expressions: nothing is compiled, no device is used.

Arguments are sequences of scalars; results are lists. The algorithms are those of the public functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from jaxmbs.dynamics.recursive import aba, crba, energies, rnea
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.kinematics import world_placements
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Model
from jaxmbs.spatial.known import bare
from jaxmbs.spatial.scalar import Scalar

Scalars = Sequence[Scalar]


@dataclass(frozen=True)
class ScalarMode:
    """Locks and switches as Python bools."""

    lock: Scalars
    force: Scalars
    constraint: Scalars
    sides: None = None


def _state(model: Model, q: Scalars, v: Scalars | None, t: Scalar = 0.0, lock: Scalars | None = None) -> State:
    mode: Any = (
        None
        if lock is None
        else ScalarMode(list(lock), [True] * len(model.force_names), [True] * len(model.constraint_names))
    )
    return State(Tree(model), list(q), [0.0] * model.nv if v is None else list(v), t, mode)


def _bare(x: Iterable[Scalar]) -> list[Scalar]:
    return [bare(c) for c in x]


def forward_dynamics(
    model: Model,
    q: Scalars,
    v: Scalars,
    tau: Scalars | None = None,
    *,
    t: Scalar = 0.0,
    lock: Scalars | None = None,
    prescribed: Scalars | None = None,
) -> list[Scalar]:
    """Accelerations; lock: one bool per degree of freedom."""
    return _bare(aba.forward_dynamics(_state(model, q, v, t, lock), tau, prescribed))


def inverse_dynamics(model: Model, q: Scalars, v: Scalars, a: Scalars, *, t: Scalar = 0.0) -> list[Scalar]:
    """tau = A a + bias."""
    return _bare(rnea.inverse_dynamics(_state(model, q, v, t), list(a)))


def bias_forces(model: Model, q: Scalars, v: Scalars, *, t: Scalar = 0.0) -> list[Scalar]:
    return _bare(rnea.inverse_dynamics(_state(model, q, v, t), None))


def mass_matrix(model: Model, q: Scalars, *, t: Scalar = 0.0) -> list[list[Scalar]]:
    """A as a list of rows."""
    return [_bare(row) for row in crba.mass_matrix(_state(model, q, None, t))]


def energy(model: Model, q: Scalars, v: Scalars, *, t: Scalar = 0.0) -> tuple[Scalar, Scalar]:
    """(kinetic, potential) energy [J]."""
    state = _state(model, q, v, t)
    return bare(energies.kinetic(state)), bare(energies.potential(state))


def momentum(model: Model, q: Scalars, v: Scalars, *, t: Scalar = 0.0) -> tuple[list[Scalar], list[Scalar]]:
    """(angular momentum about the common centre of mass [N m s], linear momentum [N s]), world axes."""
    angular, linear = energies.momentum(_state(model, q, v, t))
    return _bare(angular), _bare(linear)


def body_poses(model: Model, q: Scalars, *, t: Scalar = 0.0) -> list[tuple[list[Scalar], list[Scalar]]]:
    """Per body (position (3), rotation row by row (9)) in the world."""
    state = _state(model, q, None, t)
    placements = state.tree.per_link(world_placements(state.tree, state.motions))
    found = [W @ B for W, B in zip(placements, state.tree.body_in_link, strict=True)]
    return [(_bare(T.position), _bare(T.rotation)) for T in found]
