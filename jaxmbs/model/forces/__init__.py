"""Force elements."""

from jaxmbs.model.forces.actuator import Actuator as Actuator
from jaxmbs.model.forces.base import Force as Force
from jaxmbs.model.forces.bushing import Bushing as Bushing
from jaxmbs.model.forces.cable import Cable as Cable
from jaxmbs.model.forces.central_gravity import CentralGravity as CentralGravity
from jaxmbs.model.forces.connector import Connector as Connector
from jaxmbs.model.forces.contact import Contact as Contact
from jaxmbs.model.forces.damper import Damper as Damper
from jaxmbs.model.forces.external import External as External
from jaxmbs.model.forces.friction import Friction as Friction
from jaxmbs.model.forces.joint_spring import JointSpring as JointSpring
from jaxmbs.model.forces.joint_spring import TorsionSpring as TorsionSpring
from jaxmbs.model.forces.linear_spring import LinearSpring as LinearSpring
from jaxmbs.model.forces.motor import Motor as Motor
from jaxmbs.model.forces.pulsed_thruster import PulsedThruster as PulsedThruster
from jaxmbs.model.forces.pusher import Pusher as Pusher
from jaxmbs.model.forces.reaction_wheel import ControlMomentGyro as ControlMomentGyro
from jaxmbs.model.forces.reaction_wheel import ImbalancedWheel as ImbalancedWheel
from jaxmbs.model.forces.reaction_wheel import ReactionWheel as ReactionWheel
from jaxmbs.model.forces.slosh import Slosh as Slosh
from jaxmbs.model.forces.surfaces import Cylinder as Cylinder
from jaxmbs.model.forces.surfaces import Plane as Plane
from jaxmbs.model.forces.surfaces import Sphere as Sphere
from jaxmbs.model.forces.surfaces import Surface as Surface
from jaxmbs.model.forces.thruster import Thruster as Thruster
