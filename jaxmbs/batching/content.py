"""Digests of functions and classes by their content: their code and everything that it reads.

Two digests are equal if code, constants, defaults, closures and the globals that are read are equal, with everything
that these refer to. Whatever belongs to Python or to a package whose version is known is represented by its name. If a
function may depend on anything else - files and clocks that it reads when it is called, objects that cannot be
serialised - an error that names it is raised; it is never silently left out of the digest.
"""

from __future__ import annotations

import builtins
import dis
import functools
import hashlib
import re
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from jaxmbs.batching.disk_cache import MAKERS

# modules whose functions give the same result whenever they are called
_PURE = frozenset(
    {
        "abc",
        "bisect",
        "builtins",
        "cmath",
        "collections",
        "contextlib",
        "copy",
        "copyreg",
        "dataclasses",
        "enum",
    }
    | {
        "fractions",
        "functools",
        "heapq",
        "itertools",
        "math",
        "numbers",
        "operator",
        "re",
        "reprlib",
        "statistics",
        "string",
    }
    | {"textwrap", "types", "typing", "typing_extensions", "warnings", "__future__"}
)
_KNOWN = _PURE | {"jaxmbs", "_operator", "_functools", "_collections", "_collections_abc"} | {*MAKERS}
_READING = re.compile(
    r"(^|\.)(load\w*|genfromtxt|from_?file|fromregex|memmap|DataSource|open\w*|read\w*|io|from_robot|from_urdf|from_mjcf|"
    r"getenv|environ|deserialise\w*|__dict__|rvs|samples)($|\.)|^(numpy|scipy)\..*random|^numpy\.random|callback"
)  # names in known packages that read something when they are called
_BUILTINS_THAT_READ = frozenset(
    {"open", "input", "eval", "exec", "compile", "__import__", "globals", "locals", "vars", "breakpoint"}
)
_OF_NO_EFFECT = frozenset(
    {"__doc__", "__module__", "__dict__", "__weakref__", "__annotations__", "__annotate__", "__annotate_func__"}
    | {"__annotations_cache__", "__static_attributes__", "__firstlineno__", "_abc_impl", "__qualname__"}
    | {"__slotnames__"}  # left there by `copy` and `pickle`
)
_WRITING = ("__reduce__", "__reduce_ex__", "__getstate__")
_STANDARD = {object.__reduce__, object.__reduce_ex__, getattr(object, "__getstate__", None)}
_MOST = 100_000  # objects
MADE_OF = "_made_of"  # a method of the library's classes; returns the part of an object on which programs can depend
_JITTED = jax.jit(abs)


class NotKnownError(Exception):
    """The content of something is not known; the message names it and the references that lead to it."""


def digest(things: Mapping[str, Any]) -> str:
    """The digest of `things`: functions, classes and data by name. Raises NotKnownError."""
    content = _Content()
    for name, x in sorted(things.items()):
        content.part(name, x)
    return content.sum.hexdigest()


