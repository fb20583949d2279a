"""Parameters that may change, by name: singly, with a common value, or with a common factor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from jaxmbs.design.variables import Coordinate, Part
from jaxmbs.model import ModelError
from jaxmbs.model.errors import unknown
from jaxmbs.model.field_rules import Kind

if TYPE_CHECKING:
    from jaxmbs.model import Model

_PLAIN = (Kind.NUMBER, Kind.NOT_NEGATIVE, Kind.POSITIVE, Kind.VECTOR, Kind.NOT_NEGATIVE_VECTOR, Kind.LIST)
_SIGNED = (Kind.NUMBER, Kind.VECTOR, Kind.LIST)
Numbers = float | Sequence[float] | None


@dataclass(frozen=True)
class Free:
    """A parameter that may change, or several that stay equal.

    name: of the parameter ("spring.stiffness"), or a list of names that share one value; low, high: bounds in SI, one
    for all components or one for each; components: the components of a vector that may change (all by default).
    Positive parameters stay positive without a bound, because the search varies their logarithm. Use `MassDistribution`
    for inertias.

    >>> mbs.design.Free("coil.stiffness", low=100.0, high=2000.0).low
    100.0
    """

    name: str | Sequence[str]
    low: Numbers = None
    high: Numbers = None
    components: Sequence[int] | None = None

    def part(self, model: Model) -> Part:
        """The variables of this item. Raises ModelError for unknown names, wrong kinds or wrong bounds."""
        names = [self.name] if isinstance(self.name, str) else list(self.name)
        p = _parameter(model, names[0])
        for other in names[1:]:
            if _parameter(model, other).shape != p.shape:
                raise ModelError(f"free: {other!r} and {names[0]!r} differ in shape, and cannot share one value")
        if p.kind not in _PLAIN:
            remedy = "use MassDistribution" if p.kind is Kind.INERTIA else "free the positions of its joint instead"
            raise ModelError(f"free: {names[0]!r} is a {p.kind.name.lower()}, which cannot vary by itself; {remedy}")
        nominal = np.asarray(mbs.get(model, names[0]), float)
        which = np.arange(nominal.size) if self.components is None else np.asarray(self.components, int)
        if which.size == 0 or which.min() < 0 or which.max() >= nominal.size:
            raise ModelError(
                f"free: components {which.tolist()} of {names[0]!r}; it has {nominal.size}, numbered from 0"
            )
        own = nominal.reshape(-1)[which]
        low, high = _bounds(names[0], self.low, self.high, len(which))
        signed = p.kind in _SIGNED and not names[0].endswith(".mass")
        if not signed:
            low = np.maximum(low, 0.0)
        log = np.full(len(which), not signed) & (own > 0) & ((low > 0) | (self.low is None))
        size = np.where(np.isfinite(high - low), (high - low) / 2, np.maximum(np.abs(own).max(), 0.1))
        size = np.where(size > 0, size, 1.0)
        base = np.where(log, np.log(np.where(log, own, 1.0)), 0.0)

        def to_x(v: np.ndarray) -> np.ndarray:
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(log, np.log(np.maximum(v, 0.0)) - base, (v - own) / size)

        def place(x: Any) -> Any:
            return jnp.where(log, jnp.exp(jnp.where(log, x + base, 0.0)), own + size * x)

        def values(c: Any, given: Any) -> dict[str, Any]:
            xp = np if isinstance(c, np.ndarray) else jnp
            whole = xp.asarray(nominal.reshape(-1))
            whole = _placed(whole, which, c)
            return dict.fromkeys(names, whole.reshape(nominal.shape))

        said = (
            [names[0]] if nominal.ndim == 0 else [f"{names[0]}.{'xyz'[k] if nominal.size == 3 else k}" for k in which]
        )
        coordinates = tuple(Coordinate(n, p.unit, _powers(names[0], p.unit)) for n in said)
        label = names[0] if len(names) == 1 else f"{names[0]} (and {len(names) - 1} with it)"
        return Part(label, np.zeros(len(which)), to_x(low), to_x(high), log, coordinates, place, values)


@dataclass(frozen=True)
class Factor:
    """A common factor on the nominal values of several parameters: one material for many panels, one scale of a mechanism.

    names: of the parameters, which may include masses and inertias; low, high: bounds of the factor.

    >>> mbs.design.Factor(["panel.mass", "panel.inertia"], low=0.5, high=2.0).high
    2.0
    """

    names: Sequence[str]
    low: float | None = None
    high: float | None = None

    def part(self, model: Model) -> Part:
        """The variable of this item, the logarithm of the factor. Raises ModelError for unknown names, wrong kinds or
        wrong bounds."""
        for name in self.names:
            kind = _parameter(model, name).kind
            if kind in (Kind.DIRECTION, Kind.ROTATION):
                raise ModelError(f"free: {name!r} is a {kind.name.lower()}, which a factor cannot multiply")
        nominal = {name: np.asarray(mbs.get(model, name), float) for name in self.names}
        low, high = _bounds("a factor", self.low, self.high, 1)
        if self.low is not None and self.low <= 0:
            raise ModelError(f"free: low = {self.low} of a factor on {list(self.names)}; it must be more than zero")
        with np.errstate(divide="ignore"):
            low, high = np.log(np.maximum(low, 0.0)), np.log(high)
        label = f"factor on {', '.join(self.names)}"
        return Part(
            label, np.zeros(1), low, high, np.ones(1, bool), (Coordinate(label, ""),), jnp.exp,
            lambda c, given: {name: c[0] * x for name, x in nominal.items()},
        )  # fmt: skip


def _placed(whole: Any, which: np.ndarray, c: Any) -> Any:
    if isinstance(whole, np.ndarray):
        whole = whole.copy()
        whole[which] = c
        return whole
    return whole.at[which].set(c)


def _parameter(model: Model, name: str) -> Any:
    if name not in model.structure.table:
        raise unknown("parameter", name, model.structure.table, "free")
    return model.structure.table[name][0]


def _bounds(name: str, low: Numbers, high: Numbers, n: int) -> tuple[np.ndarray, np.ndarray]:
    found = []
    for said, bound, none in (("low", low, -np.inf), ("high", high, np.inf)):
        row = np.asarray(none if bound is None else bound, float)
        if row.ndim and row.shape != (n,):
            raise ModelError(f"free: {said} of {name} has {row.size} numbers; give one, or {n}")
        found.append(np.broadcast_to(row, (n,)).astype(float))
    if np.any(found[0] > found[1]):
        raise ModelError(f"free: low {low} of {name} is above high {high}; exchange them")
    return found[0], found[1]


def _powers(name: str, unit: str) -> tuple[int, int] | None:
    return {"kg": (1, 0), "m": (0, 1)}.get(unit)
