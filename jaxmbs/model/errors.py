"""Errors in a mechanism, worded for the person who wrote it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from jaxmbs.errors import ModelError as ModelError
from jaxmbs.errors import ModelWarning as ModelWarning


def unknown(kind: str, name: object, known: Iterable[str], where: str = "") -> ModelError:
    """The error for a name that does not exist: it suggests close matches or lists the known names."""
    names = [str(k) for k in known]
    near = difflib.get_close_matches(str(name), names, n=3, cutoff=0.5)
    if near:
        hint = "did you mean " + " or ".join(repr(n) for n in near) + "?"
    elif names:
        shown = ", ".join(repr(n) for n in names[:12]) + (", ..." if len(names) > 12 else "")
        hint = f"known: {shown}"
    else:
        hint = f"the mechanism has no {kind} yet"
    return ModelError(f"{where + ': ' if where else ''}no {kind} named {name!r}; {hint}")
