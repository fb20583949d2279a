"""Joint types; one conventions table in the package's documentation."""

from jaxmbs.model.joints.axial import Cylindrical as Cylindrical
from jaxmbs.model.joints.axial import Helical as Helical
from jaxmbs.model.joints.axial import Prismatic as Prismatic
from jaxmbs.model.joints.axial import Revolute as Revolute
from jaxmbs.model.joints.axial import Universal as Universal
from jaxmbs.model.joints.base import Fixed as Fixed
from jaxmbs.model.joints.base import Joint as Joint
from jaxmbs.model.joints.base import JointMotion as JointMotion
from jaxmbs.model.joints.general import General as General
from jaxmbs.model.joints.spatial_joints import Free as Free
from jaxmbs.model.joints.spatial_joints import Planar as Planar
from jaxmbs.model.joints.spatial_joints import Spherical as Spherical
