"""Drive of a joint that follows its command as an oscillator does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field, state
from jaxmbs.model.forces import oscillator
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.given import Number
from jaxmbs.spatial.scalar import Scalar, maximum, minimum


@element
class SecondOrderActuator(Force):
    """A drive of a joint with one degree of freedom: its force or torque follows the command with a lag of second order.

    force'' = frequency² (command - force) - 2 damping_ratio frequency force', where the command is limited to `limit`, and
    the rate of the force to `rate_limit`, which it nears with the time constant 0.1 / frequency: where this limit acts,
    steps of a fixed length must be shorter than 0.28 / frequency ("rk4"). The work that it does comes from outside.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_force("drive", mbs.SecondOrderActuator("elbow", frequency=20.0, damping_ratio=1.0, command=2.0))
    >>> run = mbs.simulate(mech.build(), [0.0, 0.0], [0.0, 0.0], t_end=0.1, dt=0.001)
    >>> print(f"{run.states['drive.force'][-1]:.4f}")  # 2 (1 - 3/e²)
    1.1880
    """

    source: ClassVar[bool] = True
    freedoms: ClassVar[int | None] = 1
    trials: ClassVar[int] = 24
    joint: str = field(Kind.JOINT, "", "joint, of the tree or cut, that it drives")
    frequency: Number = field(Kind.POSITIVE, "rad/s", "natural frequency", default=100.0)
    damping_ratio: Number = field(Kind.NOT_NEGATIVE, "", "share of critical damping", default=0.7)
    command: Number = field(Kind.NUMBER, "N m or N", "torque or force that is wanted", default=0.0)
    force: Number = state("N m or N", "torque or force that acts", default=0.0)
    force_rate: Number = state("N m/s or N/s", "its rate", default=0.0)
    limit: Number = field(Kind.POSITIVE, "N m or N", "largest torque or force that it follows", default=1e9)
    rate_limit: Number = field(Kind.POSITIVE, "N m/s or N/s", "largest rate of the torque or force", default=1e12)

    def _motion(self, p: Numbers) -> tuple[Scalar, Scalar, Scalar]:
        """The force that is wanted, the one that acts, its rate."""
        return maximum(minimum(p["command"], p["limit"]), -p["limit"]), p["force"], p["force_rate"]

    def corners(self, p: Numbers, scene: Scene) -> tuple[tuple[Scalar, Scalar | None], ...]:
        """Where the limits of the rate begin and end to act."""
        return oscillator.corners(p, *self._motion(p))

    def rates(self, p: Numbers, scene: Scene) -> Mapping[str, Any]:
        return {
            "force": p["force_rate"],
            "force_rate": oscillator.limited(p, *self._motion(p), *self.sides(p, scene)),
        }

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        loads.joint(self.joint, (p["force"],))

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        return p["force"] * scene.rates(self.joint)[0]