class _Content:
    """A walk over objects: each is written once; if it is met again, its position in the order of the walk is written."""

    def __init__(self) -> None:
        self.sum = hashlib.sha256()
        # holds the objects, too, so that none of them is deleted and its id used for another one
        self.met: dict[int, tuple[int, Any]] = {}
        self.way: list[str] = []

    def write(self, *words: Any) -> None:
        for word in words:
            x = word if isinstance(word, bytes) else str(word).encode(errors="surrogatepass")
            self.sum.update(b"%d " % len(x) + x)

    def unknown(self, why: str) -> NotKnownError:
        return NotKnownError(f"{' reads '.join(self.way)}: {why}")

    def part(self, name: str, x: Any) -> None:
        self.way.append(name)
        self.write("part", name)
        try:
            self.thing(x)
        except RecursionError:
            raise self.unknown("is nested too deeply") from None
        self.way.pop()

    def several(self, kind: str, parts: Iterable[Any]) -> None:
        found = list(parts)
        self.write(kind, len(found))
        for x in found:
            self.thing(x)

    def thing(self, x: Any) -> None:
        if x is None or x is Ellipsis or x is NotImplemented or type(x) in (bool, int, str, bytes):
            self.write(type(x).__name__, x if isinstance(x, bytes) else repr(x))
        elif type(x) in (float, complex):
            self.write(type(x).__name__, np.array(x).tobytes())
        elif isinstance(x, (tuple, frozenset, types.CodeType, np.generic)):  # equal ones may be one object or not
            self.compound(x)
        elif id(x) in self.met:
            self.write("met", self.met[id(x)][0])
        else:
            self.met[id(x)] = (len(self.met), x)
            if len(self.met) > _MOST:
                raise self.unknown("refers to too many objects")
            self.compound(x)

    def compound(self, x: Any) -> None:
        kind = type(x)
        if kind in (tuple, list):
            self.several(kind.__name__, x)
        elif kind in (set, frozenset):
            self.several(kind.__name__, self.ordered(x))
        elif kind in (dict, types.MappingProxyType):
            self.several(kind.__name__, [y for pair in x.items() for y in pair])
        elif kind in (range, slice):
            self.write(kind.__name__, repr(x))
        elif isinstance(x, types.ModuleType):
            raise self.unknown(f"the module {x.__name__} is reached other than by its name")
        elif name := _name(x):
            self.known(name)
        elif (home := _home(x)) in sys.stdlib_module_names and home not in _KNOWN:
            raise self.unknown(f"an object of Python's {home}, which depends on more than the code")
        elif isinstance(x, types.CodeType):
            self.code(x)
        elif isinstance(x, types.FunctionType):
            self.function(x)
        elif isinstance(x, type):
            own = {k: y for k, y in vars(x).items() if k not in _OF_NO_EFFECT}
            self.write("class", x.__name__)
            self.several("bases", x.__bases__)
            self.thing(type(x))
            self.write(len(own))
            for k, y in own.items():
                self.part(k, y)
        else:
            self.object(x, kind)

    def object(self, x: Any, kind: type) -> None:
        if isinstance(x, np.ndarray) and kind not in (np.ndarray, np.memmap) and not kind.__module__.startswith("jax"):
            raise self.unknown(f"a {kind.__name__}, which has more content than its numbers")
        if isinstance(x, (np.ndarray, np.generic, jax.Array)):
            self.array(x)
        elif kind in (types.GetSetDescriptorType, types.MemberDescriptorType):
            self.write(kind.__name__, x.__name__)
        elif kind is types.CellType:
            self.several("cell", _cell(x))
        elif kind is types.MethodType:
            self.several("method", (x.__self__, x.__func__))
        elif kind is property:
            self.several("property", (x.fget, x.fset, x.fdel))
        elif kind in (staticmethod, classmethod):
            self.several(kind.__name__, (x.__func__,))
        elif kind is functools.partial:
            self.several("partial", (x.func, x.args, x.keywords, vars(x)))
        elif kind is functools.cached_property:
            self.several("cached_property", (x.func, x.attrname))
        elif kind is types.BuiltinFunctionType:
            if isinstance(x.__self__, (types.ModuleType, type(None))):
                raise self.unknown(f"{x.__name__} is not written in Python")
            self.write("builtin method", x.__name__)
            self.thing(x.__self__)
        elif kind is type(_JITTED):
            self.write("jitted")
            if not hasattr(x, "__wrapped__"):
                raise self.unknown("a jitted function whose original function cannot be found")
            self.thing(x.__wrapped__)
            self.thing({k: y for k, y in x.__getstate__().items() if k.startswith("static_")})
        else:
            self.reduced(x, kind)

    def reduced(self, x: Any, kind: type) -> None:
        """Writes what pickle would write, provided that this is the whole content."""
        self.write("object")
        others = [c for c in kind.__mro__ if not _is_known(c.__module__)]
        if any(vars(c)[k] not in _STANDARD for c in others for k in _WRITING if k in vars(c)):
            raise self.unknown(f"a {kind.__name__} defines itself how it is pickled")
        if hasattr(kind, MADE_OF) and _is_known(kind.__module__):
            self.thing(kind)
            self.part(MADE_OF, getattr(x, MADE_OF)())
            return
        if kind is functools._lru_cache_wrapper:
            raise self.unknown("remembers earlier results (functools.cache)")
        if kind.__module__ != "builtins":
            self.thing(kind)
        try:
            found = x.__reduce_ex__(4)
        except Exception:
            raise self.unknown(f"a {kind.__name__}, whose content is not known") from None
        if isinstance(found, str):
            self.write(found)
            return
        call, args, *more = found
        self.thing(call)
        self.thing(args)
        state, *items = [*more[:3], None, None, None][:3]
        self.thing(_without_computed(kind, state) if isinstance(state, dict) and _is_known(kind.__module__) else state)
        for entries in items:
            self.several("items", entries or ())

    def ordered(self, x: Any) -> list[Any]:
        if not all(type(y) in (str, int, float, bool, bytes, type(None)) for y in x):
            raise self.unknown("a set of anything but numbers and text has no fixed order")
        return sorted(x, key=lambda y: (type(y).__name__, repr(y)))

    def array(self, x: Any) -> None:
        if isinstance(x, Tracer):
            raise self.unknown("a number that is being traced")
        try:
            value = np.asarray(x)
        except Exception:
            raise self.unknown("an array that cannot be read") from None
        self.write(type(x).__name__, getattr(x, "weak_type", ""), value.dtype, value.shape)
        if value.dtype.hasobject:
            self.several("items", value.ravel().tolist())
        else:
            self.write(value.tobytes())

    def module(self, name: str, x: types.ModuleType) -> None:
        """A module that is reached by its name."""
        self.way.append(name)
        if not _is_known(x.__name__):
            raise self.unknown(f"the module {x.__name__}, of which neither version nor content is known")
        self.known(x.__name__)
        self.way.pop()

    def known(self, name: str) -> None:
        if name.startswith("builtins.") and name.removeprefix("builtins.") in _BUILTINS_THAT_READ:
            raise self.unknown(f"{name.removeprefix('builtins.')}() depends on more than the code")
        if _READING.search(name) and not name.startswith("jax.random"):
            raise self.unknown(f"{name} depends on more than the code")
        self.write("known", name)

    def function(self, f: types.FunctionType) -> None:
        self.write("function")
        self.thing(f.__code__)
        self.several("bound", (f.__defaults__, f.__kwdefaults__, vars(f)))
        codes = list(_codes(f.__code__))
        cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
        loose = False
        for name, cell in cells.items():
            modules = [y for y in _cell(cell) if isinstance(y, types.ModuleType)]
            loose |= bool(modules)
            for module in modules:
                self.module(name, module)
            if not modules:
                self.part(name, cell)
        if _is_known(f.__globals__.get("__name__")):  # a wrapper from a known package, to which its globals belong
            return
        for code in codes:
            for chain in _read(code):
                loose |= self.global_of(f.__globals__, chain)
        names = {name for code in codes for name in code.co_names}
        if loose:  # a module is used as a value, so that the code does not show what is read from it
            for name in sorted(names):
                if _READING.search(name) or name in ("getattr", "random"):
                    raise self.unknown(
                        f"{name}, of a module that is used under another name, depends on more than the code"
                    )

    def global_of(self, scope: Mapping[str, Any], chain: tuple[str, ...]) -> bool:
        """Writes a global or, if it is a module, the attribute read from it; returns whether that is a module, too."""
        first, *rest = chain
        if first == "import":
            if not _is_known(rest[0]):
                raise self.unknown(f"imports {rest[0]}, of which neither version nor content is known")
            self.write("import", *rest)
            return True
        if first not in scope:
            if not hasattr(builtins, first):
                self.write("absent", first)
            else:
                self.known(f"builtins.{first}")
            return False
        x, name = scope[first], first
        while isinstance(x, types.ModuleType) and rest:
            own, key = x, rest.pop(0)
            x, name = getattr(own, key, None), f"{name}.{key}"
            if _is_known(own.__name__):
                self.known(f"{own.__name__}.{key}")
                if not isinstance(x, types.ModuleType):
                    if _READING.search(".".join(rest)):
                        raise self.unknown(f"{'.'.join((name, *rest))} depends on more than the code")
                    return False
        if isinstance(x, types.ModuleType):
            self.module(name, x)
            return True
        self.part(name, x)
        return False

    def code(self, x: types.CodeType) -> None:
        self.write("code", x.co_code, x.co_flags, x.co_argcount, x.co_posonlyargcount, x.co_kwonlyargcount)
        self.write(getattr(x, "co_exceptiontable", b""))
        for names in (x.co_names, x.co_varnames, x.co_freevars, x.co_cellvars):
            self.write(len(names), *names)
        self.several("constants", x.co_consts)


