"""Progress of searches, for display: number of evaluations, violation of the conditions, stage."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Progress of the searches within `counting`. evaluations: number of points at which objectives and conditions were
    computed; stage: of the search, in words."""

    evaluations: int = 0
    stage: str = "searching"
    _seen: dict[float, float] = field(default_factory=dict)  # {cost: smallest violation of the points with this cost}

    def add(self, cost: float, violation: float | None) -> None:
        """Record a point that was evaluated; violation: the largest residual of a condition, None without conditions."""
        if violation is not None:
            here = math.inf if math.isnan(violation) else violation
            self._seen[cost] = min(here, self._seen.get(cost, math.inf))

    def violation(self, cost: float) -> float | None:
        """The largest violation at the best point, which is the one with this `cost`; the smallest violation of all
        points if the cost is not finite, because no point meets the conditions yet; None without conditions."""
        least = min(self._seen.values(), default=None)
        return self._seen.get(cost, least) if math.isfinite(cost) else least

    def in_words(self, cost: float) -> str:
        """Best value, largest violation and number of evaluations in words; cost: the best value."""
        violation = self.violation(cost)
        said = [f"best value {cost:.4g}" if math.isfinite(cost) else "no point meets the conditions yet"]
        if violation is not None:
            said.append(f"largest violation {violation:.2g}")
        return ", ".join([*said, f"{self.evaluations:,} evaluations"])


_TALLY: ContextVar[Tally | None] = ContextVar("tally", default=None)


@contextmanager
def counting() -> Iterator[Tally]:
    """Context with a tally of all searches within it."""
    tally = Tally()
    token = _TALLY.set(tally)
    try:
        yield tally
    finally:
        _TALLY.reset(token)


def current() -> Tally:
    """The tally of the present context; outside `counting`, one that nobody reads."""
    return _TALLY.get() or Tally()
