"""Piecewise linear profiles over time, through the points (times, values), constant before the first and after the last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxmbs.model.errors import ModelError
from jaxmbs.spatial.known import ONE
from jaxmbs.spatial.scalar import Scalar, maximum, total, where


def requirements(p: Mapping[str, Any]) -> Mapping[str, Any]:
    """What must hold of the profile of an element with the fields `times` and `values`. Raises ModelError if these differ
    in length."""
    times, values = p["times"], p["values"]
    if times.shape[-1] != values.shape[-1]:
        raise ModelError(f"{times.shape[-1]} times but {values.shape[-1]} values; give one value per time")
    return {"the times of the profile must increase": (times[..., 1:] > times[..., :-1]).all(-1)}


def piecewise_linear(
    t: Scalar, times: tuple[Scalar, ...], values: tuple[Scalar, ...], passed: tuple[Scalar, ...]
) -> Scalar:
    """Value at t of the broken line through the points, constant before the first and after the last; passed: whether t is
    beyond each of the times."""
    result = values[0]
    for t0, t1, v0, v1, begun, over in zip(times, times[1:], values, values[1:], passed, passed[1:], strict=False):
        part = where(begun, where(over, 1.0, (t - t0) / (t1 - t0)), 0.0)
        result = result + part * (v1 - v0)
    return result


def integrals(t: Scalar, times: tuple[Scalar, ...], values: tuple[Scalar, ...]) -> tuple[Scalar, Scalar, Scalar]:
    """The profile at t, and its first and second integral from 0 to t: sums of ramps."""
    level, gained, way = [values[0]], [values[0] * t], [0.5 * values[0] * (t * t)]
    for t0, t1, v0, v1 in zip(times, times[1:], values, values[1:], strict=False):
        slope = (v1 - v0) / (t1 - t0)
        for corner, sign in ((t0, ONE), (t1, -ONE)):
            x, x0 = maximum(t - corner, 0.0), maximum(-corner, 0.0)
            own = sign * slope
            level.append(own * x)
            gained.append(0.5 * own * (x * x - x0 * x0))
            cubes = (x * (x * x) - x0 * (x0 * x0)) / 6.0
            way.append(own * (cubes - 0.5 * t * (x0 * x0)))
    return total(*level), total(*gained), total(*way)
