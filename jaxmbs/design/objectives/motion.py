"""Objectives on simulated motions and their dispersions: outputs, event times, latch loads, probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.design.objectives.base import Objective, Setting
from jaxmbs.design.samples import Moved, draws_of, even_draws
from jaxmbs.model import ModelError
from jaxmbs.model.errors import unknown
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.study.outputs.base import AtEvent
from jaxmbs.study.outputs.event_time import EventTime as TimeOfEvent

if TYPE_CHECKING:
    from jaxmbs.model import Model
    from jaxmbs.study.outputs.base import Output
    from jaxmbs.study.problem.criteria import Criterion

Array = Any
STATISTICS = ("each", "mean", "worst", "quantile")
SHARPNESS = 20.0  # of the smooth maximum, for values in units of the spread between samples


MOST_FAILED = 0.05  # share of the samples whose motions may fail; beyond it, statistics of the rest are meaningless
NEVER = 10.0  # a criterion on an output at an event that does not happen is missed by at least this many widths
FAILED = jnp.inf  # the number of a sample whose motion failed; a number that is not defined is NaN


def _defined(x: Array) -> tuple[Array, Array]:
    """(weights (n,) of a mean over the finite samples, the samples with the others set to 0); NaN if none is finite."""
    on = jnp.isfinite(x)
    return on / jnp.maximum(on.sum(), 1), jnp.where(on, x, jnp.where(on.any(), 0.0, jnp.nan))


def _mean(x: Array) -> Array:
    """Mean of the finite samples."""
    weights, x = _defined(x)
    return weights @ x


def spread(x: Array, weights: Array) -> Array:
    """Standard deviation of weighted samples, differentiable also where it is zero."""
    size = weights @ jnp.abs(x)
    return jnp.sqrt(weights @ (x - weights @ x) ** 2 + 1e-20 * size**2 + 1e-200)


def quantile(x: Array, weights: Array, level: Array | float) -> Array:
    """Quantile of samples x (n,) as a smooth function of them: the quantile of a mixture of normal distributions,
    centred on the samples, whose standard deviation is n^(-1/4) times that of the samples.

    The mixture is wider than the samples, so the quantile lies farther out: by 3 % of its distance from the median for
    256 normal samples and by 0.8 % for 4096, as much as the sampling error of such a quantile. The error is larger
    where a distribution ends abruptly or has a gap, and quantiles between the median and a tail may lie too far inwards
    (see "Quantiles of few samples" in the manual).
    """
    width = spread(x, weights) * x.shape[0] ** (-1 / 4)

    def share(q: Array) -> Array:
        return weights @ jax.scipy.stats.norm.cdf((q - x) / width)

    def halved(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low + high) / 2
        below = share(middle) < level
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    ends = (jnp.min(x) - 9 * width, jnp.max(x) + 9 * width)
    q = jax.lax.stop_gradient(sum(jax.lax.fori_loop(0, 60, halved, jax.lax.stop_gradient(ends))) / 2)
    density = jax.lax.stop_gradient(weights @ jax.scipy.stats.norm.pdf((q - x) / width) / width)
    return q - (share(q) - level) / density  # a step of Newton's method, whose derivative is that of the quantile


@element
class OfMotion(Objective):
    """Base: a number taken from every sample's motion, wanted near a target, below a bound or above one.

    The samples are spread evenly over the dispersions of the file's study and are the same for every candidate; a
    stochastic search takes fresh random samples in every step. Samples in which an output is not defined, such as the rate
    at a latch that does not close, are left out of mean, worst and quantile; add an objective on the share of samples that
    latch.

    Samples whose motion fails (its status is not OK) are left out, too, as long as they are few: at most one in 20, and
    for a quantile also at most half of the number of samples in its tail. A quantile without a target counts them as
    lying on the bad side: below it if there is an at_least, else above. For a worst value, or a condition on each
    sample, no motion may fail. With more failures the value is NaN.
    """

    simulates: ClassVar[bool] = True

    samples: int = field(Kind.COUNT, "", "samples of the file's dispersions", default=32, kw_only=True)
    statistic: str = field(
        Kind.CHOICE, "", "each: of every sample; mean: over samples; worst: smooth largest (smallest, for at_least); "
        "quantile: smooth quantile of a level", default="each", choices=STATISTICS, kw_only=True,
    )  # fmt: skip
    level: float | None = field(
        Kind.POSITIVE, "", "share of the samples below a quantile, between 0 and 1", default=None, kw_only=True
    )
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
        if (self.statistic == "quantile") != (self.level is not None):
            raise ModelError(
                f'{name}: statistic = "quantile" needs a level, for example level = 0.95, and no other statistic '
                "takes one"
            )
        if self.level is not None:
            beyond = self.samples * min(self.level, 1 - self.level)
            if not beyond >= 2:
                raise ModelError(
                    f"{name}: only {max(beyond, 0):.2g} of {self.samples} samples lie beyond the level {self.level:g}; "
                    "take more samples, or a level nearer to 0.5"
                )
        if sum(x is not None for x in (self.target, self.at_most, self.at_least)) > 1:
            raise ModelError(f"{name}: target, at_most and at_least cannot be combined; write an objective for each")

    def data(self, setting: Setting) -> Any:
        if setting.fresh:
            return draws_of(setting.study, self.samples, (setting.seed * self.samples) % 2**31)
        return even_draws(setting.study, self.samples)

    def taken(self, motions: Moved, study: Any) -> Array:
        """The number taken from every sample's motion, (samples, 1)."""
        raise NotImplementedError

    @property
    def may_fail(self) -> int:
        """How many of the samples' motions may fail."""
        if self.statistic == "worst" or (self.statistic == "each" and self.goal == "zero"):
            return 0
        share = MOST_FAILED if self.level is None else min(MOST_FAILED, self.level / 2, (1 - self.level) / 2)
        return int(share * self.samples + 1e-9)

    def number(self, motions: Moved, study: Any) -> Array:
        """The number of every sample, (samples, 1); FAILED where its motion failed."""
        x = self.taken(motions, study)
        return jnp.where((motions.status == 0)[:, None], jnp.where(jnp.isinf(x), jnp.nan, x), FAILED)

    def _statistic(self, measured: Array) -> Array:
        x = measured.reshape(-1)
        failed = jnp.isinf(x)
        x = jnp.where(failed.sum() > self.may_fail, jnp.nan, x)
        if self.statistic == "each":
            return jnp.where(failed & ~jnp.isnan(x), _mean(x), x)
        weights, x = _defined(x)
        if self.statistic == "quantile":
            level, lost = self.level or 0.5, failed.mean()
            if self.target is None:  # the failed samples count as lying on the bad side
                level = (level - (lost if self.at_least is not None else 0.0)) / (1 - jnp.minimum(lost, 0.5))
            return quantile(x, weights, level)[None]
        if self.statistic == "mean":
            return (weights @ x)[None]
        sign = -1.0 if self.at_least is not None else 1.0
        sharp = SHARPNESS / spread(x, weights)
        return (sign * jax.nn.logsumexp(sharp * sign * x, b=weights) / sharp)[None]

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
        which = self.statistic if self.level is None else f"{100 * self.level:g} % quantile"
        return f"{self.what()}, {which} of {self.samples} samples, {bound} (scale {self.scale:g})"

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
    """Base: a number read from the events of a motion."""

    event: str = field(Kind.TEXT, "", "name of an event; several, separated by spaces: what is latest, or largest")

    def check(self, setting: Setting) -> None:
        super().check(setting)
        for name in self.event.split() or [self.event]:
            if name not in setting.model.event_names:
                raise unknown("event", name, setting.model.event_names, type(self).__name__)


