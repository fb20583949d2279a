"""Outputs: quantities of the motion, folded over time to one number per sample. Each is one file."""

from jaxmbs.study.outputs.angular_rate import AngularRate as AngularRate
from jaxmbs.study.outputs.base import Output as Output
from jaxmbs.study.outputs.distance import Distance as Distance
from jaxmbs.study.outputs.joint_position import JointPosition as JointPosition
from jaxmbs.study.outputs.joint_velocity import JointVelocity as JointVelocity
from jaxmbs.study.outputs.relative_velocity import RelativeVelocity as RelativeVelocity
from jaxmbs.study.outputs.rim_clearance import RimClearance as RimClearance
