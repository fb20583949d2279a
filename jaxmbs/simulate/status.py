"""How an instance ended."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.errors import Outcome
from jaxmbs.model import Model
from jaxmbs.model.shapes import Int


class Status(Outcome):
    """Outcome of one instance; `message` explains it to users.

    >>> mbs.Status(1).name, mbs.Status(1).message
    ('NOT_FINITE', 'the state stopped being finite; reduce dt, or look for a stiff or singular element')
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
    Status.NOT_FINITE: "the state stopped being finite; reduce dt, or look for a stiff or singular element",
    Status.INCONSISTENT: "the initial state, or that of an event that switches them on, violates constraints or locks: "
    "their positions, or the velocities that they allow (`solution.message(model)` names them); find one with assemble, or "
    "impact",
    Status.UNREACHABLE: "the constraints cannot be met from this guess; change the guess or the numbers",
    Status.SINGULAR: "constraints all but depend on one another: the motion may branch, accelerations lose digits",
    Status.UNFINISHED: "the run stopped before its end: more events than max_events, more steps than max_steps (raise "
    "them), or rest on a stop that only bounces (hold it by a Lock with a restitution, or use a Contact)",
    Status.COARSE: "the energy balance is off by more than 0.1 % of the energy exchanged: the steps are too long; reduce dt",
    Status.STEP_UNDERFLOW: "the tolerance asks for steps below the rounding of the time: try 'implicit'",
    Status.UNBALANCED: "no equilibrium near this guess: forces remain that nothing balances (see the residual); change the "
    "guess, add supports, or hold joints with fixed",
    Status.UNSTEADY: "neither at rest nor in steady motion: the state accelerates, and the linear equations hold at this "
    "instant alone; start from equilibrium",
    Status.UNPHYSICAL: "unphysical: the draws gave a number that no mechanism has, such as a negative mass or stiffness",
    Status.NOT_RUN: "not run",
}


def message(status: int, model: Model, violated: Any) -> str:
    """The status in words. violated: mask of the constraints that are violated by the initial state, or by the state at
    an event that switches them on."""
    found = [name for name, on in zip(model.constraint_names, violated, strict=False) if on]
    names, actions = [repr(name) for name in found], [a for e in model.structure.events for a in e.then if a.switch()]
    if status != Status.INCONSISTENT or not names:
        return Status(status).message
    what = "its position, or the velocities that it allows" if len(names) == 1 else "positions, or velocities allowed"
    later = (
        ", or the one in which an event switches them on,"
        if {getattr(a, "name", "") for a in actions} & set(found)
        else ""
    )
    return f"the initial state{later} violates {', '.join(names)}: {what}; find one with assemble, or impact"
