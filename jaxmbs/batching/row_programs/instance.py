"""What one instance of an equation `rows` computes: jaxprs that are derived from the function that was traced.

An equation holds the jaxpr of the function itself and a `Mode`: whether it computes the function, its results together
with their tangents, or the tangents alone. The jaxpr that runs is derived from both here, once for each pair. Every
rule of differentiation thus has the original function, and can compute what it needs from the operands again.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import config  # there is no public way to leave the axes of a `shard_map`
from jax.extend import core
from jax.interpreters import partial_eval as pe

from jaxmbs.batching.row_programs.marks import purpose
from jaxmbs.batching.scalars import is_traced
from jaxmbs.batching.separable import LARGEST, ClosedJaxpr, equations

inside = jax.make_user_context(
    False
)  # whether an instance is being traced; it is part of the key of every cache of jit
_derived: weakref.WeakKeyDictionary[Any, dict[Hashable, Any]] = weakref.WeakKeyDictionary()
_bare: weakref.WeakSet[Any] = weakref.WeakSet()  # closed jaxprs of which all operands and equations are needed


class Mode(NamedTuple):
    """What an equation computes. values: the results of the function; slopes: the tangents of those that have any.

    moving: for each operand of the function, whether the equation has a tangent of it, after all those operands.
    stored: the avals, for one row, of further operands after these, from which only the transpose computes (`stored`).
    """

    values: bool
    slopes: bool
    moving: tuple[bool, ...] = ()
    stored: tuple[Any, ...] = ()


VALUES = Mode(True, False)


@contextlib.contextmanager
def tracing() -> Iterator[None]:
    """For tracing an instance: without the axes of a mesh, so that its jaxpr is the same inside a `shard_map`."""
    with inside(True), jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), ())), config._check_vma(False):
        yield


def is_real(aval: Any) -> bool:
    """Whether values of this kind have tangents: floating-point and complex numbers do."""
    return jnp.issubdtype(aval.dtype, jnp.inexact)


def shape_of(aval: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)


def once(closed: Any, question: Hashable, make: Callable[[], Any]) -> Any:
    """The result of `make` for a closed jaxpr, computed once for each question while the jaxpr exists."""
    known = _derived.setdefault(closed, {})
    if question not in known:
        known[question] = make()
    return known[question]


def name_of_function(fn: Any) -> str:
    while isinstance(fn, functools.partial):
        fn = fn.func
    return getattr(fn, "__name__", type(fn).__name__).lstrip("_") or "_"


def name_of(closed: Any) -> str:
    """The name of the function of which this is the jaxpr."""
    return closed.jaxpr.debug_info.func_src_info.split(" ")[0]


def traced(run: Callable[..., Any], avals: Sequence[Any], name: str) -> Any:
    """The closed jaxpr of a function of one instance, under a name, without what its results do not need."""
    run.__name__ = name
    with tracing():
        closed = jax.make_jaxpr(run)(*map(shape_of, avals))
        return pruned(closed, (True,) * len(closed.out_avals), operands=True)[0]


def pruned(closed: Any, used: tuple[bool, ...], operands: bool = False) -> tuple[Any, tuple[bool, ...]]:
    """(the jaxpr of the used results, a mask of the operands that it keeps); operands: whether it keeps all."""

    def make() -> tuple[Any, tuple[bool, ...]]:
        jaxpr, kept = pe.dce_jaxpr(closed.jaxpr, list(used), instantiate=operands)
        out = ClosedJaxpr(jaxpr, closed.consts)
        if not operands:
            _bare.add(out)
        return out, tuple(kept)

    if closed in _bare and all(used):  # the same object, for which `once` knows the rest
        return closed, (True,) * len(closed.in_avals)
    return once(closed, ("pruned", used, operands), make)


def hoisted(closed: Any) -> tuple[Any, list[Any]]:
    """(the jaxpr with large constants and those of an outer trace as operands before its own, these constants).

    Small constants remain in the jaxpr, as numbers that can be folded.
    """
    out = [k for k, c in enumerate(closed.consts) if is_traced(c) or np.size(c) > LARGEST]
    if not out:
        return closed, []
    given = [closed.consts[k] for k in out]

    def run(*xs: Any) -> Any:
        whole = ClosedJaxpr(closed.jaxpr, replaced(closed.consts, out, xs))
        return core.jaxpr_as_fun(whole)(*xs[len(out) :])

    run.__name__ = name_of(closed)
    return jax.make_jaxpr(run)(*map(shape_of, map(jax.typeof, given)), *map(shape_of, closed.in_avals)), given


def replaced(x: Sequence[Any], places: Sequence[int], by: Sequence[Any]) -> list[Any]:
    """x with other values at some places."""
    out = list(x)
    for k, y in zip(places, by, strict=False):
        out[k] = y
    return out


def program(f: Any, mode: Mode) -> Any:
    """The closed jaxpr of one instance of an equation: of f, or of f together with its derivative along tangents."""
    return once(f, mode, lambda: _with_tangents(f, mode)) if mode.slopes else f


def _with_tangents(f: Any, mode: Mode) -> Any:
    n, moving = len(f.in_avals), [k for k, moves in enumerate(mode.moving) if moves]

    def run(*xs: Any) -> list[Any]:
        x, tangents = xs[:n], xs[n : n + len(moving)]
        y, dy = jax.jvp(
            lambda *z: core.jaxpr_as_fun(f)(*replaced(x, moving, z)), [x[k] for k in moving], list(tangents)
        )
        slopes = [t for t, a in zip(dy, f.out_avals, strict=True) if is_real(a)]
        return [*(y if mode.values else ()), *slopes]

    name = f"{name_of(f)}{'.values' * mode.values}.tangents"
    tangents = [f.in_avals[k].to_tangent_aval() for k in moving]
    return traced(run, [*f.in_avals, *tangents, *mode.stored], name)


def forward(f: Any, moving: tuple[bool, ...]) -> Any:
    """The closed jaxpr that computes the values of f where f is differentiated along the moving operands.

    Functions with derivative rules of their own are replaced by what their rules compute as values, because a second
    derivative in JAX is that of these values, not of the functions. Other functions remain as they are.
    """

    def make() -> Any:
        if not any(e.primitive.name.startswith(("custom_jvp", "custom_vjp")) for e in equations(f.jaxpr)):
            return f
        along = [k for k, moves in enumerate(moving) if moves]

        def run(*x: Any) -> Any:
            return jax.vjp(lambda *z: core.jaxpr_as_fun(f)(*replaced(x, along, z)), *(x[k] for k in along))[0]

        return traced(run, f.in_avals, name_of(f))

    # for counting bytes f itself will do: reverse mode keeps the operands, which are the same
    return f if purpose.value == "bytes" else once(f, ("forward", moving), make)


def backward(f: Any, moving: tuple[int, ...], results: tuple[int, ...]) -> Any:
    """The closed jaxpr of (operands, cotangents of some results) -> cotangents of the moving operands."""
    n = len(f.in_avals)

    def run(*xs: Any) -> Any:
        x = xs[:n]

        def of(*z: Any) -> list[Any]:
            y = core.jaxpr_as_fun(f)(*replaced(x, moving, z))
            return [y[k] for k in results]

        return jax.vjp(of, *(x[k] for k in moving))[1](list(xs[n:]))

    def make() -> Any:
        tangents = [f.out_avals[k].to_tangent_aval() for k in results]
        return traced(run, [*f.in_avals, *tangents], f"{name_of(f)}.cotangents")

    return once(f, ("backward", moving, results), make)


def results_of(f: Any, mode: Mode) -> list[Any]:
    """The avals of what one instance of an equation returns."""
    values = list(f.out_avals) if mode.values else []
    return values + [a for a in f.out_avals if is_real(a)] if mode.slopes else values
