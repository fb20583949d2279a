"""Mechanisms: bodies, joints, force elements and their parameters."""

from jaxmbs.model import constraints as constraints
from jaxmbs.model import forces as forces
from jaxmbs.model import joints as joints
from jaxmbs.model.public import *  # noqa: F403
