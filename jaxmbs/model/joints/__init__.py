"""Joint types, one file each; the package's documentation has a table of their conventions."""

from jaxmbs.model.joints.base import Coordinate as Coordinate
from jaxmbs.model.joints.base import Joint as Joint
from jaxmbs.model.joints.base import JointMotion as JointMotion
from jaxmbs.model.joints.elastic_modes import ElasticModes as ElasticModes
from jaxmbs.model.joints.flexible_node import FlexibleNode as FlexibleNode
from jaxmbs.model.joints.public import *  # noqa: F403
