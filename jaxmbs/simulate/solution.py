"""What a simulation returns."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp


class Status(enum.IntEnum):
    """Outcome of one instance; `message` is what users read."""

    OK = 0
    NOT_FINITE = 1
    INCONSISTENT = 2
    UNREACHABLE = 3
    SINGULAR = 4
    UNPHYSICAL = 254
    NOT_RUN = 255

    @property
    def message(self) -> str:
        return _MESSAGES[self]

    @staticmethod
    def of(*found: tuple[Any, Status]) -> jax.Array:
        """The status of the first condition that holds, OK if none does; int32."""
        conditions, statuses = zip(*found, strict=True)
        return jnp.select(conditions, [jnp.asarray(s, jnp.int32) for s in statuses], jnp.asarray(Status.OK, jnp.int32))


_MESSAGES = {
    Status.OK: "completed",
    Status.NOT_FINITE: "the state stopped being finite; reduce dt, or look for a stiff or singular element",
    Status.INCONSISTENT: "the initial state violates constraints or locks; find one with assemble or impact",
    Status.UNREACHABLE: "the constraints cannot be met from this guess; change the guess or the numbers",
    Status.SINGULAR: "constraints all but depend on one another: the motion may branch, accelerations lose digits",
    Status.UNPHYSICAL: "unphysical: the draws gave a number that no mechanism has, such as a negative mass or stiffness",
    Status.NOT_RUN: "not run",
}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Solution:
    """Motion of one instance; under vmap every field has the batch axis first.

    t (rows,) [s]; q (rows, nq); v (rows, nv); mode: the mode in force (None: nothing locked or switched off);
    events: (); status: int32, a `Status`; energy_error (rows,) [J]: energy - initial energy - work of all that is not
    conservative (tau, thrusters, dampers, drives); constraint_error (rows,): largest residual of the constraints [m, rad,
    m/s]; conditioning (rows,): smallest pivot of the constraints over the largest since the row before, without those that
    depend on others to rounding (near 0 the mechanism passed a configuration where it could branch, such as a
    parallelogram lying flat, at a distance of some square root of it, and kept the branch of its velocity; the status is
    SINGULAR where accelerations had fewer than some six digits); folded: final carry of `fold`.
    """

    t: Any
    q: Any
    v: Any
    mode: Any
    events: Any
    status: Any
    energy_error: Any
    constraint_error: Any
    conditioning: Any
    folded: Any
