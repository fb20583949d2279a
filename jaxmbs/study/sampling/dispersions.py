"""Dispersions: the draws of a sample, and the numbers that it gets from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.io.errors import InputError, Problem, choices, dotted
from jaxmbs.model import get
from jaxmbs.model.field_rules import Kind, refused
from jaxmbs.spatial import kernel
from jaxmbs.study import units
from jaxmbs.study.distributions.base import Components, Distribution, component_keys, quantiles, uniforms
from jaxmbs.study.sampling.correlation import CorrelationTable, coupled, factor
from jaxmbs.study.sampling.targets import Numbers, Target, Way, start, target

if TYPE_CHECKING:
    from jaxmbs.model import Model
    from jaxmbs.model.fields import Element
    from jaxmbs.model.joints import Joint

Array = Any


@dataclass(frozen=True)
class Dispersion:
    """A checked dispersion: it acts on `target` in the given `way`, with k variates `components` in SI."""

    name: str
    table: Distribution
    target: Target
    apply: str
    way: Way
    components: Components
    unit: units.Unit | None  # unit of the numbers in the file

    @property
    def k(self) -> int:
        """Number of scalar draws; 1 if all components of the target share one (`common`)."""
        return len(self.components.kind)

    @property
    def quantity(self) -> str | None:
        return self.way.quantity

    @property
    def labels(self) -> tuple[str, ...]:
        """(k,) names of the draws."""
        return (self.name,) if self.k == 1 else tuple(f"{self.name}[{i}]" for i in range(self.k))

    @property
    def inputs(self) -> tuple[tuple[str, int], ...]:
        """(k,) random numbers (name, component) from which the draws are computed; dispersions may share them."""
        name = self.table.draw or self.name
        return tuple((name, 0 if self.table.whole_rows else i) for i in range(self.k))


@dataclass(frozen=True)
class Dispersions:
    """All dispersions of a study, in the file's order, with the nominal state that they act on.

    `draw` and `apply` are pure functions of one sample; use vmap for several. m random numbers ("inputs") give k draws.
    triangle: (m, m) triangular factor of the inputs' correlation matrix; per_day: number of samples of a day, which
    share the inputs known on that day; correlations: the tables [[correlations]] of the file.
    """

    items: tuple[Dispersion, ...]
    q0: np.ndarray
    v0: np.ndarray
    triangle: np.ndarray | None = None
    per_day: int = 1
    correlations: tuple[CorrelationTable, ...] = ()

    @property
    def components(self) -> Components:
        return Components.join([d.components for d in self.items])

    @cached_property
    def _inputs(self) -> dict[tuple[str, int], int]:
        """The inputs with their positions; components of one name are contiguous."""
        sizes: dict[str, int] = {}
        for name, i in (found for d in self.items for found in d.inputs):
            sizes[name] = max(sizes.get(name, 0), i + 1)
        return {x: place for place, x in enumerate((name, i) for name, size in sizes.items() for i in range(size))}

    @property
    def inputs(self) -> tuple[str, ...]:
        """(m,) names of the inputs."""
        several = {name for name, i in self._inputs if i}
        return tuple(f"{name}[{i}]" if name in several else name for name, i in self._inputs)

    @property
    def known(self) -> np.ndarray:
        """(m,) whether each input is known on the day, so that all samples of the day share it."""
        named = {name for d in self.items if d.table.known for name in d.inputs}
        return np.array([name in named for name in self._inputs], bool)

    @property
    def source(self) -> np.ndarray:
        """(k,) position of the input of each draw."""
        return np.array([self._inputs[name] for d in self.items for name in d.inputs], int)

    def keys(self, key: jax.Array) -> jax.Array:
        """(m,) keys of all inputs; adding a dispersion does not change those of the others."""
        sizes = {name: i + 1 for name, i in self._inputs}  # the last component of each name gives its size
        return jnp.concatenate([component_keys(key, name, size) for name, size in sizes.items()])

    def draw(self, keys: jax.Array, index: Array, dtype: Any) -> Array:
        """(k,) all draws of sample `index` in SI, in the order of the dispersions."""

        def drawn(keys: jax.Array, index: Array) -> Array:
            if self.per_day > 1 and self.known.any():
                index = jnp.where(self.known, index // self.per_day, index)
            return self.of_uniform(uniforms(keys, index, dtype), dtype)

        # not inlined: fused into its consumers, it would be computed once for each of them
        return kernel(drawn)(keys, index)

    def of_uniform(self, s: Array, dtype: Any) -> Array:
        """(k,) draws from independent numbers s (m,), uniform in (-1, 1): random ones, or those of a plan or a
        search."""
        if self.triangle is not None:
            s = coupled(s, self.triangle, dtype)
        source = self.source
        return quantiles(s if np.array_equal(source, np.arange(len(s))) else s[source], self.components, dtype)

    def split(self, draws: Array) -> dict[str, Array]:
        """Draws (..., k) by dispersion."""
        ends = np.cumsum([d.k for d in self.items])
        return {d.name: draws[..., end - d.k : end] for d, end in zip(self.items, ends, strict=True)}

    @property
    def neutral(self) -> np.ndarray:
        """(k,) the draws that change nothing: those of the nominal motion."""
        return np.concatenate([np.zeros(0), *(d.way.neutral[: d.k] for d in self.items)])

    def apply(self, draws: Array, dtype: Any, nominal: Mapping[str, Array] | None = None) -> Numbers:
        """The sample's dispersed parameters and its initial state, from its draws (k,). nominal: nominal values to take
        instead of the model's, by parameter."""
        numbers = start({d.target.name: d.target for d in self.items}, self.q0, self.v0, dtype)
        other = {name: x for name, x in (nominal or {}).items() if name in numbers.parameters}
        numbers = replace(numbers, parameters=numbers.parameters | other)
        own = self.split(draws)
        for d in self.items:
            # a common draw is one number for all components
            numbers = d.way.act(numbers, jnp.broadcast_to(own[d.name], d.way.neutral.shape))
        diagonal = {n: jnp.diagonal(numbers.parameters[n]) for n in self._principal()}
        return Numbers(numbers.parameters | diagonal, numbers.q, numbers.v)

    def unphysical(self, model: Model) -> Array:
        """(B,) whether the parameters of each sample are physically impossible. model: its parameters have one value
        per sample."""
        names = {d.target.name: d.target.kind for d in self.items if d.target.kind is not None}
        found: Array = jnp.zeros((), bool)
        for name, kind in names.items():
            found = found | jax.vmap(partial(refused, kind))(model.overrides[name])
        demanding = model.structure.demanding
        for name, element in dict.fromkeys(demanding[n] for n in names if n in demanding):
            found = found | ~_requirements_met(model, name, element)
        return found

    @property
    def warnings(self) -> list[str]:
        """Warnings about what is probably not intended."""
        found = []
        for d in self.items:
            middle = d.components.middle
            if d.apply == "multiply" and np.any((middle < 0.5) | (middle > 2)):
                value = float(middle[np.argmax(np.abs(np.log(np.maximum(middle, 1e-300))))])
                found.append(
                    f'dispersions."{d.name}": apply = "multiply" with draws around {value:g} makes {d.target.name} '
                    f'{value:g} times its nominal value; apply = "replace" takes draws as values'
                )
        return found

    def _principal(self) -> set[str]:
        """Names of the inertias that stay diagonal, so that they keep their structural zeros."""
        tilted = {d.target.name for d in self.items if d.apply == "tilt"}
        inertias = {d.target.name: d.target.nominal for d in self.items if d.target.name.endswith(".inertia")}
        return {n for n, x in inertias.items() if n not in tilted and not np.any(x - np.diag(np.diag(x)))}


