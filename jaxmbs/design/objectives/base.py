"""The interface of all objectives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import Element, element, field

if TYPE_CHECKING:
    from jaxmbs.model import Model

Array = Any
GOALS = ("zero", "least", "lowest")


@dataclass(frozen=True)
class Setting:
    """What objectives are prepared for: the model at its nominal values, the seed of random configurations, and the study
    that the file also describes (dispersions, outputs, simulation), if any. fresh: a stochastic search, which takes other
    instances in every step, from other seeds.

    >>> model = mbs.library.double_pendulum().build()
    >>> mbs.design.Setting(model, seed=3).configurations(5).shape
    (5, 2)
    """

    model: Model
    seed: int = 0
    study: Any = None
    fresh: bool = False

    def configurations(self, count: int) -> Array:
        """(count, nq) random configurations from the seed."""
        keys = jax.random.split(jax.random.fold_in(jax.random.key(self.seed), 0), count)
        return _random(self.model, keys)


@jax.jit
def _random(model: Model, keys: Array) -> Array:
    return jax.vmap(model.random)(keys)


@element
class Objective(Element):
    """Base of the objectives: a quantity of a mechanism at many instances (configurations, samples), and its residuals.

    The goal says what a search does with the residuals: it makes them vanish ("zero"), or it minimises the sum of their
    squares ("least") or their mean ("lowest"). A subclass defines `data`, `measure` and `residuals`; a file can name it
    if it belongs to an installed package or to a module of the file.

    >>> class Light(mbs.design.Objective):
    ...     def data(self, setting):
    ...         return setting.configurations(4)
    ...
    ...     def measure(self, model, instance, own):
    ...         return mbs.energy(model, instance, jnp.ones(model.nv))[0][None]
    ...
    ...     def residuals(self, measured, constants):
    ...         return measured.reshape(-1)
    >>> Light(goal="least").weight
    1.0
    """

    simulates: ClassVar[bool] = False  # whether its programs run long enough to be worth a slower, better compilation
    noisy: ClassVar[bool] = False  # whether its residuals are in units of their standard deviation

    weight: float = field(Kind.POSITIVE, "", "factor on its residuals", default=1.0, kw_only=True)
    goal: str = field(
        Kind.CHOICE, "", "zero: a condition that has to hold; least: as small in size as can be; lowest: its mean as low as "
        "can be, below zero too", default="zero", choices=GOALS, kw_only=True,
    )  # fmt: skip
    within: float | None = field(
        Kind.POSITIVE, "", "size that the residuals of a condition may have; 0 where nothing is said", default=None,
        kw_only=True,
    )  # fmt: skip

    def ready(self, setting: Setting) -> Objective:
        """The objective prepared for a setting: itself, or a copy completed from the setting."""
        return self

    def check(self, setting: Setting) -> None:
        """Raise ModelError if the objective does not fit the mechanism of the setting."""

    def data(self, setting: Setting) -> Any:
        """Arrays for a setting, all with the instances on the first axis, over which `measure` is mapped."""
        raise NotImplementedError

    def constants(self, setting: Setting) -> Any:
        """Scales of the residuals and similar constants for a setting: arrays without the axis of instances."""
        return ()

    def own(self, setting: Setting) -> tuple[int, float]:
        """(number, scatter) of the additional unknowns of each instance in a setting, such as joint angles; the scatter is
        that of their random starts."""
        return 0, 0.0

    def own_start(self, setting: Setting) -> np.ndarray:
        """(instances, unknowns) values about which the additional unknowns start in a setting."""
        return np.zeros((0, 0))

    def measure(self, model: Model, instance: Any, own: Array) -> Array:
        """The quantity (k,) of the model at one instance; own: the additional unknowns of the instance."""
        raise NotImplementedError

    def residuals(self, measured: Array, constants: Any) -> Array:
        """Dimensionless residuals (n,) from the measured quantities (instances, k) and the constants."""
        raise NotImplementedError

    def conditions(self, measured: Array, constants: Any) -> Array:
        """Values (n,) that vanish with the residuals, linear in the measured quantities if the constants allow it;
        `Findings` and `certificate` are computed from them."""
        return self.residuals(measured, constants)

    def margins(self, measured: Array, constants: Any) -> Array | None:
        """For a one-sided condition, the values (n,) that must not be negative, from the measured quantities and the
        constants; else None."""
        return None

    def describe(self, model: Model) -> str:
        """What the objective asks of a model, in words."""
        return (type(self).__doc__ or "").split("\n")[0].rstrip(".")


def evaluated(objective: Objective, model: Model, data: Any, own: Array) -> Array:
    """The measured quantities at all instances, (instances, k)."""
    mapped = jax.vmap(lambda instance, mine: objective.measure(model, instance, mine))
    return mapped(data, own)


def limits(objective: Objective, measured: Array, constants: Any) -> Array | None:
    """For a condition that is one-sided or has `within`, the values (n,) that must not be negative; else None."""
    if objective.goal != "zero":
        return None
    if objective.within is not None:
        r = objective.residuals(measured, constants)
        return jnp.concatenate([objective.within - r, objective.within + r])
    return objective.margins(measured, constants)


def missed(objective: Objective, measured: Array, constants: Any) -> Array:
    """Residuals (n,); for a condition with `within`, only the parts that exceed `within`."""
    r = objective.residuals(measured, constants)
    if objective.goal != "zero" or objective.within is None:
        return r
    return jnp.sign(r) * jnp.maximum(jnp.abs(r) - objective.within, 0.0)


def weighted(objective: Objective, residuals: Array) -> Array:
    """Residuals as they enter the sum: weighted, and divided by the square root of their number, so that the weights of
    different objectives are comparable."""
    return objective.weight / np.sqrt(max(residuals.shape[0], 1)) * jnp.asarray(residuals)
