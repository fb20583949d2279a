"""Formulations with names in `jaxmbs.textbook`: each is one line here, and nowhere else."""

from jaxmbs.dynamics.bond_graph.elements import Bond as Bond
from jaxmbs.dynamics.bond_graph.elements import Vertex as Vertex
from jaxmbs.dynamics.bond_graph.graph import BondGraph as BondGraph
from jaxmbs.dynamics.bond_graph.public import bond_graph as bond_graph
from jaxmbs.dynamics.formulations.bias_parts import BiasSplit as BiasSplit
from jaxmbs.dynamics.formulations.bias_parts import bias_split as bias_split
from jaxmbs.dynamics.formulations.configuration import BodyLoads as BodyLoads
from jaxmbs.dynamics.formulations.controlled import Controlled as Controlled
from jaxmbs.dynamics.formulations.controlled import controlled_dynamics as controlled_dynamics
from jaxmbs.dynamics.formulations.moving_base import BaseMotion as BaseMotion
from jaxmbs.dynamics.formulations.moving_base import MovingBase as MovingBase
from jaxmbs.dynamics.formulations.planar import PlanarParameters as PlanarParameters
from jaxmbs.dynamics.formulations.planar import planar_parameters as planar_parameters
from jaxmbs.dynamics.formulations.public import AugmentedBodies as AugmentedBodies
from jaxmbs.dynamics.formulations.public import augmented_bodies as augmented_bodies
from jaxmbs.dynamics.formulations.public import body_loads as body_loads
from jaxmbs.dynamics.formulations.public import free_dynamics as free_dynamics
from jaxmbs.dynamics.formulations.public import moving_base_dynamics as moving_base_dynamics
