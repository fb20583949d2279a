"""User-defined functions as programs: functions that compute the same thing share compiled code.

JAX identifies a function that is a static argument by its object identity only, so that a lambda written in a call is a
new function at every call. A traced function is a list of operations, which can be compared; the arrays that it closes
over become arguments.
"""

from __future__ import annotations

import types
import warnings
import weakref
from collections.abc import Callable, Hashable
from typing import Any

import jax
import numpy as np
from jax.extend import core

from jaxmbs.batching.row_programs.instance import tracing
from jaxmbs.batching.separable import ClosedJaxpr
from jaxmbs.model import ModelWarning
from jaxmbs.model.parameters import is_traced

MANY = 6  # the user is warned if one line of source is compiled this many times for one mechanism


class Program:
    """A traced function, called with (arrays that it closes over, *arguments). Programs with equal operations are equal."""

    def __init__(self, closed: Any, treedefs: tuple[Any, Any]):
        self.jaxpr, self.treedefs = closed.jaxpr, treedefs
        self.key = (_steps(closed.jaxpr), treedefs)
        self.hash = hash(self.key)  # stored: the key may hold thousands of operations, and every call needs it

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Program) and self.hash == other.hash and self.key == other.key)

    def __hash__(self) -> int:
        return self.hash

    def __call__(self, constants: Any, *arguments: Any) -> Any:
        run = core.jaxpr_as_fun(ClosedJaxpr(self.jaxpr, constants))
        return jax.tree_util.tree_unflatten(self.treedefs[1], run(*jax.tree_util.tree_leaves(arguments)))


class Opaque:
    """A function that is compared by its identity only."""

    def __init__(self, fn: Callable[..., Any]):
        self.fn = fn

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Opaque) and self.fn is other.fn

    def __hash__(self) -> int:
        return id(self.fn)

    def __call__(self, constants: Any, *arguments: Any) -> Any:
        return self.fn(*arguments)


Known = tuple[Program | Opaque, list[Any]]
_known: weakref.WeakKeyDictionary[Any, dict[Hashable, Known]] = weakref.WeakKeyDictionary()
_made: dict[Hashable, set[int]] = {}


def program(
    fn: Callable[..., Any], where: str, examples: tuple[Any, ...], call: Callable[..., Any], given: Any
) -> Known:
    """(f, constants) with f(constants, *arguments) = call(*arguments); f is equal for functions that compute the same.

    call: fn with a check of its result; examples: arguments, or their shapes; given: the arguments of the public
    function. If one of these is traced, fn is not traced here, and f is compared by identity. Otherwise fn is traced
    once for all calls with the same shapes, as by `jax.jit`.
    """
    if any(map(is_traced, jax.tree_util.tree_leaves(given))):
        return Opaque(call), []
    shapes = jax.tree_util.tree_map(jax.typeof, examples)
    leaves, treedef = jax.tree_util.tree_flatten(shapes)
    question = (where, tuple(map(str, leaves)), treedef)
    before = _known.setdefault(fn, {}) if isinstance(fn, types.FunctionType) else {}
    if question in before:
        return before[question]
    with tracing():  # functions of the library in fn are part of it, and not row programs of their own
        closed, out = jax.make_jaxpr(call, return_shape=True)(*shapes)
    try:
        found: Known = Program(closed, (treedef, jax.tree_util.tree_structure(out))), list(closed.consts)
    except TypeError:  # an operation that cannot be compared
        found = Opaque(call), []
    if not any(map(is_traced, found[1])):
        before[question] = found
    _count(fn, where, question, found[0])
    return found


def _count(fn: Any, where: str, question: Hashable, found: Program | Opaque) -> None:
    code = getattr(fn, "__code__", None)
    if code is None:
        return
    place = (code.co_filename, code, question)
    made = _made.setdefault(place, set())
    made.add(hash(found))
    if len(made) == MANY:
        warnings.warn(
            f"{where}: the function in {code.co_filename}, line {code.co_firstlineno}, has been compiled {MANY} times, "
            "because each new copy of it differs from the earlier ones or cannot be compared with them; define the function "
            "once, and make the numbers in it that change JAX arrays (jnp.asarray(x)), which need no new compilation",
            ModelWarning,
            stacklevel=4,
        )


def _steps(jaxpr: Any) -> Hashable:
    """The operations of a program, with its variables numbered; TypeError if one of them cannot be compared."""
    numbers: dict[Any, int] = {}

    def new(variables: Any) -> Hashable:
        return tuple((numbers.setdefault(v, len(numbers)), *_type(v)) for v in variables)

    def atom(x: Any) -> Hashable:
        return ("literal", *_type(x), _value(x.val)) if isinstance(x, core.Literal) else numbers[x]

    head = new(jaxpr.constvars), new(jaxpr.invars)
    rows = []
    for e in jaxpr.eqns:
        given = tuple(map(atom, e.invars))
        rows.append((e.primitive, given, _value(e.params), new(e.outvars), e.ctx))
    return head, tuple(rows), tuple(map(atom, jaxpr.outvars))


def _type(x: Any) -> tuple[str, bool]:
    return str(x.aval), getattr(x.aval, "weak_type", False)


def _value(x: Any) -> Hashable:
    """A hashable stand-in for a parameter of an operation; equal only for exactly equal parameters."""
    if isinstance(x, ClosedJaxpr):
        return _steps(x.jaxpr), tuple(map(_value, x.consts))
    if isinstance(x, core.Jaxpr):
        return _steps(x)
    if isinstance(x, dict):
        return tuple((k, _value(x[k])) for k in sorted(x))
    if isinstance(x, (tuple, list)):
        return type(x), tuple(map(_value, x))
    if isinstance(x, (bool, int, float, complex, np.ndarray, np.generic)):
        x = np.asarray(x)
        return x.shape, x.dtype, x.tobytes()
    if is_traced(x) or isinstance(x, jax.Array):
        raise TypeError(x)
    hash(x)
    return x
