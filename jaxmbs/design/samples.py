"""Motions of dispersed samples: the same random numbers for every candidate, those of the study."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

import jaxmbs as mbs
from jaxmbs.model import ModelError

if TYPE_CHECKING:
    from jaxmbs.model import Model
    from jaxmbs.study import Study

Array = Any


class Moved(NamedTuple):
    """What motions gave, (samples,) each: outputs by name, time [s] and lost energy [J] of the first of every event by name,
    and whether it happened."""

    outputs: dict[str, Array]
    time: dict[str, Array]
    lost: dict[str, Array]
    happened: dict[str, Array]


def draws_of(study: Study, count: int, first: int = 0) -> Array:
    """(count, k) draws of samples first, first + 1, ...: those that `jaxmbs study` takes."""
    if not study.dispersions.items:
        return jnp.zeros((count, 0))
    from jaxmbs.study.batch import draws_of as draws

    return draws(study, range(first, first + count), float)


def moved(study: Study, model: Model, draws: Array) -> Moved:
    """The motions of a candidate's samples."""
    from jaxmbs.study.batch import simulated
    from jaxmbs.study.outputs.folding import folded, kept

    start, fold = folded(study.outputs, draws.dtype)
    names = model.event_names

    def one(draw: Array) -> Moved:
        own, q, v = model, jnp.asarray(study.q0), jnp.asarray(study.v0)
        if study.dispersions.items:
            numbers = study.dispersions.apply(draw, draw.dtype, model.overrides)
            own, q, v = mbs.set(model, numbers.parameters), numbers.q, numbers.v
        time = study.simulation
        run = simulated(time, own, q, v, save_every=None, fold=(start, fold) if start else None)
        outputs = kept(study.outputs, run.folded, run.events, own, q, v)
        is_it = {name: run.events.index == k for k, name in enumerate(names)}
        when = {n: jnp.min(jnp.where(at, run.events.time, time.t_end)) for n, at in is_it.items()}
        lost = {n: jnp.sum(jnp.where(at, run.events.energy_lost, 0.0)) for n, at in is_it.items()}
        return Moved(outputs, when, lost, {n: at.any() for n, at in is_it.items()})

    return jax.vmap(one)(draws)


def require_effect(study: Study, free: Iterable[str]) -> None:
    """Raise ModelError where the draws of a dispersion would replace what is free, and where samples are laid out by their
    number, of which a search has its own."""
    from jaxmbs.study.sampling.designs import RANDOM

    if study.plan.design != RANDOM:
        raise ModelError(
            f'[study] design = "{study.plan.design}": a search takes samples one by one; leave the design out'
        )
    names = set(free)
    for d in study.dispersions.items:
        if d.target.name in names and d.apply == "replace":
            raise ModelError(
                f'dispersions."{d.name}": its draws replace {d.target.name}, which is free and would have no effect; use '
                'apply = "add" or "multiply"'
            )
