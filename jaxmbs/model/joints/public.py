"""Joint types with names in `jaxmbs`: each is one line here, and nowhere else."""

from jaxmbs.model.joints.carried import Carried as Carried
from jaxmbs.model.joints.cylindrical import Cylindrical as Cylindrical
from jaxmbs.model.joints.fixed import Fixed as Fixed
from jaxmbs.model.joints.free import Free as Free
from jaxmbs.model.joints.general import General as General
from jaxmbs.model.joints.helical import Helical as Helical
from jaxmbs.model.joints.planar import Planar as Planar
from jaxmbs.model.joints.prismatic import Prismatic as Prismatic
from jaxmbs.model.joints.revolute import Revolute as Revolute
from jaxmbs.model.joints.spherical import Spherical as Spherical
from jaxmbs.model.joints.universal import Universal as Universal
