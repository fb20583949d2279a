"""Designs as all combinations of values, and as the rows of a CSV file."""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxmbs.io.errors import InputError, Problem, dotted

Values = dict[str, Any]
MOST = 1000  # most designs: more than these are probably a mistake in a sweep
_COMPONENT = re.compile(r"(?P<name>.+)\[(?P<k>\d+)\]")


def combinations(values: Mapping[str, Sequence[Any]]) -> dict[str, Values]:
    """{name: values} of the designs of a sweep, the last parameter changing first.

    >>> list(combinations({"spring.stiffness": [800.0, 900.0], "cart.mass": [2.0, 2.5]}))
    ['stiffness_800-mass_2', 'stiffness_800-mass_2.5', 'stiffness_900-mass_2', 'stiffness_900-mass_2.5']
    """
    alone = [name for name, some in values.items() if not isinstance(some, Sequence) or isinstance(some, str)]
    if alone:
        raise InputError(
            [Problem(dotted(("sweep", name)), "needs a list of values, such as [800, 900]") for name in alone]
        )
    wrong = [name for name, some in values.items() if any(np.ndim(x) == 0 and isinstance(x, str) for x in some)]
    if wrong:
        raise InputError([Problem(dotted(("sweep", name)), "holds a text; write numbers") for name in wrong])
    many = math.prod(len(some) for some in values.values())
    if many > MOST:
        raise InputError(Problem("sweep", f"{many:,} combinations; a trade study has {MOST:,} designs at most"))
    ends = [name.rpartition(".")[2] for name in values]
    called = [end if ends.count(end) == 1 else name for end, name in zip(ends, values, strict=True)]
    labels = [
        [f"{name}_{k + 1 if np.ndim(x) else f'{x:.12g}'}" for k, x in enumerate(some)]
        for name, some in zip(called, values.values(), strict=True)
    ]
    names = ["-".join(some) for some in itertools.product(*labels)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(Problem("sweep", f"a value occurs twice: {', '.join(twice[:3])}"))
    every = itertools.product(*values.values())
    return {name: dict(zip(values, own, strict=True)) for name, own in zip(names, every, strict=True)}


def rows_of(content: bytes, file: str) -> dict[str, Values]:
    """{name: values} of the designs in a CSV file. file: its name, for messages. Raises InputError with the line.

    >>> rows_of(b"design,spring.stiffness\\nsoft,800\\nstiff,900\\n", "designs.csv")
    {'soft': {'spring.stiffness': 800.0}, 'stiff': {'spring.stiffness': 900.0}}
    """

    def wrong(said: str) -> InputError:
        return InputError(Problem("file", f'"{file}"{said}'))

    try:
        head, *lines = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=None))
    except UnicodeDecodeError as error:
        raise wrong(f" is not a text in UTF-8: {error}") from None
    except ValueError:
        raise wrong(" is empty") from None
    except csv.Error as error:
        raise wrong(f" cannot be read: {error}") from None
    head = [name.strip() for name in head]
    if head.count("design") != 1 or len(set(head)) < len(head):
        raise wrong(f" needs one column `design`, and no column twice; its columns: {', '.join(head)}")
    found: dict[str, Values] = {}
    for number, row in enumerate(lines, 2):
        if not any(cell.strip() for cell in row):
            continue
        cells = dict(zip(head, (cell.strip() for cell in row), strict=False))
        name = cells.pop("design", "")
        if name in found or len(row) != len(head):
            said = f'there is a design "{name}" already' if name in found else f"has {len(row)} cells, not {len(head)}"
            raise wrong(f", line {number}: {said}")
        try:
            found[name] = _joined({key: _number(key, cell) for key, cell in cells.items() if cell})
        except ValueError as error:
            raise wrong(f", line {number}: {error}; correct it or leave the row out") from None
    return found


def _number(column: str, cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise ValueError(f'"{cell}" in the column {column} is not a number') from None


def _joined(cells: Mapping[str, float]) -> Values:
    """The values of parameters, with components NAME[0], NAME[1] ... joined to lists."""
    found: Values = {}
    for key, x in cells.items():
        part = _COMPONENT.fullmatch(key)
        if part is None:
            found[key] = x
            continue
        so_far = found.setdefault(part["name"], [])
        if int(part["k"]) != len(so_far):
            raise ValueError(f"the column {key} is not where {part['name']}[{len(so_far)}] is expected")
        so_far.append(x)
    return found
