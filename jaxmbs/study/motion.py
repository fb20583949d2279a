"""One motion of a study with the model that it belongs to: what pictures are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

import jaxmbs as mbs
from jaxmbs.io.errors import InputError, Problem
from jaxmbs.study.batch import draws_of, instances, precision, simulated

if TYPE_CHECKING:
    from jaxmbs.study.problem import Study


def motion(study: Study, sample: int | None = None) -> tuple[mbs.Model, mbs.Solution]:
    """(model, motion) of a sample by its index, or of the nominal mechanism."""
    dtype, time = precision(), study.simulation
    model, q, v = study.model, jnp.asarray(study.q0, dtype), jnp.asarray(study.v0, dtype)
    if sample is not None and study.dispersions.items:
        ((model, q, v),) = mechanisms(study, [sample])
    return model, jax.jit(lambda m, q, v: simulated(time, m, q, v))(model, q, v)


def mechanisms(study: Study, samples: Sequence[int]) -> list[tuple[mbs.Model, jax.Array, jax.Array]]:
    """(model, q, v) at the start of each of the samples, of a study with dispersions."""
    dtype = precision()
    batch, axes, q, v = instances(study, draws_of(study, samples, dtype), dtype)
    own = [
        {name: x if axes.overrides[name] is None else x[k] for name, x in batch.overrides.items()}
        for k in range(len(samples))
    ]
    return [(replace(batch, overrides=o), q[k], v[k]) for k, o in enumerate(own)]


def check_picture(path: Path) -> None:
    """Raises InputError where no motion can be drawn under this name."""
    if path.suffix not in (".html", ".glb", ".gif", ".mp4"):
        raise InputError(Problem(str(path), "the name must end with .html (a page that plays), .glb, .gif or .mp4"))
