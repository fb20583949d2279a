"""Cable that pulls and never pushes."""

from __future__ import annotations

from typing import ClassVar

from jaxmbs.model.fields import element
from jaxmbs.model.forces.base import Loads, Numbers, Scene
from jaxmbs.model.forces.linear_spring import LinearSpring
from jaxmbs.spatial.scalar import Scalar, vanishes, where


@element
class Cable(LinearSpring):
    """Cable, strap or tether between two points: a spring and damper that pulls while it is taut, and never pushes.

    The tension is stiffness (length - rest_length) + damping times the rate of the length where both the stretch and
    this sum are positive; otherwise the cable is slack.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_force("strap", mbs.Cable("lower", "world", (0, 0, -1), (0, 0, 1), stiffness=1e4, rest_length=2.9))
    >>> mbs.get(mech.build(), "strap.rest_length")
    2.9
    """

    trials: ClassVar[int] = 8

    def _pull(self, p: Numbers, scene: Scene) -> tuple[Scalar, Scalar, Scalar]:
        """Stretch, its rate, and the tension if it were a spring."""
        _, length, _, rate = self._line(p, scene)
        stretch = length - p["rest_length"]
        return stretch, rate, p["stiffness"] * stretch + p["damping"] * rate

    def corners(self, p: Numbers, scene: Scene) -> tuple[tuple[Scalar, Scalar | None], ...]:
        """Where it becomes taut, and where its damper would begin to push."""
        stretch, rate, tension = self._pull(p, scene)
        return ((stretch, rate),) if vanishes(p["damping"]) else ((stretch, rate), (tension, None))

    def _tension(self, p: Numbers, scene: Scene) -> Scalar:
        tension = self._pull(p, scene)[2]
        for side in self.sides(p, scene):
            tension = where(side, tension, 0.0)
        return tension

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        self._pull_along(loads, p, self._line(p, scene)[2] * self._tension(p, scene))

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        stretch = self._pull(p, scene)[0]
        return where(stretch > 0, 0.5 * p["stiffness"] * (stretch * stretch), 0.0)

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        stretch, rate, _ = self._pull(p, scene)
        elastic = where(self.sides(p, scene)[0], p["stiffness"] * stretch, 0.0)
        return (elastic - self._tension(p, scene)) * rate
