"""Execution of a program for all rows on a target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxmbs.batching.scalars import Entry, Source
from jaxmbs.batching.targets import Target


@dataclass(frozen=True)
class Setting:
    """The number of rows for which a program runs, and the target that runs it."""

    rows: int
    target: Target


def whole_source(x: np.ndarray) -> Source | None:
    """The source whose entries an array holds, all of them and in order; None if there is none."""
    first = x.reshape(-1)[0]
    if isinstance(first, Entry) and first.source.shape == x.shape:
        whole = all(isinstance(e, Entry) and e.source is first.source and e.k == k for k, e in enumerate(x.reshape(-1)))
        return first.source if whole else None
    return None
