"""Elements of the orbit of a body as outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.flying import ORBIT, elements_of, planet_of
from jaxmbs.model.joints import Joint
from jaxmbs.study.outputs.base import Scalar
from jaxmbs.study.outputs.of_state import OfState

if TYPE_CHECKING:
    from jaxmbs.dynamics.state.scene import TreeScene
    from jaxmbs.model import Mode, Model


@element
class Orbit(OfState):
    """An osculating element of the orbit of a body around the planet of the mechanism, see `mbs.orbital_elements`; heights
    are above a sphere of the equatorial radius. The height of the apoapsis is undefined on a hyperbola.

    >>> from jaxmbs.study.outputs import Orbit
    >>> Orbit("upper", "inclination", reduce="at", when="event cut_off", unit="deg").part
    'inclination'
    """

    body: str = field(Kind.BODY, "", "body whose centre of mass is in orbit")
    part: str = field(Kind.CHOICE, "", "what is measured", default="semi_major_axis", choices=tuple(ORBIT))

    def quantity(self, joints: Mapping[str, Joint]) -> str:
        return ORBIT[self.part]

    def unfit(self, model: Model) -> Iterator[tuple[str, str]]:
        if planet_of(model.structure) is None:
            yield "body", 'the mechanism has no planet; add one to [[mechanism.forces]], named "planet"'

    def of_state(self, state: TreeScene, model: Model, mode: Mode | None) -> tuple[Scalar, Scalar]:
        found = elements_of(state, self.body)
        return found[self.part], found["semi_major_axis"] > 0 if self.part == "apoapsis_height" else True
