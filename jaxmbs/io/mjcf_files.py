"""The other files that an MJCF file names. They are checked before MuJoCo runs, because it opens every named file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.io.names import TRUST, read_bytes, within
from jaxmbs.io.xml import parsed

# compiler settings that name the folder of an element's files; those of all other elements are _OF_MESHES
_FOLDERS = {"texture": ("texturedir", "assetdir")}
_OF_MESHES = ("meshdir", "assetdir")
_BESIDE_THE_FILE = ("include", "model")


def require_own_files(path: Path) -> None:
    """Raise InputError, naming the element, for a file that is not in the folder of the MJCF at `path` or below it."""
    folder, roots = path.resolve().parent, dict[Path, Element]()
    try:
        _read(folder, path, roots)
    except InputError as error:
        raise InputError(error.problems, path) from None
    settings = [c for root in roots.values() for c in root.iter("compiler")]
    for root in roots.values():
        for element, name in _named(root):
            keys = () if element.tag in _BESIDE_THE_FILE else _FOLDERS.get(element.tag, _OF_MESHES)
            below = [c.get(key, "") for c in settings for key in keys]
            if not all(within(folder, folder / x / name) for x in ("", *below)):
                where = f'{element.tag} "{element.get("name") or name}"'
                message = (
                    f'"{name}" is not in the folder of this file; put it there, or, if you trust the file, pass {TRUST}'
                )
                raise InputError(Problem(where, message), path)


def _read(folder: Path, path: Path, roots: dict[Path, Element]) -> None:
    """Put the root elements of the file and of all files that it includes into `roots` {path: root}, each once; files
    outside the folder are not read."""
    if path.resolve() in roots:
        return
    content = read_bytes(path)
    try:
        root = roots[path.resolve()] = parsed(content)
    except InputError as error:
        raise InputError(Problem("", f"MuJoCo cannot read it: {error}")) from None
    for element, name in _named(root):
        for there in {folder / name, path.parent / name}:
            if element.tag in _BESIDE_THE_FILE and there.is_file() and within(folder, there):
                _read(folder, there, roots)


def _named(root: Element) -> Iterator[tuple[Element, str]]:
    """Elements with the file names in their attributes: file, fileright, ..."""
    for element in root.iter():
        for key, value in element.attrib.items():
            if key.startswith("file") and value:
                yield element, value
