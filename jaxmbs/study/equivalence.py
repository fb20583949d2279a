"""Whether two runs agree as well as somebody asks: tolerances in words, and what differences of an output say of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxmbs.io.errors import InputError, Problem, choices
from jaxmbs.study.units import Unit, unit

# of the largest value of an output: what other machines, versions and orders of summation make of the same motion
ROUNDING = {"float64": 1e-8, "float32": 1e-4}
FEWEST = 6  # numbers that have an interval
_WITHIN = re.compile(
    r"(?:(?P<output>[a-z][a-z0-9_]*)\s*=\s*)?(?P<number>\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)\s*(?P<unit>.*)"
)


@dataclass(frozen=True)
class Within:
    """How far an output may be off: so many of its unit, or, relative, that share of its median size."""

    size: float
    relative: bool = False

    def of(self, values: np.ndarray) -> float:
        """In the unit of the values."""
        return self.size * float(np.median(np.abs(values))) if self.relative and len(values) else self.size


def tolerances(said: Sequence[str], shown: Mapping[str, Unit]) -> dict[str, Within]:
    """The tolerance of every output in the unit in which it is shown: "1e-6" in that of each, "0.1 %" of its median size,
    "reach = 0.02 mm" of one output, which goes before. Raises InputError with the remedy."""
    found: dict[str, Within] = {}
    own: dict[str, Within] = {}
    for text in said:
        parts = _WITHIN.fullmatch(text.strip())
        if parts is None:
            raise InputError(
                Problem("--within", f'"{text}" is no tolerance; write 1e-6, "0.1 %" or "OUTPUT = 0.02 mm"')
            )
        name, number, called = parts["output"], float(parts["number"]), parts["unit"].strip()
        if name is not None and name not in shown:
            raise InputError(Problem("--within", f'there is no output "{name}"; {choices(name, shown, "outputs")}'))
        if name is None and called not in ("", "%"):
            message = f'"{text}" has a unit, which not all outputs share; write "OUTPUT = {text}", or "0.1 %"'
            raise InputError(Problem("--within", message))
        for output in shown if name is None else (name,):
            mine = shown[output]
            if called == "%" and mine.quantity != "number":
                tolerance = Within(number / 100, relative=True)
            elif called:
                try:
                    tolerance = Within(number * unit(called, mine.quantity).factor / mine.factor)
                except ValueError as error:
                    raise InputError(Problem("--within", f'"{text}": {error}')) from None
            else:
                tolerance = Within(number)
            (found if name is None else own)[output] = tolerance
    return found | own


def means_apart(a: np.ndarray, b: np.ndarray, alpha: float) -> tuple[float, float]:
    """Interval of the mean of b less that of a, of independent samples (Welch)."""
    from scipy.stats import ttest_ind

    if min(len(a), len(b)) < FEWEST or not (np.ptp(a) or np.ptp(b)):
        return float("nan"), float("nan")
    found: Any = ttest_ind(b, a, equal_var=False).confidence_interval(1 - alpha)
    return float(found.low), float(found.high)


def verdict(
    row: Mapping[str, Any], within: float | None, rounding: float, alpha: float, low: float, high: float
) -> str:
    """What can be said of an output.

    row: `chance` of a difference as large, by chance alone, and of pairs `largest`, the largest difference, and `lost`, how
    many are defined in one run alone; within, rounding: how far it may be off, if anything is asked for, and by rounding;
    low, high: ends of the interval of the mean difference, not a number where there is none.
    """
    largest = row.get("largest") if not row.get("lost") else None
    if largest == 0:
        return "the same"
    if within is None:
        if largest is not None and largest <= rounding:
            return "rounding"
        return "differs" if row["chance"] is not None and row["chance"] < alpha else ""
    if largest is not None and largest <= within:
        return "every sample within"
    if row.get("lost"):
        return "differs"
    if -within <= low and high <= within:
        return "mean within"
    return "differs" if low > within or high < -within else "undecided"
