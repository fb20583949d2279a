"""Time of an event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from jaxmbs.io.errors import choices
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.joints import Joint
from jaxmbs.study.outputs.base import Scalar
from jaxmbs.study.outputs.of_state import OfState

if TYPE_CHECKING:
    from jaxmbs.dynamics.state.scene import TreeScene
    from jaxmbs.model import Mode, Model


@element
class EventTime(OfState):
    """Time [s] at which an event first happened, not rounded to a grid time. Undefined if it did not happen."""

    event: str = field(Kind.TEXT, "", "the event")

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return "time"

    def incomplete(self, joints: Mapping[str, Joint]) -> Iterator[tuple[str, str]]:
        if self.windowed:
            yield "from" if self.from_ is not None else "until", "an event has one time; leave it out"
        if self.reduce != "final":
            yield "reduce", "an event has one time; leave it out"

    def unfit(self, model: Model) -> Iterator[tuple[str, str]]:
        if self.event not in model.event_names:
            yield "event", f'there is no event "{self.event}"; {choices(self.event, model.event_names, "events")}'

    def of_state(self, state: TreeScene, model: Model, mode: Mode | None) -> tuple[Scalar, Scalar]:
        return jnp.nan, False

    def of_events(self, found: Any, names: tuple[str, ...]) -> Scalar:
        here = found.index == names.index(self.event)
        time = jnp.min(jnp.where(here, found.time, jnp.inf))
        return jnp.where(jnp.isinf(time), jnp.nan, time)
