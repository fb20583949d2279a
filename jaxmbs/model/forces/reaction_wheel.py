"""Flywheels on a body: reaction wheels, and a control moment gyro, whose axis turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import check_places, declared, element, field, state
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.given import Number, Vector
from jaxmbs.model.joints import Revolute
from jaxmbs.model.parameters import is_traced
from jaxmbs.model.pose import Pose
from jaxmbs.spatial import ZERO3, RigidInertia, Symmetric3, Vector3
from jaxmbs.spatial.scalar import Scalar, cos, maximum, minimum, sin

if TYPE_CHECKING:
    from jaxmbs.building.mechanism import Mechanism


@element
class Wheel(Force):
    """Base of the flywheels on a body, driven by a motor between the two."""

    source: ClassVar[bool] = True
    takes: ClassVar[bool] = True
    body: str = field(Kind.BODY, "", "body that carries it")
    axis: Vector = field(Kind.DIRECTION, "", "its axis, in body axes", default=(0.0, 0.0, 1.0))
    inertia: Number = field(Kind.POSITIVE, "kg m2", "its moment of inertia about the axis", default=0.01)
    torque: Number = field(Kind.NUMBER, "N m", "of the motor on the wheel", default=0.0)
    friction: Number = field(Kind.NOT_NEGATIVE, "N m s/rad", "torque of the bearing per speed", default=0.0)
    limit: Number = field(Kind.POSITIVE, "N m", "largest torque of the motor", default=1e9)
    speed_limit: Number = field(Kind.POSITIVE, "rad/s", "largest speed to which the motor accelerates", default=1e9)
    static_imbalance: Number = field(
        Kind.NOT_NEGATIVE, "kg m", "its mass times the distance of its centre of mass from the axis", default=0.0
    )
    dynamic_imbalance: Number = field(
        Kind.NOT_NEGATIVE, "kg m2", "its product of inertia about the axis and one across it", default=0.0
    )
    point: Vector = field(
        Kind.PLACE, "m", "its centre, in body axes; matters with an imbalance", default=(0.0, 0.0, 0.0)
    )
    mass: Number = field(Kind.POSITIVE, "kg", "its mass; matters for the loads of its bearing", default=1.0)

    def _driven(self, p: Numbers, speed: Scalar) -> Scalar:
        """Torque of motor and friction on the wheel, at a speed relative to the body."""
        wanted = maximum(minimum(p["torque"], p["limit"]), -p["limit"])
        band = 0.01 * p["speed_limit"]
        faster, slower = ((p["speed_limit"] - x) / band for x in (speed, -speed))
        most = maximum(wanted, 0.0) * maximum(minimum(faster, 1.0), 0.0)
        least = minimum(wanted, 0.0) * maximum(minimum(slower, 1.0), 0.0)
        return most + least - p["friction"] * speed


@element
class ReactionWheel(Wheel):
    """A balanced flywheel on a body, driven by a motor between the two.

    The mass and the inertia of the body are those with the wheel, as if it were fixed. The state is the angular momentum
    of the wheel about its axis, relative to inertial space: momentum = inertia (speed + axis . w), with the speed of the
    wheel relative to the body and the angular velocity w of the body. It changes by the torque of the motor and by
    friction; the body feels their reaction and the gyroscopic moment, so that the angular momentum of the whole is
    conserved [Wertz 1978, 16.2]. The torque is limited. It cannot accelerate the wheel beyond its largest speed: there it
    falls to zero within the last percent of the speed. With an imbalance, `add_force` makes it an ImbalancedWheel.

    >>> mech = mbs.Mechanism("satellite", gravity=(0.0, 0.0, 0.0))
    >>> mech.add_body("bus", mass=100.0, inertia=(10.0, 10.0, 5.0))
    >>> mech.add_joint("flight", mbs.Free(), "world", "bus")
    >>> mech.add_force("wheel", mbs.ReactionWheel("bus", axis=(0, 0, 1), inertia=0.01, torque=0.1))
    >>> run = mbs.simulate(mech.build(), [0, 0, 0, 1.0, 0, 0, 0], np.zeros(6), t_end=10.0, dt=0.1)
    >>> print(f"{run.states['wheel.momentum'][-1]:.4f} {run.v[-1, 2]:.4f}")  # -1 N m s for 5 - 0.01 kg m²
    1.0000 -0.2004
    """

    momentum: Number = state("N m s", "its angular momentum about the axis, relative to inertial space", default=0.0)

    def added(self, mech: Mechanism, name: str) -> Force:
        given = (self.static_imbalance, self.dynamic_imbalance)
        if not any(is_traced(x) or np.any(np.asarray(x)) for x in given):
            return self
        if is_traced(self.momentum) or np.any(np.asarray(self.momentum)):
            raise ModelError(
                f'force {name!r}: an imbalanced wheel turns on the joint "{name}_spin"; leave momentum out, and give the '
                "speed of this joint at the start of a run"
            )
        made = ImbalancedWheel(**{d.name: getattr(self, d.name) for d in declared(Wheel)})
        check_places(made, f"force {name!r}: ")
        return made.added(mech, name)

    def requirements(self, p: Numbers) -> Mapping[str, Any]:
        balanced = (p["static_imbalance"] == 0) & (p["dynamic_imbalance"] == 0)
        return {"an imbalance cannot be set on a wheel that was built balanced; build it with one": balanced}

    def _turning(self, scene: Scene) -> Vector3:
        """Angular velocity of the body in its axes."""
        return scene.rotation(self.body).T @ scene.angular(self.body)

    def _torque(self, p: Numbers, scene: Scene) -> Scalar:
        """On the wheel: motor and friction."""
        return self._driven(p, p["momentum"] / p["inertia"] - p["axis"] @ self._turning(scene))

    def rates(self, p: Numbers, scene: Scene) -> Mapping[str, Any]:
        return {"momentum": self._torque(p, scene)}

    def masses(self, p: Numbers) -> Mapping[str, RigidInertia]:
        """Minus the wheel's inertia about its axis, which the body's inertia contains, since its angular momentum is a
        state."""
        return {self.body: RigidInertia(0.0, ZERO3, Symmetric3.outer(p["axis"], -p["inertia"]))}

    def spins(self, p: Numbers) -> Mapping[str, Vector3]:
        return {self.body: p["axis"] * p["momentum"]}

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        gyroscopic = self._turning(scene).cross(p["axis"] * p["momentum"])
        moment = p["axis"] * self._torque(p, scene) + gyroscopic
        loads.moment(self.body, scene.rotation(self.body) @ -moment)

    def potential(self, p: Numbers, scene: Scene) -> Scalar:
        """The kinetic energy of the wheel about its axis."""
        return 0.5 * (p["momentum"] * p["momentum"]) / p["inertia"]

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        return -(self._torque(p, scene) * (p["axis"] @ self._turning(scene)))


@element
class ImbalancedWheel(Wheel):
    """A flywheel whose centre of mass and principal axes are not on its axis, driven by a motor between it and its body.

    It is a body of its own: `add_force("wheel", ReactionWheel(..., static_imbalance=1e-5))` adds "wheel_rotor" and the joint
    "wheel_spin". The rate of this joint is the speed of the wheel relative to the body; its angle is zero where the centre
    of mass lies on the x axis of the joint. At the speed w, the body feels a force static_imbalance w² and a moment
    dynamic_imbalance w², which turn with the wheel. The mass and the inertia of the body are those with the wheel, as if
    it were balanced and fixed: those of the rotor are subtracted. Torque, friction and limits are those of a ReactionWheel.

    >>> mech = mbs.Mechanism("satellite", gravity=(0.0, 0.0, 0.0))
    >>> mech.add_body("bus", mass=100.0, inertia=(10.0, 10.0, 5.0))
    >>> mech.add_joint("flight", mbs.Free(), "world", "bus")
    >>> mech.add_force("wheel", mbs.ReactionWheel("bus", inertia=0.01, static_imbalance=1e-5))
    >>> mech.build().joint_names
    ('flight', 'wheel_spin')
    """

    axis: Vector = field(Kind.AXIS, "", "its axis, in body axes", default=(0.0, 0.0, 1.0))
    rotor: str | None = field(Kind.BODY, "", "the body that is added", default=None, kw_only=True)
    spin: str | None = field(Kind.JOINT, "", "the joint that is added", default=None, kw_only=True)

    def added(self, mech: Mechanism, name: str) -> ImbalancedWheel:
        if self.rotor is not None:  # read from a file in which it is
            return self
        rotor, spin = f"{name}_rotor", f"{name}_spin"
        mech.add_body(rotor, 0.0)
        place = Pose(self.point).turned_to(self.axis)
        mech.add_joint(spin, Revolute((0, 0, 1)), self.body, rotor, parent_pose=place)
        return replace(self, rotor=rotor, spin=spin)

    def requirements(self, p: Numbers) -> Mapping[str, Any]:
        far = "static_imbalance: the centre of mass is farther from the axis than the inertia allows; pass at most sqrt(mass"
        return {f"{far} inertia)": p["static_imbalance"] ** 2 <= p["mass"] * p["inertia"]}

    def masses(self, p: Numbers) -> Mapping[str, RigidInertia]:
        assert self.rotor is not None  # once it is part of a mechanism
        axis = Vector3(*Pose(self.point).turned_to(self.axis).rotation[:, 2].tolist())
        center = Vector3(*map(float, self.point))
        turning = Symmetric3(0.0, 0.0, p["inertia"], 0.0, p["dynamic_imbalance"], 0.0)
        return {
            self.body: RigidInertia.at_com(-p["mass"], center, Symmetric3.outer(axis, -p["inertia"])),
            self.rotor: RigidInertia(p["mass"], Vector3(1.0, 0.0, 0.0) * p["static_imbalance"], turning),
        }

    def _speed(self, scene: Scene) -> Scalar:
        assert self.spin is not None
        return scene.rates(self.spin)[0]

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        assert self.spin is not None
        loads.joint(self.spin, (self._driven(p, self._speed(scene)),))

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        speed = self._speed(scene)
        return self._driven(p, speed) * speed


@element
class ControlMomentGyro(Force):
    """A flywheel of constant angular momentum, with a gimbal that turns its axis.

    The axis of the wheel is `spin` where the angle of the gimbal is zero, and turns about `gimbal`, which is perpendicular
    to it. The rate of the angle is `rate`, limited to `rate_limit`. The body feels the change of the angular momentum;
    the mass and the inertia of the body are those with the wheel, whatever the angle [Wie 2008, 7.5].

    >>> mech = mbs.Mechanism("satellite", gravity=(0.0, 0.0, 0.0))
    >>> mech.add_body("bus", mass=100.0, inertia=(10.0, 10.0, 5.0))
    >>> mech.add_joint("flight", mbs.Free(), "world", "bus")
    >>> gyro = mbs.ControlMomentGyro("bus", gimbal=(0, 0, 1), spin=(1, 0, 0), momentum=2.0, rate=0.5)
    >>> mech.add_force("gyro", gyro)
    >>> model = mech.build()
    >>> print(f"{mbs.forward_dynamics(model, [0, 0, 0, 1.0, 0, 0, 0], np.zeros(6))[1]:.4f}")  # -1 N m about y
    -0.1000
    """

    source: ClassVar[bool] = True
    body: str = field(Kind.BODY, "", "body that carries it")
    gimbal: Vector = field(Kind.DIRECTION, "", "axis of the gimbal, in body axes", default=(0.0, 0.0, 1.0))
    spin: Vector = field(
        Kind.DIRECTION, "", "axis of the wheel at the angle zero, in body axes", default=(1.0, 0.0, 0.0)
    )
    momentum: Number = field(Kind.NUMBER, "N m s", "angular momentum of the wheel about its axis", default=1.0)
    angle: Number = state("rad", "of the gimbal", default=0.0)
    rate: Number = field(Kind.NUMBER, "rad/s", "of the gimbal's angle", default=0.0)
    rate_limit: Number = field(Kind.POSITIVE, "rad/s", "largest rate of the angle", default=1e9)

    def requirements(self, p: Numbers) -> Mapping[str, Any]:
        along = (p["gimbal"] * p["spin"]).sum(-1)
        return {"spin must be perpendicular to gimbal": abs(along) < 1e-6}

    def _rate(self, p: Numbers) -> Scalar:
        return maximum(minimum(p["rate"], p["rate_limit"]), -p["rate_limit"])

    def _momentum(self, p: Numbers) -> Vector3:
        c, s = cos(p["angle"]), sin(p["angle"])
        return (p["spin"] * c + p["gimbal"].cross(p["spin"]) * s) * p["momentum"]

    def rates(self, p: Numbers, scene: Scene) -> Mapping[str, Any]:
        return {"angle": self._rate(p)}

    def spins(self, p: Numbers) -> Mapping[str, Vector3]:
        return {self.body: self._momentum(p)}

    def _moment(self, p: Numbers, scene: Scene) -> Vector3:
        """On the body, in world axes."""
        R, h = scene.rotation(self.body), self._momentum(p)
        turning = R.T @ scene.angular(self.body) + p["gimbal"] * self._rate(p)
        return R @ -turning.cross(h)

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        loads.moment(self.body, self._moment(p, scene))

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        return self._moment(p, scene) @ scene.angular(self.body)
