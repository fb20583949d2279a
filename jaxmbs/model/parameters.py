"""Parameters: a static pattern of components that are pinned to 0 or ±1, and a flat vector of all other components.

A pinned zero costs nothing in a compiled program and has no leaf to differentiate; a component that is not pinned is a
number like any other. ±1 are pinned only in directions and rotations, and in factors whose field says so; a mass of exactly
1 kg is not structural.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import RULES, Kind, checked
from jaxmbs.spatial import Transform
from jaxmbs.spatial.known import known
from jaxmbs.spatial.scalar import Scalar, is_number

ROUNDING = 1e-15  # rounding error of the length of a unit vector
_DIRECTIONS = (Kind.DIRECTION, Kind.ROTATION)


@dataclass(frozen=True)
class Parameter:
    """One named parameter: its kind, SI unit and, for each component, the pinned value or None if it is not pinned.
    is_state: whether it changes during a run."""

    name: str
    kind: Kind
    unit: str
    pattern: tuple[float | None, ...]
    is_state: bool = False

    @property
    def forms(self) -> tuple[tuple[int, ...], ...]:
        """Shapes in which one value may be given; the first is that of the result of `get`."""
        forms: Any = RULES[self.kind].forms
        return ((len(self.pattern),),) if self.kind is Kind.LIST else forms

    @property
    def shape(self) -> tuple[int, ...]:
        return self.forms[0]

    @cached_property
    def pinned(self) -> bool:
        """Whether some component is pinned."""
        return self.free_count < len(self.pattern)

    @cached_property
    def free_count(self) -> int:
        return sum(p is None for p in self.pattern)


def concrete_components(kind: Kind, value: Any, where: str) -> list[float]:
    """Check a value of plain numbers and return its components."""
    x = checked(kind, value, where)
    if kind is Kind.DIRECTION and abs((n := np.linalg.norm(x)) - 1) > ROUNDING:
        x = x / n  # remove the rounding error of given digits; a vector of unit length stays unchanged
    return [float(c) for c in RULES[kind].parts(x)]


def traced_components(kind: Kind, value: Any, where: str) -> tuple[Scalar, ...]:
    """Components of an array of one instance, traced or not; only the shape is checked."""
    x = jnp.asarray(value)
    if not RULES[kind].fits(x.shape):
        raise ModelError(f"{where}: one instance has shape {x.shape}; pass {RULES[kind].said}")
    return RULES[kind].parts(x)


def pattern_of(kind: Kind, components: Sequence[float], neutral: float | None = None) -> tuple[float | None, ...]:
    """The pinned value of each component (0, ±1 in directions and rotations, or the neutral value of its field), None if it
    is not structural."""

    def pinned(c: float) -> float | None:
        if c == 0:
            return 0
        if kind in _DIRECTIONS and c in (1, -1):
            return int(c)
        if c == neutral:
            return neutral
        return None

    return tuple(pinned(c) for c in components)


def fits(pattern: Iterable[float | None], components: Iterable[float]) -> bool:
    """Whether concrete components agree with the pinned values of the pattern."""
    return all(p is None or p == c for p, c in zip(pattern, components, strict=True))


def shaped(kind: Kind, c: Sequence[Any]) -> Any:
    """Components as a scalar, Vector3, Matrix3, Symmetric3 or tuple."""
    return RULES[kind].whole(c)


class Values:
    """The numbers of a model as components of one scalar type, looked up by parameter name.

    dtype: that of the state arguments; None leaves numbers as they are. Concrete numbers are known while tracing and
    become literals of the program; traced ones are elements of the flat vector.
    """

    def __init__(self, parameters: Mapping[str, tuple[Parameter, int]], numbers: Any, overrides: Any, dtype: Any):
        self._kinds = {name: parameter.kind for name, (parameter, _) in parameters.items()}
        self._dtype = dtype
        self._flat = numbers if isinstance(numbers, np.ndarray) or dtype is None else numbers.astype(dtype)
        # unstacked here, all at once: numbers unstacked while a loop is traced would belong to the trace of the loop
        flat: Any = numbers
        if isinstance(numbers, np.ndarray):
            flat = numbers.tolist()
        elif isinstance(numbers, jnp.ndarray):
            flat = jnp.unstack(self._flat)
        self._components: dict[str, tuple[Scalar, ...]] = {}
        self._places: dict[str, tuple[int | None, ...]] = {}  # indices of the components in the flat vector
        for name, (parameter, offset) in parameters.items():
            if name in overrides:
                value = overrides[name] if dtype is None else jnp.asarray(overrides[name], dtype)
                self._components[name] = tuple(map(known, traced_components(parameter.kind, value, name)))
            else:
                free = iter(range(offset, offset + parameter.free_count))
                places = tuple(next(free) if p is None else None for p in parameter.pattern)
                pairs = zip(parameter.pattern, places, strict=True)
                self._places[name] = places
                self._components[name] = tuple(known(p if k is None else flat[k]) for p, k in pairs)

    def components(self, name: str) -> tuple[Scalar, ...]:
        return self._components[name]

    def changed(self, components: Mapping[str, Sequence[Scalar]]) -> Values:
        """The numbers with other components of some parameters."""
        other = copy.copy(self)
        other._components = {**self._components, **{name: tuple(map(known, c)) for name, c in components.items()}}
        other._places = {name: places for name, places in self._places.items() if name not in components}
        return other

    def __getitem__(self, name: str) -> Any:
        return shaped(self._kinds[name], self._components[name])

    def of(self, prefix: str, fields: Iterable[str]) -> dict[str, Any]:
        """{field: value} of one element."""
        return {f: self[f"{prefix}.{f}"] for f in fields}

    def several(self, names: Sequence[str]) -> Any:
        """The value of one parameter, or the values of several, stacked."""
        return self[names[0]] if len(names) == 1 else self.stacked(names)

    def pose(self, *names: str) -> Transform:
        """The pose of this name, or several, stacked."""
        return Transform(self.several([f"{n}.rotation" for n in names]), self.several([f"{n}.position" for n in names]))

    def stacked(self, names: Sequence[str]) -> Any:
        """The values of parameters of one kind as a single value: each component is an array with one entry per
        parameter, or a number if all are known and equal."""
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
