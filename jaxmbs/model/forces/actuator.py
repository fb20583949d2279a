"""Drive of a joint that follows its command with a lag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field, state
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.given import Number
from jaxmbs.spatial.scalar import Scalar, maximum, minimum, where


@element
class Actuator(Force):
    """A drive of a joint with one degree of freedom: its force or torque follows the command with a lag of first order.

    force' = (command - force) / lag, where the command is limited to `limit`, and the rate of the force to `rate_limit`.
    The work that it does comes from outside.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_force("drive", mbs.Actuator("elbow", lag=0.1, command=2.0, rate_limit=50.0))
    >>> run = mbs.simulate(mech.build(), [0.0, 0.0], [0.0, 0.0], t_end=0.1, dt=0.01)
    >>> print(run.states["drive.force"][-1].round(4))  # 2 (1 - 1/e)
    1.2642
    """

    source: ClassVar[bool] = True
    freedoms: ClassVar[int | None] = 1
    trials: ClassVar[int] = 24
    joint: str = field(Kind.JOINT, "", "joint, of the tree or cut, that it drives")
    lag: Number = field(Kind.POSITIVE, "s", "time constant", default=0.01)
    command: Number = field(Kind.NUMBER, "N m or N", "torque or force that is wanted", default=0.0)
    force: Number = state("N m or N", "torque or force that acts", default=0.0)
    limit: Number = field(Kind.POSITIVE, "N m or N", "largest torque or force that it follows", default=1e9)
    rate_limit: Number = field(Kind.POSITIVE, "N m/s or N/s", "largest rate of the torque or force", default=1e12)

    def _wanted(self, p: Numbers) -> Scalar:
        """The rate without its limit."""
        wanted = maximum(minimum(p["command"], p["limit"]), -p["limit"])
        return (wanted - p["force"]) / p["lag"]

    def corners(self, p: Numbers, scene: Scene) -> tuple[tuple[Scalar, Scalar | None], ...]:
        """Where the rate reaches or leaves its limits."""
        rate = self._wanted(p)
        return (rate - p["rate_limit"], None), (-rate - p["rate_limit"], None)

    def rates(self, p: Numbers, scene: Scene) -> Mapping[str, Any]:
        rises, falls = self.sides(p, scene)
        most = p["rate_limit"]
        return {"force": where(rises, most, where(falls, -most, self._wanted(p)))}

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        loads.joint(self.joint, (p["force"],))

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        return p["force"] * scene.rates(self.joint)[0]
