"""Spring pusher of a separation system."""

from __future__ import annotations

from typing import ClassVar

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.forces.base import Loads, Numbers, Scene
from jaxmbs.model.forces.directed import Directed
from jaxmbs.model.given import Number
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.scalar import Scalar, maximum, tanh, vanishes, where

FRICTION_SPEED = 1e-2  # [m/s] rate of extension over which the guide friction changes sign


@element
class Pusher(Directed):
    """One-sided spring pusher of a separation system, mounted on body_a, pushing body_b.

    The extension is s = direction . (p_b - p_a). While s < stroke and from t >= delay on, it pushes body_b at p_b along
    the direction with preload - stiffness s, less the Coulomb friction of the rod in its guide, and never pulls; the
    reaction acts on body_a along the same line. Friction changes sign smoothly over 0.01 m/s.

    >>> mech = mbs.library.stage_separation()
    >>> spring = mbs.Pusher("stage", "payload", (0, 0, 0), (0, 0, 0), (1, 0, 0), stiffness=1e4, preload=1500.0, stroke=0.1)
    >>> mech.add_force("fifth", spring)
    >>> mbs.get(mech.build(), "fifth.stroke")
    0.1
    """

    trials: ClassVar[int] = 4
    stiffness: Number = field(Kind.NOT_NEGATIVE, "N/m", "of the spring")
    preload: Number = field(Kind.NOT_NEGATIVE, "N", "force at s = 0")
    stroke: Number = field(Kind.POSITIVE, "m", "extension at which the push ends")
    delay: Number = field(Kind.NUMBER, "s", "time of the release", default=0.0)
    friction: Number = field(Kind.NOT_NEGATIVE, "N", "Coulomb friction of the rod in its guide", default=0.0)

    def corners(self, p: Numbers, scene: Scene) -> tuple[tuple[Scalar, Scalar], ...]:
        """The end of the stroke, and the extension at which the spring goes slack."""
        s, rate, _, _ = self._motion(p, scene)
        return (s - p["stroke"], rate), (p["stiffness"] * s - p["preload"], p["stiffness"] * rate)

    def instants(self, p: Numbers) -> tuple[Scalar, ...]:
        """The time of the release."""
        return () if vanishes(p["delay"]) else (p["delay"],)

    def _push(self, p: Numbers, scene: Scene) -> tuple[Scalar, Scalar, Scalar, Vector3, Vector3]:
        """Spring force, actual force, extension rate, direction in world axes, point of action on body_a."""
        s, rate, direction, on_a = self._motion(p, scene)
        ended, slack, *released = self.sides(p, scene)
        spring = where(ended, 0.0, where(slack, 0.0, p["preload"] - p["stiffness"] * s))
        actual = spring
        if not vanishes(p["friction"]):
            rubbed = maximum(spring - p["friction"] * tanh(rate / FRICTION_SPEED), 0.0)
            actual = where(ended, 0.0, where(slack, 0.0, rubbed))
        for on in released:
            actual = where(on, actual, 0.0)
        return spring, actual, rate, direction, on_a

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        _, actual, _, direction, on_a = self._push(p, scene)
        self._apply_along(loads, p, actual, direction, on_a)

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        """Energy [J] that the spring would still release by the end of its stroke."""
        s, k, preload = self._motion(p, scene)[0], p["stiffness"], p["preload"]
        # the push ends at the stroke or where the force vanishes
        reach = where(preload - k * p["stroke"] > 0, p["stroke"], preload / where(k > 0, k, 1.0))
        left = reach - s
        mean = preload - 0.5 * k * (reach + s)
        return where(left > 0, left * mean, 0.0)

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        spring, actual, rate, _, _ = self._push(p, scene)
        return (actual - spring) * rate
