"""Mechanisms from TOML files."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError, create_model

from jaxmbs.io.catalogue import catalogue
from jaxmbs.io.errors import InputError, Problem, problems_of
from jaxmbs.io.mechanism import mechanism_table
from jaxmbs.io.tables import Table

if TYPE_CHECKING:
    from jaxmbs.model import Model


def parse(text: str | bytes, file: str | Path | None = None) -> dict[str, Any]:
    """The tables of a TOML text. Raises InputError with line and column where it is no TOML."""
    try:
        return tomllib.loads(text.decode() if isinstance(text, bytes) else text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(Problem("", f"not a TOML file: {error}"), file) from None


def read_bytes(path: str | Path) -> bytes:
    """The file's content. Raises InputError where there is none."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(Problem("", f"{path} cannot be read: {error.strerror or error}"), path) from None


def beside(path: str | Path, data: dict[str, Any]) -> dict[str, Any]:
    """The tables of the file at `path` with the meshes that they name found beside it."""
    mechanism = data.get("mechanism")
    visuals = mechanism.get("visuals") if isinstance(mechanism, dict) else None
    for visual in visuals if isinstance(visuals, list) else []:
        if isinstance(visual, dict) and isinstance(visual.get("file"), str) and visual["file"]:
            visual["file"] = str(Path(path).resolve().parent / visual["file"])
    return data


def load(path: str | Path, trust: bool = False) -> Model:
    """Model of the [mechanism] in a TOML file; what else the file has (dispersions, outputs, ...) is not looked at.

    trust: run the Python `modules` that the file names. Raises InputError: one line for everything that is wrong, each
    with the path of its key.
    """
    data = beside(path, parse(read_bytes(path), path))
    mechanism = {k: v for k, v in data.items() if k == "mechanism"}
    try:
        known = catalogue(data, Path(path), trust)
        table: Any = create_model("File", __base__=Table, mechanism=(mechanism_table(known.classes), ...))
        return table.model_validate(mechanism, context=known.functions).mechanism.build()
    except ValidationError as error:
        raise InputError(problems_of(error, mechanism), path) from None
    except InputError as error:
        raise InputError(error.problems, path) from None
