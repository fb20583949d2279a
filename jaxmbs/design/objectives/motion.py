"""Objectives about simulated motions and their dispersions: outputs, times of events, loads of latches, probabilities."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp

from jaxmbs.design.objectives.base import Objective, Setting
from jaxmbs.design.samples import Moved, draws_of
from jaxmbs.model import ModelError
from jaxmbs.model.errors import unknown
from jaxmbs.model.fields import element, field
from jaxmbs.model.kinds import Kind

if TYPE_CHECKING:
    from jaxmbs.model import Model

Array = Any
STATISTICS = ("each", "mean", "worst")
SHARPNESS = 20.0  # of the smooth maximum, in units of the spread between samples


@element
class OfMotion(Objective):
    """Base: a number of every sample's motion, wanted near a target, below a bound or above one.

    The samples are the first ones of the file's study, the same for every candidate.
    """

    simulates: ClassVar[bool] = True

    samples: int = field(Kind.COUNT, "", "samples of the file's dispersions", default=32, kw_only=True)
    statistic: str = field(
        Kind.CHOICE, "", "each: of every sample; mean: over samples; worst: smooth largest (smallest, for at_least)",
        default="each", choices=STATISTICS, kw_only=True,
    )  # fmt: skip
    target: float | None = field(
        Kind.NUMBER, "SI", "value that is wanted; 0 where nothing else is said", default=None, kw_only=True
    )
    at_most: float | None = field(Kind.NUMBER, "SI", "value that it may not exceed", default=None, kw_only=True)
    at_least: float | None = field(Kind.NUMBER, "SI", "value that it may not fall below", default=None, kw_only=True)
    scale: float = field(Kind.POSITIVE, "SI", "difference that counts as one", default=1.0, kw_only=True)

    def check(self, setting: Setting) -> None:
        name = type(self).__name__
        if setting.study is None:
            raise ModelError(f"{name}: motions need a study with [simulation]; pass study=jaxmbs.study.read(file)")
        if self.samples < 1:
            raise ModelError(f"{name}: {self.samples} samples; take 1 or more")
        if sum(x is not None for x in (self.target, self.at_most, self.at_least)) > 1:
            raise ModelError(f"{name}: target, at_most and at_least exclude one another; write an objective for each")

    def data(self, setting: Setting) -> Any:
        first = setting.seed if setting.seed > 1_000_000 else 0  # of a stochastic search: fresh samples in every step
        return draws_of(setting.study, self.samples, (first * self.samples) % 2**31)

    def taken(self, motions: Moved, study: Any) -> Array:
        """The number of every sample (samples, 1)."""
        raise NotImplementedError

    def _statistic(self, measured: Array) -> Array:
        x = measured.reshape(-1)
        if self.statistic == "mean":
            return x.mean()[None]
        if self.statistic == "worst":
            sign = -1.0 if self.at_least is not None else 1.0
            sharp = SHARPNESS / (jax.lax.stop_gradient(jnp.std(x)) + 1e-12 * self.scale + 1e-300)
            return (sign * (jax.nn.logsumexp(sharp * sign * x) - math.log(self.samples)) / sharp)[None]
        return x

    def residuals(self, measured: Array, constants: Any) -> Array:
        margin = self.margins(measured, constants)
        if margin is not None:
            return jnp.maximum(-margin, 0.0)
        return (self._statistic(measured) - (self.target or 0.0)) / self.scale

    def margins(self, measured: Array, constants: Any) -> Array | None:
        if self.at_most is not None:
            return (self.at_most - self._statistic(measured)) / self.scale
        if self.at_least is not None:
            return (self._statistic(measured) - self.at_least) / self.scale
        return None

    def describe(self, model: Model) -> str:
        bound = next((f"{w.replace('_', ' ')} {x:g}" for w, x in (("at_most", self.at_most), ("at_least", self.at_least))
                      if x is not None), f"near {self.target or 0:g}")  # fmt: skip
        return f"{self.what()}, {self.statistic} of {self.samples} samples, {bound} (scale {self.scale:g})"

    def what(self) -> str:
        """What is measured, in words."""
        raise NotImplementedError


@element
class OutputValue(OfMotion):
    """An output of the file (separation velocity, tip-off rate, clearance, ...) over the dispersed samples.

    >>> mbs.design.OutputValue("tip_off_rate", scale=0.01, goal="least").statistic
    'each'
    """

    output: str = field(Kind.TEXT, "", "name of an output of the file")

    def check(self, setting: Setting) -> None:
        super().check(setting)
        if self.output not in setting.study.outputs:
            raise unknown("output", self.output, setting.study.outputs, "OutputValue")

    def taken(self, motions: Moved, study: Any) -> Array:
        return motions.outputs[self.output][:, None]

    def what(self) -> str:
        return self.output.replace("_", " ")


@element
class OfEvents(OfMotion):
    """What is read from the events of a motion."""

    event: str = field(Kind.TEXT, "", "name of an event; several, separated by spaces: what is latest, or largest")

    def check(self, setting: Setting) -> None:
        super().check(setting)
        for name in self.event.split() or [self.event]:
            if name not in setting.model.event_names:
                raise unknown("event", name, setting.model.event_names, type(self).__name__)


@element
class EventTime(OfEvents):
    """The time of an event, such as the end of a deployment: that of the run's end where it does not happen.

    >>> mbs.design.EventTime("latch", target=20.0).event
    'latch'
    """

    def taken(self, motions: Moved, study: Any) -> Array:
        times = jnp.stack([motions.time[name] for name in self.event.split()])
        return times.max(axis=0)[:, None]

    def what(self) -> str:
        return f"time of {self.event}"


@element
class LatchLoad(OfEvents):
    """The peak moment of a latch of given stiffness that takes up the energy of its closing, sqrt(2 k E).

    >>> mbs.design.LatchLoad("latch", stiffness=5e3, goal="least").stiffness
    5000.0
    """

    stiffness: float = field(Kind.POSITIVE, "N m/rad or N/m", "of the latched hinge")

    def taken(self, motions: Moved, study: Any) -> Array:
        energies = jnp.stack([motions.lost[name] for name in self.event.split()])
        energies = jnp.max(jnp.maximum(energies, 1e-12), axis=0)
        return jnp.sqrt(2 * self.stiffness * energies)[:, None]

    def what(self) -> str:
        return f"peak latch load of {self.event}"


@element
class Failure(OfMotion):
    """The probability that a criterion of the file is not met, smoothed so that it has a slope.

    A sample counts by the logistic function of how far it misses the bound, in units of `width`; the same number without
    smoothing is in the report's Monte Carlo check.

    >>> mbs.design.Failure(0, width=0.01, goal="least").criterion
    0
    """

    criterion: int = field(Kind.COUNT, "", "which of the file's criteria, from 0", default=0)
    width: float = field(Kind.POSITIVE, "SI", "distance from the bound over which it is smoothed", default=1.0)

    def check(self, setting: Setting) -> None:
        super().check(setting)
        count = len(setting.study.criteria)
        if self.criterion >= count:
            raise ModelError(f"Failure: there is no criterion {self.criterion}; the file has {count}, counted from 0")

    def taken(self, motions: Moved, study: Any) -> Array:
        """How far every sample is from missing the criterion, negative where it misses it."""
        c = study.criteria[self.criterion]
        x = motions.outputs[c.output]
        x = jnp.abs(x) if c.absolute else x
        far = [(bound - x) if sign.startswith("<") else (x - bound) for sign, bound in c.bounds]
        return jnp.stack(far).min(axis=0)[:, None]

    def residuals(self, measured: Array, constants: Any) -> Array:
        return jax.nn.sigmoid(-measured.reshape(-1) / self.width).mean()[None]

    def margins(self, measured: Array, constants: Any) -> Array | None:
        return None

    def what(self) -> str:
        return f"probability of missing criterion {self.criterion}"
