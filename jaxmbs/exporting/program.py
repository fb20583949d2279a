"""A function as one kernel, with named arguments and results."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from jaxmbs.batching.execution import Setting
from jaxmbs.batching.machine import MACHINE, lacking
from jaxmbs.batching.machine.code import Code
from jaxmbs.batching.machine.functions import SYMBOLS
from jaxmbs.batching.machine.segments import execute
from jaxmbs.batching.mapped_program import MappedProgram
from jaxmbs.batching.row_programs.instance import tracing
from jaxmbs.batching.row_programs.lowering import counts_of
from jaxmbs.batching.targets import Target
from jaxmbs.errors import ModelError

RESERVED = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const consteval
    constexpr constinit const_cast continue decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or
    or_eq private protected public register reinterpret_cast requires restrict return rows short signed sizeof static
    static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename union
    unsigned using virtual void volatile wchar_t while xor xor_eq linux unix main memcpy memset malloc free madvise
    isfinite isnan signbit NAN INFINITY M_PI
"""  # in C and C++
MATHEMATICAL = """
    sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log1p log10 sqrt cbrt pow floor
    ceil round erf erfc fmod fma fabs fmin fmax
"""
_FUNCTIONS = {*re.findall(r"\w+", MATHEMATICAL), *SYMBOLS}
WORDS = {*re.findall(r"\w+", RESERVED), *_FUNCTIONS, *(f"{name}f" for name in _FUNCTIONS)}  # that cannot be names
C_TYPES = {
    "float64": "double", "float32": "float", "int64": "int64_t", "int32": "int32_t", "int16": "int16_t", "int8": "int8_t",
    "uint64": "uint64_t", "uint32": "uint32_t", "uint16": "uint16_t", "uint8": "uint8_t", "bool": "uint8_t",
}  # fmt: skip


