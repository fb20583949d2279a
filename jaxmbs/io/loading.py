"""Chooses the reader for a file."""

from __future__ import annotations

import importlib.metadata
from importlib import import_module
from pathlib import Path
from typing import Any

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.model import Model

# files of other programs by the end of their names; a format "usd" is read by `from_usd` of the module `usd`
FORMATS = {
    ".urdf": "urdf", ".sdf": "sdf", ".xml": "mjcf", ".mjcf": "mjcf",
    **dict.fromkeys((".usd", ".usda", ".usdc", ".usdz"), "usd"),
}  # fmt: skip
GROUP = "jaxmbs.formats"  # entry points of packages: functions (path, **options), named as the end of a file's name


def load(path: str | Path, trust: bool = False, **options: Any) -> Model:
    """Model of a file: the [mechanism] of a TOML file, a URDF, an SDFormat, an MJCF, a USD, or one that an installed package
    reads.

    trust: run the Python modules that a TOML file names in `modules`, which define its own elements, and its FMUs, and
    read files that a file names in other folders. Without it, a TOML file with modules or FMUs and an MJCF, SDFormat
    or USD that names such files are refused, and TOML, URDF and SDFormat files are read without meshes in other folders
    (except those of the robot's own package). Everything else in a TOML file (dispersions, outputs, ...) is ignored.
    options: those of `from_urdf`, `from_sdf`, `from_mjcf` and `from_usd`. A package reads files such as *.adm with a
    function (path, **options) -> Model, the entry point "adm" of the group "jaxmbs.formats"; it receives `options` and
    `trust`.
    Raises InputError (a ModelError): one line for every fault, with the path of its key.

    >>> mbs.load("examples/stage_separation.toml")  # doctest: +SKIP
    <Model 'stage separation': 2 bodies (stage, payload), nq = 14, nv = 12>
    """
    if is_robot(path):
        return from_robot(path, trust=trust, **options)
    if options:
        raise InputError(
            Problem("", f"options {', '.join(options)} are for files of other programs only; leave them out"), path
        )
    try:
        from jaxmbs.io import toml
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"reading TOML files needs {error.name}: pip install 'jaxmbs[study]'") from error
    return toml.load(path, trust)


def is_robot(path: str | Path) -> bool:
    """Whether the file is a URDF, an SDFormat, an MJCF, a USD, or one that an installed package reads, by the end of its
    name."""
    return Path(path).suffix.lower() in FORMATS or _entry(path) is not None


def is_urdf(path: Path) -> bool:
    """Whether the file is a URDF. A file named .xml is one if <robot> appears at its beginning."""
    try:
        start = path.read_bytes()[:4096] if path.suffix.lower() == ".xml" else b""
    except OSError:
        start = b""  # the reader reports the error
    return path.suffix.lower() == ".urdf" or b"<robot" in start


def format_of(path: Path) -> str | None:
    """Which of the formats of other programs a file has; None if it has none."""
    return "urdf" if is_urdf(path) else FORMATS.get(path.suffix.lower())


def _entry(path: str | Path) -> importlib.metadata.EntryPoint | None:
    """The entry point of the package that reads a file; None for the library's own formats, which need no search."""
    end = Path(path).suffix.lower()
    if end in ("", ".toml", *FORMATS):
        return None
    return next(
        (entry for entry in importlib.metadata.entry_points(group=GROUP) if f".{entry.name.lower()}" == end), None
    )


def _by_package(entry: importlib.metadata.EntryPoint, path: str | Path, options: dict[str, Any]) -> Model:
    try:
        read = entry.load()
    except Exception as error:
        said = f"the reader of the package entry point {entry.name!r} ({entry.value}) cannot be loaded: {error}"
        raise InputError(Problem("", said), path) from error
    found = read(path, **options)
    if not isinstance(found, Model):
        raise InputError(Problem("", f"the reader {entry.value} returned {found!r}; it must return a Model"), path)
    return found


def from_robot(path: str | Path, **options: Any) -> Model:
    """Model of a URDF, an SDFormat, an MJCF, a USD, or a file that an installed package reads. A file named .xml is a URDF
    if <robot> appears at its beginning, otherwise an MJCF."""
    path = Path(path)
    if entry := _entry(path):
        return _by_package(entry, path, options)
    kind = format_of(path) or "mjcf"
    return getattr(import_module(f"jaxmbs.io.{kind}"), f"from_{kind}")(path, **options)
