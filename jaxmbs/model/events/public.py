"""Conditions and actions of events with names in `jaxmbs`: each is one line here, and nowhere else."""

from jaxmbs.model.events.actions import Bounce as Bounce
from jaxmbs.model.events.actions import Disable as Disable
from jaxmbs.model.events.actions import Enable as Enable
from jaxmbs.model.events.actions import Finish as Finish
from jaxmbs.model.events.actions import Lock as Lock
from jaxmbs.model.events.actions import Release as Release
from jaxmbs.model.events.conditions import Distance as Distance
from jaxmbs.model.events.conditions import ForceBelow as ForceBelow
from jaxmbs.model.events.conditions import JointReaches as JointReaches
from jaxmbs.model.events.conditions import ReactionExceeds as ReactionExceeds
from jaxmbs.model.events.conditions import StateReaches as StateReaches
from jaxmbs.model.events.conditions import Time as Time
from jaxmbs.model.events.conditions import When as When
from jaxmbs.model.events.flight import FlightReaches as FlightReaches
from jaxmbs.model.events.flight import OrbitReaches as OrbitReaches
