"""Controllers, their laws, and sensors with names in `jaxmbs`: each is one line here, and nowhere else."""

from jaxmbs.model.control import laws as laws
from jaxmbs.model.control.controller import Controller as Controller
from jaxmbs.model.control.sensors import Encoder as Encoder
from jaxmbs.model.control.sensors import Imu as Imu
from jaxmbs.model.control.sensors import StarTracker as StarTracker
from jaxmbs.model.control.sensors import Switch as Switch
