"""What is recovered from the modal coordinates of a part: stresses, strains, section loads, each a row for the modes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import as_numbers

Array = np.ndarray
Recovery = dict[str, tuple[Array, str]]  # {name: (rows (m, n), SI unit)}
KEYS = ("recovery", "recovery_units", "recovery_counts", "recovery_rows")  # in the file of a part


def checked(given: Any, modes: int) -> Recovery:
    """Rows (m, n) and a unit for every name. Raises ModelError for all else."""
    if not isinstance(given, Mapping):
        raise ModelError(f"flexible part: recovery is {given!r}; pass {{name: (rows, unit)}}")
    found: Recovery = {}
    for name, (rows, unit) in named(given, 2, "(rows, unit)"):
        x = np.array(as_numbers(rows, f"flexible part: recovery {name!r}"))
        x = x[None] if x.ndim == 1 else x
        if x.ndim != 2 or x.shape[1] != modes or not len(x):
            raise ModelError(f"flexible part: recovery {name!r} has shape {x.shape}; its rows need {modes} modes")
        if not np.isfinite(x).all():
            raise ModelError(f"flexible part: recovery {name!r} has numbers that are not finite")
        x.setflags(write=False)
        found[name] = (x, unit)
    return found


def named(given: Mapping[str, Any], size: int, said: str) -> Iterable[tuple[str, Sequence[Any]]]:
    """(name, items) of each recovery in a table; the last item is a unit without commas. size: how many items there must be;
    said: these in words."""
    for name, of in given.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise ModelError(f"flexible part: recovery {name!r} is no name; use letters, digits and _")
        if not isinstance(of, (tuple, list)) or len(of) != size or not isinstance(of[-1], str) or "," in of[-1]:
            raise ModelError(f'flexible part: recovery {name!r} is {of!r}; pass {said}, with a unit such as "Pa"')
        yield name, of


def kept(recovery: Recovery, modes: int) -> Recovery:
    """The rows for the first modes only."""
    return {name: (rows[:, :modes], unit) for name, (rows, unit) in recovery.items()}


def of_displacements(given: Mapping[str, Any] | None, shapes: Array) -> Recovery:
    """Rows for the modes, from rows for the displacements of the finite-element model, whose modes are `shapes`."""
    found: Recovery = {}
    for name, (rows, unit) in named(given or {}, 2, "(rows, unit)"):
        x = np.atleast_2d(as_numbers(rows.toarray() if hasattr(rows, "toarray") else rows, f"recovery {name!r}"))
        if x.ndim != 2 or x.shape[1] != len(shapes):
            raise ModelError(
                f"flexible part: recovery {name!r} has shape {x.shape}; the model has {len(shapes)} degrees of freedom, "
                "pass a column for each"
            )
        found[name] = (x @ shapes, unit)
    return found


def packed(recovery: Recovery, modes: int) -> dict[str, Array]:
    """The arrays of the file of a part: names, units, numbers of rows, and all rows (m, n), one name after the other."""
    rows, units = [x for x, _ in recovery.values()], [unit for _, unit in recovery.values()]
    whole = np.concatenate([np.zeros((0, modes)), *rows])
    found = np.array([*recovery], str), np.array(units, str), np.array([len(x) for x in rows], int), whole
    return dict(zip(KEYS, found, strict=True))


def unpacked(file: Mapping[str, Array]) -> dict[str, Any]:
    """The field `recovery` of a part from the arrays of its file; nothing for an older file, which lacks them."""
    if KEYS[0] not in file:
        return {}
    names, units, counts, rows = (np.asarray(file[key]) for key in KEYS)
    if len({len(names), len(units), len(counts)}) > 1 or counts.sum() != len(rows):
        raise ValueError("its recovery is incomplete")
    parts = np.split(rows, np.cumsum(counts)[:-1]) if len(names) else []
    return {"recovery": {str(n): (x, str(u)) for n, x, u in zip(names, parts, units, strict=True)}}
