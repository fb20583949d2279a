"""Parameters: a static pattern of 0, +-1 and free components beside a flat vector of real numbers.

A structural zero costs nothing in a compiled program and has no leaf to differentiate; a free component is a
number like any other. ±1 are pinned only where they are directions; a mass of exactly 1 kg is no structure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxmbs.model.errors import ModelError
from jaxmbs.model.pose import rotation_matrix
from jaxmbs.spatial import Matrix3, Symmetric3, Vector3, from_quaternion
from jaxmbs.spatial.scalar import Scalar, is_number

SHAPES = {
    "scalar": (), "positive": (), "above zero": (), "vector": (3,), "unit": (3,), "rotation": (3, 3), "inertia": (3, 3)
}  # fmt: skip
_DIRECTIONS = ("unit", "rotation")
_SYMMETRIC = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


@dataclass(frozen=True)
class Parameter:
    """One named parameter: its kind and, per component, the pinned value or None for a free one."""

    name: str
    kind: str
    pattern: tuple[float | None, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return SHAPES.get(self.kind, (len(self.pattern),))

    @cached_property
    def free_count(self) -> int:
        return sum(p is None for p in self.pattern)


def concrete_components(kind: str, value: Any, where: str) -> list[float]:
    """Checked components of a value made of plain numbers."""
    try:
        x = np.asarray(value, float)
    except (TypeError, ValueError):
        raise ModelError(f"{where}: {value!r} is not a number or an array of numbers") from None
    if not np.all(np.isfinite(x)):
        raise ModelError(f"{where}: {value!r} has a value that is not finite")
    if kind == "inertia":
        return _inertia_components(x, value, where)
    if kind == "rotation":
        return list(map(float, rotation_matrix(x, where).reshape(9)))
    if kind == "list":
        if x.ndim != 1 or not x.size:
            raise ModelError(f"{where}: {value!r} has shape {x.shape}; pass a list of numbers")
        return list(map(float, x))
    shape = SHAPES[kind]
    if x.shape != shape:
        raise ModelError(f"{where}: {value!r} has shape {x.shape}; pass {_said(shape)}")
    if kind == "positive" and x < 0:
        raise ModelError(f"{where}: {float(x)!r} is negative; it must be zero or more")
    if kind == "above zero" and x <= 0:
        raise ModelError(f"{where}: {float(x)!r} must be more than zero")
    if kind == "unit":
        n = float(np.linalg.norm(x))
        if abs(n - 1) > 1e-6:
            remedy = f"pass {tuple(round(float(c), 9) for c in x / n)}" if n > 1e-12 else "pass a direction"
            raise ModelError(f"{where}: {value!r} has length {n:.6g}, not 1; {remedy}")
        # aligned axes stay exact, others lose the rounding of their digits
        x = x if np.count_nonzero(x) == 1 else x / n
    return list(map(float, x.reshape(-1)))


def _said(shape: tuple[int, ...]) -> str:
    return "one number" if shape == () else f"{shape[0]} numbers"


def _inertia_components(x: np.ndarray, value: Any, where: str) -> list[float]:
    if x.shape == (3,):
        x = np.diag(x)
    if x.shape != (3, 3):
        raise ModelError(f"{where}: {value!r} has shape {x.shape}; pass three principal moments or a 3x3 matrix")
    reason = inertia_fault(x[None])[0]
    if reason:
        raise ModelError(f"{where}: {x.tolist()} is not the inertia of a body: {reason}")
    return [float(x[i, j]) for i, j in _SYMMETRIC]


def inertia_fault(inertias: np.ndarray) -> list[str | None]:
    """For each of (B, 3, 3) inertias about the centre of mass, why no body can have it, or None."""
    skew = np.abs(inertias - inertias.transpose(0, 2, 1)).max(axis=(1, 2))
    asymmetric = skew > 1e-9 * np.maximum(np.abs(inertias).max(axis=(1, 2)), 1e-300)
    moments = np.linalg.eigvalsh(inertias)
    scale = 1e-9 * np.maximum(np.abs(moments).max(axis=-1), 1e-300)
    negative = moments[:, 0] < -scale
    triangle = moments[:, 2] - moments[:, 1] - moments[:, 0] > scale
    out: list[str | None] = []
    for m, a, n, t in zip(moments, asymmetric, negative, triangle, strict=True):
        said = ", ".join(f"{v:.6g}" for v in m)
        if a:
            out.append("the 3x3 matrix is not symmetric")
        elif n:
            out.append(f"principal moments {said} must not be negative; give it about the centre of mass")
        elif t:
            out.append(
                f"principal moments {said} break the triangle inequality (the largest exceeds the sum of the others); "
                "check units, signs of the products, and that it is about the centre of mass"
            )
        else:
            out.append(None)
    return out


def traced_components(kind: str, value: Any, where: str) -> tuple[Scalar, ...]:
    """Components of an array of one instance, traced or not; nothing is checked but the shape."""
    x = jnp.asarray(value)
    if kind == "rotation":
        if x.shape == (4,):
            return tuple(from_quaternion(list(x)))
        if x.shape == (3, 3):
            return tuple(x.reshape(9))
    elif kind == "inertia":
        if x.shape == (3,):
            return (x[0], x[1], x[2], 0, 0, 0)
        if x.shape == (3, 3):
            return tuple(x[i, j] for i, j in _SYMMETRIC)
    elif kind == "list" or x.shape == SHAPES[kind]:
        return tuple(x.reshape(-1))
    raise ModelError(f"{where}: one instance has shape {x.shape}; expected {SHAPES.get(kind, '(n,)')}")


def pattern_of(kind: str, components: Sequence[float]) -> tuple[float | None, ...]:
    """Which components of concrete values are structural."""

    def pinned(c: float) -> float | None:
        if c == 0:
            return 0
        if kind in _DIRECTIONS and c in (1, -1):
            return int(c)
        return None

    return tuple(pinned(c) for c in components)


def fits(pattern: Iterable[float | None], components: Iterable[float]) -> bool:
    """Whether concrete components agree with what the pattern pins."""
    return all(p is None or p == c for p, c in zip(pattern, components, strict=True))


def shaped(kind: str, c: Sequence[Any]) -> Any:
    """Components as a scalar, Vector3, Matrix3, Symmetric3 or tuple."""
    if SHAPES.get(kind) == ():
        return c[0]
    if kind in ("vector", "unit"):
        return Vector3(*c)
    if kind == "rotation":
        return Matrix3(*c)
    if kind == "inertia":
        return Symmetric3(*c)
    return tuple(c)


class Values:
    """The numbers of a model as components of one scalar type, looked up by parameter name.

    dtype: that of the state arguments; None keeps Python floats. Numbers that are concrete enter a trace as
    literals; traced ones are parts of the flat vector.
    """

    def __init__(self, parameters: Mapping[str, tuple[Parameter, int]], numbers: Any, overrides: Any, dtype: Any):
        self._kinds = {name: parameter.kind for name, (parameter, _) in parameters.items()}
        self._dtype = dtype
        self._flat = numbers if isinstance(numbers, np.ndarray) or dtype is None else numbers.astype(dtype)
        # all at once: inside a loop's trace they would belong to that trace
        flat: Any = numbers
        if isinstance(numbers, np.ndarray):
            flat = numbers.tolist()
        elif isinstance(numbers, jnp.ndarray):
            flat = jnp.unstack(self._flat)
        self._components: dict[str, tuple[Scalar, ...]] = {}
        self._places: dict[str, tuple[int | None, ...]] = {}  # of the components in the flat vector
        for name, (parameter, offset) in parameters.items():
            if name in overrides:
                value = overrides[name] if dtype is None else jnp.asarray(overrides[name], dtype)
                self._components[name] = traced_components(parameter.kind, value, name)
            else:
                free = iter(range(offset, offset + parameter.free_count))
                places = tuple(next(free) if p is None else None for p in parameter.pattern)
                pairs = zip(parameter.pattern, places, strict=True)
                self._places[name] = places
                self._components[name] = tuple(p if k is None else flat[k] for p, k in pairs)

    def components(self, name: str) -> tuple[Scalar, ...]:
        return self._components[name]

    def __getitem__(self, name: str) -> Any:
        return shaped(self._kinds[name], self._components[name])

    def of(self, prefix: str, fields: Iterable[str]) -> dict[str, Any]:
        """{field: value} of one element."""
        return {f: self[f"{prefix}.{f}"] for f in fields}

    def stacked(self, names: Sequence[str]) -> Any:
        """The values of like parameters as one whose components are arrays over them, or numbers where all are equal."""
        columns = zip(*(self._components[n] for n in names), strict=True)
        return shaped(self._kinds[names[0]], [self._stack(names, k, column) for k, column in enumerate(columns)])

    def _stack(self, names: Sequence[str], k: int, column: Sequence[Scalar]) -> Scalar:
        if all(is_number(x) for x in column):
            same = all(x == column[0] for x in column)
            return column[0] if same else jnp.asarray(np.array(column, float), self._dtype)
        if any(name not in self._places for name in names):
            return jnp.stack([jnp.asarray(x, self._dtype) for x in column])
        places = [self._places[name][k] for name in names]
        found = self._flat[np.array([0 if i is None else i for i in places])]
        if None not in places:
            return found
        pinned = np.array([x if i is None else 0 for x, i in zip(column, places, strict=True)], float)
        return jnp.where(np.array([i is None for i in places]), jnp.asarray(pinned, self._dtype), found)


def is_traced(x: Any) -> bool:
    return isinstance(x, Tracer)
