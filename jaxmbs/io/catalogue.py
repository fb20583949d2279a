"""Everything that a file may name: classes by `type` (of the library, of installed packages, and of the file's own
modules), and functions (control laws of the library as "laws.law", those of installed packages as "entry" or
"entry.function", those of the file's own modules as "module.function")."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from jaxmbs.errors import ModelWarning
from jaxmbs.io import names as names_of_files
from jaxmbs.io.errors import InputError, Problem, dotted
from jaxmbs.model import compounds, constraints, events, forces, joints, solids, walls
from jaxmbs.model.control import laws, sensors
from jaxmbs.model.fields import Element, type_name

GROUP = "jaxmbs.elements"  # entry points of installed packages: each a class, a function or a module
RUN = "jaxmbs_modules."  # prefix of the names of modules that files have run
Classes = tuple[type[Element], ...]
Functions = Mapping[str, Callable[..., Any]]
# modules that were run in this process, by full name, each with the name and content of its file
_RUN: dict[str, tuple[ModuleType, str, bytes]] = {}


@dataclass(frozen=True)
class Catalogue:
    """What a file may name: classes and functions; modules: content of the file's own modules by name."""

    classes: Classes
    modules: Mapping[str, bytes]
    functions: Functions = field(default_factory=dict)


@functools.cache
def builtin() -> Classes:
    """Joints, force elements, surfaces, solids, constraints, sensors, conditions and actions of the library."""
    of_solids = [c for module in (solids, walls, compounds) for c in elements_in(module)]
    rest = [c for module in (joints, forces, constraints, sensors, events) for c in elements_in(module)]
    return tuple(dict.fromkeys([*rest, *(c for c in of_solids if issubclass(c, solids.Solid))]))


@functools.cache
def laws_of_library() -> Functions:
    """The control laws of the library."""
    return functions_in(laws, "laws")


@functools.cache
def installed() -> tuple[Classes, Functions]:
    """Elements and functions that installed packages provide as entry points of the group "jaxmbs.elements"."""
    classes: list[Any] = []
    functions: dict[str, Any] = {}
    for entry in importlib.metadata.entry_points(group=GROUP):
        try:
            thing = entry.load()
            if isinstance(thing, ModuleType):
                classes += elements_in(thing)
                found = functions_in(thing, entry.name)
            elif _is_element(thing):
                classes.append(thing)
                found = {}
            elif callable(thing) and not isinstance(thing, type):
                found = {entry.name: thing}
            else:
                raise TypeError(f"{thing!r} is neither a module, nor a class of jaxmbs.elements, nor a function")
            taken = [n for n in found if functions.get(n, found[n]) is not found[n]]
            if taken:
                raise TypeError(f"functions of these names already exist in another package: {', '.join(taken)}")
            functions |= found
        except Exception as error:  # a broken package must not break files that do not use it
            message = f"elements of the package entry point {entry.name!r} ({entry.value}) are left out: {error}"
            warnings.warn(message, ModelWarning, stacklevel=2)
    return tuple(classes), functions


def elements_in(module: ModuleType) -> Classes:
    """Classes with declared fields that a module defines or exports; names with a leading underscore are private bases."""
    named = (x for name, x in vars(module).items() if not name.startswith("_"))
    return tuple(x for x in named if _is_element(x) and x is not Element)


def functions_in(module: ModuleType, name: str) -> Functions:
    """Functions that a module defines, "name.function" in a file; those with a leading underscore are private."""
    public = ((key, x) for key, x in vars(module).items() if not key.startswith("_") and not isinstance(x, type))
    own = ((key, x) for key, x in public if isinstance(x, functools.partial) or _home(x) == module.__name__)
    return {f"{name}.{key}": x for key, x in own if callable(x)}


def _home(x: Any) -> Any:
    return getattr(x, "__module__", None)


def _is_element(x: Any) -> bool:
    """Whether x is a class that files may name: an element, or a table with the attribute `catalogued`."""
    return isinstance(x, type) and (issubclass(x, Element) or hasattr(x, "catalogued"))


