"""Controllers that sample, and the sensors that they read."""

from jaxmbs.model.control import laws as laws
from jaxmbs.model.control.controller import Controller as Controller
from jaxmbs.model.control.sensors import Encoder as Encoder
from jaxmbs.model.control.sensors import Imu as Imu
from jaxmbs.model.control.sensors import Sensor as Sensor
from jaxmbs.model.control.sensors import StarTracker as StarTracker
from jaxmbs.model.control.sensors import Switch as Switch
