"""`rows`: a function of one instance whose batches are machine code wherever it stands in a program of JAX."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
from jax.extend import core

from jaxmbs.batching.mapped_program import chosen_target
from jaxmbs.batching.row_programs import derivatives  # noqa: F401  (registers the rules)
from jaxmbs.batching.row_programs.equation import axes_of, bind
from jaxmbs.batching.row_programs.instance import VALUES, hoisted, inside, name_of, name_of_function, shape_of, tracing
from jaxmbs.batching.row_programs.lowering import indivisible, obstacle
from jaxmbs.batching.row_programs.marks import marked
from jaxmbs.batching.separable import equations


def rows(fn: Callable[..., Any]) -> Callable[..., Any]:
    """fn of one instance, for JAX programs: each batch of it runs as one call of machine code for all rows.

    Unlike `jit(fn, in_axes=...)`, which has to be outermost, it may stand anywhere: under `jax.jit`, `vmap` (also
    nested), `grad` and the other derivatives, `checkpoint`, `scan`, `while_loop`, `cond`, `shard_map`, and with inputs
    that are on several devices. fn takes and returns any pytrees of arrays; keyword arguments are arrays, too. Reverse
    mode stores the inputs of an instance and, in a batch, what long loops pass on if that takes at most 256 MiB; it
    computes the rest again. Within another function of `rows`, fn becomes a part of it. What cannot be machine code (a
    callback, a factorization by LAPACK, another platform) is left to JAX as it is, and the functions of `rows` in it are
    row programs of their own.

    >>> double = mbs.rows(lambda x: 2 * x)
    >>> print(jax.jit(jax.vmap(double))(jnp.arange(3.0)))
    [0. 2. 4.]
    """

    @functools.partial(jax.jit, inline=True)  # for its caches, its fast path in eager calls, and pytrees
    def bound(args: Any, kwargs: Any) -> Any:
        flat, tree = jax.tree_util.tree_flatten((args, kwargs))

        def one(*x: Any) -> Any:
            inner = tree.unflatten(x)
            return fn(*inner[0], **inner[1])

        one.__name__ = name_of_function(fn)
        with tracing():
            closed, shape = jax.make_jaxpr(one, return_shape=True)(*map(shape_of, map(jax.typeof, flat)))
            closed, before = hoisted(closed)
        given = [*before, *flat]
        why = obstacle(closed)
        if why and chosen_target()[0] and has_parts(closed):
            inner = tree.unflatten(marked(flat, name_of(closed), why))
            return fn(*inner[0], **inner[1])
        # the axes of a `shard_map` that values vary along are types, which an equation keeps and its jaxpr does not have
        if why and not (any(map(axes_of, given)) and not indivisible(closed)):
            out = core.jaxpr_as_fun(closed)(*marked(given, name_of(closed), why))
        else:
            out = bind(*given, jaxpr=closed, mapped=(False,) * len(given), rows=None, mode=VALUES)
        return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(shape), out)

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return as_part(fn, *args, **kwargs) if is_part_of_a_row() else bound(args, kwargs)

    return wrapper


_PART = "part of a row program"  # a scope of names: its equations have it, and nothing else changes


def as_part(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The results of a function of `rows` inside another one."""
    with jax.named_scope(_PART):
        return fn(*args, **kwargs)


def has_parts(closed: Any) -> bool:
    """Whether functions of `rows` are among those of which this is the jaxpr."""
    return any(_PART in str(e.source_info.name_stack) for e in equations(closed.jaxpr))


def is_part_of_a_row() -> bool:
    """Whether a function of `rows` is called as it is: inside another such function, or because jit is disabled."""
    return inside.value or jax.config.jax_disable_jit  # pyright: ignore[reportAttributeAccessIssue]
