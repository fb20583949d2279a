"""Outputs: quantities of the motion, reduced over time to one number per sample, and shapes that they refer to."""

from jaxmbs.study.outputs.attitude import AngularRate as AngularRate
from jaxmbs.study.outputs.attitude import Attitude as Attitude
from jaxmbs.study.outputs.attitude import EulerAngle as EulerAngle
from jaxmbs.study.outputs.base import Output as Output
from jaxmbs.study.outputs.clearance import Clearance as Clearance
from jaxmbs.study.outputs.coordinates import JointPosition as JointPosition
from jaxmbs.study.outputs.coordinates import JointVelocity as JointVelocity
from jaxmbs.study.outputs.event_time import EventTime as EventTime
from jaxmbs.study.outputs.largest_real_part import LargestRealPart as LargestRealPart
from jaxmbs.study.outputs.mesh import Mesh as Mesh
from jaxmbs.study.outputs.min_over import MinOver as MinOver
from jaxmbs.study.outputs.of_state import ElementForce as ElementForce
from jaxmbs.study.outputs.of_state import ElementState as ElementState
from jaxmbs.study.outputs.of_state import JointReaction as JointReaction
from jaxmbs.study.outputs.of_state import Momentum as Momentum
from jaxmbs.study.outputs.of_state import OfState as OfState
from jaxmbs.study.outputs.pairs import Distance as Distance
from jaxmbs.study.outputs.pairs import RelativeVelocity as RelativeVelocity
from jaxmbs.study.outputs.rim_clearance import RimClearance as RimClearance
from jaxmbs.study.outputs.shapes import Ball as Ball
from jaxmbs.study.outputs.shapes import Box as Box
from jaxmbs.study.outputs.shapes import Capsule as Capsule
from jaxmbs.study.outputs.shapes import Cone as Cone
from jaxmbs.study.outputs.shapes import Hull as Hull
from jaxmbs.study.outputs.shapes import Panel as Panel
from jaxmbs.study.outputs.shapes import Tube as Tube
