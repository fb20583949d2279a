"""Events: conditions that become true during a motion, and what they change.

A phase of a run is the interval between two events. `held` and `off` of a mechanism define the first phase: which joints are
locked, and which elements and constraints do not act. examples/every_event.toml has all actions and most conditions in a
file; the condition on orbits is in examples/ascent.toml, that on states of elements in docs/how-to/control.md.
"""

from jaxmbs.model.events.base import Action as Action
from jaxmbs.model.events.base import Arming as Arming
from jaxmbs.model.events.base import Condition as Condition
from jaxmbs.model.events.public import *  # noqa: F403
