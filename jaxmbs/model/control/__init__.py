"""Controllers that sample, and the sensors that they read."""

from jaxmbs.model.control.public import *  # noqa: F403
from jaxmbs.model.control.sensors import Sensor as Sensor
