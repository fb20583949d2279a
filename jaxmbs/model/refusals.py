"""Refusals of what some methods do not support: armature, flexible bodies."""

from __future__ import annotations

from jaxmbs.model.errors import ModelError
from jaxmbs.model.model import Model


def armature(model: Model) -> str | None:
    """The name of the first joint with armature, or None."""
    table = model.structure.table
    for link in model.structure.links:
        name = f"{link.name}.armature"
        if table[name][0].free_count or name in model.overrides:
            return link.name
    return None


def refuse_armature(model: Model, where: str, remedy: str) -> None:
    """Raise ModelError if a joint has armature, for methods that use only the bodies' inertias."""
    if geared := armature(model):
        raise ModelError(f"{where}: joint {geared!r} has armature, which this method does not support; {remedy}")


def refuse_flexible(
    model: Model, where: str, remedy: str = "use mbs.forward_dynamics or mbs.constrained_dynamics"
) -> None:
    """Raise ModelError if there is a flexible body, for methods that know rigid bodies only."""
    for body in model.structure.modes_of:
        raise ModelError(f"{where}: body {body!r} is flexible, which this method does not support; {remedy}")
