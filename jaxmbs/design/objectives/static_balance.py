"""Static balance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from jaxmbs.design.objectives.base import Objective, Setting
from jaxmbs.dynamics.recursive import scalar
from jaxmbs.model import ModelError
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field

if TYPE_CHECKING:
    from jaxmbs.model import Model

Array = Any


@element
class StaticBalance(Objective):
    """No torque is needed to hold the mechanism in any configuration: gravity and springs balance.

    The residuals are the generalized forces at rest at random configurations, relative to the largest such force of the
    nominal mechanism.

    >>> mbs.design.StaticBalance(weight=2.0).weight
    2.0
    """

    configurations: int = field(Kind.COUNT, "", "number of random configurations at which it must hold", default=24)

    def check(self, setting: Setting) -> None:
        if not np.max(self.constants(setting)) > 0:
            raise ModelError("StaticBalance: nothing acts on the mechanism at rest; it has no gravity and no springs")

    def data(self, setting: Setting) -> Any:
        return setting.configurations(self.configurations)

    def constants(self, setting: Setting) -> Any:
        """The largest nominal generalized force at rest, (1,)."""
        still = [0.0] * setting.model.nv
        points = np.asarray(setting.configurations(self.configurations))
        held = [scalar.bias_forces(setting.model, list(map(float, q)), still) for q in points]
        return np.array([np.abs(np.array(held, float)).max()])

    def measure(self, model: Model, instance: Any, own: Array) -> Array:
        return mbs.bias_forces(model, instance, jnp.zeros(model.nv, instance.dtype))

    def residuals(self, measured: Array, constants: Any) -> Array:
        return (measured / constants[None]).reshape(-1)
