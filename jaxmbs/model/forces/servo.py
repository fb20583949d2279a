"""Drive that holds a joint at a commanded coordinate, through a shaft with elasticity and play."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field, state
from jaxmbs.model.forces import oscillator
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.given import Number
from jaxmbs.spatial.scalar import Scalar, maximum, minimum, vanishes, where


@element
class Servo(Force):
    """A drive of a joint with one degree of freedom that is commanded by position, such as the drive of a nozzle or a fin.

    Its shaft follows the command as an oscillator, position'' = frequency² (command - position) - 2 damping_ratio
    frequency position', with the command limited to [lowest, highest] and the speed to `rate_limit`, which it nears with
    the time constant 0.1 / frequency: where this limit acts, steps of a fixed length must be shorter than 0.28 / frequency
    ("rk4"). The load of the joint does not move it. The joint is tied to the shaft by a spring with a damper and with the
    play of a gear (backlash): within play / 2 on either side there is no force, and the spring and its damper together never
    pull back. The work of the shaft comes from outside.

    >>> mech = mbs.library.double_pendulum()
    >>> fin = mbs.Servo("elbow", frequency=50.0, damping_ratio=1.0, command=0.2, stiffness=1e5, damping=300.0)
    >>> mech.add_force("fin", fin)
    >>> run = mbs.simulate(mech.build(), [0.0, 0.0], [0.0, 0.0], t_end=0.5, dt=0.001)
    >>> print(run.q[-1, 1].round(2))
    0.2
    """

    source: ClassVar[bool] = True
    freedoms: ClassVar[int | None] = 1
    trials: ClassVar[int] = 24
    joint: str = field(Kind.JOINT, "", "joint, of the tree or cut, that it drives")
    command: Number = field(Kind.NUMBER, "rad or m", "coordinate that is wanted", default=0.0)
    frequency: Number = field(Kind.POSITIVE, "rad/s", "natural frequency of the shaft", default=100.0)
    damping_ratio: Number = field(Kind.NOT_NEGATIVE, "", "share of critical damping of the shaft", default=0.7)
    stiffness: Number = field(Kind.NOT_NEGATIVE, "N m/rad or N/m", "between shaft and joint", default=0.0)
    damping: Number = field(Kind.NOT_NEGATIVE, "N m s/rad or N s/m", "between shaft and joint", default=0.0)
    play: Number = field(Kind.NOT_NEGATIVE, "rad or m", "backlash: free travel between shaft and joint", default=0.0)
    lowest: Number = field(Kind.NUMBER, "rad or m", "least command that it follows", default=-1e9)
    highest: Number = field(Kind.NUMBER, "rad or m", "largest command that it follows", default=1e9)
    rate_limit: Number = field(Kind.POSITIVE, "rad/s or m/s", "largest speed of the shaft", default=1e9)
    position: Number = state("rad or m", "coordinate of the shaft", default=0.0)
    speed: Number = state("rad/s or m/s", "its rate", default=0.0)

    def requirements(self, p: Numbers) -> Mapping[str, Any]:
        return {"lowest must be below highest": p["lowest"] < p["highest"]}

    def corners(self, p: Numbers, scene: Scene) -> tuple[tuple[Scalar, Scalar | None], ...]:
        """Where the limits of the speed begin and end to act, where the play is used up on either side, and where the damper
        would pull."""
        found: list[tuple[Scalar, Scalar | None]] = [*oscillator.corners(p, *self._motion(p))]
        if not vanishes(p["play"]):
            wound = p["position"] - scene.coordinates(self.joint)[0]
            pushes = p["stiffness"] * (wound - 0.5 * p["play"]), p["stiffness"] * (-wound - 0.5 * p["play"])
            damper = p["damping"] * self._winding(p, scene)
            found += [(wound - 0.5 * p["play"], None), (-wound - 0.5 * p["play"], None)]
            if not vanishes(p["damping"]):
                found += [(pushes[0] + damper, None), (pushes[1] - damper, None)]
        return tuple(found)

    def _motion(self, p: Numbers) -> tuple[Scalar, Scalar, Scalar]:
        """The coordinate that is wanted, that of the shaft, its rate."""
        return maximum(minimum(p["command"], p["highest"]), p["lowest"]), p["position"], p["speed"]

    def _winding(self, p: Numbers, scene: Scene) -> Scalar:
        """Rate of the shaft relative to the joint."""
        return p["speed"] - scene.rates(self.joint)[0]

    def rates(self, p: Numbers, scene: Scene) -> Mapping[str, Any]:
        above, below, *_ = self.sides(p, scene)
        return {"position": p["speed"], "speed": oscillator.limited(p, *self._motion(p), above, below)}

    def _forces(self, p: Numbers, scene: Scene) -> tuple[Scalar, Scalar]:
        """(of the spring, of spring and damper) on the joint."""
        sides = self.sides(p, scene)
        wound = p["position"] - scene.coordinates(self.joint)[0]
        damper = p["damping"] * self._winding(p, scene)
        if vanishes(p["play"]):
            return p["stiffness"] * wound, p["stiffness"] * wound + damper
        ahead, behind, *pushing = sides[2:]
        up, down = p["stiffness"] * (wound - 0.5 * p["play"]), p["stiffness"] * (wound + 0.5 * p["play"])
        spring = where(ahead, up, where(behind, down, 0.0))
        if not pushing:
            return spring, spring
        push, pull = where(pushing[0], up + damper, 0.0), where(pushing[1], down + damper, 0.0)
        return spring, where(ahead, push, where(behind, pull, 0.0))

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        loads.joint(self.joint, (self._forces(p, scene)[1],))

    def apply_stored(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        loads.joint(self.joint, (self._forces(p, scene)[0],))

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        wound = p["position"] - scene.coordinates(self.joint)[0]
        free = 0.5 * p["play"]
        stretch = maximum(wound - free, 0.0) + minimum(wound + free, 0.0)
        return 0.5 * p["stiffness"] * (stretch * stretch)

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        spring, whole = self._forces(p, scene)
        return (whole - spring) * scene.rates(self.joint)[0]
