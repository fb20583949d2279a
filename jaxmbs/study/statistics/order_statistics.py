"""What independent samples show with a given confidence: intervals of probabilities, tolerance limits, and the number
of samples that these need.

All of it is distribution-free (Clopper and Pearson 1934, Wilks 1941). The intervals of `anytime_interval` hold for all
numbers of samples at once (Robbins 1970), so a study may stop as soon as they are narrow enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.study.results.columns import at_ranks, column

CONTENT = {1: 0.99865, 2: 0.9973}  # three standard deviations of a normal distribution, by number of sides
TOLERANCE_CONFIDENCE = 0.9
# relative distance from a limit within which rounding might decide, so that binomial terms are summed exactly instead;
# most failures for which they are
_CLOSE, _SUMMED = 1e-9, 1000


def interval(met: Any, of: Any, confidence: float = 0.95) -> tuple[Any, Any]:
    """Clopper and Pearson's interval of a probability, if `met` of `of` independent samples meet a condition; also for
    arrays.

    At least a share `confidence` of such intervals contains the probability, whatever it is.

    >>> low, high = interval(0, 10)
    >>> float(low), round(float(high), 4)
    (0.0, 0.3085)
    """
    from scipy.special import betaincinv  # scipy.stats takes a second to import

    k, n, tail = np.asarray(met), np.asarray(of), (1 - confidence) / 2
    low = np.where(k > 0, betaincinv(np.maximum(k, 1), n - k + 1, tail), 0.0)
    return low, np.where(k < n, betaincinv(k + 1, np.maximum(n - k, 1), 1 - tail), 1.0)


def discards(n: int, content: float, confidence: float = TOLERANCE_CONFIDENCE) -> int:
    """How many of n samples may lie beyond limits, if these are to contain the share `content` of all samples that
    could be drawn, with `confidence`; -1: n is too small for any such limits.

    >>> discards(851, 0.9973), discards(852, 0.9973), discards(1440, 0.9973)
    (-1, 0, 1)
    """
    _check(content, confidence)
    low, high = -1, n  # if all samples fail, nothing is shown
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _shows(n, middle, content, confidence) else (low, middle)
    return low


def samples_needed(content: float, confidence: float = TOLERANCE_CONFIDENCE, failures: int = 0) -> int:
    """Smallest number of samples that shows a share of `content` with `confidence` although `failures` of them fail;
    exact for all contents and confidences below one.

    >>> samples_needed(0.9973), samples_needed(0.9973, failures=1), samples_needed(0.99865)
    (852, 1440, 1705)
    >>> samples_needed(1 - 2**-53), samples_needed(0.999999999, failures=1)
    (20739842733593687, 3889720279)
    """
    _check(content, confidence)
    return _first(lambda n: _shows(n, failures, content, confidence), failures + 1, np.inf)


def _shows(n: int, failures: int, content: float, confidence: float) -> bool:
    """Whether n samples, of which `failures` fail, show with `confidence` that at least the share `content` of all
    samples that could be drawn do not fail: if only that share did not fail, more than `failures` of n samples would
    fail with a probability of at least `confidence`."""
    from scipy.special import betaincc

    if n <= failures:
        return False
    ratio = betaincc(failures + 1.0, float(n - failures), 1 - content) / (1 - confidence)
    if abs(ratio - 1) > _CLOSE or failures > _SUMMED:
        return bool(ratio <= 1)
    with localcontext() as context:  # the sum of the binomial terms, in enough digits to decide
        context.prec, p = 80, 1 - Decimal(content)
        term = (n * Decimal(content).ln()).exp()
        total, odds = term, p / Decimal(content)
        for k in range(failures):
            term *= odds * (n - k) / (k + 1)
            total += term
        return total <= 1 - Decimal(confidence)


def samples_for_width(width: float, probability: float, confidence: float = 0.95) -> int:
    """Smallest number of samples whose interval of a probability, with `confidence`, is no wider than `width`, if the share
    `probability` of them meets the criterion.

    >>> samples_for_width(0.02, 0.5)
    9701
    """

    def narrow(n: int) -> bool:
        low, high = interval(round(probability * n), n, confidence)
        return bool(high - low <= width)

    return _first(narrow, 1)


def samples_to_show(share: float, probability: float, confidence: float = 0.95) -> int | None:
    """Smallest number of samples whose interval lies above `share`, if the share `probability` of them meets the
    criterion; None: never.

    >>> samples_to_show(0.99, 0.999), samples_to_show(0.99, 0.98)
    (555, None)
    """
    if probability <= share:
        return None
    return _first(lambda n: bool(interval(np.floor(probability * n), n, confidence)[0] >= share), 1)


def _first(holds: Any, least: int, most: float = 1e12) -> int:
    """The smallest n, from `least` on, for which a condition holds. It is found by bisection, so only approximately if
    the condition rounds counts and therefore alternates. Raises InputError if n would exceed `most`."""
    high = least
    while not holds(high):
        high *= 2
        if high > most:
            raise InputError(Problem("samples", f"more than {most:,.0f} would be needed; ask for less"))
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return max(high, least)


@dataclass(frozen=True)
class Tolerance:
    """Limits between which, with `confidence`, at least the share `content` of all samples that could be drawn lies.

    low, high: infinite if there is no limit on that side; ranks: how many of the lowest and highest samples lie at or
    beyond them; why: the reason why there are no limits, with the remedy ("" if there are; otherwise the limits are
    NaN).
    """

    content: float
    confidence: float
    low: float
    high: float
    ranks: tuple[int, int] = (0, 0)
    why: str = ""


def tolerance(
    values: Any, sides: str = "both", content: float | None = None, confidence: float = TOLERANCE_CONFIDENCE,
    dependence: str = "",
) -> Tolerance:  # fmt: skip
    """Tolerance limits of values (n,), from their order alone (Wilks).

    sides: "low", "high" or "both"; content: by default 0.99865 for one side, 0.9973 for both; confidence: see `Tolerance`.
    A NaN lies beyond all limits. dependence: why the samples are not independent, if they are not; there are no limits
    then.

    >>> x = np.arange(1, 1001) / 1000
    >>> t = tolerance(x, "low", 0.99)
    >>> t.low, t.ranks
    (0.006, (6, 0))
    >>> tolerance(x, "low").why
    'needs 1,705 samples'
    """
    x = column(values)
    n, both = len(x), sides == "both"
    content = CONTENT[2 if both else 1] if content is None else content
    if dependence:
        return Tolerance(content, confidence, np.nan, np.nan, why=dependence)
    beyond = discards(n, content, confidence) + 1
    if beyond < 1 + both:
        why = f"needs {samples_needed(content, confidence, int(both)):,} samples"
        return Tolerance(content, confidence, np.nan, np.nan, why=why)
    lost = sum(int(np.count_nonzero(np.isnan(part))) for part in x.parts())
    r, s = (beyond // 2, beyond - beyond // 2) if both else (beyond, 0) if sides == "low" else (0, beyond)
    r, s = (max(r - lost, 0) if r else 0), (max(s - (0 if r else lost), 0) if s else 0)
    if (r == 0 and sides != "high") or (s == 0 and sides != "low"):
        return Tolerance(content, confidence, np.nan, np.nan, why=f"{lost:,} samples failed or are undefined")
    low, high = at_ranks(x, [max(r - 1, 0), n - lost - max(s, 1)])  # NaN comes last
    return Tolerance(content, confidence, float(low) if r else -np.inf, float(high) if s else np.inf, (r, s))


# --- stopping while it runs -------------------------------------------------------------------------------------------


def anytime_interval(met: Any, of: Any, confidence: float = 0.95) -> tuple[Any, Any]:
    """Interval of a probability, if `met` of `of` samples so far meet a condition, that holds at all times at once.

    In at least a share `confidence` of all studies, the intervals after 1, 2, 3 ... samples all contain the probability,
    so a study may stop at any time. Also for arrays.

    It contains every p against which the samples are no strong evidence: their likelihood, averaged evenly over all
    probabilities, is less than 1 / (1 - confidence) times that under p. This ratio is the gain of a bet against p: if p
    is right, the bet is fair, and such a large gain is rare.

    >>> low, high = anytime_interval(990, 1000)
    >>> round(float(low), 3), round(float(high), 3)
    (0.972, 0.998)
    """
    from scipy.special import betaln, xlog1py, xlogy

    k, n = np.broadcast_arrays(np.asarray(met, float), np.asarray(of, float))
    middle = np.where(n > 0, k / np.maximum(n, 1), 0.5)

    def outside(p: np.ndarray) -> np.ndarray:
        # logarithm of the gain of the bet; its binomial coefficients cancel
        return betaln(k + 1, n - k + 1) - xlogy(k, p) - xlog1py(n - k, -p) >= np.log(1 / (1 - confidence))

    ends = []
    for end in (0.0, 1.0):
        out, inside = np.full(k.shape, end), middle.copy()
        for _ in range(60):
            half = (out + inside) / 2
            off = outside(half)
            out, inside = np.where(off, half, out), np.where(off, inside, half)
        ends.append(np.where(outside(np.full(k.shape, end)), out, end))
    return ends[0], ends[1]


def settled(met: Any, of: Any, share: Any, until: float | str, confidence: float = 0.95) -> Any:
    """Whether a study may stop. until: "decided" if `anytime_interval` must lie on one side of `share`, or a number,
    the width that it must not exceed. This interval keeps its confidence whenever the study stops."""
    low, high = anytime_interval(met, of, confidence)
    return (low >= share) | (high < share) if until == "decided" else high - low <= float(until)


def _check(content: float, confidence: float) -> None:
    for name, x in (("content", content), ("confidence", confidence)):
        if not 0 < x < 1:
            raise InputError(Problem(name, f"{x:g} is not between 0 and 1"))
