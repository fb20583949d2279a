"""Interface of the conditions and actions of events, and the time from which an event is armed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import jax.numpy as jnp

from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import Element, element, field
from jaxmbs.model.functions import WithParameters
from jaxmbs.model.given import Number
from jaxmbs.spatial import Matrix3, Vector3
from jaxmbs.spatial.scalar import Scalar, is_number

if TYPE_CHECKING:
    from jaxmbs.building.parts import Parts
    from jaxmbs.model.forces.base import Force

Numbers = Mapping[str, Any]


class Instant(Protocol):
    """The motion at one instant as a condition sees it, in world axes."""

    t: Scalar

    @property
    def state(self) -> Any:
        """The state of the whole mechanism; its `scene` is a `jaxmbs.model.flying.Whole`."""
        ...

    def coordinates(self, joint: str) -> Sequence[Scalar]: ...

    def point(self, body: str, local: Vector3) -> Vector3: ...

    def rotation(self, body: str) -> Matrix3:
        """Rotation from body to world axes."""
        ...

    def reaction(self, joint: str) -> tuple[Vector3, Vector3]:
        """(torque [N m], force [N]) in the joint, including drives and locks, in the joint axes of the child.
        The condition must declare `of_reactions`."""
        ...

    def force_of(self, name: str) -> Scalar:
        """Magnitude of the force [N] of an element on the first body that it names (of an element on all bodies: on the
        first body of the tree), or of its generalized forces [N or N m] if it acts on no body; 0 while the element is
        off."""
        ...

    def evaluated(self, element: WithParameters, fn: Any, numbers: Numbers) -> Scalar:
        """Value of fn(model, t, q, v), a function of an element that has these numbers."""
        ...


@element
class Condition(Element):
    """Base of the conditions: what must become true for an event to happen."""

    of_rates: ClassVar[bool] = False  # its guards depend on velocities, so that their rates need accelerations
    of_reactions: ClassVar[bool] = False  # its guards ask for `Instant.reaction`
    already: ClassVar[bool] = False  # the event also happens if it is already true when the event is armed

    def needs(self) -> Sequence[type[Force]]:
        """What the environment must have, such as `Planet`; checked when the mechanism is built."""
        return ()

    def check(self, parts: Parts, states: Mapping[str, int]) -> None:
        """Raise ModelError if the condition does not fit the mechanism that is built. parts: its bodies, joints, force
        elements ... by name, among which are those that the fields name; states: of how many numbers each state consists."""

    def guards(self, p: Numbers, now: Instant) -> tuple[Scalar, ...]:
        """Functions of the motion; the event happens when one of them rises through zero."""
        raise NotImplementedError

    def due(self, p: Numbers) -> Scalar | None:
        """The time [s] at which it becomes true, if that is known beforehand."""
        return None

    def lacking(self, p: Numbers, start: Mapping[str, Any], end: Mapping[str, Any]) -> Any:
        """The share of the way to the event that a motion still lacks at its end, which leads a search towards motions in
        which it happens; 0 if the joints do not tell. start, end: coordinates of the joints that the fields name, at the
        start and at the end of the motion."""
        return 0.0


@element
class Delay(Condition):
    """The delay of a force element is over: the event that has the name of the element switches it on
    (`Mechanism.add_force`)."""

    already: ClassVar[bool] = True
    delay: Number = field(Kind.NOT_NEGATIVE, "s", "time before which the element does not act")

    def guards(self, p: Numbers, now: Instant) -> tuple[Scalar, ...]:
        return (now.t - p["delay"],)

    def due(self, p: Numbers) -> Scalar:
        return p["delay"]


@element
class Action(Element):
    """Base of the actions: what an event changes.

    The flags, which are class variables, say what the action does whatever its numbers are. By default the methods
    use the flags and the numbers `restitution` and `rest_rate`; an action with another law overrides the method for
    this law. p: the numbers of the action; v (n,): the rates of its joint just before the event [rad/s, m/s].
    """

    # the joint is locked from then on; with a nonzero `restitution`, once a rebound is slower than its `rest_rate`
    locks: ClassVar[bool] = False
    releases: ClassVar[bool] = False  # the joint's locks end
    strikes: ClassVar[bool] = False  # the joint's rates jump to `rates_after`: -restitution times their values before
    switches: ClassVar[bool | None] = None  # an element or a constraint is switched on or off
    finishes: ClassVar[bool] = False  # the run ends for this instance

    def lock(self) -> bool | None:
        """Whether the degrees of freedom of `joint` are locked from then on; None: it changes no locks."""
        return True if self.locks else False if self.releases else None

    def switch(self) -> bool | None:
        """Whether the element or the constraint `name` acts from then on; None: it switches nothing."""
        return self.switches

    def rebounds(self, p: Numbers) -> bool:
        """Whether the joint may rebound: it is struck or locked, and the restitution is not zero in every instance."""
        if "restitution" not in p:
            return self.strikes
        e = p["restitution"]
        return (self.strikes or self.locks) and not (is_number(e) and e == 0)

    def rates_after(self, p: Numbers, v: Any) -> Any:
        """Rates (n,) of the joint just after an impact that does not lock it."""
        return -(p["restitution"] * v)

    def closes(self, p: Numbers, v: Any) -> Any:
        """Whether the lock of a rebounding joint closes, because it would rebound no faster than `rest_rate`."""
        return jnp.all(jnp.abs(self.rates_after(p, v)) <= p["rest_rate"])


@element
class Arming(Element):
    """Parameter of an event that cannot happen before a given time."""

    armed_from: Number = field(Kind.NUMBER, "s", "time before which it does not happen")