@dataclass(frozen=True)
class Array:
    """An argument or a result: name, in words of C; shape and dtype of one instance."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=int))


@dataclass(frozen=True)
class Program:
    """A function as one kernel.

    name: of its function in C; code: the kernel, None if all results are arguments or constants; inputs: for each array
    that the kernel reads, the index of an argument, or a constant; origins: for each result, ("kernel", k) if it is the
    k-th that the kernel writes, ("argument", k) if it is an argument, ("constant", x) if it is the same for all rows.
    """

    name: str
    arguments: tuple[Array, ...]
    results: tuple[Array, ...]
    code: Code | None
    inputs: tuple[int | np.ndarray, ...]
    origins: tuple[tuple[str, Any], ...]


def program(fn: Callable[..., Any], args: Sequence[Any], name: str, where: str, on: Target = MACHINE) -> Program:
    """fn(*args) of one instance as a program called `name`. Raises ModelError, beginning with `where`, if it cannot be one
    kernel."""
    if why := lacking():
        raise ModelError(f"{where}: {why}")
    leaves, tree = jax.tree_util.tree_flatten(tuple(args))
    for x in leaves:
        if not hasattr(x, "dtype") and not isinstance(x, (bool, int, float, complex)):
            raise ModelError(f"{where}: args must be arrays or pytrees of them; there is {x!r}")
    shapes = [jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x)) for x in leaves]
    try:
        inspect.signature(fn).bind(*args)
    except ValueError:  # a function without a signature
        pass
    except TypeError as error:
        raise ModelError(f"{where}: args do not fit the function: {error}") from None
    with tracing():
        closed, form = jax.make_jaxpr(lambda *x: fn(*tree.unflatten(x)), return_shape=True)(*shapes)
    counting = counts_of(closed.jaxpr)
    for x in (*closed.in_avals, *closed.out_avals):
        if str(x.dtype) not in C_TYPES:
            raise ModelError(f"{where}: there are numbers of the kind {x.dtype}, which C does not have; convert them")
    arguments = _named(
        [_path(p, _parameters(fn)) for p, _ in jax.tree_util.tree_flatten_with_path(tuple(args))[0]], shapes
    )
    if counting:
        raise ModelError(
            f"{where}: {arguments[min(counting)].name!r} determines how often a loop runs; make it a Python number in the "
            "function, one program for each value"
        )
    batch = [jax.ShapeDtypeStruct((2, *x.shape), x.dtype) for x in shapes]
    made = MappedProgram(core.jaxpr_as_fun(closed), batch, [True] * len(batch), on)
    outside = made.obstacle or "; ".join(made.excluded(on, 2))
    if outside:
        raise ModelError(
            f'{where}: the function is not one program of rows: {outside}; kind="jax" takes more functions'
        )
    code, inputs, origins = _captured(made, batch, on, where)
    paths = jax.tree_util.tree_flatten_with_path(form)[0]
    taken = {x.name for x in arguments}
    results = _named([_path(p, None) for p, _ in paths], [x for _, x in paths], taken)
    return Program(name, tuple(arguments), tuple(results), code, inputs, origins)


def _captured(made: MappedProgram, batch: Sequence[Any], on: Target, where: str) -> tuple[Any, Any, Any]:
    """(code, inputs, origins) of a program, from a run in which the kernel only writes down how it is called."""
    calls: list[tuple[Code, Any, list[Any]]] = []

    def call(code: Code, read: Any, repeats: Any, rows: int, results: Sequence[Any]) -> list[Any]:
        found = [jnp.zeros(x.shape, x.dtype) for x in results]
        calls.append((code, read, found))
        return found

    given = [jnp.zeros(x.shape, x.dtype) for x in batch]
    out = execute(made.program, dict(zip(made.sources, given, strict=True)), Setting(2, replace(on, call=call)))
    if len(calls) > 1:
        raise ModelError(f'{where}: the function needs {len(calls)} kernels; kind="jax" takes more functions')
    code, read, found = calls[0] if calls else (None, (), [])
    # what is not an argument is a constant, because every argument has its own values in each row
    inputs = [
        made.sources.index(source) if source in made.sources else np.asarray(x)
        for source, x in zip(code.inputs if code else (), read, strict=True)
    ]
    origins = []
    for x in out:
        at = [("kernel", k) for k, y in enumerate(found) if x is y] + [
            ("argument", k) for k, y in enumerate(given) if x is y
        ]
        origins.append(at[0] if at else ("constant", np.asarray(x)[0]))
    return code, tuple(inputs), tuple(origins)


def _parameters(fn: Callable[..., Any]) -> list[str] | None:
    try:
        return list(inspect.signature(fn).parameters)
    except (TypeError, ValueError):
        return None


def _path(path: Any, first: list[str] | None) -> str:
    """The name of a leaf, from where it is in the arguments (`first`: their names) or in the results."""
    parts = []
    for k, key in enumerate(path):
        own = next(str(getattr(key, x)) for x in ("name", "key", "idx") if hasattr(key, x))
        parts.append(first[int(own)] if k == 0 and first and own.isdigit() and int(own) < len(first) else own)
    return "_".join(parts)


def _named(wanted: Sequence[str], shapes: Sequence[Any], taken: set[str] | None = None) -> list[Array]:
    """Arrays with names that C accepts, all different."""
    out, used = [], set(taken or ())
    for own, x in zip(wanted, shapes, strict=True):
        clean = identifier(own, "argument" if taken is None else "result")
        clean = f"{clean}_out" if clean in (taken or ()) else clean
        name, k = clean, 1
        while name in used:
            k, name = k + 1, f"{clean}_{k + 1}"
        used.add(name)
        out.append(Array(name, tuple(x.shape), np.dtype(x.dtype)))
    return out


def identifier(text: str, kind: str = "program") -> str:
    """The text as a name in C; kind: what it is called if it has no letters. Names of the generated text begin with _."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
    name = f"{kind}_{name}".rstrip("_") if not name or name[0].isdigit() else name
    return f"{name}_" if name in WORDS or re.fullmatch(r"u?int\d+_t", name) else name
