"""Rocket motor whose nozzle turns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field, state
from jaxmbs.model.forces.base import Numbers, Scene
from jaxmbs.model.forces.motor import Motor
from jaxmbs.model.given import Number, Vector
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.scalar import Scalar, cos, maximum, minimum, sin, where


@element
class Gimbal(Motor):
    """A Motor in a gimbal: its thrust turns about two axes, by angles that follow their commands with a lag.

    The direction of the thrust is turned about `axis_2` by angle_2, and then about `axis_1` by angle_1; the axes are fixed
    in the body and meet at `point`. Each angle follows its command with a lag of first order; commands are limited to
    `angle_limit`, rates to `rate_limit`. The nozzle has no mass of its own: for the reaction of its inertia, give it a body
    with a joint, a Servo on the joint, and a Motor on the body.

    >>> mech = mbs.Mechanism("stage", gravity=(0.0, 0.0, 0.0))
    >>> mech.add_body("stage", mass=1000.0, inertia=(2000.0, 2000.0, 200.0))
    >>> mech.add_joint("flight", mbs.Free(), "world", "stage")
    >>> engine = mbs.Gimbal("stage", point=(0, 0, -2), thrust=1e4, propellant=100.0, command_1=0.05, lag=0.02)
    >>> mech.add_force("engine", engine)
    >>> run = mbs.simulate(mech.build(), [0, 0, 0, 1.0, 0, 0, 0], np.zeros(6), t_end=0.2, dt=0.002)
    >>> print(run.states["engine.angle_1"][-1].round(4), run.v[-1, 0] < -0.08)
    0.05 True
    """

    axis_1: Vector = field(
        Kind.DIRECTION, "", "first axis of the gimbal, in body axes", default=(1.0, 0.0, 0.0), kw_only=True
    )
    axis_2: Vector = field(
        Kind.DIRECTION, "", "second axis of the gimbal, in body axes", default=(0.0, 1.0, 0.0), kw_only=True
    )
    command_1: Number = field(Kind.NUMBER, "rad", "angle about axis_1 that is wanted", default=0.0, kw_only=True)
    command_2: Number = field(Kind.NUMBER, "rad", "angle about axis_2 that is wanted", default=0.0, kw_only=True)
    angle_1: Number = state("rad", "angle about axis_1", default=0.0, kw_only=True)
    angle_2: Number = state("rad", "angle about axis_2", default=0.0, kw_only=True)
    lag: Number = field(Kind.POSITIVE, "s", "time constant of both angles", default=0.01, kw_only=True)
    angle_limit: Number = field(Kind.POSITIVE, "rad", "largest angle that it follows", default=1e9, kw_only=True)
    rate_limit: Number = field(Kind.POSITIVE, "rad/s", "largest rate of the angles", default=1e9, kw_only=True)

    def requirements(self, p: Numbers) -> Mapping[str, Any]:
        def apart(a: str, b: str) -> Any:
            return 1 - (p[a] * p[b]).sum(-1) ** 2 > 1e-6

        across = apart("axis_1", "axis") & apart("axis_2", "axis")
        return {
            **super().requirements(p),
            "axis_1 and axis_2 are parallel; the nozzle turns about two different axes": apart("axis_1", "axis_2"),
            "axis_1 or axis_2 is along `axis`, about which the thrust does not turn; pass axes across it": across,
        }

    def _wanted(self, p: Numbers) -> tuple[Scalar, Scalar]:
        """Rates that both angles would have without their limit."""
        most = p["angle_limit"]
        pairs = ((p["command_1"], p["angle_1"]), (p["command_2"], p["angle_2"]))
        first, second = ((maximum(minimum(wanted, most), -most) - now) / p["lag"] for wanted, now in pairs)
        return first, second

    def corners(self, p: Numbers, scene: Scene) -> tuple[tuple[Scalar, Scalar | None], ...]:
        """Those of the motor, and where the rates of the angles reach or leave their limits."""
        most, leave = p["rate_limit"], []
        real = self._followed(p, scene) if scene.sides else (None, None)
        for wanted, rate in zip(self._wanted(p), real, strict=True):
            change = None if rate is None else rate / p["lag"]  # the command is held
            leave += [(wanted - most, None if change is None else -change), (-wanted - most, change)]
        return *super().corners(p, scene), *leave

    def _followed(self, p: Numbers, scene: Scene) -> tuple[Scalar, Scalar]:
        """Rates of both angles."""
        sides = self.sides(p, scene)
        first = len(sides) - len(p["times"]) - 4
        most = p["rate_limit"]
        pairs = zip(self._wanted(p), (sides[first : first + 2], sides[first + 2 : first + 4]), strict=True)
        first, second = (where(rises, most, where(falls, -most, rate)) for rate, (rises, falls) in pairs)
        return first, second

    def rates(self, p: Numbers, scene: Scene) -> Mapping[str, Any]:
        first, second = self._followed(p, scene)
        return {**super().rates(p, scene), "angle_1": first, "angle_2": second}

    def _direction_of_thrust(self, p: Numbers) -> Vector3:
        return _turned(_turned(p["axis"], p["axis_2"], p["angle_2"]), p["axis_1"], p["angle_1"])


def _turned(x: Vector3, axis: Vector3, angle: Scalar) -> Vector3:
    """x turned about an axis [Rodrigues]."""
    c, s = cos(angle), sin(angle)
    return x * c + axis.cross(x) * s + axis * ((1 - c) * (axis @ x))
