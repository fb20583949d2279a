"""The design compared with the original model on the same random numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from jaxmbs.design.objectives.mass_matrices import ConfigurationIndependence, Decoupling, NoBaseReaction
from jaxmbs.design.samples import draws_of, moved
from jaxmbs.design.synthesize import Design

if TYPE_CHECKING:
    from jaxmbs.model import Model
    from jaxmbs.study import Study

Array = Any


@dataclass(frozen=True)
class Row:
    """One number of the comparison: of the original (`before`) and of the design (`after`)."""

    what: str
    unit: str
    before: float
    after: float


@dataclass(frozen=True)
class Comparison:
    """The original compared with a design. title: on which samples or configurations; rows: the numbers compared;
    samples: {output: (before, after)}, values of all samples in the unit that is shown."""

    title: str
    rows: tuple[Row, ...]
    samples: dict[str, tuple[np.ndarray, np.ndarray]]


def variation(model: Model, count: int, seed: int = 1) -> np.ndarray:
    """(nv, nv) largest departure of every entry of A from its mean over `count` random configurations, relative to
    sqrt(A_ii A_jj) of the mean."""
    keys = jax.random.split(jax.random.key(seed), count)
    q = jax.jit(jax.vmap(model.random))(keys)
    A = np.asarray(mbs.jit(lambda q: mbs.mass_matrix(model, q), in_axes=0)(q))
    mean = A.mean(axis=0)
    size = np.sqrt(np.diagonal(mean))
    return np.abs(A - mean).max(axis=0) / np.outer(size, size)


def compare(design: Design, count: int, study: Study | None = None) -> Comparison:
    """Compare the nominal model with the design on `count` configurations, or on samples of the study's dispersions."""
    if count == 0:
        return Comparison("", (), {})
    about_A = (ConfigurationIndependence, Decoupling, NoBaseReaction)
    if any(isinstance(o, about_A) for o in design.problem.objectives):
        before, after = (variation(m, count) for m in (design.problem.model, design.model))
        row = Row("largest variation of A(q), over sqrt(A_ii A_jj)", "", float(before.max()), float(after.max()))
        return Comparison(f"A(q) at {count:,} random configurations", (row,), {})
    if study is None or not study.outputs or study.simulation is None:
        return Comparison("", (), {})
    return _samples(design, count, study)


def _samples(design: Design, count: int, study: Study) -> Comparison:
    """Compare both on common random numbers, with one program that takes the parameters as an argument."""
    model, names = design.problem.model, list(design.parameters)
    nominal = {n: jnp.asarray(mbs.get(model, n), float) for n in names}
    found_ones = {n: jnp.asarray(design.parameters[n], float) for n in names}

    def one(draw: Array, parameters: dict[str, Array]) -> tuple[dict[str, Array], Array]:
        run = moved(study, mbs.set(model, parameters), draw[None])
        failed = run.status[0] != 0
        return {n: jnp.where(failed, jnp.nan, x[0]) for n, x in run.outputs.items()}, run.status[0]

    program = mbs.jit(one, in_axes=(0, None))
    # the search uses other draws, which are evenly spread
    draws = draws_of(study, count if study.dispersions.items else 1)
    found, status = zip(*(program(draws, parameters) for parameters in (nominal, found_ones)), strict=True)
    rows, values = [], {}
    failed = [float(np.sum(np.asarray(s) != 0)) for s in status]
    if any(failed):  # quantiles leave failed samples out, and these meet no criterion
        rows.append(Row("samples whose motion failed", "", *failed))
    for name, unit in study.shown.items():
        x, y = (np.asarray(f[name]) / unit.factor for f in found)
        values[name] = (x, y)
        for what, q in (("median", 0.5), ("99 %", 0.99)):
            rows.append(Row(f"{name}, {what}", unit.name, float(np.nanquantile(x, q)), float(np.nanquantile(y, q))))
    for c in study.criteria:
        x, y = (c.met(np.asarray(f[c.output])).mean() for f in found)
        rows.append(Row(f"probability of {c.text}", "", float(x), float(y)))
    return Comparison(f"{len(draws):,} samples with the same random numbers", tuple(rows), values)
