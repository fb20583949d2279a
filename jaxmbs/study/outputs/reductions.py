"""Reductions of a history: folds of (value, defined) over time to one number; values are linear between times."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Scalar = Any
State = tuple[Scalar, ...]
EXTREMES = ("min", "max", "time_of_min", "time_of_max")
SUMS = ("mean", "rms", "integral", "time_above", "time_below")
AT = ("at", "time_at")
REDUCTIONS = ("final", *EXTREMES, "time_out", *SUMS, *AT)
# quantity of an integral over time, by the quantity of the history
INTEGRALS = {"velocity": "length", "angular rate": "angle", "acceleration": "velocity", "number": "time", "force": "impulse",
             "moment": "angular impulse"}  # fmt: skip


def start(reduce: str) -> State:
    """State before the first time."""
    if reduce in SUMS:
        return 0.0, np.nan, np.nan, 0.0  # sum, last value, its time, total time
    if reduce in AT:
        return np.nan, np.nan, np.nan, np.nan, 0.0  # result, last value, last margin, its time, found
    if reduce in EXTREMES:
        # the extreme, its time, the first value, the largest distance of another value from it
        return -np.inf if reduce.endswith("max") else np.inf, np.nan, np.nan, 0.0
    return np.nan, np.nan


def fold(
    reduce: str,
    state: State,
    measured: tuple[Scalar, Scalar],
    t: Scalar,
    limit: float | None = None,
    margin: Any = None,
) -> State:
    """State with the present time included. limit: that of `time_above` and `time_below`; margin: that of the condition
    of `at` and `time_at`, which holds once the margin is not negative."""
    dtype = jnp.asarray(state[0]).dtype
    value, defined = jnp.asarray(measured[0], dtype), measured[1]
    t = jnp.asarray(t, dtype)
    if reduce in SUMS:
        return _summed(reduce, state, value, defined, t, limit)
    if reduce in AT:
        return _found(reduce, state, jnp.where(defined, value, jnp.nan), t, jnp.asarray(margin, dtype))
    if reduce == "final":
        return jnp.where(defined, value, jnp.nan), state[1]
    if reduce == "time_out":
        return state[0], jnp.where(defined | ~jnp.isnan(state[1]), state[1], t)
    best, when, first, far = state
    # ~(a >= b) instead of a < b: a NaN must become the result, and no later value may replace it
    better = defined & (~(value >= best) if reduce.endswith("min") else ~(value <= best)) & ~jnp.isnan(best)
    still = jax.lax.stop_gradient(jnp.where(defined, value, first))
    first = jnp.where(jnp.isnan(first), still, first)
    return jnp.where(better, value, best), jnp.where(better, t, when), first, jnp.maximum(far, jnp.abs(still - first))


def stays(state: State) -> Scalar:
    """Whether an extreme equals the first value, to rounding, although other values differ from it by more than
    rounding."""
    best, _, first, far = state
    rounding = jnp.finfo(jnp.asarray(best).dtype).eps ** 0.75
    return (far > rounding * jnp.abs(first)) & (jnp.abs(best - first) <= rounding * jnp.maximum(far, jnp.abs(first)))


def caught(reduce: str, state: State, measured: tuple[Scalar, Scalar], t: Scalar, now: Any) -> State:
    """State of `at` or `time_at` with an event included. now: whether it is the event that `when` names, of which only
    the first time counts."""
    kept, *others, found = state
    new = jnp.where(measured[1], measured[0], jnp.nan) if reduce == "at" else t
    first = now & (found == 0)
    return jnp.where(first, jnp.asarray(new, jnp.asarray(kept).dtype), kept), *others, jnp.where(first, 1.0, found)


def result(reduce: str, state: State) -> Scalar:
    """The output, in SI; NaN if it was never defined."""
    if reduce in SUMS:
        total, _, _, time = state
        span = jnp.where(time > 0, time, 1.0)
        out = {"mean": total / span, "rms": jnp.sqrt(total / span)}.get(reduce, total)
        return jnp.where(time > 0, out, jnp.nan)
    if reduce in AT:
        return state[0]
    best, when = state[:2]
    if reduce in ("time_of_min", "time_of_max"):
        return jnp.where(jnp.isnan(best), jnp.nan, when)
    return when if reduce == "time_out" else jnp.where(jnp.isinf(best), jnp.nan, best)


def _summed(reduce: str, state: State, b: Scalar, defined: Scalar, t: Scalar, limit: float | None) -> State:
    total, a, before, time = state
    on = defined & ~jnp.isnan(before)
    step = jnp.where(on, t - before, 0.0)
    if reduce == "rms":
        part = (a * a + a * b + b * b) / 3
    elif reduce in ("mean", "integral"):
        part = (a + b) / 2
    else:
        side = 1.0 if reduce == "time_above" else -1.0
        x, y = side * (a - limit), side * (b - limit)
        size = jnp.abs(x) + jnp.abs(y)
        part = jnp.maximum(jnp.maximum(x, y), 0.0) / jnp.where(size > 0, size, 1.0)
        part = jnp.where((x >= 0) & (y >= 0), 1.0, part)
        part = jnp.where((x <= 0) & (y <= 0), 0.0, part)
        part = jnp.where(jnp.isnan(x + y), jnp.nan, part)
    total = total + jnp.where(on, part * step, 0.0)
    return total, b, jnp.where(defined, t, jnp.nan), time + step


def _found(reduce: str, state: State, value: Scalar, t: Scalar, margin: Scalar) -> State:
    kept, last, before, then, found = state
    first = jnp.isnan(then)
    now = (found == 0) & (margin >= 0)
    drop = margin - jnp.where(first, margin, before)
    share = jnp.where(drop > 0, margin / jnp.where(drop > 0, drop, 1.0), 0.0)  # share of the step after the instant
    share = jnp.where(first, 0.0, jnp.clip(share, 0.0, 1.0))
    new = value if reduce == "at" else t
    old = jnp.where(first, new, last if reduce == "at" else then)
    return jnp.where(now, new - share * (new - old), kept), value, margin, t, jnp.where(now, 1.0, found)
