"""What every objective answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.model.fields import Element, element, field
from jaxmbs.model.kinds import Kind

if TYPE_CHECKING:
    from jaxmbs.model import Model

Array = Any
GOALS = ("zero", "least", "lowest")


@dataclass(frozen=True)
class Setting:
    """What objectives are made ready for: the model at its nominal values, the seed of random configurations, and the
    study that the file describes beside (dispersions, outputs, simulation), if any.

    >>> model = mbs.library.double_pendulum().build()
    >>> mbs.design.Setting(model, seed=3).configurations(5).shape
    (5, 2)
    """

    model: Model
    seed: int = 0
    study: Any = None

    def configurations(self, count: int, salt: int = 0) -> Array:
        """(count, nq) random configurations of the seed; another salt gives others."""
        keys = jax.random.split(jax.random.fold_in(jax.random.key(self.seed), salt), count)
        return _random(self.model, keys)


@jax.jit
def _random(model: Model, keys: Array) -> Array:
    return jax.vmap(model.random)(keys)


@element
class Objective(Element):
    """Base of the objectives: a quantity of one mechanism at many instances (configurations, samples), made residuals.

    The sum of the squares of all residuals is what gets least. A subclass gives `data`, `measure` and `residuals`, and is
    named in a file when a package or a module of the file's has it.

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

    simulates: ClassVar[bool] = False  # its programs run long enough to be worth compiling well
    noisy: ClassVar[bool] = False  # its residuals are in units of their standard deviation

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
        """The objective of a setting: itself, or one that knows more."""
        return self

    def check(self, setting: Setting) -> None:
        """Raise ModelError where it does not fit the mechanism of the setting."""

    def data(self, setting: Setting) -> Any:
        """Arrays of a setting with the instances on the first axis of all: what `measure` is mapped over."""
        raise NotImplementedError

    def constants(self, setting: Setting) -> Any:
        """What residuals are scaled by in a setting, and the like: arrays without that axis."""
        return ()

    def own(self, setting: Setting) -> tuple[int, float]:
        """How many unknowns of its own every instance of the setting has (angles, say), and how far they scatter first."""
        return 0, 0.0

    def own_start(self, setting: Setting) -> np.ndarray:
        """(instances, unknowns) about which they start in a setting."""
        return np.zeros((0, 0))

    def measure(self, model: Model, instance: Any, own: Array) -> Array:
        """The quantity (k,) of one instance, given its own unknowns."""
        raise NotImplementedError

    def residuals(self, measured: Array, constants: Any) -> Array:
        """Residuals (n,) without dimension from what was measured (instances, k) and the constants."""
        raise NotImplementedError

    def conditions(self, measured: Array, constants: Any) -> Array:
        """Numbers (n,) that vanish with the residuals, linear in what was measured where the constants let them be."""
        return self.residuals(measured, constants)

    def margins(self, measured: Array, constants: Any) -> Array | None:
        """Numbers (n,), of measured ones and constants, that may not be negative in a one-sided condition; else None."""
        return None

    def describe(self, model: Model) -> str:
        """What it wants of a model, in words."""
        return (type(self).__doc__ or "").split("\n")[0].rstrip(".")


def evaluated(objective: Objective, model: Model, data: Any, own: Array) -> Array:
    """What is measured at every instance, (instances, k)."""
    mapped = jax.vmap(lambda instance, mine: objective.measure(model, instance, mine))
    return mapped(data, own)


def limits(objective: Objective, measured: Array, constants: Any) -> Array | None:
    """Numbers (n,) that may not be negative, of a one-sided condition or one with a size allowed; else None."""
    if objective.goal != "zero":
        return None
    if objective.within is not None:
        r = objective.residuals(measured, constants)
        return jnp.concatenate([objective.within - r, objective.within + r])
    return objective.margins(measured, constants)


def missed(objective: Objective, measured: Array, constants: Any) -> Array:
    """Residuals (n,), those of a condition without the size that is allowed."""
    r = objective.residuals(measured, constants)
    if objective.goal != "zero" or objective.within is None:
        return r
    return jnp.sign(r) * jnp.maximum(jnp.abs(r) - objective.within, 0.0)


def weighted(objective: Objective, residuals: Array) -> Array:
    """Residuals as they enter the sum, over the square root of their number: weights mean the same everywhere."""
    return objective.weight / np.sqrt(max(residuals.shape[0], 1)) * jnp.asarray(residuals)
