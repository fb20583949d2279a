"""What is added to a mechanism: its kind, and its numbers, which become parameters."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from jaxmbs.model.errors import ModelError
from jaxmbs.model.fields import Declared, Element, check_together, check_words, numbers_of
from jaxmbs.model.parameters import concrete_components

E = TypeVar("E", bound=Element)


def require(where: str, given: Any, kind: Any, name: str, remedy: str = "") -> None:
    """Raise ModelError if what was given is not of this kind."""
    if not isinstance(given, kind):
        hint = f"; pass {given.__name__}(...)" if isinstance(given, type) else remedy
        raise ModelError(f"{where}: {given!r} is not {name}{hint}")


def stored(element: E, into: dict[str, tuple[Declared, list[float]]], what: str = "", name: str = "") -> E:
    """The element without its numbers, which are checked and put `into` a dictionary as parameters "<name>.<path>".

    what: the kind of element, for messages.
    """
    where, prefix = (f"{what} {name!r}: ", f"{name}.") if name else ("", "")
    values = {}
    try:
        if "__dataclass_fields__" not in vars(type(element)):
            raise ModelError(
                f"class {type(element).__name__} is not an element; put the decorator @element from "
                "jaxmbs.elements above it"
            )
        for path, d, value in numbers_of(element):
            if prefix + path in into:
                raise ModelError(f"parameter {prefix + path!r} exists already; give the elements different names")
            into[prefix + path] = (d, concrete_components(d.kind, value, path))
            values[path] = np.asarray(value, float)
        check_words(element)
        check_together(element, values)
    except ModelError as error:
        raise ModelError(f"{where}{error}") from None
    return element.structural()
