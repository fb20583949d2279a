"""User-defined objectives."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from jaxmbs.design.objectives.base import Objective, Setting
from jaxmbs.model import ModelError
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field

if TYPE_CHECKING:
    from jaxmbs.model import Model

Array = Any


@element
class Function(Objective):
    """User-defined residuals, over a batch of configurations.

    fn(model, q) -> residuals (k,) or a scalar, at each of `configurations` random q; `together`, if given, computes the
    residuals (n,) from all of these results (configurations, k). With at_most or at_least the results are values of
    one-sided conditions.

    >>> level = mbs.design.Function(lambda model, q: mbs.energy(model, q, jnp.zeros(2))[1], configurations=8)
    >>> level.configurations
    8
    """

    fn: Callable[..., Any] = field(Kind.FUNCTION, "", "function (model, q) of one configuration")
    configurations: int = field(Kind.COUNT, "", "random configurations", default=24)
    together: Callable[..., Any] | None = field(
        Kind.FUNCTION,
        "",
        "function of all that was measured, giving the residuals; None takes it as it is",
        default=None,
    )
    at_most: float | None = field(Kind.NUMBER, "", "value that they may not exceed", default=None, kw_only=True)
    at_least: float | None = field(Kind.NUMBER, "", "value that they may not fall below", default=None, kw_only=True)

    def check(self, setting: Setting) -> None:
        if not callable(self.fn):
            raise ModelError("Function: fn is not a function; pass fn(model, q)")
        if self.at_most is not None and self.at_least is not None:
            raise ModelError("Function: at_most and at_least cannot be combined; write an objective for each")

    def data(self, setting: Setting) -> Any:
        return setting.configurations(self.configurations)

    def measure(self, model: Model, instance: Any, own: Array) -> Array:
        return jnp.asarray(self.fn(model, instance)).reshape(-1)

    def residuals(self, measured: Array, constants: Any) -> Array:
        margin = self.margins(measured, constants)
        return self._all(measured) if margin is None else jnp.maximum(-margin, 0.0)

    def margins(self, measured: Array, constants: Any) -> Array | None:
        if self.at_most is not None:
            return self.at_most - self._all(measured)
        return None if self.at_least is None else self._all(measured) - self.at_least

    def _all(self, measured: Array) -> Array:
        return jnp.reshape(measured if self.together is None else self.together(measured), -1)

    def describe(self, model: Model) -> str:
        name = getattr(self.fn, "__name__", "a function")
        if self.at_most is not None or self.at_least is not None:
            bound = f"at most {self.at_most:g}" if self.at_most is not None else f"at least {self.at_least:g}"
            return f"values of {name} {bound}"
        asked = {"zero": "vanish", "least": "as small as they can be", "lowest": "as low as they can be on average"}
        return f"residuals of {name} {asked[self.goal]}"
