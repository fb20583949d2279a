"""The samples whose motions fail at the result of a search."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import jaxmbs as mbs
from jaxmbs.design.objectives.motion import OfMotion
from jaxmbs.design.problem import Prepared
from jaxmbs.design.samples import moved


class FailedSamples(NamedTuple):
    """The samples of an objective whose motions fail at the result.

    samples: how many the objective has; statuses: {`mbs.Status`: how many failed samples ended with it}; too_many: whether
    more failed than the objective allows.

    >>> print(mbs.design.FailedSamples(200, {mbs.Status.COARSE: 3}, too_many=False))
    motions of 3 of 200 samples failed (3 COARSE)
    """

    samples: int
    statuses: dict[mbs.Status, int]
    too_many: bool

    def __str__(self) -> str:
        """How many of the samples failed, and why."""
        why = ", ".join(f"{n} {s.name}" for s, n in self.statuses.items())
        return f"motions of {sum(self.statuses.values())} of {self.samples} samples failed ({why})"


def failed_samples(prepared: Prepared, x: np.ndarray) -> tuple[FailedSamples, ...]:
    """`FailedSamples` for every set of samples in which a motion fails at the variables x (n,)."""
    moving = [(o, d) for o, d in zip(prepared.objectives, prepared.data(), strict=True) if isinstance(o, OfMotion)]
    sets, out = {o.samples: d for o, d in moving}, []
    for samples, draws in sets.items():
        program = mbs.jit(
            lambda x, draw: moved(prepared.problem.study, prepared.model(x), draw[None]).status[0], in_axes=(None, 0)
        )
        found = np.asarray(program(x, np.asarray(draws)))
        numbers, counts = np.unique(found[found != 0], return_counts=True)
        statuses = {mbs.Status(int(s)): int(n) for s, n in zip(numbers, counts, strict=True)}
        most = min(o.may_fail for o, _ in moving if o.samples == samples)
        if statuses:
            out.append(FailedSamples(samples, statuses, sum(statuses.values()) > most))
    return tuple(out)
