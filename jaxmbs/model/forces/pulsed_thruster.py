"""Thruster that fires single pulses on command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.given import Number, Vector
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.scalar import Scalar, vanishes, where


@element
class PulsedThruster(Force):
    """Thruster with a valve that opens for one pulse at a time: at `start`, for `width`, both usually set by a controller.

    The thrust rises linearly over `rise` and falls over `fall` after the pulse, so that its impulse is thrust (width +
    (fall - rise) / 2). A pulse shorter than `minimum` does not happen. A new command replaces the pulse that is under way:
    to go on firing, keep the start and lengthen the width. The delay of the valve is that of the controller.

    >>> mech = mbs.Mechanism("cart", gravity=(0.0, 0.0, 0.0))
    >>> mech.add_body("cart", mass=2.0, inertia=(1.0, 1.0, 1.0))
    >>> mech.add_joint("rail", mbs.Prismatic(axis=(1, 0, 0)), "world", "cart")
    >>> pulse = {"start": 0.013, "width": 0.02, "rise": 0.004, "minimum": 0.01}
    >>> mech.add_force("jet", mbs.PulsedThruster("cart", direction=(1, 0, 0), thrust=10.0, **pulse))
    >>> print(mbs.simulate(mech.build(), [0.0], [0.0], t_end=0.1, dt=0.05).v[-1].round(6))  # 10 (0.02 - 0.002) / 2
    [0.09]
    """

    source: ClassVar[bool] = True
    trials: ClassVar[int] = 24
    body: str = field(Kind.BODY, "", "body that it drives")
    point: Vector = field(Kind.VECTOR, "m", "where it acts, in body axes", default=(0.0, 0.0, 0.0))
    direction: Vector = field(Kind.DIRECTION, "", "of the force, in body axes", default=(0.0, 0.0, 1.0))
    thrust: Number = field(Kind.NOT_NEGATIVE, "N", "force while the valve is open", default=0.0)
    start: Number = field(Kind.NUMBER, "s", "time at which the valve opens", default=0.0)
    width: Number = field(Kind.NOT_NEGATIVE, "s", "time for which it stays open", default=0.0)
    minimum: Number = field(Kind.NOT_NEGATIVE, "s", "shortest pulse that it makes", default=0.0)
    rise: Number = field(Kind.NOT_NEGATIVE, "s", "time in which the thrust rises, at most `minimum`", default=0.0)
    fall: Number = field(Kind.NOT_NEGATIVE, "s", "time in which the thrust falls", default=0.0)

    def requirements(self, p: Numbers) -> Mapping[str, Any]:
        return {"the rise must end before the shortest pulse does: rise <= minimum": p["rise"] <= p["minimum"]}

    def corners(self, p: Numbers, scene: Scene) -> tuple[tuple[Scalar, Scalar], ...]:
        """Opening, full thrust, closing, no thrust: each has passed where the time since then is not negative."""
        since = scene.t - p["start"]
        passed = (since, since - p["rise"], since - p["width"], since - p["width"] - p["fall"])
        return tuple((x, 1.0) for x in passed)

    def _force(self, p: Numbers, scene: Scene) -> Vector3:
        opened, full, closed, gone = self.sides(p, scene)
        since = scene.t - p["start"]
        rising = 1.0 if vanishes(p["rise"]) else where(full, 1.0, since / where(p["rise"] > 0, p["rise"], 1.0))
        falling = 0.0
        if not vanishes(p["fall"]):
            falling = where(gone, 0.0, 1.0 - (since - p["width"]) / where(p["fall"] > 0, p["fall"], 1.0))
        level = where(opened, where(closed, falling, rising), 0.0)
        fires = where(p["width"] < p["minimum"], 0.0, where(p["width"] > 0, level, 0.0))
        return scene.rotation(self.body) @ p["direction"] * (p["thrust"] * fires)

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        loads.force(self.body, self._force(p, scene), p["point"])

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        return self._force(p, scene) @ scene.velocity(self.body, p["point"])
