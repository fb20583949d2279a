"""How an instance ended."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.errors import Outcome
from jaxmbs.model import Model
from jaxmbs.model.shapes import Int
from jaxmbs.simulate.balance import SHARE, SHARE_OF_ALL


class Status(Outcome):
    """Outcome of one instance; `message` explains it to users.

    >>> mbs.Status(1).name, mbs.Status(1).message
    ('NOT_FINITE', 'the state is no longer finite; reduce dt, or look for a stiff or singular element')
    """

    OK = 0
    NOT_FINITE = 1
    INCONSISTENT = 2
    UNREACHABLE = 3
    SINGULAR = 4
    UNFINISHED = 5
    COARSE = 6
    STEP_UNDERFLOW = 7
    UNBALANCED = 8
    UNSTEADY = 9
    UNPHYSICAL = 254
    NOT_RUN = 255

    @property
    def message(self) -> str:
        """The outcome in words, with advice."""
        return _MESSAGES[self]

    @staticmethod
    def of(*found: tuple[Any, Status]) -> Int[jax.Array, ""]:
        """The status of the first condition that holds, OK if none does; int32."""
        conditions, statuses = zip(*found, strict=True)
        return jnp.select(conditions, [jnp.asarray(s, jnp.int32) for s in statuses], jnp.asarray(Status.OK, jnp.int32))


_MESSAGES = {
    Status.OK: "completed",
    Status.NOT_FINITE: "the state is no longer finite; reduce dt, or look for a stiff or singular element",
    Status.INCONSISTENT: "the state at the start, or at an event that switches constraints or locks on, violates them in "
    "position or in velocity (`solution.message(model)` names them); find a state that satisfies them with assemble, or "
    "velocities with impact",
    Status.UNREACHABLE: "the constraints cannot be satisfied from this guess; change the guess or the parameters",
    Status.SINGULAR: "the constraints nearly depend on one another: the motion may branch, and accelerations lose digits",
    Status.UNFINISHED: "the run stopped before its end: it needs more events than max_events or more steps than max_steps "
    "(raise them), or a joint came to rest on a stop where it can only bounce (hold it there with a Lock that has a "
    "restitution, or use a Contact)",
    Status.COARSE: (
        f"the error of the energy balance exceeds {100 * SHARE:g} % of the energy exchanged plus "
        f"{100 * SHARE_OF_ALL:g} % of the largest kinetic energy and rounding: the steps are too long; reduce dt, or, where "
        "springs or modes of flexible bodies are stiff, use method 'implicit'"
    ),
    Status.STEP_UNDERFLOW: "the tolerance needs steps shorter than the rounding error of the time; try method 'implicit'",
    Status.UNBALANCED: (
        "no equilibrium was found near this guess: some forces remain unbalanced (see the residual); change the "
        "guess, add supports, or hold joints with fixed"
    ),
    Status.UNSTEADY: "the state is neither at rest nor in steady motion: it accelerates, so that the linear equations hold "
    "only at this instant; start from an equilibrium",
    Status.UNPHYSICAL: (
        "unphysical: the draws, or a controller, gave a parameter a value that is not possible, such as a negative mass or "
        "stiffness"
    ),
    Status.NOT_RUN: "not run",
}


def message(status: int, model: Model, violated: Any) -> str:
    """The status in words. violated: mask of the constraints that are violated by the initial state, or by the state at
    an event that switches them on."""
    found = [name for name, on in zip(model.constraint_names, violated, strict=False) if on]
    names, actions = [repr(name) for name in found], [a for e in model.structure.events for a in e.then if a.switch()]
    if status != Status.INCONSISTENT or not names:
        return Status(status).message
    later = (
        ", or the state at an event that switches constraints on,"
        if {getattr(a, "name", "") for a in actions} & set(found)
        else ""
    )
    return (
        f"the initial state{later} violates {', '.join(names)} in position or in velocity; find a state with assemble "
        "or impact"
    )
