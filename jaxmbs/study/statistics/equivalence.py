"""Decides whether two runs agree within given tolerances: reads the tolerances and judges the differences of an
output."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxmbs.io.errors import InputError, Problem, choices
from jaxmbs.study.units import Unit, unit

# relative to an output's largest value: how much other machines, versions and orders of summation change a motion
ROUNDING = {"float64": 1e-8, "float32": 1e-4}
FEWEST = 6  # an interval is computed from at least this many numbers
_WITHIN = re.compile(
    r"(?:(?P<output>[a-z][a-z0-9_]*)\s*=\s*)?(?P<number>\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)\s*(?P<unit>.*)"
)


@dataclass(frozen=True)
class Within:
    """Tolerance of an output. size: in the output's unit, or, if relative, as a share of the median of its absolute
    values."""

    size: float
    relative: bool = False

    def of(self, values: np.ndarray) -> float:
        """The tolerance in the unit of the values."""
        return self.size * float(np.median(np.abs(values))) if self.relative and len(values) else self.size


def tolerances(said: Sequence[str], shown: Mapping[str, Unit]) -> dict[str, Within]:
    """Tolerances, by output. "1e-6" holds for every output, in the unit in which it is shown; "0.1 %" is relative to
    the median size of each in the first run, but absolute for dimensionless outputs; "reach = 0.02 mm" holds for one
    output and takes precedence. Raises InputError with the remedy."""
    found: dict[str, Within] = {}
    own: dict[str, Within] = {}
    for text in said:
        parts = _WITHIN.fullmatch(text.strip())
        if parts is None:
            raise InputError(
                Problem("--within", f'"{text}" is not a tolerance; write 1e-6, "0.1 %" or "OUTPUT = 0.02 mm"')
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
    """Interval of the mean of b minus the mean of a, from independent samples (Welch)."""
    from scipy.stats import ttest_ind

    if min(len(a), len(b)) < FEWEST or not (np.ptp(a) or np.ptp(b)):
        return float("nan"), float("nan")
    found: Any = ttest_ind(b, a, equal_var=False).confidence_interval(1 - alpha)
    return float(found.low), float(found.high)


def verdict(
    row: Mapping[str, Any], within: float | None, rounding: float, alpha: float, low: float, high: float
) -> str:
    """Verdict on the difference of an output between two runs.

    row: `chance`, the probability of a difference as large by chance alone; for pairs also `largest`, the largest
    difference, and `lost`, the number of samples in which the output is defined in one run only; within: the tolerance,
    None if none is given; rounding: the difference that rounding may cause; alpha: a smaller `chance` counts as a
    difference; low, high: ends of the interval of the mean difference, NaN if there is none.
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
