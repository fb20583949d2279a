"""Identification: measured torques explained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from jaxmbs.design.objectives.base import Objective, Setting
from jaxmbs.model import ModelError
from jaxmbs.model.fields import element, field
from jaxmbs.model.kinds import Kind

if TYPE_CHECKING:
    from jaxmbs.model import Model

Array = Any


@element
class MeasuredTorques(Objective):
    """Inverse dynamics explains measured torques, weighed by their noise.

    measurements: {"q": (T, nq), "v": (T, nv), "a": (T, nv), "tau": (T, nv)}. With `goal="least"` the findings tell which
    combinations of parameters the measurements determine, and with what standard deviation.

    >>> still = {"q": np.zeros((5, 1)), "v": np.zeros((5, 1)), "a": np.zeros((5, 1)), "tau": np.zeros((5, 1))}
    >>> mbs.design.MeasuredTorques(still, noise=0.1, goal="least").noise
    0.1
    """

    noisy: ClassVar[bool] = True

    measurements: Mapping[str, np.ndarray | jax.Array] = field(
        Kind.ARRAYS, "", "arrays q, v, a, tau, a row for each instant"
    )
    noise: float = field(Kind.POSITIVE, "N m or N", "standard deviation of the torques")

    def check(self, setting: Setting) -> None:
        model = setting.model
        sizes = {"q": model.nq, "v": model.nv, "a": model.nv, "tau": model.nv}
        for name, size in sizes.items():
            shape = np.shape(self.measurements.get(name, ()))
            if len(shape) != 2 or shape[1] != size or shape[0] != len(self.measurements["q"]):
                raise ModelError(f"MeasuredTorques: {name!r} has shape {shape}; pass (instants, {size})")

    def data(self, setting: Setting) -> Any:
        return tuple(jnp.asarray(self.measurements[k], float) for k in ("q", "v", "a", "tau"))

    def measure(self, model: Model, instance: Any, own: Array) -> Array:
        q, v, a, tau = instance
        return (mbs.inverse_dynamics(model, q, v, a) - tau) / self.noise

    def residuals(self, measured: Array, constants: Any) -> Array:
        return measured.reshape(-1)
