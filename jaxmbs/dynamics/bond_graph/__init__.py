"""Bond graphs: efforts, flows and powers between bodies, joints and elements."""

from jaxmbs.dynamics.bond_graph.elements import Bond as Bond
from jaxmbs.dynamics.bond_graph.elements import Vertex as Vertex
from jaxmbs.dynamics.bond_graph.graph import BondGraph as BondGraph
from jaxmbs.dynamics.bond_graph.public import bond_graph as bond_graph
