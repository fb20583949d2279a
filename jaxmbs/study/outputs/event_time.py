"""Time of an event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import jax.numpy as jnp

from jaxmbs.io.errors import choices
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.joints import Joint
from jaxmbs.study.outputs.base import Scalar
from jaxmbs.study.outputs.of_run import OfRun

if TYPE_CHECKING:
    from jaxmbs.model import Model
    from jaxmbs.simulate.log import Events


@element
class EventTime(OfRun):
    """Time [s] at which an event first happened, not rounded to a grid time. Undefined if it did not happen."""

    once: ClassVar[str] = "an event has one time"
    event: str = field(Kind.TEXT, "", "the event")

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return "time"

    def unfit(self, model: Model) -> Iterator[tuple[str, str]]:
        if self.event not in model.event_names:
            yield "event", f'there is no event "{self.event}"; {choices(self.event, model.event_names, "events")}'

    def of_run(self, model: Model, q: Any, v: Any, events: Events) -> Scalar:
        here = events.index == model.event_names.index(self.event)
        time = jnp.min(jnp.where(here, events.time, jnp.inf))
        return jnp.where(jnp.isinf(time), jnp.nan, time)