def _without_computed(kind: type, state: dict[str, Any]) -> dict[str, Any]:
    """An object's state without its cached properties: whether these exist yet, and what a hash among them is, depends on
    chance."""
    return {k: x for k, x in state.items() if not isinstance(getattr(kind, k, None), functools.cached_property)}


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A function's code and that of the functions inside it."""
    yield code
    for x in code.co_consts:
        if isinstance(x, types.CodeType):
            yield from _codes(x)


def _read(code: types.CodeType) -> Iterator[tuple[str, ...]]:
    """The globals that code reads, each with the attributes read directly from it; ("import", name) for imports."""
    chain: tuple[str, ...] = ()
    for step in dis.get_instructions(code):
        if step.opname in ("EXTENDED_ARG", "CACHE", "PUSH_NULL", "NOP"):
            continue
        if chain and step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            chain = (*chain, step.argval)
            continue
        if chain:
            yield chain
        chain = ()
        if step.opname == "IMPORT_NAME":
            yield ("import", step.argval)
        elif step.opname == "LOAD_NAME" or (step.opname.startswith("LOAD") and "GLOBAL" in step.opname):
            chain = (step.argval,)
    if chain:
        yield chain


def _cell(cell: types.CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # the cell is still empty
        return ()


def _is_known(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in _KNOWN


def _home(x: Any) -> str:
    """The top-level package of a function, a class or an object's class."""
    module = getattr(x, "__module__", None)
    return (module if isinstance(module, str) else type(x).__module__).partition(".")[0]


def _name(x: Any) -> str | None:
    """The name under which a known package holds x, or None."""
    module = getattr(x, "__module__", None) or getattr(type(x), "__module__", None)
    path = getattr(x, "__qualname__", None) or getattr(x, "__name__", None)
    if not isinstance(module, str) or not _is_known(module) or not isinstance(path, str):
        return None
    found: Any = sys.modules.get(module)
    for key in path.split("."):
        found = getattr(found, key, None)
    return f"{module}.{path}" if found is x else None
