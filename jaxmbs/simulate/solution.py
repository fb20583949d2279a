"""What a simulation returns."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import jax


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


_MESSAGES = {
    Status.OK: "completed",
    Status.NOT_FINITE: "the state stopped being finite; reduce dt, or look for a stiff or singular element",
    Status.INCONSISTENT: "the initial state violates the constraints; find one with assemble",
    Status.UNREACHABLE: "the constraints cannot be met from this guess; change the guess or the numbers",
    Status.SINGULAR: "assembled where constraints depend on one another: the motion may branch",
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
    m/s]; conditioning (rows,): smallest pivot of the constraints over the largest since the row before (near 0 the
    mechanism passed a configuration where it could branch, such as a parallelogram lying flat, and kept the branch of its
    velocity); folded: final carry of `fold`.
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
