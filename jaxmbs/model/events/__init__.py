"""Events: conditions that become true during a motion, and what they change.

A phase of a run is the interval between two events. `held` and `off` of a mechanism define the first phase: which joints are
locked, and which elements and constraints do not act. examples/every_event.toml has every condition and action in a file;
that on orbits is in examples/ascent.toml, that on states of elements in docs/how-to/control.md.
"""

from jaxmbs.model.events.actions import Bounce as Bounce
from jaxmbs.model.events.actions import Disable as Disable
from jaxmbs.model.events.actions import Enable as Enable
from jaxmbs.model.events.actions import Finish as Finish
from jaxmbs.model.events.actions import Lock as Lock
from jaxmbs.model.events.actions import Release as Release
from jaxmbs.model.events.base import Action as Action
from jaxmbs.model.events.base import Arming as Arming
from jaxmbs.model.events.base import Condition as Condition
from jaxmbs.model.events.conditions import Distance as Distance
from jaxmbs.model.events.conditions import ForceBelow as ForceBelow
from jaxmbs.model.events.conditions import JointReaches as JointReaches
from jaxmbs.model.events.conditions import ReactionExceeds as ReactionExceeds
from jaxmbs.model.events.conditions import StateReaches as StateReaches
from jaxmbs.model.events.conditions import Time as Time
from jaxmbs.model.events.conditions import When as When
from jaxmbs.model.events.flight import FlightReaches as FlightReaches
from jaxmbs.model.events.flight import OrbitReaches as OrbitReaches
