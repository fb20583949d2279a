"""Free parameters as one vector of unconstrained or bounded variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from jaxmbs.batching.compiling import compiled
from jaxmbs.model import ModelError

if TYPE_CHECKING:
    from jaxmbs.model import Model

Array = Any
LARGEST = 1e5  # in usual sizes of a variable: farther from its nominal value than this, it counts as running away


class Coordinate(NamedTuple):
    """A quantity in which relations are expressed: its name, SI unit, and powers of kg and m (None for other units).

    >>> mbs.design.Coordinate("link.h_x", "kg m", (1, 1)).unit
    'kg m'
    """

    name: str
    unit: str
    powers: tuple[int, int] | None = None


@dataclass(frozen=True)
class Part:
    """Variables of one free item.

    label: its name in messages; nominal (n,): the variables at the model's own values; low, high (n,): bounds;
    logarithmic (n,): whether the variable is a logarithm; coordinates: the quantities (c of them) in which relations
    are expressed; place: function x (n,) -> values of the coordinates (c,); values: function (values of the
    coordinates, {name: value} of fixed parameters that differ from the model's) -> {parameter: value}; closed: whether
    an envelope bounds the body, so that no variable can run away.
    """

    label: str
    nominal: np.ndarray
    low: np.ndarray
    high: np.ndarray
    logarithmic: np.ndarray
    coordinates: tuple[Coordinate, ...]
    place: Callable[[Array], Array]
    values: Callable[[Array, Mapping[str, Array]], dict[str, Array]]
    closed: bool = False

    @property
    def size(self) -> int:
        return len(self.nominal)


class Item(Protocol):
    """An entry of `Problem.free`."""

    def part(self, model: Model) -> Part: ...


class Variables:
    """All variables of a problem, x (n,)."""

    def __init__(self, model: Model, items: Iterable[Item]):
        self.parts = tuple(item.part(model) for item in items)
        if not self.parts:
            raise ModelError("synthesize: nothing is free; name the parameters that may change")
        taken: dict[str, str] = {}
        for part in self.parts:
            for name in part.values(np.ones(len(part.coordinates)), {}):
                if name in taken:
                    raise ModelError(
                        f"free: {name!r} is set by both {taken[name]!r} and {part.label!r}; keep one of them"
                    )
                taken[name] = part.label
        self.names = tuple(taken)
        self.model = model
        self.nominal, self.low, self.high = (
            np.concatenate([getattr(p, f) for p in self.parts]) for f in ("nominal", "low", "high")
        )
        self.logarithmic = np.concatenate([p.logarithmic for p in self.parts])
        self.closed = np.concatenate([np.full(p.size, p.closed) for p in self.parts])
        self.coordinates = tuple(c for p in self.parts for c in p.coordinates)
        self.size = len(self.nominal)
        self._placed = compiled(self.place)

    def coordinates_at(self, x: np.ndarray) -> np.ndarray:
        """The same as `place`, for plain numbers, as one compiled program instead of many small ones."""
        return np.asarray(self._placed(np.asarray(x[: self.size], float)))

    def place(self, x: Array) -> Array:
        """Coordinates (c,) at x (n,)."""
        return jnp.concatenate([p.place(own) for p, own in zip(self.parts, self._split(x), strict=True)])

    def values(self, coordinates: Array, given: Mapping[str, Array] | None = None) -> dict[str, Array]:
        """{parameter: value} at coordinates (c,); given: values of fixed parameters that differ from the model's."""
        found, start = {}, 0
        for p in self.parts:
            found |= p.values(coordinates[start : start + len(p.coordinates)], given or {})
            start += len(p.coordinates)
        return found

    def at(self, coordinates: Array, given: Mapping[str, Array] | None = None) -> Model:
        """The model at these coordinates (c,); given: as in `values`."""
        return mbs.set(self.model, {**(given or {}), **self.values(coordinates, given)})

    def starts(self, count: int, seed: int, spread: float) -> np.ndarray:
        """(count, n) starting points: the nominal values first, then random values, uniform between two bounds and
        otherwise normally distributed about the nominal values."""
        rng = np.random.default_rng(seed)
        bounded = np.isfinite(self.low) & np.isfinite(self.high)
        low, high = np.where(bounded, self.low, 0.0), np.where(bounded, self.high, 0.0)
        even = low + (high - low) * rng.random((count, self.size))
        around = self.nominal + spread * rng.standard_normal((count, self.size))
        x = np.where(bounded, even, around)
        x[0] = self.nominal
        return np.clip(x, self.low, self.high)

    def away(self, x: Array) -> Array:
        """(n,) whether a variable is so far from its nominal value that it counts as running away; a logarithm only if
        it is far above, and a variable of a body with an envelope never."""
        moved = x - self.nominal
        return jnp.where(self.logarithmic, moved > np.log(LARGEST), jnp.abs(moved) > LARGEST) & ~self.closed

    def labels(self) -> list[str]:
        """Label of the part that each variable belongs to, (n,)."""
        return [p.label for p in self.parts for _ in range(p.size)]

    def binding(self, x: np.ndarray) -> list[str]:
        """The limits that x has reached, in words: bounds that it lies on, bodies that are flat or fill their
        envelope."""
        found = []
        for p, own in zip(self.parts, self._split(x), strict=True):
            for side, bound in (("lower", p.low), ("upper", p.high)):
                at = np.isfinite(bound) & (np.abs(own - bound) <= 1e-9 * (1 + np.abs(bound)))
                if at.any():
                    found.append(f"{p.label} is at its {side} bound")
            if len(own) >= 9 and p.coordinates[0].powers == (1, 2):
                found += _limits(p, own)
        return found

    def _split(self, x: Array) -> Sequence[Array]:
        ends = np.cumsum([p.size for p in self.parts])
        return [x[end - p.size : end] for p, end in zip(self.parts, ends, strict=True)]


def _limits(p: Part, own: np.ndarray) -> list[str]:
    """Physical limits that a mass distribution has reached, in words."""
    z = np.concatenate([np.exp(np.minimum(own[:3], 300)), own[3:9]])
    found = [f"{p.label} is flat: all its mass lies in one plane"] if z[:3].min() < 1e-3 * z[:6].max() else []
    return found + ([f"{p.label} fills its envelope"] if p.closed and z @ z > 100 else [])
