"""The parts of a recorded program: arrays, their entries, and operations on scalars."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jax import lax
from jax.core import Tracer

# operations whose result at an entry depends only on the operands at that entry
# fmt: off
ELEMENTWISE = frozenset([
    "abs", "acos", "acosh", "add", "add_any", "and", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "clamp",
    "convert_element_type", "copy", "cos", "cosh", "div", "eq", "erf", "erfc", "exp", "exp2", "expm1", "floor", "ge", "gt",
    "integer_pow", "is_finite", "le", "log", "log1p", "logistic", "lookup", "lt", "max", "min", "mul", "ne", "neg", "not",
    "or", "pow", "rem", "round", "rsqrt", "select_n",
    "shift_left", "shift_right_logical", "sign", "sin", "sinh", "sqrt", "square", "stop_gradient", "sub", "tan",
    "tanh", "xor", *(["one_minus_square"] if hasattr(lax, "one_minus_square") else []),  # since JAX 0.12
])
# fmt: on


@dataclass(eq=False, slots=True)
class Source:
    """An array that exists when the program runs; rows: whether it has an additional first axis for the rows."""

    shape: tuple[int, ...]
    dtype: Any
    rows: bool
    value: Any = None  # known while recording: an array that all rows share
    parts: Any = None  # the entries, once the array has been taken apart


@dataclass(eq=False, slots=True)
class Entry:
    """The k-th number of an array."""

    source: Source
    k: int


@dataclass(eq=False, slots=True)
class Operation:
    """A primitive applied to scalars: numbers, entries or other operations.

    part: number of the part of the recorded function; a part ends where a function is called or returns.
    """

    primitive: Any
    operands: tuple[Any, ...]
    params: dict[str, Any] = field(default_factory=dict)
    dtype: Any = None
    part: int = 0


def entries(x: Any) -> np.ndarray:
    """The entries of a value as an object array."""
    if not isinstance(x, Source):
        return x
    if x.parts is None:
        parts = np.empty(math.prod(x.shape), object)
        parts[:] = [Entry(x, k) for k in range(parts.size)]
        x.parts = parts.reshape(x.shape)
    return x.parts


def numbers(x: Any) -> np.ndarray:
    """A constant as an object array of NumPy scalars."""
    x = np.asarray(x)
    out = np.empty(x.size, object)
    out[:] = list(x.reshape(-1))
    return out.reshape(x.shape)


def single(e: Any) -> np.ndarray:
    """An object array without axes, of one number, entry or operation."""
    out = np.empty((), object)
    out[()] = e
    return out


def array_of(x: np.ndarray, dtype: Any) -> np.ndarray:
    """The inverse of `numbers`."""
    return np.array(x.tolist(), dtype).reshape(x.shape)


def is_known(x: Any) -> bool:
    """Whether a value is a constant of the program."""
    return not isinstance(x, Source) and all(isinstance(e, np.generic) for e in x.reshape(-1))


def is_shared(e: Any) -> bool:
    """Whether a number is the same for all rows, though not known while recording."""
    return isinstance(e, Entry) and not e.source.rows


def is_traced(x: Any) -> bool:
    """Whether a value is a tracer, known only to a surrounding JAX transformation."""
    return isinstance(x, Tracer)


def dtype_of(x: Any) -> Any:
    """The dtype of a value or a number."""
    if isinstance(x, Source):
        return x.dtype
    if isinstance(x, np.ndarray):
        return dtype_of(x.reshape(-1)[0])
    return x.source.dtype if isinstance(x, Entry) else x.dtype
