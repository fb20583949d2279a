"""Motions of dispersed samples, with the random numbers of the study, which are the same for every candidate.

Packages that only studies need are not dependencies of the library, so the modules that use them are imported only when
samples are simulated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

import jaxmbs as mbs
from jaxmbs.model import ModelError

if TYPE_CHECKING:
    from jaxmbs.model import Model
    from jaxmbs.model.events import Condition
    from jaxmbs.study import Study

Array = Any


class Moved(NamedTuple):
    """Results of motions, (samples,) each: outputs by name; for every event by name the time [s] of its first occurrence,
    the energy [J] lost in all of its occurrences, and whether it happened; and status, a `mbs.Status`.

    An event that did not happen has the end time of the run; if a joint was to reach a value, this time is increased in
    proportion to the distance that the joint still lacks, so that its derivative leads a search towards the event.
    """

    outputs: dict[str, Array]
    time: dict[str, Array]
    lost: dict[str, Array]
    happened: dict[str, Array]
    status: Array


def draws_of(study: Study, count: int, first: int = 0) -> Array:
    """(count, k) draws of samples first, first + 1, ..., the same as those of `jaxmbs study`."""
    if not study.dispersions.items:
        return jnp.zeros((count, 0))
    from jaxmbs.study.samples.batch import draws_of as draws

    return draws(study, range(first, first + count), float)


def even_draws(study: Study, count: int) -> Array:
    """(count, k) draws that cover the dispersions evenly, from Sobol points with the study's seed.

    Probabilities and quantiles of these samples are more accurate than those of the same number of random draws.
    """
    from jaxmbs.study.sampling.designs import SamplingPlan

    dispersions = study.dispersions
    if not dispersions.items:
        return jnp.zeros((count, 0))
    points = SamplingPlan("sobol", dispersions.inputs, count, study.seed, ()).points(0, count)
    return jax.vmap(lambda u: dispersions.of_uniform(2 * u - 1, float))(jnp.asarray(points))


def moved(study: Study, model: Model, draws: Array) -> Moved:
    """The motions of a candidate's samples, one for each of the draws (samples, k)."""
    from jaxmbs.study.outputs.folding import folded, results_of
    from jaxmbs.study.samples.batch import nominal_noise, simulated, status_of

    start, fold = folded(study.outputs, draws.dtype)
    names, events = model.event_names, model.structure.events

    def one(draw: Array) -> Moved:
        own, q, v = model, jnp.asarray(study.q0), jnp.asarray(study.v0)
        if study.dispersions.items:
            numbers = study.dispersions.apply(draw, draw.dtype, model.overrides)
            own, q, v = mbs.set(model, numbers.parameters), numbers.q, numbers.v
        time = study.simulation
        run = simulated(
            time, own, q, v, key=nominal_noise(study), save_every=None, fold=(start, fold) if start else None
        )
        outputs = results_of(study.outputs, run.folded, run.events, own, q, v)
        is_it = {name: run.events.index == k for k, name in enumerate(names)}
        late = {e.name: time.t_end * (1 + _lacking(own, e.name, e.when, q, run.q[-1])) for e in events}
        first = {n: jnp.min(jnp.where(at, run.events.time, jnp.inf)) for n, at in is_it.items()}
        when = {n: jnp.where(is_it[n].any(), jnp.where(is_it[n].any(), t, 0.0), late[n]) for n, t in first.items()}
        lost = {n: jnp.sum(jnp.where(at, run.events.energy_lost, 0.0)) for n, at in is_it.items()}
        alone = replace(
            own, overrides={name: jnp.asarray(x)[None] for name, x in own.overrides.items()}
        )  # a batch of one
        status = status_of(study, alone, run.status[None])[0]
        return Moved(outputs, when, lost, {n: at.any() for n, at in is_it.items()}, status)

    return jax.vmap(one)(draws)


def _lacking(model: Model, name: str, condition: Condition, start: Array, end: Array) -> Array:
    """What a run from the coordinates `start` to `end` lacks of an event (`Condition.lacking`)."""
    joints = [getattr(condition, field) for field in condition.joints]
    first, last = ({joint: q[model.q_slice(joint)] for joint in joints} for q in (start, end))
    return jnp.asarray(condition.lacking(model.values().of(name, condition.numbers), first, last))


def require_effect(study: Study, free: Iterable[str]) -> None:
    """Raise ModelError if the draws of a dispersion would replace a free parameter, or if the study has a sampling plan
    that depends on the number of samples, because a search has its own number of samples."""
    from jaxmbs.study.sampling.designs import RANDOM

    if study.plan.design != RANDOM:
        raise ModelError(
            f'[study] design = "{study.plan.design}": its samples depend on their number, which a search chooses '
            "itself; leave "
            "design out"
        )
    names = set(free)
    for d in study.dispersions.items:
        if d.target.name in names and d.apply == "replace":
            raise ModelError(
                f'dispersions."{d.name}": its draws replace the free parameter {d.target.name}, which would have no '
                'effect; use apply = "add" or "multiply"'
            )
