"""The classes that a file may name by `type`: the library's, those of installed packages, those of its own modules."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import sys
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from jaxmbs.errors import ModelWarning
from jaxmbs.io.errors import InputError, Problem, dotted
from jaxmbs.model import constraints, events, forces, joints
from jaxmbs.model.fields import Element, type_name

GROUP = "jaxmbs.elements"  # entry points of installed packages: each a class or a module
Classes = tuple[type[Element], ...]


@dataclass(frozen=True)
class Catalogue:
    """classes: all that may be named; modules: content of the file's own modules by name."""

    classes: Classes
    modules: Mapping[str, bytes]


@functools.cache
def builtin() -> Classes:
    """Joints, force elements, surfaces, constraints, conditions and actions of the library."""
    return tuple(c for module in (joints, forces, constraints, events) for c in elements_in(module))


@functools.cache
def installed() -> Classes:
    """Elements of installed packages, which name them as entry points of the group "jaxmbs.elements"."""
    found: list[Any] = []
    for entry in importlib.metadata.entry_points(group=GROUP):
        try:
            thing = entry.load()
            if not (isinstance(thing, ModuleType) or _is_element(thing)):
                raise TypeError(f"{thing!r} is neither a module nor a class of jaxmbs.elements")
        except Exception as error:  # a broken package must not take files down that do not use it
            message = f"elements of the package entry point {entry.name!r} ({entry.value}) are left out: {error}"
            warnings.warn(message, ModelWarning, stacklevel=2)
            continue
        found += elements_in(thing) if isinstance(thing, ModuleType) else [thing]
    return tuple(found)


def elements_in(module: ModuleType) -> Classes:
    """Classes with declared fields that a module defines or exports; those with an underscore are its own bases."""
    named = (x for name, x in vars(module).items() if not name.startswith("_"))
    return tuple(x for x in named if _is_element(x) and x is not Element)


def _is_element(x: Any) -> bool:
    return isinstance(x, type) and issubclass(x, Element)


def catalogue(data: Mapping[str, Any], path: Path | None, trust: bool, more: Classes = ()) -> Catalogue:
    """What the tables `data` of the file at `path` may name; `more` are classes that the library has beside its elements.

    A file's `modules` are Python files beside it. They are run, and therefore only where the caller trusts the file:
    otherwise InputError, with the name of the module and the remedy.
    """
    names = data.get("modules", [])
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
        raise InputError(Problem("modules", f'needs a list of file names such as ["my_elements.py"], got {names!r}'))
    known = _joined((*builtin(), *more), installed(), "package entry points")
    contents = {}
    for i, name in enumerate(names):
        where = dotted(("modules", i))
        if Path(name).name != name or not name.endswith(".py"):
            raise InputError(Problem(where, f'"{name}" is not the name of a Python file beside this one'))
        if not trust:
            raise InputError(
                Problem(
                    where,
                    f'the file wants to run "{name}"; read it, and if you trust it, say so: --trust on the command line, '
                    "trust=True in Python",
                )
            )
        contents[name] = _read(name, path, where)
        known = _joined(known, _defined(name, contents[name], where), where)
    return Catalogue(known, contents)


def _joined(known: Classes, new: Iterable[type[Element]], where: str) -> Classes:
    names = {(_family(c), type_name(c)): c for c in known}
    for c in new:
        if names.setdefault((_family(c), type_name(c)), c) is not c:
            raise InputError(
                Problem(where, f'{c.__name__} is "{type_name(c)}" in a file, which exists; rename the class')
            )
    return tuple(names.values())


def _family(c: type[Element]) -> type[Element]:
    """What it is one of: joints, force elements, outputs ... Names of one family differ."""
    return next(b for b in c.__mro__ if Element in b.__bases__)


def _read(name: str, path: Path | None, where: str) -> bytes:
    try:
        return ((path.parent if path else Path()) / name).read_bytes()
    except OSError as error:
        raise InputError(Problem(where, f'"{name}" cannot be read beside the file: {error.strerror}')) from None


def _defined(name: str, content: bytes, where: str) -> Classes:
    """Elements that a module defines; one content is run once per process, so that its classes stay the same."""
    full = f"jaxmbs_modules.{name.removesuffix('.py')}_{hashlib.sha256(content).hexdigest()[:16]}"
    if full not in sys.modules:
        module = ModuleType(full)
        sys.modules[full] = module  # dataclasses look their module up there
        try:
            exec(compile(content, name, "exec"), module.__dict__)
        except Exception as error:
            del sys.modules[full]
            raise InputError(Problem(where, f'"{name}" fails: {type(error).__name__}: {error}')) from error
    return tuple(c for c in elements_in(sys.modules[full]) if c.__module__ == full)
