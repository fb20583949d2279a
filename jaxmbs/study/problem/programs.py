"""The content on which the compiled programs of a study depend, or the reason why it is not known.

Modules that are rarely needed are imported in functions, because most studies define no functions of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any

from jaxmbs.io.loading import is_robot
from jaxmbs.io.toml import parse
from jaxmbs.model.fields import Element, type_name

if TYPE_CHECKING:
    from jaxmbs.study.problem.study import Study


def content(study: Study) -> tuple[list[str] | None, str]:
    """(everything on which the compiled programs of the study depend, as texts; ""), or (None, why it is not known)."""
    if study.file.fault:
        return None, study.file.fault
    if study.path is not None and is_robot(study.path):
        return None, "the files that a robot's file refers to are not known"
    data = {key: x for key, x in parse(study.content).items() if key != "criteria"}
    if data.get("mechanism", {}).get("fmus"):
        return None, "they call an FMU on the host, which another process cannot find in a stored program"
    own = {key: x for key, x in data.get("study", {}).items() if key != "seed"}
    found = [repr({**data, "study": own}), repr(study.hashes)]
    things = _of_others(study, set(_words(data)))
    if not things:
        return found, ""
    from jaxmbs.batching.content import NotKnownError, digest

    try:
        return [*found, digest(things)], ""
    except NotKnownError as error:
        return None, str(error)


def _of_others(study: Study, words: set[str]) -> dict[str, Any]:
    """Code, by name, on which the programs depend: the functions and classes that do not belong to the library and
    whose names are among `words`, the texts in the file; and the integration method, unless it is rk4."""
    classes = (c for c in study.catalogue.classes if not c.__module__.startswith("jaxmbs."))
    named = [(f"class {type_name(c)}", c) for c in classes if type_name(c) in words]
    found: dict[str, Any] = {name: f for name, f in study.catalogue.functions.items() if name in words}
    if study.simulation.method != "rk4":  # rk4 belongs to the library; leaving it out saves an import
        from jaxmbs.simulate.steppers import stepper

        found["simulation.method"] = stepper(study.simulation.method)
    taken = {name if name not in found else f"{name} of {c.__mro__[1].__name__}": c for name, c in named}
    return found | {name: _written(c) for name, c in taken.items()}


def _written(c: type) -> Any:
    """The part of a class on which programs depend. Of an element it is the whole class; of a distribution it is only
    the functions and properties that its author wrote, since pydantic generates the rest."""
    if issubclass(c, Element):
        return c
    own = [vars(b) for b in c.__mro__ if not b.__module__.startswith(("jaxmbs.", "pydantic", "builtins"))]
    return [{name: x for name, x in names.items() if isinstance(x, (FunctionType, property))} for names in own]


def _words(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        for x in data.values():
            yield from _words(x)
    elif isinstance(data, list):
        for x in data:
            yield from _words(x)
