"""Parsing XML files from other people. Files that declare entities are refused: the entities of a short file can expand
without limit, and entities can refer to files on the reader's machine."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.parsers import expat

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.io.names import read_bytes

Fault = Callable[[str, str], None]  # notes what is wrong at a place


def parsed(content: bytes) -> ET.Element:
    """The root of a document. Raises InputError if it is not XML or declares entities."""
    guard = expat.ParserCreate()
    guard.EntityDeclHandler = _refuse
    try:
        guard.Parse(content, True)
        return ET.fromstring(content)
    except (expat.ExpatError, ET.ParseError, ValueError, LookupError) as error:
        raise InputError(Problem("", f"not an XML file: {error}")) from None


def opened(path: Path, tag: str, kind: str) -> ET.Element:
    """The root <tag> of a file. Raises InputError if it is not XML, or not `kind`."""
    try:
        root = parsed(read_bytes(path))
    except InputError as error:
        raise InputError(error.problems, path) from None
    if root.tag != tag:
        raise InputError(Problem("", f"not {kind}: it begins with <{root.tag}>, not with <{tag}>"), path)
    return root


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


def as_number(given: str | None, key: str, where: str, fault: Fault) -> float:
    """The number that a text stands for; 0 with a fault if it stands for none."""
    try:
        return float(given or "")
    except ValueError:
        fault(where, f"{key} needs a number, got {given!r}")
        return 0.0


def as_vector(given: str, usual: tuple[float, ...], key: str, where: str, fault: Fault) -> tuple[float, ...]:
    """The three finite numbers that a text stands for; the usual ones with a fault if it stands for none."""
    try:
        found = tuple(map(float, given.split()))
    except ValueError:
        found = ()
    if len(found) != 3 or not all(map(math.isfinite, found)):
        fault(where, f"{key} needs three numbers, got {given!r}")
        return usual
    return found
