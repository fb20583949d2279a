"""Force elements."""

from jaxmbs.model.forces.base import Force as Force
from jaxmbs.model.forces.modal_stiffness import ModalStiffness as ModalStiffness
from jaxmbs.model.forces.public import *  # noqa: F403
from jaxmbs.model.forces.rotor import GearedRotor as GearedRotor
from jaxmbs.model.forces.surfaces import Surface as Surface
from jaxmbs.model.forces.surroundings import AirMotion as AirMotion
from jaxmbs.model.forces.surroundings import Atmosphere as Atmosphere