def _requirements_met(model: Model, name: str, element: Element) -> Array:
    """Whether the numbers of an element, one value per sample, satisfy the element's requirements on all of them
    together. name: the prefix of the names of these numbers."""
    p = {path: model.overrides.get(f"{name}.{path}") for path in element.numbers}
    varied = {path: x for path, x in p.items() if x is not None}
    fixed = {path: jnp.asarray(get(model, f"{name}.{path}")) for path, x in p.items() if x is None}

    def met(own: dict[str, Array]) -> Array:
        return jnp.array(list(element.requirements(fixed | own).values()), bool).all()

    return jax.vmap(met)(varied)


def resolve(
    tables: Mapping[str, Distribution], model: Model, joints: Mapping[str, Joint], q0: np.ndarray, v0: np.ndarray,
    correlations: Sequence[CorrelationTable] = (), per_day: int = 1,
) -> Dispersions:  # fmt: skip
    """Checked dispersions. Raises InputError with every problem found."""
    items: list[Dispersion] = []
    problems: list[Problem] = []
    for name, table in tables.items():
        try:
            items.append(_one(name, table, model, joints, q0, v0))
        except ValueError as error:
            problems.append(Problem(dotted(("dispersions", name)), str(error)))
    for name, message in _unphysical(items):
        problems.append(Problem(dotted(("dispersions", name)), message))
    if problems:
        raise InputError(problems)
    found = Dispersions(tuple(items), q0, v0, per_day=per_day)
    own = {d.name: c for d in items if (c := d.table.correlation(d.k)) is not None}
    loose = {
        name: "rows of a file are drawn whole and have no order, so they cannot be correlated"
        for d in items if d.table.whole_rows for name in (d.name, *d.labels, d.table.draw)
    }  # fmt: skip
    return replace(found, triangle=factor(correlations, own, found.inputs, loose), correlations=tuple(correlations))