@element
class EventTime(OfEvents):
    """The time of an event, such as the end of a deployment. If the event does not happen, it is the end time of the
    run; if a joint was to reach a value, this time is increased in proportion to the remaining distance.

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
    """The peak torque or force of a latch of given stiffness that absorbs the energy of its closing, sqrt(2 k E).

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
    """The probability that a criterion of the file is not met, smoothed so that it is differentiable.

    A sample that misses the bound by u, in units of `width`, counts as 1/2 + arctan(u) / pi, whose derivative does not
    vanish far from the bound. Samples whose motion fails or whose output is not defined count as missed. The report's
    Monte Carlo check gives the same probability without smoothing.

    If the event whose time the criterion bounds, or at which its output is taken, does not happen, the criterion is missed:
    by more the farther a joint is from the value that it was to reach, and for other events by a constant amount.

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
        x, output = motions.outputs[c.output], study.outputs[c.output]
        event = _event_of(output)
        if event is None:
            return self._far(c, x)[:, None]
        end, happened = study.simulation.t_end, motions.happened[event]
        late = motions.time[event] - end  # if it does not happen: in proportion to the distance that the joint lacks
        if isinstance(output, TimeOfEvent):
            missed = jnp.minimum(self._far(c, end + late), -late)
        else:
            missed = -NEVER * self.width * (1 + late / end)
        far = self._far(c, jnp.where(happened, x, 0.0))
        return jnp.where(happened, far, jnp.where(late > 0, missed, jnp.nan))[:, None]

    def _far(self, c: Criterion, x: Array) -> Array:
        """How far values (samples,) are from missing a criterion, negative where they miss it."""
        x = jnp.abs(x) if c.absolute else x
        far = [(bound - x) if sign.startswith("<") else (x - bound) for sign, bound in c.bounds]
        return jnp.stack(far).min(axis=0)

    def residuals(self, measured: Array, constants: Any) -> Array:
        u = -measured.reshape(-1) / self.width
        u = jnp.where(jnp.isfinite(u), u, 1e6)  # undefined outputs and failed motions count as missed
        return jnp.mean(0.5 + jnp.arctan(u) / np.pi)[None]

    def margins(self, measured: Array, constants: Any) -> Array | None:
        return None

    def what(self) -> str:
        return f"probability of missing criterion {self.criterion}"


def _event_of(output: Output) -> str | None:
    """The event without which an output is not defined, or None."""
    if isinstance(output, TimeOfEvent):
        return output.event
    return next((i.event for i in (output.when, output.from_) if isinstance(i, AtEvent)), None)
