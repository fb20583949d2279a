"""Instants of a motion as text: seconds, "t > 0.5 s", "travel > 0.1 m", "event latch"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from jaxmbs.io.errors import choices
from jaxmbs.study.outputs.base import AtEvent
from jaxmbs.study.outputs.folding import TIME
from jaxmbs.study.problem import criteria
from jaxmbs.study.problem.criteria import Criterion
from jaxmbs.study.units import unit

if TYPE_CHECKING:
    from jaxmbs.study.outputs import Output
    from jaxmbs.study.problem.schema import SimulationTable

_LENGTH = re.compile(rf"(?P<number>{criteria.NUMBER})\s*(?P<unit>\S.*)?")


def parse(said: float | str, quantities: Mapping[str, str], events: Sequence[str]) -> Criterion | AtEvent:
    """The instant that `said` states: that of an event, or the one at which a condition on an output, or on the time
    "t", first holds. A number is a time [s], and gives the condition t >= number.

    quantities: the quantity that each output, and "t", measures; events: names of the events. Raises ValueError with
    the remedy.
    """
    if isinstance(said, (int, float)):
        said = f"{said!r} s"
    if found := _LENGTH.fullmatch(said):
        if not found["unit"]:
            raise ValueError(f'"{said}" has no unit; write "{said} s", or the number of seconds without quotes')
        t = float(found["number"]) * unit(found["unit"], "time").factor
        return Criterion(f"t >= {t!r} s", TIME, ((">=", t),), unit("s"))
    name = said.removeprefix("event ").strip()
    if name in events:
        return AtEvent(name)
    if said.startswith("event "):
        raise ValueError(f'there is no event "{name}"; {choices(name, events, "events")}')
    return criteria.parse(said, quantities)


def empty(output: Output, simulation: SimulationTable | None) -> Iterator[tuple[str, str]]:
    """(key, remedy) if the window from `from` until `until` is empty, whatever the motion is."""
    begin, end = output.from_, output.until
    if begin is not None and begin == end:
        yield "until", "is the same instant as from, so nothing lies between them; name a later one"
    first, last = (_time(x) for x in (begin, end))
    if first is not None and last is not None and last <= first:
        yield "until", f"{last:g} s is not after from, {first:g} s; name a later instant"
    if simulation is not None and first is not None and first >= simulation.t_end:
        yield "from", f"{first:g} s is not before the motion ends, {simulation.t_end:g} s; name an earlier instant"
    if last is not None and last <= 0:
        yield "until", f"{last:g} s is not after the start, 0 s; name a later instant"


def _time(at: Criterion | AtEvent | None) -> float | None:
    """Time [s] of an instant that is a lower bound on the time, such as "t > 0.5 s"; None for any other instant."""
    if isinstance(at, Criterion) and at.output == TIME and [sign[0] for sign, _ in at.bounds] == [">"]:
        return at.bound
    return None


def said(at: Criterion | AtEvent) -> str:
    """An instant as text."""
    return f"event {at.event}" if isinstance(at, AtEvent) else at.text
