"""Mechanisms from files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jaxmbs.io.errors import InputError as InputError

if TYPE_CHECKING:
    from jaxmbs.model import Model


def load(path: str | Path, trust: bool = False) -> Model:
    """Model of the [mechanism] in a TOML file; what else the file has (dispersions, outputs, ...) is not looked at.

    trust: run the Python modules that the file names in `modules`, which define elements of its own. Without it such a
    file is refused. Raises InputError (a ModelError): one line for everything that is wrong, each with the path of its key.

    >>> mbs.load("examples/stage_separation.toml")  # doctest: +SKIP
    <Model 'stage separation': 2 bodies (stage, payload), nq = 14, nv = 12>
    """
    try:
        from jaxmbs.io import toml
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"reading TOML files needs {error.name}: pip install 'jaxmbs[study]'") from error
    return toml.load(path, trust)
