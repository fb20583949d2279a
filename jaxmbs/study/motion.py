"""One motion of a study with the model that it belongs to: what pictures are made of."""

from __future__ import annotations

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
        batch, axes, q, v = instances(study, draws_of(study, [sample], dtype), dtype)
        one = {name: x if axes.overrides[name] is None else x[0] for name, x in batch.overrides.items()}
        model, q, v = replace(batch, overrides=one), q[0], v[0]
    return model, jax.jit(lambda m, q, v: simulated(time, m, q, v))(model, q, v)


def check_picture(path: Path) -> None:
    """Raises InputError where no motion can be drawn under this name."""
    if path.suffix not in (".html", ".glb", ".gif", ".mp4"):
        raise InputError(Problem(str(path), "the name must end with .html (a page that plays), .glb, .gif or .mp4"))
