"""Dispersions: which draws a sample takes, and the numbers that it gets from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.io.errors import InputError, Problem, choices, dotted
from jaxmbs.spatial import kernel
from jaxmbs.study import units
from jaxmbs.study.distributions import Components, Distribution, component_keys, variates
from jaxmbs.study.targets import Numbers, Target, Way, start, target

if TYPE_CHECKING:
    from jaxmbs.model import Model

Array = Any


@dataclass(frozen=True)
class Dispersion:
    """One dispersion, checked: `way` of acting on `target`, variates of k components in SI."""

    name: str
    table: Distribution
    target: Target
    apply: str
    way: Way
    components: Components
    unit: units.Unit | None  # of the file's numbers

    @property
    def k(self) -> int:
        """Number of independent scalar draws."""
        return len(self.components.kind)

    @property
    def quantity(self) -> str | None:
        return self.way.quantity


@dataclass(frozen=True)
class Dispersions:
    """All dispersions of a study, in the file's order, with the nominal state they act on.

    `draw` and `apply` are pure functions of one sample; vmap them over samples.
    """

    items: tuple[Dispersion, ...]
    q0: np.ndarray
    v0: np.ndarray

    @property
    def components(self) -> Components:
        return Components.join([d.components for d in self.items])

    def keys(self, key: jax.Array) -> jax.Array:
        """(k,) keys of all components; adding a dispersion changes none of the others'."""
        return jnp.concatenate([component_keys(key, d.name, d.k) for d in self.items])

    def draw(self, keys: jax.Array, index: Array, dtype: Any) -> Array:
        """All draws of sample `index` in SI: (k,), those of the first dispersion first."""
        # a call that is not inlined: fused into its consumers it would be computed once for each of them
        return kernel(lambda keys, index: variates(keys, index, self.components, dtype))(keys, index)

    def split(self, draws: Array) -> dict[str, Array]:
        """Draws (..., k) by dispersion."""
        ends = np.cumsum([d.k for d in self.items])
        return {d.name: draws[..., end - d.k : end] for d, end in zip(self.items, ends, strict=True)}

    def apply(self, draws: Array, dtype: Any) -> Numbers:
        """The sample's parameters and initial state from its draws (k,)."""
        numbers = start({d.target.name: d.target for d in self.items}, self.q0, self.v0, dtype)
        own = self.split(draws)
        for d in self.items:
            # a common draw is one number for all components
            numbers = d.way.act(numbers, jnp.broadcast_to(own[d.name], d.way.neutral.shape))
        diagonal = {n: jnp.diagonal(numbers.parameters[n]) for n in self._principal()}
        return Numbers(numbers.parameters | diagonal, numbers.q, numbers.v)

    def _principal(self) -> set[str]:
        """Inertias that stay diagonal: they keep their structural zeros."""
        tilted = {d.target.name for d in self.items if d.apply == "tilt"}
        inertias = {d.target.name: d.target.nominal for d in self.items if d.target.name.endswith(".inertia")}
        return {n for n, x in inertias.items() if n not in tilted and not np.any(x - np.diag(np.diag(x)))}


def resolve(
    tables: Mapping[str, Distribution], model: Model, joint_types: Mapping[str, str], q0: np.ndarray, v0: np.ndarray
) -> Dispersions:
    """Checked dispersions. Raises InputError with every problem found."""
    items: list[Dispersion] = []
    problems: list[Problem] = []
    for name, table in tables.items():
        try:
            items.append(_one(name, table, model, joint_types, q0, v0))
        except ValueError as error:
            problems.append(Problem(dotted(("dispersions", name)), str(error)))
    for name, message in _not_positive(items):
        problems.append(Problem(dotted(("dispersions", name)), message))
    if problems:
        raise InputError(problems)
    return Dispersions(tuple(items), q0, v0)


def _one(
    name: str, table: Distribution, model: Model, joint_types: Mapping[str, str], q0: np.ndarray, v0: np.ndarray
) -> Dispersion:
    aim = target(table.target or name, model, joint_types, q0, v0)
    apply = table.apply or next(iter(aim.ways))
    if apply not in aim.ways:
        raise ValueError(f'apply = "{apply}" does not go with {aim.name}; {choices(apply, aim.ways, "it takes")}')
    way = aim.ways[apply]
    unit = units.unit(table.unit, way.quantity) if table.unit else None
    neutral = way.neutral
    if table.common:
        if np.ptp(neutral):
            raise ValueError(f'common = true needs apply = "add" or "multiply": {aim.name} has different components')
        neutral = neutral[:1]
    return Dispersion(name, table, aim, apply, way, table.components(neutral, unit.factor if unit else 1.0), unit)


def _not_positive(items: Sequence[Dispersion]) -> list[tuple[str, str]]:
    """Masses and inertias whose draws could leave the physical range, with the remedy."""
    found = []
    lowest: dict[str, float] = {}
    for d in items:
        if not d.target.positive or d.apply == "tilt":
            continue
        low, name = float(np.min(d.components.support[0])), d.target.name
        before = lowest.get(name, 1.0 if name.endswith(".inertia") else float(np.min(d.target.nominal)))
        lowest[name] = {"replace": low, "add": before + low, "multiply": before * low}[d.apply]
        if lowest[name] <= 0 or (d.apply == "multiply" and low <= 0):
            found.append((
                d.name,
                f"a draw can reach {low:.3g}, which makes {name} negative or zero; "
                'use "truncated_normal" with a positive low, "lognormal", or a smaller width',
            ))  # fmt: skip
    return found
