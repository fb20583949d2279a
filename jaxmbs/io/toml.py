"""Reading mechanisms from TOML files."""

from __future__ import annotations

import tomllib
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError, create_model

from jaxmbs.errors import ModelWarning
from jaxmbs.io.catalogue import catalogue
from jaxmbs.io.columns import insert_columns
from jaxmbs.io.errors import InputError, Problem, problems_of
from jaxmbs.io.mechanism import mechanism_table
from jaxmbs.io.names import TRUST, exists, within
from jaxmbs.io.names import read_bytes as read_bytes
from jaxmbs.io.tables import Table

if TYPE_CHECKING:
    from jaxmbs.model import Model


def parse(text: str | bytes, file: str | Path | None = None) -> dict[str, Any]:
    """The tables of a TOML text. Raises InputError, with line and column, if it is not TOML."""
    try:
        return tomllib.loads(text.decode() if isinstance(text, bytes) else text)
    except RecursionError:
        raise InputError(
            Problem("", "not a TOML file: its lists or tables are nested too deep to be read"), file
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(Problem("", f"not a TOML file: {error}"), file) from None


def with_full_paths(path: str | Path, data: dict[str, Any], trust: bool = False) -> dict[str, Any]:
    """The tables `data` of the file at `path`, with full paths of the meshes that they name relative to its folder.

    Meshes outside this folder and the folders below are left out, with a warning, unless the file is trusted.
    """
    folder, mechanism, left = Path(path).resolve().parent, data.get("mechanism"), []
    found = mechanism.get("visuals") if isinstance(mechanism, dict) else None
    visuals: list[Any] = found if isinstance(found, list) else []
    for visual in list(visuals):
        if isinstance(visual, dict) and isinstance(visual.get("file"), str) and visual["file"]:
            file = folder / visual["file"]
            if not trust and not within(folder, file) and exists(file):
                left.append(visual["file"])
                visuals.remove(visual)
            visual["file"] = str(file)
    if left:
        said = f"meshes outside the file's folder are not drawn ({', '.join(left)}); if you trust the file"
        warnings.warn(f"{Path(path).name}: {said}, pass {TRUST}", ModelWarning, stacklevel=3)
    return data


def load(path: str | Path, trust: bool = False) -> Model:
    """Model of the [mechanism] in a TOML file; everything else in the file (dispersions, outputs, ...) is ignored.

    trust: run the Python `modules` and FMUs that the file names, and read its meshes in other folders. Raises InputError:
    one line for every fault, with the path of its key.
    """
    data = parse(read_bytes(path), path)
    mechanism: dict[str, Any] = {k: v for k, v in data.items() if k == "mechanism"}
    try:
        data = with_full_paths(path, data, trust)
        insert_columns(Path(path).absolute().parent, data, trust)
        known = catalogue(data, Path(path), trust)
        table: Any = create_model("File", __base__=Table, mechanism=(mechanism_table(known.classes), ...))
        return table.model_validate(mechanism, context=known.functions).mechanism.build()
    except ValidationError as error:
        raise InputError(problems_of(error, mechanism), path) from None
    except InputError as error:
        raise InputError(error.problems, path) from None
