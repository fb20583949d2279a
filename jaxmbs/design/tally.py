"""What searches have looked at, for those who wait: how many evaluations, how near the conditions are, at which stage."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Of the searches within `counting`: evaluations, points at which objectives and conditions were computed; stage."""

    evaluations: int = 0
    stage: str = "searching"
    _seen: dict[float, float] = field(default_factory=dict)  # least violation of the points of each cost

    def add(self, cost: float, violation: float | None) -> None:
        """A point that was evaluated; violation: the largest residual of a condition, None without conditions."""
        if violation is not None:
            here = math.inf if math.isnan(violation) else violation
            self._seen[cost] = min(here, self._seen.get(cost, math.inf))

    def violation(self, cost: float) -> float | None:
        """The largest violation at the best point, that of this cost; where the cost is not finite, as long as no point
        meets the conditions, the least of all points. None without conditions."""
        least = min(self._seen.values(), default=None)
        return self._seen.get(cost, least) if math.isfinite(cost) else least

    def in_words(self, cost: float) -> str:
        """Best value, largest violation, evaluations; cost: the best value."""
        violation = self.violation(cost)
        said = [f"best value {cost:.4g}" if math.isfinite(cost) else "no point meets the conditions yet"]
        if violation is not None:
            said.append(f"largest violation {violation:.2g}")
        return ", ".join([*said, f"{self.evaluations:,} evaluations"])


_TALLY: ContextVar[Tally | None] = ContextVar("tally", default=None)


@contextmanager
def counting() -> Iterator[Tally]:
    """A tally of all searches within."""
    tally = Tally()
    token = _TALLY.set(tally)
    try:
        yield tally
    finally:
        _TALLY.reset(token)


def current() -> Tally:
    """The tally that counts here; one that nobody reads where none does."""
    return _TALLY.get() or Tally()
