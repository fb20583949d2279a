"""Runs that end as soon as their criteria are settled, with intervals that allow for the early end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.simulate.status import Status
from jaxmbs.study.results.store import NOT_RUN
from jaxmbs.study.statistics.order_statistics import settled

if TYPE_CHECKING:
    from jaxmbs.study.problem.study import Study
    from jaxmbs.study.results.store import Store


def check_rule(study: Study, until: Any) -> None:
    """Raises InputError if a study cannot stop by this rule."""
    problem = ""
    if until != "decided" and not (isinstance(until, float) and 0 < until < 1):
        problem = f'"{until}" is not a stopping rule; write decided, or the width that intervals may have, such as 0.01'
    elif not study.criteria:
        problem = "the study has no criteria, so there are no intervals that show when to stop; add a criterion"
    elif study.dependence:
        problem = f"{study.dependence}, and none can show when to stop"
    elif until == "decided" and all(c.share == 1 for c in study.criteria):
        problem = 'criteria that all samples must meet are never decided; write "... in 99 %", or give a width instead'
    if problem:
        raise InputError(Problem("--until", problem))


class Stopping:
    """Finds the sample after which a study may stop. Chunks are read in the order of samples, as they become available.
    The study stops at the end of a chunk, regardless of what was computed beyond it and in which order."""

    def __init__(self, study: Study, store: Store, arrays: Any) -> None:
        self.study, self.store, self.arrays = study, store, arrays
        self.until = store.provenance["until"]
        self.labels = store.labels(study).outputs
        self.next, self.met = 0, np.zeros(len(study.criteria), int)

    def __call__(self) -> int | None:
        """Number of samples after which the study may stop; None: not yet."""
        while self.next < self.store.n:
            stop = min(self.next + self.store.chunk_rows, self.store.n)
            status = self.arrays["status"][self.next : stop]
            if np.any(status == NOT_RUN):
                return None
            ok = status == int(Status.OK)
            for k, c in enumerate(self.study.criteria):
                self.met[k] += np.count_nonzero(ok & c.met(self.arrays[self.labels[c.output]][self.next : stop]))
            self.next = stop
            shares = np.array([c.share for c in self.study.criteria])
            if np.all(settled(self.met, self.next, shares, self.until)):
                return self.next
        return None
