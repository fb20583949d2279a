"""Rocket motor whose propellant is used up."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jaxmbs.model import profiles
from jaxmbs.model.errors import ModelWarning
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field, state
from jaxmbs.model.forces.base import Force, Loads, Numbers, Scene
from jaxmbs.model.given import Number, Vector
from jaxmbs.model.parameters import is_traced
from jaxmbs.spatial import RigidInertia, Symmetric3, Vector3
from jaxmbs.spatial.scalar import Scalar, maximum, where

if TYPE_CHECKING:
    from jaxmbs.model.mechanism import Mechanism

STANDARD_GRAVITY = 9.80665  # [m/s²] by which a specific impulse in seconds is multiplied
LOCATED = 1e-8  # [s] within which the end of the propellant is located, apart from the rounding of the time


@element
class Motor(Force):
    """Rocket motor: thrust with a time profile, until its propellant is used up, and the mass that leaves the body.

    From the ignition on, the thrust is `thrust` times the piecewise linear profile through (times, values), held after
    its last time; the mass flow is the thrust divided by 9.80665 m/s² times the specific impulse. The propellant is a
    mass on the body, with a constant centre of mass and constant radii of gyration about it. It adds to the body's own
    mass, also before ignition. When none is left, the thrust ends; the event action Disable ends it earlier.

    The equations are those of the body with the propellant of the instant, plus thrust and the Coriolis forces of the gas
    that flows from the propellant to the nozzle: with the mass flow f, nozzle at e, propellant at c, radii of gyration k,
    a force -2 f w x (e - c) and, about the body's origin, a moment -f [e x (w x e) - c x (w x c) - k² w], which damps
    rotation across the axis (jet damping) [Thomson 1961, 8.6]. It is assumed that the flow is symmetric about its axis and
    that its own momentum in the motor is steady.

    >>> mech = mbs.Mechanism("rocket", gravity=(0.0, 0.0, 0.0))
    >>> mech.add_body("stage", mass=100.0, inertia=(10.0, 10.0, 1.0))
    >>> mech.add_joint("flight", mbs.Prismatic(axis=(0, 0, 1)), "world", "stage")
    >>> mech.add_force("motor", mbs.Motor("stage", thrust=1e4, specific_impulse=250.0, propellant=50.0))
    >>> run = mbs.simulate(mech.build(), [0.0], [0.0], t_end=15.0, dt=0.1)
    >>> print(run.states["motor.propellant"][-1], abs(run.v[-1, 0] - 250 * 9.80665 * np.log(1.5)) < 1e-3)
    0.0 True
    """

    source: ClassVar[bool] = True
    trials: ClassVar[int] = 24
    body: str = field(Kind.BODY, "", "body that it drives")
    point: Vector = field(Kind.VECTOR, "m", "centre of the nozzle's exit, in body axes", default=(0.0, 0.0, 0.0))
    direction: Vector = field(Kind.DIRECTION, "", "of the thrust, in body axes", default=(0.0, 0.0, 1.0))
    thrust: Number = field(Kind.NOT_NEGATIVE, "N", "force where the profile is 1", default=0.0)
    specific_impulse: Number = field(
        Kind.POSITIVE, "s", "thrust over the weight of the mass flow on Earth", default=280.0
    )
    propellant: Number = state("kg", "mass of the propellant that is left", default=0.0, kind=Kind.NOT_NEGATIVE)
    propellant_com: Vector = field(Kind.VECTOR, "m", "its centre of mass, in body axes", default=(0.0, 0.0, 0.0))
    gyration: Vector = field(
        Kind.NOT_NEGATIVE_VECTOR, "m", "its radii of gyration about the body's axes there", default=(0.0, 0.0, 0.0)
    )
    ignition: Number = field(Kind.NUMBER, "s", "time at which the profile begins", default=0.0)
    times: Vector = field(Kind.LIST, "s", "times of the profile after the ignition, increasing", default=(0.0,))
    values: Vector = field(Kind.LIST, "", "the profile at these times, not negative", default=(1.0,))

    def requirements(self, p: Numbers) -> Mapping[str, Any]:
        backwards = "values must not be negative; for thrust the other way, add a motor of the opposite direction"
        return {**profiles.requirements(p), backwards: (p["values"] >= 0).all(-1)}

    def added(self, mech: Mechanism, name: str) -> Force:
        given = (self.thrust, self.propellant)
        if not any(map(is_traced, given)) and np.array_equal(given[1], 0) and not np.array_equal(given[0], 0):
            warnings.warn(
                f"force {name!r} has a thrust and no propellant, so that it does not push; pass propellant=..., or set "
                f"{name + '.propellant'!r} before a run; for a force that needs none, use Thruster",
                ModelWarning,
                stacklevel=3,
            )
        return self

    def corners(self, p: Numbers, scene: Scene) -> tuple[tuple[Scalar, Scalar | None], ...]:
        """The end of the propellant. What remains afterwards is a rounding error: it makes no second corner, and it is not
        taken for propellant after a controller has set numbers of the motor."""
        left = p["propellant"]
        if scene.sides:
            return ((where(scene.sides[0], left, -1.0), where(scene.sides[0], -self._flow(p, scene), 0.0)),)
        rest = LOCATED + 8 * float(np.finfo(getattr(left, "dtype", float)).eps) * maximum(scene.t, -scene.t)
        return ((left - rest * (p["thrust"] / (STANDARD_GRAVITY * p["specific_impulse"])), None),)

    def instants(self, p: Numbers) -> tuple[Scalar, ...]:
        """The times of the profile."""
        return tuple(p["ignition"] + t for t in p["times"])

    def _sides_of_motor(self, p: Numbers, scene: Scene) -> tuple[Scalar, ...]:
        """Whether propellant is left, and which times of the profile have passed."""
        return self.sides(p, scene)

    def _direction_of_thrust(self, p: Numbers) -> Vector3:
        """In body axes."""
        return p["direction"]

    def _thrust(self, p: Numbers, scene: Scene) -> Scalar:
        left, *passed = self._sides_of_motor(p, scene)
        level = profiles.piecewise_linear(scene.t - p["ignition"], p["times"], p["values"], tuple(passed))
        return where(left, where(passed[0], p["thrust"] * level, 0.0), 0.0)

    def _flow(self, p: Numbers, scene: Scene) -> Scalar:
        """Mass [kg/s] that leaves."""
        return self._thrust(p, scene) / (STANDARD_GRAVITY * p["specific_impulse"])

    def rates(self, p: Numbers, scene: Scene) -> Mapping[str, Any]:
        return {"propellant": -self._flow(p, scene)}

    def masses(self, p: Numbers) -> Mapping[str, RigidInertia]:
        about = Symmetric3.diagonal(*(p["propellant"] * (k * k) for k in p["gyration"]))
        return {self.body: RigidInertia.at_com(p["propellant"], p["propellant_com"], about)}

    def _action(self, p: Numbers, scene: Scene) -> tuple[Vector3, Vector3]:
        """Force, and moment about the body's origin, in body axes."""
        e, c, f = p["point"], p["propellant_com"], self._flow(p, scene)
        w = scene.rotation(self.body).T @ scene.angular(self.body)
        force = self._direction_of_thrust(p) * self._thrust(p, scene)
        own = Vector3(*(k * k * x for k, x in zip(p["gyration"], w, strict=True)))
        damping = e.cross(w.cross(e)) - c.cross(w.cross(c)) - own
        return force - w.cross(e - c) * (2 * f), e.cross(force) - damping * f

    def apply(self, p: Numbers, scene: Scene, loads: Loads) -> None:
        force, moment = (scene.rotation(self.body) @ x for x in self._action(p, scene))
        loads.force(self.body, force, Vector3(0, 0, 0))
        loads.moment(self.body, moment)

    def power(self, p: Numbers, scene: Scene) -> Scalar:
        force, moment = (scene.rotation(self.body) @ x for x in self._action(p, scene))
        return force @ scene.velocity(self.body, Vector3(0, 0, 0)) + moment @ scene.angular(self.body)
