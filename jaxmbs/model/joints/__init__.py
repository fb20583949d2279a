"""Joint types, one file each; the package's documentation has a table of their conventions."""

from jaxmbs.model.joints.base import Coordinate as Coordinate
from jaxmbs.model.joints.base import Joint as Joint
from jaxmbs.model.joints.base import JointMotion as JointMotion
from jaxmbs.model.joints.carried import Carried as Carried
from jaxmbs.model.joints.cylindrical import Cylindrical as Cylindrical
from jaxmbs.model.joints.elastic_modes import ElasticModes as ElasticModes
from jaxmbs.model.joints.fixed import Fixed as Fixed
from jaxmbs.model.joints.flexible_node import FlexibleNode as FlexibleNode
from jaxmbs.model.joints.free import Free as Free
from jaxmbs.model.joints.general import General as General
from jaxmbs.model.joints.helical import Helical as Helical
from jaxmbs.model.joints.planar import Planar as Planar
from jaxmbs.model.joints.prismatic import Prismatic as Prismatic
from jaxmbs.model.joints.revolute import Revolute as Revolute
from jaxmbs.model.joints.spherical import Spherical as Spherical
from jaxmbs.model.joints.universal import Universal as Universal
