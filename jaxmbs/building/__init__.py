"""Builds the model of a mechanism from its parts and checks the whole, for which it uses the equations of motion; changes a
model's numbers."""

from jaxmbs.building.changes import free as free
from jaxmbs.building.changes import set as set
from jaxmbs.building.changes import vary as vary
from jaxmbs.building.mechanism import Mechanism as Mechanism