def _one(
    name: str, table: Distribution, model: Model, joints: Mapping[str, Joint], q0: np.ndarray, v0: np.ndarray
) -> Dispersion:
    aim = target(table.target or name, model, joints, q0, v0)
    apply = table.apply or next(iter(aim.ways))
    if apply not in aim.ways:
        raise ValueError(f'apply = "{apply}" is not possible for {aim.name}; {choices(apply, aim.ways, "it takes")}')
    way = aim.ways[apply]
    unit = units.unit(table.unit, way.quantity) if table.unit else None
    neutral = way.neutral
    if table.correlation(len(neutral)) is not None and (table.common or table.draw):
        raise ValueError("a covariance needs draws of its own for all components; leave out `common` and `draw`")
    if table.common:
        if np.ptp(neutral):
            raise ValueError(f'common = true needs apply = "add" or "multiply": {aim.name} has different components')
        neutral = neutral[:1]
    return Dispersion(name, table, aim, apply, way, table.components(neutral, unit.factor if unit else 1.0), unit)


def _unphysical(items: Sequence[Dispersion]) -> list[tuple[str, str]]:
    """(name, message) of each dispersion that can make a mass or an inertia unphysical, however rarely, or that makes
    another number unphysical in half of the draws or more.

    Any other number may be unphysical in fewer draws than that: the samples concerned get the status "unphysical".
    """
    found = []
    reached: dict[str, tuple[np.ndarray, np.ndarray]] = {}  # by target: lowest value and median
    for d in items:
        name, kind = d.target.name, d.target.kind
        if kind not in _WITH_SIGN or d.apply == "tilt":
            continue
        least, middle = d.components.support[0], d.components.middle
        nominal = np.ones(1) if kind is Kind.INERTIA else d.target.nominal.reshape(-1)
        lowest, usual = reached.get(name, (nominal, nominal))
        lowest, usual = reached[name] = _acted(d.apply, lowest, least), _acted(d.apply, usual, middle)
        if d.target.is_mass and (np.min(lowest) <= 0 or (d.apply == "multiply" and np.min(least) <= 0)):
            remedy = 'use "truncated_normal" with a positive low, "lognormal", or a smaller width'
            found.append(
                (d.name, f"a draw can reach {np.min(least):.3g}, which makes {name} negative or zero; {remedy}")
            )
        elif np.min(usual) < 0 or (kind is Kind.POSITIVE and np.min(usual) == 0):
            wanted = "more than zero" if kind is Kind.POSITIVE else "zero or more"
            message = f"half of the draws or more make {name} {np.min(usual):.3g} or less, but it must be {wanted}"
            found.append((d.name, f"{message}; check the unit and `apply`"))
    return found


_WITH_SIGN = (Kind.NOT_NEGATIVE, Kind.NOT_NEGATIVE_VECTOR, Kind.POSITIVE, Kind.INERTIA)


def _acted(apply: str, x: np.ndarray, draw: np.ndarray) -> np.ndarray:
    """A number x after a draw has acted on it."""
    return {"replace": draw + 0 * x, "add": x + draw, "multiply": x * draw}[apply]
