"""What a ready-made control law needs of its controller: gains by name, readings of sensors, and a state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import jax.numpy as jnp

from jaxmbs.model.control.sensors import Sensor
from jaxmbs.model.errors import ModelError, unknown
from jaxmbs.model.given import shape_of

F = TypeVar("F", bound=Callable[..., Any])
Numbers = Mapping[str, Any]
NUMBER, LIST = (), (None,)  # shapes of a gain: one number, a list of any length


@dataclass(frozen=True)
class Gain:
    """A number, or a list of numbers, that a law takes by name.

    default: None for one that must be given; shapes: those that it may have, None for any length; least: the smallest
    value that it may have; above: a bound that it must exceed.
    """

    default: Any = None
    shapes: tuple[tuple[int | None, ...], ...] = (NUMBER,)
    least: float | None = None
    above: float | None = None

    def check(self, what: str, value: Any) -> None:
        """Raise ModelError for a value of another shape."""
        shape = shape_of(value)
        if shape not in self.shapes and not (LIST in self.shapes and len(shape) == 1):
            said = (
                f"a list of {s[0]} numbers" if s and s[0] else "a list of numbers" if s else "one number"
                for s in self.shapes
            )
            raise ModelError(f"{what} has shape {shape}; pass {' or '.join(said)}")


@dataclass(frozen=True)
class Reading:
    """What one sensor must give. what: in words, with a sensor that gives it; sizes: the numbers of components that it may
    have."""

    what: str
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Needs:
    """What a law needs.

    name: of the law in files; gains: by name; reads: the readings, in the order of the controller's `reads`, empty if any
    sensors will do; state: how many numbers it remembers, all zero at the start; together: what must hold of the gains in
    combination, {remedy: whether it holds} from arrays (..., n) by name.
    """

    name: str
    gains: Mapping[str, Gain]
    reads: tuple[Reading, ...] = ()
    state: int = 0
    together: Callable[[Numbers], Numbers] = lambda p: {}

    def check(self, where: str, given: Numbers, state: tuple[int, ...] | None) -> None:
        """Raise ModelError for gains that are missing, not known, or of another shape, and for a state of another shape.
        where: beginning of messages; state: shape of the state, None if it is not one array."""
        for name, value in given.items():
            if name not in self.gains:
                raise unknown(f"gain of {self.name}", name, self.gains, f"{where}: parameters")
            self.gains[name].check(f"{where}: the gain {name!r} of {self.name}", value)
        for name, gain in self.gains.items():
            if name not in given and gain.default is None:
                raise ModelError(f"{where}: {self._lacks(name, given)}")
        if self.state and state != (self.state,):
            raise ModelError(
                f"{where}: state: {self.name} remembers {self.state} numbers; leave state out, or pass them"
            )

    def check_readings(self, where: str, sensors: Mapping[str, Sensor], joints: Mapping[str, Any]) -> None:
        """Raise ModelError for sensors that do not give what the law needs, as far as they tell how many numbers they give.
        joints: those of the mechanism by name, as for `Sensor.width`."""
        if len(sensors) != len(self.reads) if self.reads else not sensors:
            raise ModelError(f"{where} {[*sensors]}; {self.name} needs {self._readings()}")
        for (name, sensor), wanted in zip(sensors.items(), self.reads, strict=False):
            kind, told = type(sensor).__name__, type(sensor).width is not Sensor.width
            if told and (n := sensor.width(joints)) not in wanted.sizes:
                raise ModelError(
                    f"{where}: sensor {name!r} ({kind}) gives {n} "
                    f"number{'s' * (n > 1)}; {self.name} needs {self._readings()}"
                )

    def requirements(self, p: Numbers) -> Numbers:
        """What must hold of the gains, {remedy: whether it holds}. p: arrays (..., n) by name."""
        found = {}
        for name, gain in self.gains.items():
            if name in p and gain.least is not None:
                found[f"{name} must be at least {gain.least:g}"] = (p[name] >= gain.least).all(-1)
            if name in p and gain.above is not None:
                found[f"{name} must be more than {gain.above:g}"] = (p[name] > gain.above).all(-1)
        return found | dict(self.together(p))

    def complete(self, given: Numbers, *further: str) -> dict[str, Any]:
        """The given gains with the defaults of all others. Raises ModelError if a gain without a default, or one of the
        `further` numbers, is missing."""
        for name in (*further, *(name for name, gain in self.gains.items() if gain.default is None)):
            if name not in given:
                raise ModelError(self._lacks(name, given))
        return {name: gain.default for name, gain in self.gains.items()} | dict(given)

    def seen(self, readings: Numbers) -> list[Any]:
        """The readings that the law uses, each with one axis. Raises ModelError if they are not what the law needs."""
        found = [jnp.ravel(x) for x in readings.values()][: len(self.reads)]
        sizes = [x.size for x in found]
        if len(found) < len(self.reads) or any(n not in w.sizes for n, w in zip(sizes, self.reads, strict=True)):
            shapes = {name: jnp.shape(x) for name, x in readings.items()}
            raise ModelError(f"{self.name} needs {self._readings()}; the readings in `reads` have the shapes {shapes}")
        return found

    def remembered(self, state: Any) -> Any:
        """The state. Raises ModelError if it is not one array of as many numbers as the law remembers."""
        if state is None or jnp.shape(state) != (self.state,):
            raise ModelError(f"{self.name} needs a state of {self.state} numbers, all zero at the start; got {state!r}")
        return state

    def _lacks(self, name: str, given: Numbers) -> str:
        return f"{self.name} needs the parameter {name!r}; it has {sorted(given)}"

    def _readings(self) -> str:
        return ", and then ".join(reading.what for reading in self.reads) or "at least one sensor"


_DECLARED: list[tuple[Any, Needs]] = []


def declares(needs: Needs) -> Callable[[F], F]:
    """Declare what a law needs."""

    def kept(law: F) -> F:
        _DECLARED.append((law, needs))
        return law

    return kept


def needs_of(fn: Any) -> Needs | None:
    """What a law has declared; None for a user-defined function."""
    return next((needs for law, needs in _DECLARED if law is fn), None)
