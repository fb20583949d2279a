"""The model with which a run starts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax.numpy as jnp

from jaxmbs.model import Model
from jaxmbs.model.model import get


def with_states(model: Model, dtype: Any) -> Model:
    """The model with its states as arrays: user functions get it with other values at every instant."""
    own = {p.name: jnp.asarray(get(model, p.name), dtype) for p in model.structure.states}
    return replace(model, overrides={**model.overrides, **own}) if own else model
