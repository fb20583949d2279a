"""Base of the outputs: what every output provides, and how its history is reduced."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import Element, declared, element, field
from jaxmbs.spatial import kernel
from jaxmbs.study.outputs import reductions, window
from jaxmbs.study.outputs.reductions import AT, INTEGRALS
from jaxmbs.study.outputs.reductions import REDUCTIONS as REDUCTIONS

if TYPE_CHECKING:
    from jaxmbs.model.forces.base import Scene
    from jaxmbs.model.joints import Joint

Scalar = Any
REDUCTION = "what is kept of the history: a value, or the time at which it occurs"


@element
class Described(Element):
    """Base of geometry that outputs refer to; its directions are normalised when it is created."""

    def __post_init__(self) -> None:
        for d in declared(type(self)):
            direction = getattr(self, d.name)
            if d.kind is Kind.AXIS and direction is not None:
                length = math.hypot(*direction)
                object.__setattr__(self, d.name, tuple(x / length for x in direction))


INSTANTS = ("when", "from_", "until")  # fields of an output; once checked, each is a `Criterion` or `AtEvent`


@dataclass(frozen=True)
class AtEvent:
    """The time at which an event happens first."""

    event: str


@element
class Output(Described):
    """Base of the outputs: a quantity of the motion, reduced over time to one number per sample."""

    always_defined: ClassVar[bool] = True

    reduce: str = field(Kind.CHOICE, "", REDUCTION, default="final", choices=REDUCTIONS, kw_only=True)
    unit: str | None = field(Kind.TEXT, "", "unit that reports show, SI by default", default=None, kw_only=True)
    limit: float | None = field(
        Kind.NUMBER, "SI", "that time_above and time_below count from", default=None, kw_only=True
    )
    when: Any = field(
        Kind.TEXT, "",
        'instant of at and time_at: when this first holds, "travel > 0.1 m", "t > 0.5 s"; before an event, "event latch"',
        default=None, kw_only=True,
    )  # fmt: skip
    from_: Any = field(
        Kind.INSTANT, "s",
        'what lies before is left out: 0.5, or when this first holds, "travel > 0.1 m"; after an event, "event latch"',
        default=None, kw_only=True,
    )  # fmt: skip
    until: Any = field(
        Kind.INSTANT, "s",
        "what lies after is left out: as from, before an event; undefined where it comes before from",
        default=None, kw_only=True,
    )  # fmt: skip

    @property
    def windowed(self) -> bool:
        """Whether only a part of the motion counts."""
        return self.from_ is not None or self.until is not None

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        """The quantity that the history measures, given the type of every joint."""
        raise NotImplementedError

    def measures(self, joints: Mapping[str, Joint]) -> str:
        """The quantity that the output measures: that of the history, its integral, or a time."""
        if self.reduce == "integral":
            return INTEGRALS.get(self.quantity(joints), "number")
        return "time" if self.reduce.startswith("time") else self.quantity(joints)

    def faults(self, joints: Mapping[str, Joint]) -> Iterator[tuple[str, str]]:
        """(key, remedy) for each field that does not fit the mechanism, whose bodies and joints are known to exist."""
        yield from ()

    def incomplete(self, joints: Mapping[str, Joint]) -> Iterator[tuple[str, str]]:
        """(key, remedy) for each field that the chosen reduction lacks or cannot have."""
        if self.reduce in ("time_above", "time_below") and self.limit is None:
            yield "limit", f"{self.reduce} needs a limit; write limit = NUMBER (SI)"
        if self.reduce in AT and self.when is None:
            said = 'when = "OUTPUT > NUMBER UNIT", "t > NUMBER s" or "event NAME"'
            yield "when", f"{self.reduce} needs an instant; write {said}"
        if self.reduce not in AT and self.when is not None:
            yield "when", f"is for {' and '.join(AT)} only, not for {self.reduce}; leave it out"
        if self.reduce in AT and self.windowed:
            yield (
                "from" if self.from_ is not None else "until",
                f"{self.reduce} takes its instant from when; leave this out",
            )
        if self.reduce == "integral" and self.quantity(joints) not in INTEGRALS:
            yield "reduce", f"integral is for {', '.join(INTEGRALS)} only; mean is possible for any quantity"

    def measure(self, scene: Scene) -> tuple[Scalar, Scalar]:
        """Value at the present time in SI, and whether it is defined then."""
        raise NotImplementedError

    @classmethod
    def measure_all(
        cls, outputs: Sequence[Output], scenes: Sequence[Scene], recalling: Mapping[int, Scalar], memory: Any
    ) -> tuple[list[tuple[Scalar, ...]], Any]:
        """What several outputs of this class measure, each in its scene, as (value, defined) or (value, defined, instant of
        the value), and the new memory. recalling: {place of an output: its extreme so far}; memory: what these outputs
        remember of earlier times. Such an output may return its extreme since the last time in place of its present value;
        if that does not go beyond the extreme so far, it may return any bound that does not go beyond it either."""
        return [_measure(output, scene) for output, scene in zip(outputs, scenes, strict=True)], None

    @classmethod
    def memory(cls, outputs: Sequence[Output]) -> Any:
        """What some outputs of this class remember before the first time, a tree of numbers; None if they remember
        nothing."""
        return None

    def start(self) -> tuple[Any, ...]:
        """State of the fold before the first time."""
        own = reductions.start(self.reduce)
        return (*window.start(self.from_ is None), *own) if self.windowed else own

    def fold(self, state: tuple[Any, ...], measured: tuple[Scalar, Scalar], t: Scalar, margin: Any = None) -> Any:
        """State with the present time included. state: that of the fold so far; measured: what `measure` returns; t: the
        present time [s]; margin: that of the condition `when`; for a window, the pair (margin of `from`, margin of `until`).
        None replaces the margin of an instant that is an event or is not given."""
        if self.windowed:
            return window.fold(self._reduced, state, measured, t, *(margin or (None, None)))
        return self._reduced(state, measured, t, margin)

    def at_event(
        self, state: tuple[Any, ...], measured: tuple[Scalar, Scalar], t: Scalar, now: Mapping[str, Any], changes: bool,
        margin: Any = None,
    ) -> tuple[Any, ...]:  # fmt: skip
        """State with an event included. now: for each field in INSTANTS, whether that instant is this event; measured,
        margin: as for `fold`, just before the event; changes: whether the event may change the value of the output."""
        if not self.windowed:
            return reductions.caught(self.reduce, state, measured, t, now["when"])
        margins = margin or (None, None)
        return window.at_event(self._reduced, state, measured, t, now["from_"], now["until"], changes, *margins)

    def waits(self, state: tuple[Any, ...]) -> Scalar:
        """Whether the output also needs its value just after the present event, with which its window begins."""
        return state[0] == window.OPENED if self.windowed else False

    def result(self, state: tuple[Any, ...]) -> Scalar:
        """The output, in SI; NaN if it was never defined."""
        return reductions.result(self.reduce, state[window.SIZE :] if self.windowed else state)

    def stays(self, state: tuple[Any, ...]) -> Scalar:
        """Whether an extreme is the value at the start, although the output takes other values."""
        return reductions.stays(state[window.SIZE :] if self.windowed else state)

    def _reduced(self, state: tuple[Any, ...], measured: tuple[Scalar, Scalar], t: Scalar, margin: Any = None) -> Any:
        return reductions.fold(self.reduce, state, measured, t, self.limit, margin)


@kernel
def _measure(output: Output, scene: Scene) -> tuple[Scalar, Scalar]:
    return output.measure(scene)


def turned(rotation: Any, vector: Any) -> Any:
    """rotation @ vector."""
    return rotation @ vector


def normals(direction: Any) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors orthogonal to the unit vector `direction` and to each other."""
    d = np.asarray(direction, float)
    first = np.cross(d, np.eye(3)[np.argmin(np.abs(d))])
    first /= np.linalg.norm(first)
    return first, np.cross(d, first)
