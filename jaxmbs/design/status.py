"""How a search ended."""

from __future__ import annotations

from jaxmbs.errors import Outcome


class Status(Outcome):
    """Why the search from one start stopped, judged by the values and derivatives at its end; `message` explains it.

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
    UNDETERMINED = 8
    IMPOSSIBLE = 9
    UNRELIABLE = 10

    @property
    def message(self) -> str:
        """The reason in words, with what to do about it."""
        return _MESSAGES[self]

    @property
    def success(self) -> bool:
        """Whether the parameters are what was asked for."""
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
    Status.UNDETERMINED: (
        "no change nearby makes it less, and every condition holds, but other parameters do as well: give some of them, "
        "or say what else is wanted"
    ),
    Status.IMPOSSIBLE: "it is proved that the conditions cannot hold",
    Status.UNRELIABLE: (
        "too many motions of the samples failed for the rest to mean anything; take a smaller dt or more steps, or bound "
        "the parameters away from where motions fail"
    ),
}
