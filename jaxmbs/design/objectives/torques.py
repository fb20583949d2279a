"""Identification from measured torques."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from jaxmbs.design.objectives.base import Setting
from jaxmbs.design.objectives.measurements import Measured, coordinate
from jaxmbs.model import ModelError
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field

if TYPE_CHECKING:
    from jaxmbs.model import Model

Array = Any


@element
class MeasuredTorques(Measured):
    """Inverse dynamics explains measured torques, weighted by their noise.

    measurements: {"q": (T, nq), "v": (T, nv), "a": (T, nv), "tau": (T, nv)}; in a file the columns are "joint.q", "joint.v",
    "joint.a" and "joint.tau", for joints with several coordinates "joint.q[0]" and so on. NaN among the torques marks a gap.
    With `goal="least"` the findings state which combinations of parameters the measurements determine, and with what
    standard deviation.

    >>> still = {"q": np.zeros((5, 1)), "v": np.zeros((5, 1)), "a": np.zeros((5, 1)), "tau": np.zeros((5, 1))}
    >>> mbs.design.MeasuredTorques(still, noise=0.1, goal="least").noise
    0.1
    """

    noise: float = field(Kind.POSITIVE, "N m or N", "standard deviation of the torques", kw_only=True)

    def check(self, setting: Setting) -> None:
        model, given = setting.model, self.named()
        sizes = {"q": model.nq, "v": model.nv, "a": model.nv, "tau": model.nv}
        for name, size in sizes.items():
            shape = np.shape(given.get(name, ()))
            if len(shape) != 2 or shape[1] != size or shape[0] != len(given["q"]):
                raise ModelError(f"MeasuredTorques: {name!r} has shape {shape}; pass (instants, {size})")

    def of_columns(self, model: Model, columns: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
        rows = len(next(iter(columns.values())))
        found = {"q": np.full((rows, model.nq), np.nan)} | {
            k: np.full((rows, model.nv), np.nan) for k in ("v", "a", "tau")
        }
        for name, column in columns.items():
            where = coordinate(model, name, "q v a tau")
            if where is not None:
                found[where[0]][:, where[1]] = column
            elif name != "t":
                raise ModelError(
                    f'column "{name}" is unknown; columns are named joint.q, joint.v, joint.a and joint.tau'
                )
        for kind in ("q", "v", "a"):
            if not np.isfinite(found[kind]).all():
                raise ModelError(f"{kind} of every joint is needed in every row; columns or cells are missing")
        return found

    def data(self, setting: Setting) -> Any:
        return tuple(jnp.asarray(self.named()[k], float) for k in ("q", "v", "a", "tau"))

    def measure(self, model: Model, instance: Any, own: Array) -> Array:
        q, v, a, tau = instance
        gap = jnp.isnan(tau)
        return jnp.where(gap, 0.0, (mbs.inverse_dynamics(model, q, v, a) - jnp.where(gap, 0.0, tau)) / self.noise)

    def residuals(self, measured: Array, constants: Any) -> Array:
        return measured.reshape(-1)
