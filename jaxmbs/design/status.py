"""How a search ended."""

from __future__ import annotations

import enum


class Status(enum.IntEnum):
    """Why the search from one start stopped; `message` is what users read.

    >>> mbs.design.Status.RUNAWAY.success, mbs.design.Status(0).message
    (False, 'every condition holds')
    """

    MET = 0
    LEAST = 1
    STEPS = 2
    STALLED = 3
    INFEASIBLE = 4
    RUNAWAY = 5
    NOT_FINITE = 6
    RUNNING = 7

    def __str__(self) -> str:
        return self.name

    __format__ = enum.Enum.__format__  # of that text, not of the number

    @property
    def message(self) -> str:
        """The reason in words, with what to do about it."""
        return _MESSAGES[self]

    @property
    def success(self) -> bool:
        """Whether the parameters are what was sought for."""
        return self in (Status.MET, Status.LEAST)


_MESSAGES = {
    Status.MET: "every condition holds",
    Status.LEAST: "no change nearby makes it less, and every condition holds",
    Status.STEPS: "the number of steps was used up; give more with max_steps, or start elsewhere",
    Status.STALLED: "no step makes it less although it has a slope: it is not smooth there, or too noisy",
    Status.INFEASIBLE: "the conditions cannot all hold near here: this is the least violation",
    Status.RUNAWAY: (
        "a parameter runs away without bound: the objective is gained by escaping, not by meeting it; bound the "
        "parameters, or scale the objective by what cannot grow"
    ),
    Status.NOT_FINITE: "the objective is not a finite number here",
    Status.RUNNING: "not finished",
}
