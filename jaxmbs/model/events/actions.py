"""Actions of events."""

from __future__ import annotations

from typing import ClassVar

from jaxmbs.model.events.base import Action
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import element, field
from jaxmbs.model.given import Number


@element
class Lock(Action):
    """All degrees of freedom of a joint are locked from then on; an impact, in which only locks and constraints
    transmit impulses, brings their rates to zero.

    With a restitution e the joint rebounds first: each time the event happens, its rates become -e times their previous
    values, until these rebound rates are below rest_rate; then it is locked. Events that wait for this one (`after`) are
    armed only then.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_event("latch", when=mbs.JointReaches("elbow", 0.0), then=mbs.Lock("elbow"))
    >>> mech.build().event_names
    ('latch',)
    """

    locks: ClassVar[bool] = True
    joint: str = field(Kind.JOINT, "", "joint of the tree")
    restitution: Number = field(Kind.NOT_NEGATIVE, "", "rate after an impact over the rate before it", default=0.0)
    rest_rate: Number = field(
        Kind.NOT_NEGATIVE, "rad/s or m/s", "rate of a rebound below which the joint stays at rest", default=1e-2
    )


@element
class Release(Action):
    """The locks of a joint end.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_event("go", when=mbs.Time(0.5), then=mbs.Release("elbow"))
    >>> mech.build().event_names
    ('go',)
    """

    releases: ClassVar[bool] = True
    joint: str = field(Kind.JOINT, "", "joint of the tree")


@element
class Bounce(Action):
    """The rate of a joint is reversed in an impact: it becomes -restitution times its previous value.

    A joint that is pressed against its stop sooner or later comes to rest there, and a bounce cannot hold it: the run then
    stops with status UNFINISHED. With repeat=True, the restitution must not be 0. A `Lock` with a restitution lets the
    joint bounce and then holds it; a `Contact` does both by its stiffness, and lets the joint leave the stop again.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_event("stop", when=mbs.JointReaches("elbow", 1.0), then=mbs.Bounce("elbow", 0.5))
    >>> mbs.get(mech.build(), "stop.restitution")
    0.5
    """

    strikes: ClassVar[bool] = True
    joint: str = field(Kind.JOINT, "", "joint of the tree")
    restitution: Number = field(Kind.NOT_NEGATIVE, "", "rate after the impact over the rate before it", default=0.0)


@element
class Enable(Action):
    """A force element or a constraint acts from then on; a constraint begins with an impact.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_force("coil", mbs.JointSpring("elbow", stiffness=5.0))
    >>> mech.add_event("switch", when=mbs.Time(0.5), then=mbs.Enable("coil"))
    >>> mech.build().event_names
    ('switch',)
    """

    switches: ClassVar[bool | None] = True
    name: str = field(Kind.TEXT, "", "force element, cut joint or constraint")


@element
class Disable(Action):
    """A force element or a constraint no longer acts.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_force("coil", mbs.JointSpring("elbow", stiffness=5.0))
    >>> mech.add_event("switch", when=mbs.Time(0.5), then=mbs.Disable("coil"))
    >>> mech.build().event_names
    ('switch',)
    """

    switches: ClassVar[bool | None] = False
    name: str = field(Kind.TEXT, "", "force element, cut joint or constraint")


@element
class Finish(Action):
    """The run ends for this instance: its state stays constant from then on.

    >>> mech = mbs.library.double_pendulum()
    >>> mech.add_event("stop", when=mbs.Time(0.5), then=mbs.Finish())
    >>> mech.build().event_names
    ('stop',)
    """

    finishes: ClassVar[bool] = True