def catalogue(
    data: Mapping[str, Any], path: Path | None, trust: bool, more: Classes = (), folder: Path | None = None,
    given: Mapping[str, bytes] | None = None,
) -> Catalogue:  # fmt: skip
    """Everything that the tables `data` of the file at `path` may name; more: classes of the library in addition to its
    elements.

    A file's `modules` are Python files in the same folder, or in `folder`, or their content is `given` by name. Since
    they are run, the caller must trust the file (`trust`). Otherwise this function raises InputError, with the name of
    the module and the remedy.
    """
    names = data.get("modules", [])
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
        raise InputError(Problem("modules", f'needs a list of file names such as ["my_elements.py"], got {names!r}'))
    classes, functions = installed()
    known = joined((*builtin(), *more), classes, "package entry points")
    functions = {**functions, **laws_of_library()}
    contents = {}
    for i, name in enumerate(names):
        where = dotted(("modules", i))
        if names_of_files.fault(name) or not name.endswith(".py"):
            raise InputError(Problem(where, f'"{name}" is not the name of a Python file beside this one'))
        if not trust:
            raise InputError(
                Problem(
                    where,
                    f'the file needs to run the Python file "{name}"; read it, and if you trust it, pass --trust on '
                    "the command line, "
                    "or trust=True in Python",
                )
            )
        contents[name] = given[name] if given else _read(name, folder or (path.parent if path else Path()), where)
        module = _run(name, contents[name], where)
        known = joined(known, (c for c in elements_in(module) if c.__module__ == module.__name__), where)
        found = functions_in(module, _stem(name))
        if taken := [n for n in found if n in functions]:
            raise InputError(Problem(where, f'a function "{taken[0]}" exists already; rename the module'))
        functions |= found
    return Catalogue(known, contents, functions)


@dataclass(frozen=True)
class Place:
    """How a file refers to a class or a function: its name and, if a module next to the file defines it, the name and
    content of this module."""

    name: str
    module: tuple[str, bytes] | None = None


def places(modules: Iterable[str | Path | ModuleType] = ()) -> dict[int, Place]:
    """{id: `Place`} of all classes and functions that a file may name, including those of modules that files have run
    and those of `modules` (Python files, or modules imported from them).

    Raises ModelError for a module that fails when it is run alone.
    """
    classes, functions = installed()
    out = {id(c): Place(type_name(c)) for c in (*builtin(), *classes)}
    out |= {id(f): Place(name) for name, f in {**functions, **laws_of_library()}.items()}
    for run, name, content in _RUN.values():
        out |= _places_in(run, (name, content))
    for given in modules:
        path, module = source(given)
        _run(*module, f"module {path.name}")  # as it will be run when the file is read
        imported = [m for m in list(sys.modules.values()) if _file(m) == path]
        for m in imported:
            out |= _places_in(m, module)
    return out


def source(module: str | Path | ModuleType) -> tuple[Path, tuple[str, bytes]]:
    """The file of a module: its path, its name and its content."""
    path = Path((module.__file__ or "") if isinstance(module, ModuleType) else module).resolve()
    return path, (path.name, _read(path.name, path.parent, f"module {path.name}"))


def _places_in(module: ModuleType, source: tuple[str, bytes]) -> dict[int, Place]:
    own = (c for c in elements_in(module) if c.__module__ == module.__name__)
    found = {id(c): Place(type_name(c), source) for c in own}
    return found | {id(f): Place(name, source) for name, f in functions_in(module, _stem(source[0])).items()}


def _file(module: Any) -> Path | None:
    name = getattr(module, "__file__", None)
    return Path(name).resolve() if isinstance(name, str) else None


def _stem(file: str) -> str:
    return file.removesuffix(".py")


def joined(known: Classes, new: Iterable[type[Element]], where: str) -> Classes:
    """The known and the new classes. Raises InputError, at `where`, if two would have the same name in a file."""
    names = {(_family(c), type_name(c)): c for c in known}
    for c in new:
        if names.setdefault((_family(c), type_name(c)), c) is not c:
            raise InputError(
                Problem(
                    where,
                    f'{c.__name__} would be called "{type_name(c)}" in a file, but this type exists already; rename '
                    "the class",
                )
            )
    return tuple(names.values())


def _family(c: type[Element]) -> type[Element]:
    """The family of a class: joints, force elements, outputs ... Names are unique within a family."""
    return next(b for b in c.__mro__ if Element in b.__bases__ or "catalogued" in vars(b))


def _read(name: str, folder: Path, where: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        raise InputError(
            Problem(where, f'"{name}" cannot be read from the folder of the file: {error.strerror}')
        ) from None


def _run(name: str, content: bytes, where: str) -> ModuleType:
    """The module of a file; the same content runs only once per process, so that its classes and functions stay the
    same."""
    full = f"{RUN}{_stem(name)}_{hashlib.sha256(content).hexdigest()[:16]}"
    if full not in _RUN:
        module = ModuleType(full)
        sys.modules[full] = module  # dataclasses look their module up there
        try:
            exec(compile(content, name, "exec"), module.__dict__)
        except Exception as error:
            del sys.modules[full]
            raise InputError(Problem(where, f'"{name}" fails: {type(error).__name__}: {error}')) from error
        _RUN[full] = (module, name, content)
    return _RUN[full][0]
