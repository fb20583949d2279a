"""Baumgarte's stabilisation: violations of the constraints decay, g" + 2 w g' + w² g = 0."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.dynamics.constrained.base import Constraints
from jaxmbs.dynamics.state.vectors import each
from jaxmbs.spatial import kernel
from jaxmbs.spatial.known import known
from jaxmbs.spatial.scalar import Scalar


def stabilised(found: Constraints, w: Scalar) -> Any:
    """The drift with Baumgarte's terms; w [rad/s]. The velocity along a nonholonomic row decays at the rate w."""
    on: Any = found.holonomic
    on = jnp.asarray(on, found.drift.dtype) if isinstance(found.drift, jax.Array) else [known(int(x)) for x in on]
    return _stabilised(found.drift, found.rate, found.residual, on, w)


@kernel
def _stabilised(drift: Any, rate: Any, residual: Any, holonomic: Any, w: Scalar) -> Any:
    def row(drift: Scalar, rate: Scalar, g: Scalar, on: Scalar) -> Scalar:
        return drift + w * rate + on * (w * (rate + w * g))

    return each(row, drift, rate, residual, holonomic)
