"""Chooses the reader for a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxmbs.io.errors import InputError, Problem

if TYPE_CHECKING:
    from jaxmbs.model import Model

ROBOTS = (".urdf", ".xml", ".mjcf")  # files of other programs


def load(path: str | Path, trust: bool = False, **options: Any) -> Model:
    """Model of a file: the [mechanism] of a TOML file, a URDF or an MJCF.

    trust: run the Python modules that a TOML file names in `modules`, which define its own elements, and read files that a
    file names in other folders. Without it, a TOML file with modules and an MJCF file that names files in other folders are
    refused, and TOML and URDF files are read without meshes in other folders (except those of the URDF's ROS package).
    Everything else in a TOML file (dispersions, outputs, ...) is ignored. options: those of `from_urdf` and `from_mjcf`.
    Raises InputError (a ModelError): one line for every fault, with the path of its key.

    >>> mbs.load("examples/stage_separation.toml")  # doctest: +SKIP
    <Model 'stage separation': 2 bodies (stage, payload), nq = 14, nv = 12>
    """
    if is_robot(path):
        return from_robot(path, trust=trust, **options)
    if options:
        raise InputError(Problem("", f"options {', '.join(options)} are those of URDF and MJCF files"), path)
    try:
        from jaxmbs.io import toml
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"reading TOML files needs {error.name}: pip install 'jaxmbs[study]'") from error
    return toml.load(path, trust)


def is_robot(path: str | Path) -> bool:
    """Whether the file is a URDF or an MJCF, judged by the end of its name."""
    return Path(path).suffix.lower() in ROBOTS


def from_robot(path: str | Path, **options: Any) -> Model:
    """Model of a URDF or an MJCF. A file named .xml is a URDF if <robot> appears at its beginning, otherwise an MJCF."""
    path = Path(path)
    try:
        start = path.read_bytes()[:4096] if path.suffix.lower() == ".xml" else b""
    except OSError:
        start = b""  # the reader reports the error
    if path.suffix.lower() == ".urdf" or b"<robot" in start:
        from jaxmbs.io.urdf import from_urdf

        return from_urdf(path, **options)
    from jaxmbs.io.mjcf import from_mjcf

    return from_mjcf(path, **options)
