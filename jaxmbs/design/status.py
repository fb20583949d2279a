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
    Status.LEAST: "no small change improves the objective, and every condition holds",
    Status.STEPS: "the search used all its steps; raise max_steps, or start elsewhere",
    Status.STALLED: "no step improves the objective although its gradient is not zero: it is not smooth there, or too noisy",
    Status.INFEASIBLE: "the conditions cannot all hold near this design, which violates them least",
    Status.RUNAWAY: (
        "a parameter grows without bound, and only this improves the objective; give bounds for the parameters, or "
        "scale the objective by a quantity that cannot grow"
    ),
    Status.NOT_FINITE: "the objective is not a finite number here",
    Status.RUNNING: "not finished",
    Status.UNDETERMINED: (
        "no small change improves the objective, and every condition holds, but other values of the parameters do equally "
        "well: fix some of them, or add an objective"
    ),
    Status.IMPOSSIBLE: "it is proved that the conditions cannot hold",
    Status.UNRELIABLE: (
        "too many motions of the samples failed for a meaningful result; take a smaller dt or more steps, or choose bounds "
        "that keep the parameters away from where motions fail"
    ),
}
