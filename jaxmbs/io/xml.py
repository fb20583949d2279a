"""Parsing XML files from other people. Files that declare entities are refused: the entities of a short file can expand
without limit, and entities can refer to files on the reader's machine."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.parsers import expat

from jaxmbs.io.errors import InputError, Problem


def parsed(content: bytes) -> ET.Element:
    """The root of a document. Raises InputError if it is not XML or declares entities."""
    guard = expat.ParserCreate()
    guard.EntityDeclHandler = _refuse
    try:
        guard.Parse(content, True)
        return ET.fromstring(content)
    except (expat.ExpatError, ET.ParseError, ValueError, LookupError) as error:
        raise InputError(Problem("", f"not an XML file: {error}")) from None


def _refuse(name: str, *_: Any) -> None:
    message = f'declares the entity "{name}", which could expand to any size; replace it by the text that it stands for'
    raise InputError(Problem("", message))


@contextmanager
def not_too_deep(path: Path) -> Iterator[None]:
    """Turns Python's limit of nested calls into an InputError of the file at `path`."""
    try:
        yield
    except RecursionError:
        said = "its models, or poses that refer to one another, are nested too deeply; give the poses in their model"
        raise InputError(Problem("", said), path) from None
