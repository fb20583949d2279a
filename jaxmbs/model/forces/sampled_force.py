"""Force elements whose states change at instants and are held in between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxmbs.model.control.sensors import seconds
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Force, Numbers, Scene
from jaxmbs.model.given import Number


@element
class SampledForce(Force):
    """Base of force elements that sample: at offset, offset + period, ... the states that `sampled` returns take new values,
    which are held until the next sample. States with a rate change continuously, as in every `Force`. The element and
    controllers that sample at the same instant see the motion and the states as they are just before it.
    """

    period: float = field(Kind.PERIOD, "s", "time between two samples", kw_only=True)
    offset: Number = field(Kind.NUMBER, "s", "time of the first sample", default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "period", seconds(self.period, f"{type(self).__name__}: period"))

    def sampled(self, p: Numbers, scene: Scene) -> Mapping[str, Any]:
        """{state: its value until the next sample}; p has the states as they are now."""
        raise NotImplementedError
