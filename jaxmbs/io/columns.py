"""Columns of CSV files, as lists of numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from jaxmbs.io.errors import InputError, Problem, choices, dotted, problems_of
from jaxmbs.io.names import TRUST, file_in
from jaxmbs.io.tables import Column, Measured
from jaxmbs.io.units import unit
from jaxmbs.model import Mesh, ModelError, Part
from jaxmbs.model.fields import type_name
from jaxmbs.model.solid_pieces import triangles_in


def columns(content: bytes, file: str, names: Sequence[str], fewest: int = 1) -> list[np.ndarray]:
    """The named columns of a CSV file, (rows,) each. Raises ValueError with the line and the remedy.

    content: that of the file; file: its name, for messages; fewest: the number of rows that it must have.
    """
    try:
        lines = list(csv.reader(io.StringIO(content.decode("utf-8-sig"))))
    except UnicodeDecodeError as error:
        raise ValueError(f'"{file}" is not a text in UTF-8: {error}') from None
    except csv.Error as error:
        raise ValueError(f'"{file}" cannot be read: {error}; is a quotation mark left open?') from None
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


def insert_columns(folder: Path, data: dict[str, Any], trust: bool = False) -> dict[str, bytes]:
    """Replace the tables { file, column, ... } in [mechanism] of `data` by columns of files, the files of flexible
    bodies by their parts, those of FMUs by the FMUs, and those of meshes by their triangles, and return the contents of
    these files by name. trust: FMUs may be run. Raises InputError with the path of every key that is wrong."""
    contents: dict[str, bytes] = {}
    problems: list[Problem] = []
    for place, key, path in list(_places(data.get("mechanism"), ("mechanism",))):
        where = dotted(path)
        try:
            table = Column.model_validate(place[key])
            place[key] = _numbers(file_in(folder, table.file, f"{where}.file", trust), table, contents)
        except ValidationError as error:
            problems += [Problem(f"{where}.{x.path}", x.message) for x in problems_of(error, place[key])]
        except InputError as error:
            problems += error.problems
        except ValueError as error:
            problems.append(Problem(where, str(error)))
    mechanism = data.get("mechanism")
    forces = mechanism.get("forces") if isinstance(mechanism, dict) else None
    for place, path in list(_meshes(forces, ("mechanism", "forces"))):
        where = dotted((*path, "file"))
        try:
            source = file_in(folder, place["file"], where, trust)
            contents[source.name] = _content(source)
            found = triangles_in(contents[source.name], source.name)
            del place["file"]
            place.update(found)
        except InputError as error:
            problems += error.problems
        except (ValueError, ModelError) as error:
            problems.append(Problem(where, f'"{place["file"]}" {error}'))
    for place, key, where in (*_named(mechanism, "flexible_bodies", "part"), *_named(mechanism, "fmus", "file")):
        try:
            source = file_in(folder, place[key], where, trust)
            contents[source.name] = _content(source)
            place[key] = READERS[key](contents[source.name], source.name, trust)
        except InputError as error:
            own = (x if x.path == where else Problem(where, f'"{place[key]}" {x}') for x in error.problems)
            problems += own
        except ModuleNotFoundError as error:
            problems.append(Problem(where, str(error)))
        except (ValueError, ModelError) as error:
            problems.append(Problem(where, str(error)))
    if problems:
        raise InputError(problems)
    return contents


def _named(mechanism: Any, kind: str, key: str) -> Iterator[tuple[Any, str, str]]:
    """(table, key, path of the key) of the tables of this kind that name a file."""
    tables = mechanism.get(kind) if isinstance(mechanism, dict) else None
    for k, table in enumerate(tables if isinstance(tables, list) else ()):
        if isinstance(table, dict) and isinstance(table.get(key), str):
            yield table, key, dotted(("mechanism", kind, k, key))


def _fmu(content: bytes, name: str, trust: bool) -> Any:
    """The FMU of a file that is trusted."""
    if not name.endswith(".fmu"):
        raise ValueError(f'"{name}" is not the name of an FMU, which ends with .fmu')
    if not trust:
        raise ValueError(
            f'the file needs to run the FMU "{name}", which is machine code; if you trust it, pass {TRUST}'
        )
    from jaxmbs.io.fmu import Fmu

    return Fmu.read(content, name)


READERS = {"part": lambda content, name, trust: Part.read(content, name), "file": _fmu}


def _places(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[Any, Any, tuple[str | int, ...]]]:
    """(container, key, path) of the tables that stand for lists of numbers."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, x in entries:
        if isinstance(x, dict) and "file" in x and "column" in x:
            yield value, key, (*path, key)
        else:
            yield from _places(x, (*path, key))


def _meshes(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[dict[str, Any], tuple[str | int, ...]]]:
    """(table, path) of the meshes that name a file."""
    if isinstance(value, dict) and value.get("type") == type_name(Mesh) and isinstance(value.get("file"), str):
        yield value, path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, x in entries:
        yield from _meshes(x, (*path, key))


def _numbers(source: Path, table: Column, contents: dict[str, bytes]) -> list[float]:
    factor = table.factor if table.unit is None else unit(table.unit).factor
    if table.unit is not None and "factor" in table.model_fields_set:
        raise ValueError("unit and factor both convert the numbers to SI; leave one of the two out")
    if source.name not in contents:
        contents[source.name] = _content(source)
    (found,) = columns(contents[source.name], source.name, [table.column])
    numbers = Measured((found * factor).tolist())
    numbers.unit = table.unit or ""
    return numbers


def _content(source: Path) -> bytes:
    try:
        return source.read_bytes()
    except OSError as error:
        raise ValueError(f'"{source.name}" cannot be read from the folder of the file: {error.strerror}') from None
