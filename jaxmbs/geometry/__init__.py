"""Distances of bodies that are unions of convex pieces."""

from jaxmbs.geometry.distance import Before as Before
from jaxmbs.geometry.distance import Separation as Separation
from jaxmbs.geometry.distance import separation as separation
from jaxmbs.geometry.pieces import Piece as Piece
from jaxmbs.geometry.pieces import Union as Union
from jaxmbs.geometry.tables import Unions as Unions
