"""Piecewise linear profiles through points, constant before the first and after the last: over time, or over a stroke."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxmbs.model.errors import ModelError
from jaxmbs.model.fields import Element
from jaxmbs.model.given import shape_of
from jaxmbs.spatial.known import ONE, ZERO
from jaxmbs.spatial.scalar import Scalar, maximum, minimum, total, vanishes, where


def requirements(p: Mapping[str, Any], over: str = "times", *fields: str) -> Mapping[str, Any]:
    """What must hold of profiles: the numbers of `fields` ("values" if none is named) over those of the field `over`. Raises
    ModelError if they differ in length."""
    n = p[over].shape[-1]
    for name in fields or ("values",):
        if p[name].shape[-1] != n:
            raise ModelError(f"{name} has {p[name].shape[-1]} numbers, {over} has {n}; give them the same number")
    return {f"{over}: the numbers must increase": (p[over][..., 1:] > p[over][..., :-1]).all(-1)}


def divide(element: Element, table: str, fields: tuple[str, ...]) -> bool:
    """If the field `table` has rows in place of numbers, give their columns to `fields`, and return True. Raises ModelError
    if rows have another length, or if one of the fields is given as well."""
    rows, kind = getattr(element, table), type(element)
    where, asked = f"{kind.__name__}: {table}", f"({', '.join(fields)})"
    try:
        if len(shape_of(rows)) < 2:
            return False
    except ValueError:
        raise ModelError(f"{where} has rows of different lengths; each of its rows must be {asked}") from None
    if shape_of(rows)[1:] != (len(fields),):
        raise ModelError(f"{where} is a table of shape {shape_of(rows)}; each of its rows must be {asked}")
    if twice := [name for name in fields if name != table and getattr(element, name) is not getattr(kind, name)]:
        raise ModelError(f"{where} is a table with rows {asked}; leave out {' and '.join(twice)}")
    for k, name in enumerate(fields):
        object.__setattr__(element, name, tuple(row[k] for row in rows))
    return True


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


def slope(times: tuple[Scalar, ...], values: tuple[Scalar, ...], passed: tuple[Scalar, ...]) -> Scalar:
    """The derivative of `piecewise_linear` with respect to t, with the same arguments."""
    result = ZERO
    for t0, t1, v0, v1, begun, over in zip(times, times[1:], values, values[1:], passed, passed[1:], strict=False):
        if not vanishes(v1 - v0):
            result = result + where(begun, where(over, 0.0, (v1 - v0) / (t1 - t0)), 0.0)
    return result


def remaining(x: Scalar, places: tuple[Scalar, ...], values: tuple[Scalar, ...]) -> Scalar:
    """Integral of the broken line from x to its last point; before the first point, the line is constant."""
    found = [where(x < places[0], (places[0] - x) * values[0], 0.0)]
    for x0, x1, v0, v1 in zip(places, places[1:], values, values[1:], strict=False):
        begin = minimum(maximum(x, x0), x1)
        here = v0 + (v1 - v0) * ((begin - x0) / (x1 - x0))
        found.append(0.5 * (here + v1) * (x1 - begin))
    return total(*found)


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
