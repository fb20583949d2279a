"""Spring whose force depends on its history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field, state
from jaxmbs.model.forces.base import Loads, Numbers, Scene
from jaxmbs.model.forces.directed import Directed
from jaxmbs.model.given import Number
from jaxmbs.spatial.scalar import Scalar, where


@element
class HystereticSpring(Directed):
    """Spring with hysteresis between two bodies, such as a stack of disc springs or a cable bundle: it returns less work
    than it took [Bouc-Wen; Ikhouane & Rodellar 2007, 1.2].

    With the extension s = direction . (p_b - p_a), it pushes body_b along the direction with preload - stiffness s -
    friction z. The state z lies between -1 and 1: z' = s' (1 - z²) / yield_length while z and s' have the same sign, and
    z' = s' / yield_length on the way back, so that the friction builds up over this length and reverses with the motion.

    >>> mech = mbs.Mechanism("cart", gravity=(0.0, 0.0, 0.0))
    >>> mech.add_body("cart", mass=1e9, inertia=(1.0, 1.0, 1.0))
    >>> mech.add_joint("rail", mbs.Prismatic(axis=(1, 0, 0)), "world", "cart")
    >>> spring = mbs.HystereticSpring(
    ...     "world", "cart", (0, 0, 0), (0, 0, 0), (1, 0, 0), stiffness=100.0, friction=5.0, yield_length=0.01
    ... )
    >>> mech.add_force("stack", spring)
    >>> run = mbs.simulate(mech.build(), [0.0], [0.1], t_end=0.1, dt=0.01)
    >>> print(f"{run.states['stack.z'][-1]:.4f} {np.tanh(1.0):.4f}")  # at s = yield_length
    0.7616 0.7616
    """

    trials: ClassVar[int] = 24
    stiffness: Number = field(Kind.NOT_NEGATIVE, "N/m", "of the elastic part", default=0.0)
    preload: Number = field(Kind.NUMBER, "N", "force at s = 0", default=0.0)
    friction: Number = field(Kind.NOT_NEGATIVE, "N", "largest force of the part with hysteresis", default=0.0)
    yield_length: Number = field(Kind.POSITIVE, "m", "extension over which that part builds up", default=1e-3)
    z: Number = state("", "share of the friction that acts", default=0.0)

    def corners(self, p: Numbers, scene: Scene) -> tuple[tuple[Scalar, Scalar | None], ...]:
        """Where the motion reverses."""
        return ((self._motion(p, scene)[1], None),)

    def rates(self, p: Numbers, scene: Scene) -> Mapping[str, Any]:
        (extends,) = self.sides(p, scene)
        rate, z = self._motion(p, scene)[1], p["z"]
        same = where(extends, where(z > 0, z * z, 0.0), where(z < 0, z * z, 0.0))
        return {"z": rate * (1 - same) / p["yield_length"]}

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        s, _, direction, on_a = self._motion(p, scene)
        self._apply_along(loads, p, p["preload"] - p["stiffness"] * s - p["friction"] * p["z"], direction, on_a)

    def apply_stored(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        s, _, direction, on_a = self._motion(p, scene)
        self._apply_along(loads, p, p["preload"] - p["stiffness"] * s, direction, on_a)

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        """Energy [J] of the elastic part."""
        s = self._motion(p, scene)[0]
        return s * (0.5 * p["stiffness"] * s - p["preload"])

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        return -(p["friction"] * p["z"]) * self._motion(p, scene)[1]
