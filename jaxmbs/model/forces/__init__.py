"""Force elements."""

from jaxmbs.model.forces.actuators import External as External
from jaxmbs.model.forces.actuators import Pusher as Pusher
from jaxmbs.model.forces.actuators import Thruster as Thruster
from jaxmbs.model.forces.base import Force as Force
from jaxmbs.model.forces.contact import Contact as Contact
from jaxmbs.model.forces.contact import Cylinder as Cylinder
from jaxmbs.model.forces.contact import Plane as Plane
from jaxmbs.model.forces.contact import Sphere as Sphere
from jaxmbs.model.forces.contact import Surface as Surface
from jaxmbs.model.forces.fields import CentralGravity as CentralGravity
from jaxmbs.model.forces.springs import Bushing as Bushing
from jaxmbs.model.forces.springs import Damper as Damper
from jaxmbs.model.forces.springs import LinearSpring as LinearSpring
from jaxmbs.model.forces.springs import TorsionSpring as TorsionSpring
