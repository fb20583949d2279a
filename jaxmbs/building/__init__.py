"""From the parts of a mechanism to its model, with the checks of the whole, which use the equations of motion; and
changes of a model's numbers."""

from jaxmbs.building.changes import free as free
from jaxmbs.building.changes import set as set
from jaxmbs.building.changes import vary as vary
from jaxmbs.building.mechanism import Mechanism as Mechanism
