"""Columns of CSV files, as lists of numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbs.io.errors import InputError, Problem, choices, dotted
from jaxmbs.io.names import file_in

KEYS = ("file", "column", "factor")  # of a table that stands for a list of numbers; the factor is 1 if it is left out


def columns(content: bytes, file: str, names: Sequence[str], fewest: int = 1) -> list[np.ndarray]:
    """The named columns of a CSV file, (rows,) each. Raises ValueError with the line and the remedy.

    content: that of the file; file: its name, for messages; fewest: the number of rows that it must have.
    """
    try:
        lines = list(csv.reader(io.StringIO(content.decode("utf-8-sig"))))
    except UnicodeDecodeError as error:
        raise ValueError(f'"{file}" is not a text in UTF-8: {error}') from None
    head = [name.strip() for name in lines[0]] if lines else []
    for name in names:
        if name not in head:
            raise ValueError(f'"{file}" has no column "{name}"; {choices(name, head, "columns")}')
    rows = [(number, row) for number, row in enumerate(lines[1:], 2) if any(cell.strip() for cell in row)]
    if len(rows) < fewest:
        raise ValueError(f'"{file}" has {len(rows)} rows of numbers; it needs {fewest} or more')
    found = np.empty((len(names), len(rows)))
    for k, (number, row) in enumerate(rows):
        for j, name in enumerate(names):
            cell = row[head.index(name)] if head.index(name) < len(row) else ""
            try:
                found[j, k] = float(cell)
            except ValueError:
                found[j, k] = np.nan
            if not np.isfinite(found[j, k]):
                raise ValueError(
                    f'"{file}", line {number}: {name} is "{cell}", not a number; correct it or leave the row out'
                )
    return list(found)


def filled(folder: Path, data: dict[str, Any], trust: bool = False) -> dict[str, bytes]:
    """Put columns of files in the place of the tables { file, column, factor } in the tables [mechanism] of `data`, and
    return the contents of these files by name. Raises InputError with the path of every key that is wrong."""
    contents: dict[str, bytes] = {}
    problems: list[Problem] = []
    for place, key, path in list(_places(data.get("mechanism"), ("mechanism",))):
        try:
            place[key] = _numbers(folder, place[key], dotted(path), contents, trust)
        except InputError as error:
            problems += error.problems
        except ValueError as error:
            problems.append(Problem(dotted(path), str(error)))
    if problems:
        raise InputError(problems)
    return contents


def _places(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[Any, Any, tuple[str | int, ...]]]:
    """(container, key, path) of the tables that stand for lists of numbers."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, x in entries:
        if isinstance(x, dict) and "file" in x and "column" in x:
            yield value, key, (*path, key)
        else:
            yield from _places(x, (*path, key))


def _numbers(folder: Path, table: dict[str, Any], path: str, contents: dict[str, bytes], trust: bool) -> list[float]:
    for key in table:
        if key not in KEYS:
            raise ValueError(f"has the key `{key}`; a column of a file has only {', '.join(KEYS)}")
    file, column, factor = table["file"], table["column"], table.get("factor", 1.0)
    if not isinstance(column, str):
        raise ValueError(f"column = {column!r}: needs the name of a column")
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not np.isfinite(factor):
        raise ValueError(f"factor = {factor!r}: needs a number, such as 0.001 for a column in millimetres")
    source = file_in(folder, file, f"{path}.file", trust)
    if source.name not in contents:
        try:
            contents[source.name] = source.read_bytes()
        except OSError as error:
            raise ValueError(f'"{source.name}" cannot be read from the folder of the file: {error.strerror}') from None
    (found,) = columns(contents[source.name], source.name, [column])
    return (found * factor).tolist()
