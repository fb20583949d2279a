"""What the forward pass of a long loop stores for reverse mode, in place of computing the loop twice.

Only results of loops are stored, among them what they have stacked. Reverse mode computes everything else again.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
from jax.extend import core
from jax.interpreters import partial_eval as pe

from jaxmbs.batching.row_programs.instance import name_of, once, pruned, replaced, shape_of, traced
from jaxmbs.batching.separable import ClosedJaxpr, equations, jaxprs_of

ROOM = 1 << 28  # bytes of all rows: with more, memory counts for more than the time of the second computation
# Fewest iterations of the longest loop. Shorter loops are computed again: they are often the body of another loop of JAX,
# which would store their results for each of its iterations.
FEWEST = 64
MOST_ARRAYS = 32  # with more, the body of the loop has no checkpoint, and storing takes longer than computing again


class Stored(NamedTuple):
    """What a forward pass stores. forward: the closed jaxpr of operands -> results and stored arrays; avals: of these arrays
    of one row; rest: the closed jaxpr of operands and stored arrays -> leaves of what `jax.linearize` returns; tree: that
    of these leaves."""

    forward: Any
    avals: tuple[Any, ...]
    rest: Any
    tree: Any


def stored(f: Any, moving: tuple[bool, ...], rows: int | None) -> Stored | None:
    """What the forward pass of f stores if it is differentiated along the moving operands; None if it is nothing."""
    if rows is None or not any(_is_long(e) for e in equations(f.jaxpr)):
        return None
    found = _stored(f, moving)
    size = sum(math.prod(a.shape) * a.dtype.itemsize for a in found.avals)
    return found if 0 < len(found.avals) <= MOST_ARRAYS and rows * size <= ROOM else None


def _is_long(e: Any) -> bool:
    return e.primitive.name == "scan" and e.params["length"] >= FEWEST


def _stored(f: Any, moving: tuple[bool, ...]) -> Stored:
    return once(f, ("stored", moving), lambda: _made(f, [k for k, moves in enumerate(moving) if moves]))


def _made(f: Any, along: list[int]) -> Stored:
    trees = []

    def run(*x: Any) -> list[Any]:
        y, slopes = jax.linearize(lambda *z: core.jaxpr_as_fun(f)(*replaced(x, along, z)), *(x[k] for k in along))
        leaves, tree = jax.tree_util.tree_flatten(slopes)
        trees.append(tree)
        return [*y, *leaves]

    closed, n = traced(run, f.in_avals, name_of(f)), len(f.out_avals)
    jaxpr, leaves = closed.jaxpr, closed.jaxpr.outvars[n:]
    looped = [e for e in jaxpr.eqns if e.primitive.name == "scan" or any(map(_has_loop, jaxprs_of(e)))]
    unnamed = jaxpr.debug_info._replace(arg_names=None, result_paths=None)
    others = [e for e in jaxpr.eqns if e not in looped]
    made = [v for e in looped for v in e.outvars]
    outside = jaxpr.replace(invars=[*jaxpr.invars, *made], outvars=leaves, eqns=others, debug_info=unnamed)
    rest, needed = pe.dce_jaxpr(outside, [True] * len(leaves), [True] * len(jaxpr.invars) + [False] * len(made))
    kept = [v for v, on in zip(made, needed[len(jaxpr.invars) :], strict=True) if on]
    whole = ClosedJaxpr(jaxpr.replace(outvars=[*jaxpr.outvars[:n], *kept], debug_info=unnamed), closed.consts)
    forward, _ = pruned(whole, (True,) * (n + len(kept)), operands=True)
    return Stored(forward, tuple(v.aval for v in kept), ClosedJaxpr(rest, closed.consts), trees[-1])


def _has_loop(jaxpr: Any) -> bool:
    return any(e.primitive.name == "scan" for e in equations(jaxpr))


def backward_from_stored(f: Any, moving: tuple[bool, ...], wanted: tuple[int, ...], results: tuple[int, ...]) -> Any:
    """The closed jaxpr of (operands, stored arrays, cotangents of some results) -> cotangents of the wanted operands, which
    are among the moving ones."""
    kept = _stored(f, moving)
    n, along = len(f.in_avals) + len(kept.avals), [k for k, moves in enumerate(moving) if moves]
    tangents = [f.in_avals[k].to_tangent_aval() for k in along]

    def slopes(*xs: Any) -> list[Any]:
        along_tangents = kept.tree.unflatten(core.jaxpr_as_fun(kept.rest)(*xs[:n]))
        out = along_tangents(*xs[n:])
        return [out[k] for k in results]

    def run(*xs: Any) -> list[Any]:
        linear = core.jaxpr_as_fun(traced(slopes, [*f.in_avals, *kept.avals, *tangents], name_of(f)))
        found = jax.linear_transpose(lambda *t: linear(*xs[:n], *t), *map(shape_of, tangents))(list(xs[n:]))
        return [found[along.index(k)] for k in wanted]

    def make() -> Any:
        cotangents = [f.out_avals[k].to_tangent_aval() for k in results]
        return traced(run, [*f.in_avals, *kept.avals, *cotangents], f"{name_of(f)}.cotangents")

    return once(f, ("backward from stored", moving, wanted, results), make)
