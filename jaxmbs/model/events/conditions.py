"""Conditions of events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp

from jaxmbs.model.errors import ModelError, unknown
from jaxmbs.model.events.base import Condition, Instant, Numbers
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.flexible_bodies.internal import no_wrench
from jaxmbs.model.flying import Whole
from jaxmbs.model.functions import WithParameters, check_arguments
from jaxmbs.model.given import Number, Vector
from jaxmbs.spatial import Vector3
from jaxmbs.spatial.scalar import Scalar, vanishes

if TYPE_CHECKING:
    from jaxmbs.building.parts import Parts

SENSES = ("up", "down", "either")
AHEAD = 64  # units of rounding by which the instant of a state comes before that of a corner at the same place


@element
class Time(Condition):
    """A time is reached; the event happens at once if the time has passed when it is armed.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_event("stop", when=mbs.Time(1.5), then=mbs.Finish())
    >>> mbs.get(mech.build(), "stop.t")
    1.5
    """

    already: ClassVar[bool] = True
    t: Number = field(Kind.NUMBER, "s", "time")

    def guards(self, p: Numbers, now: Instant) -> tuple[Scalar, ...]:
        return (now.t - p["t"],)

    def due(self, p: Numbers) -> Scalar:
        return p["t"]


@element
class JointReaches(Condition):
    """The coordinate of a joint with one degree of freedom passes a value.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_event("stop", when=mbs.JointReaches("elbow", 1.0, direction="up"), then=mbs.Finish())
    >>> mbs.get(mech.build(), "stop.value")
    1.0
    """

    joint: str = field(Kind.JOINT, "", "joint with one degree of freedom")
    value: Number = field(Kind.NUMBER, "rad or m", "value of its coordinate")
    direction: str = field(Kind.CHOICE, "", "sense of passing", default="either", choices=SENSES)

    def check(self, parts: Parts, states: Mapping[str, int]) -> None:
        joint = parts.joints_as_given()[self.joint]
        if joint.nq != 1:
            raise ModelError(
                f"joint {self.joint!r} is {type(joint).__name__} with {joint.nq} coordinates; JointReaches needs exactly "
                "one; use When(fn)"
            )

    def guards(self, p: Numbers, now: Instant) -> tuple[Scalar, ...]:
        up = now.coordinates(self.joint)[0] - p["value"]
        return passing(up, self.direction)

    def lacking(self, p: Numbers, start: Mapping[str, Any], end: Mapping[str, Any]) -> Any:
        way = jnp.abs(start[self.joint][0] - p["value"])
        return jnp.abs(end[self.joint][0] - p["value"]) / jnp.where(way > 0, way, 1.0)


@element
class Distance(Condition):
    """The distance from a point of one body to a point of another passes a value; with `along`, the component of the
    vector between them in that direction, which has a sign.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_event("stop", when=mbs.Distance("upper", "lower", value=2.0), then=mbs.Finish())
    >>> mbs.get(mech.build(), "stop.value")
    2.0
    """

    body_a: str = field(Kind.BODY_OR_WORLD, "", "first body")
    body_b: str = field(Kind.BODY_OR_WORLD, "", "second body")
    value: Number = field(Kind.NUMBER, "m", "distance")
    point_a: Vector = field(Kind.VECTOR, "m", "point on the first body, in its axes", default=(0.0, 0.0, 0.0))
    point_b: Vector = field(Kind.VECTOR, "m", "point on the second body, in its axes", default=(0.0, 0.0, 0.0))
    direction: str = field(Kind.CHOICE, "", "sense of passing", default="up", choices=SENSES)
    along: Vector = field(
        Kind.VECTOR,
        "",
        'direction of any length, in axes of the first body (the world\'s for "world"); zero: straight from point to point',
        default=(0.0, 0.0, 0.0),
    )

    def requirements(self, p: Numbers) -> Mapping[str, Any]:
        directed = (p["along"] != 0).any(-1)
        return {
            "value: a distance must be more than zero; pass along=... for one with a sign": directed | (p["value"] > 0)
        }

    def guards(self, p: Numbers, now: Instant) -> tuple[Scalar, ...]:
        apart = now.point(self.body_b, p["point_b"]) - now.point(self.body_a, p["point_a"])
        e: Vector3 = p["along"]
        straight = all(map(vanishes, e))
        length = apart.norm() if straight else (now.rotation(self.body_a) @ e) @ apart / e.norm()
        return passing(length - p["value"], self.direction)


@element
class ReactionExceeds(Condition):
    """The force or the torque in a joint, including locks and drives, rises above a limit; 0 means no limit.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_event("stop", when=mbs.ReactionExceeds("elbow", force=20.0), then=mbs.Finish())
    >>> mbs.get(mech.build(), "stop.force")
    20.0
    """

    of_rates: ClassVar[bool] = True
    of_reactions: ClassVar[bool] = True
    joint: str = field(Kind.JOINT, "", "joint of the tree")
    force: Number = field(Kind.NOT_NEGATIVE, "N", "largest force", default=0.0)
    moment: Number = field(Kind.NOT_NEGATIVE, "N m", "largest moment", default=0.0)

    def check(self, parts: Parts, states: Mapping[str, int]) -> None:
        if parts.joints[self.joint].joint.elastic:
            carrier = parts.joints[self.joint].at.child
            nodes = [name for name, x in parts.joints.items() if x.at.parent == carrier]
            raise ModelError(f"ReactionExceeds: {no_wrench(self.joint, nodes)}")

    def guards(self, p: Numbers, now: Instant) -> tuple[Scalar, ...]:
        M, F = now.reaction(self.joint)
        limits = ((F, p["force"]), (M, p["moment"]))
        return tuple(x @ x - limit * limit for x, limit in limits if not vanishes(limit))


@element
class ForceBelow(Condition):
    """The force of an element falls below a value.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_force("coil", mbs.JointSpring("elbow", stiffness=5.0))
    >>> mech.add_event("slack", when=mbs.ForceBelow("coil", 0.1), then=mbs.Disable("coil"))
    >>> mbs.get(mech.build(), "slack.value")
    0.1
    """

    of_rates: ClassVar[bool] = True
    element: str = field(Kind.TEXT, "", "name of the force element")
    value: Number = field(Kind.NOT_NEGATIVE, "N", "force")

    def check(self, parts: Parts, states: Mapping[str, int]) -> None:
        if self.element not in parts.forces:
            raise unknown("force element", self.element, parts.forces, "ForceBelow")

    def guards(self, p: Numbers, now: Instant) -> tuple[Scalar, ...]:
        return (p["value"] - now.force_of(self.element),)


@element
class StateReaches(Condition):
    """A state of a force element, such as "motor.propellant", passes a value: a cut-off when a stated mass is left, or what
    follows when the propellant is used up (value = 0).

    Where the element has a corner at the same value, as a motor at the end of its propellant, the event comes first. A
    parameter that a controller sets is constant between samples, and passes nothing.

    >>> mech = mbs.Mechanism("rocket", gravity=(0.0, 0.0, 0.0))
    >>> mech.add_point_mass("stage", 100.0)
    >>> mech.add_force("motor", mbs.Motor("stage", thrust=1e4, specific_impulse=250.0, propellant=50.0))
    >>> mech.add_event("burnt_out", when=mbs.StateReaches("motor.propellant", 0.0), then=mbs.Finish())
    >>> run = mbs.simulate(mech.build(), np.zeros(3), np.zeros(3), t_end=15.0, dt=0.5)
    >>> print(run.events.time[0].round(4), round(50.0 * 250.0 * 9.80665 / 1e4, 4))
    12.2583 12.2583
    """

    state: str = field(Kind.TEXT, "", 'name of the state, "element.state"')
    value: Number = field(Kind.NUMBER, "", "value of the state, in its unit")
    direction: str = field(Kind.CHOICE, "", "sense of passing", default="either", choices=SENSES)
    component: int = field(Kind.COUNT, "", "counted from 0, of a state with several numbers", default=0)

    def check(self, parts: Parts, states: Mapping[str, int]) -> None:
        sizes = {name: size for name, size in states.items() if name.rpartition(".")[0] in parts.forces}
        setters = [name for name, x in parts.controllers.items() if self.state in x.writes]
        if setters:
            raise ModelError(
                f"StateReaches: controller {setters[0]!r} sets {self.state!r}, which is constant between its samples; let "
                "the controller do what the event would, or use When(fn)"
            )
        if self.state not in sizes:
            raise unknown("state", self.state, sizes, "StateReaches")
        if self.component >= sizes[self.state]:
            last = sizes[self.state] - 1
            raise ModelError(
                f"StateReaches: component {self.component} is out of range; {self.state!r} has 0 to {last}"
            )

    def guards(self, p: Numbers, now: Instant) -> tuple[Scalar, ...]:
        """The guards times a factor slightly above 1, which changes neither their zeros nor their derivatives. With it, the
        zero that is expected at the end of a trial step comes a rounding error before that of a corner with the same zero.
        Otherwise, the corner could come first, and the state would stop a rounding error before its value."""
        scene: Whole = now.state.scene
        x = jnp.asarray(scene.tree.values.components(self.state)[self.component])
        beyond = x - p["value"]
        ahead = AHEAD * float(jnp.finfo(x.dtype).eps) * jax.lax.stop_gradient(beyond)
        return passing(beyond + ahead, self.direction)


@element
class When(Condition, WithParameters):
    """A user-defined function (model, t, q, v), or (model, t, q, v, parameters), rises through zero.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_event("stop", when=mbs.When(lambda model, t, q, v: v[0] - 2.0), then=mbs.Finish())
    >>> mech.build().event_names
    ('stop',)
    """

    of_rates: ClassVar[bool] = True
    fn: Callable[..., Any] = field(Kind.FUNCTION, "", "fn(model, t, q, v), a number, written with jax.numpy")

    def __post_init__(self) -> None:
        check_arguments(self.fn, "When: fn")
        self.check_functions("When: fn", self.fn)

    def guards(self, p: Numbers, now: Instant) -> tuple[Scalar, ...]:
        return (now.evaluated(self, self.fn, p),)


def passing(up: Scalar, direction: str) -> tuple[Scalar, ...]:
    """The guards of a number that passes zero in this sense."""
    down = -up
    return {"up": (up,), "down": (down,), "either": (up, down)}[direction]
