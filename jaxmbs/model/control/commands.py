"""The parameters that controllers set, and why they cannot set others."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from jaxmbs.model.control.controller import Controller
from jaxmbs.model.errors import ModelError, unknown
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import STATES, Declared


def written(
    controllers: Mapping[str, Controller], forces: Collection[str], numbers: Mapping[str, Declared]
) -> set[str]:
    """The parameters that controllers write: numbers of force elements, each written by one controller.

    forces: names of the force elements; numbers: all numbers of the mechanism, by name. Raises ModelError for a name that a
    controller cannot write.
    """
    owned = {name: d for name, d in numbers.items() if name.partition(".")[0] in forces}
    allowed = [name for name, d in owned.items() if d.kind in STATES and not d.is_state]
    found: dict[str, str] = {}
    for owner, controller in controllers.items():
        for name in controller.writes:
            where = f"controller {owner!r}: writes"
            if name not in allowed:
                raise _refused(where, name, owner, forces, numbers, allowed)
            if name in found:
                raise ModelError(
                    f"{where}: {name!r} is written by {found[name]!r} as well; let one controller write it"
                )
            found[name] = owner
    return set(found)


def _refused(
    where: str, name: str, owner: str, forces: Collection[str], numbers: Mapping[str, Declared], allowed: list[str]
) -> ModelError:
    element = name.partition(".")[0]
    own = [x for x in allowed if x.partition(".")[0] == element] or allowed
    own.sort(
        key=lambda x: numbers[x].kind in (Kind.VECTOR, Kind.NOT_NEGATIVE_VECTOR, Kind.LIST)
    )  # single numbers first
    instead = f"write a parameter, such as {' or '.join(map(repr, own[:3]))}" if own else "leave it out"
    if element == owner and element not in forces:
        return ModelError(
            f"{where}: {name!r} belongs to the controller itself, whose state is what fn returns, (state, commands); "
            f"to set something else, {instead}"
        )
    if name in forces:
        return ModelError(f"{where}: {name!r} is an element, which has several numbers; {instead}")
    if name in numbers and numbers[name].is_state:
        return ModelError(f"{where}: {name!r} is a state, which the motion itself changes; {instead}")
    if name in numbers and element in forces:
        return ModelError(f"{where}: {name!r} is a {numbers[name].kind}, which a controller cannot set; {instead}")
    return unknown("parameter of a force element", name, allowed, where)
