"""Units of a study: those of files, and of the columns of its histories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxmbs.io.units import UNITS as UNITS
from jaxmbs.io.units import Unit as Unit
from jaxmbs.io.units import quantity as quantity
from jaxmbs.io.units import si as si
from jaxmbs.io.units import unit as unit

if TYPE_CHECKING:
    from jaxmbs.study.problem.study import Study


def units_of(study: Study) -> dict[str, Unit]:
    """Unit of every column of a history. The history of an output has the unit in which reports show the output if both
    measure the same quantity, otherwise the SI unit."""
    found = {"t": si("time")}
    for joint in study.model.joint_names:
        own = study.joints[joint]
        for key, components in (("q", own.coordinates()), ("v", own.speeds())):
            found |= {f"{joint}.{key}[{i}]": unit(c.unit) for i, c in enumerate(components)}
    for name, output in study.outputs.items():
        quantity = output.quantity(study.joints)
        found[name] = study.shown[name] if study.quantities[name] == quantity else si(quantity)
    return found
