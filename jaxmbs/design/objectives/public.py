"""Objectives with names in `jaxmbs.design`: each is one line here, and nowhere else."""

from jaxmbs.design.objectives.base import Objective as Objective
from jaxmbs.design.objectives.base import Setting as Setting
from jaxmbs.design.objectives.curve import CurveThroughPoints as CurveThroughPoints
from jaxmbs.design.objectives.function import Function as Function
from jaxmbs.design.objectives.mass_matrices import ConfigurationIndependence as ConfigurationIndependence
from jaxmbs.design.objectives.mass_matrices import Decoupling as Decoupling
from jaxmbs.design.objectives.mass_matrices import NoBaseReaction as NoBaseReaction
from jaxmbs.design.objectives.measured_motion import MeasuredMotion as MeasuredMotion
from jaxmbs.design.objectives.motion import EventTime as EventTime
from jaxmbs.design.objectives.motion import Failure as Failure
from jaxmbs.design.objectives.motion import LatchLoad as LatchLoad
from jaxmbs.design.objectives.motion import OutputValue as OutputValue
from jaxmbs.design.objectives.static_balance import StaticBalance as StaticBalance
from jaxmbs.design.objectives.torques import MeasuredTorques as MeasuredTorques
