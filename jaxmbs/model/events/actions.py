"""Actions of events."""

from __future__ import annotations

from typing import Any, ClassVar

from jaxmbs.model.events.base import Action
from jaxmbs.model.fields import element, field
from jaxmbs.model.kinds import Kind


@element
class Lock(Action):
    """All freedoms of a joint are held from then on; their rates end in an impact, which conserves momentum."""

    locks: ClassVar[bool] = True
    joint: str = field(Kind.JOINT, "", "joint of the tree")


@element
class Release(Action):
    """The locks of a joint end."""

    releases: ClassVar[bool] = True
    joint: str = field(Kind.JOINT, "", "joint of the tree")


@element
class Bounce(Action):
    """The rate of a joint turns round in an impact: it becomes -restitution times what it was."""

    strikes: ClassVar[bool] = True
    joint: str = field(Kind.JOINT, "", "joint of the tree")
    restitution: Any = field(Kind.NOT_NEGATIVE, "", "rate after the impact over the rate before it", default=0.0)


@element
class Enable(Action):
    """A force element or a constraint acts from then on; a constraint begins with an impact."""

    switches: ClassVar[bool | None] = True
    name: str = field(Kind.TEXT, "", "force element, cut joint or constraint")


@element
class Disable(Action):
    """A force element or a constraint acts no longer."""

    switches: ClassVar[bool | None] = False
    name: str = field(Kind.TEXT, "", "force element, cut joint or constraint")


@element
class Finish(Action):
    """The run ends for this instance: its state stands still from then on."""

    finishes: ClassVar[bool] = True
