"""`explain`: what became of a function, from the equations that JAX traces and the decisions that their lowering takes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend import core

from jaxmbs.batching import batches
from jaxmbs.batching.counting import Counts, counted
from jaxmbs.batching.mapped_program import chosen_target
from jaxmbs.batching.row_programs.equation import rows_p
from jaxmbs.batching.row_programs.explanation import Explanation, RowProgram
from jaxmbs.batching.row_programs.instance import is_real, name_of, name_of_function, pruned, replaced, shape_of
from jaxmbs.batching.row_programs.lowering import choice, for_all
from jaxmbs.batching.row_programs.marks import mark_p, purpose
from jaxmbs.batching.separable import equations, jaxprs_of


def explain(fn: Callable[..., Any], *args: Any, in_axes: Any = None) -> Explanation:
    """What becomes of fn(*args) in words: what runs each row program in it, and why one is not machine code.

    fn: any function of JAX arrays, with functions of the library or of `mbs.rows` in it; it may contain `vmap`, `scan`,
    `grad` and so on, and is explained as it runs under `jax.jit`. args: its arguments, arrays or `jax.ShapeDtypeStruct`.
    in_axes: explains the outermost call of `mbs.jit(fn, in_axes)`. The function is traced but neither compiled nor run.

    >>> model = mbs.library.double_pendulum().build()
    >>> q = jnp.zeros((64, 2))
    >>> found = mbs.explain(jax.vmap(lambda q: mbs.mass_matrix(model, q)), q)
    >>> print(found.programs[0].name, found.programs[0].rows, found.kept)
    mass_matrix 64 1024
    """
    if in_axes is not None:
        fn = batches.jit(fn, in_axes)
    with purpose("programs"):
        closed = jax.make_jaxpr(fn)(*args)
        needed, _ = pruned(closed, (True,) * len(closed.out_avals), operands=True)  # as by `jax.jit`
        found = list(_equations(needed.jaxpr, _Found(None)))
        programs, others = _programs(found), sum(e.primitive not in (rows_p, mark_p) for e, *_ in found)
        if isinstance(fn, batches.Rows) and any(program.reason for program in programs):
            programs, others = [_outermost(fn, args)], 0
    return Explanation(tuple(programs), others, *_kept(closed))


class _Found(NamedTuple):
    """An equation; times: how often it is computed, None if unknown; devices: on how many it is, in a `shard_map`."""

    eqn: Any
    times: int | None = 1
    devices: int = 1


def _equations(jaxpr: Any, around: _Found) -> Iterator[_Found]:
    """The equations of a jaxpr that contain no others, except those of rows."""
    for eqn in jaxpr.eqns:
        within = [] if eqn.primitive is rows_p else jaxprs_of(eqn)
        each = {"scan": eqn.params.get("length"), "while": None}.get(eqn.primitive.name, 1)
        if not within:
            yield around._replace(eqn=eqn)
        for inner in within:
            times = None if around.times is None or each is None else around.times * each
            yield from _equations(inner, _Found(eqn, times, around.devices * _devices(eqn)))


def _devices(eqn: Any) -> int:
    if eqn.primitive.name != "shard_map":
        return 1
    axes = eqn.params.get("newly_manual_axes", eqn.params.get("manual_axes", ()))  # the name depends on JAX's version
    return math.prod(eqn.params["mesh"].shape[axis] for axis in axes)


def _programs(found: list[_Found]) -> list[RowProgram]:
    """The row programs among equations; those that are alike are one, called more often."""
    calls: Counter[RowProgram] = Counter()
    for eqn, times, devices in found:
        if eqn.primitive in (rows_p, mark_p):
            one = _left(eqn) if eqn.primitive is mark_p else _computed(eqn)
            known = times is not None
            calls[replace(one, rows=one.rows * devices, calls=1 if known else None)] += times if known else 1
    return [program if program.calls is None else replace(program, calls=n) for program, n in calls.items()]


def _left(eqn: Any) -> RowProgram:
    return RowProgram(eqn.params["name"], eqn.params["rows"], 1, "jax.vmap", eqn.params["reason"])


def _computed(eqn: Any) -> RowProgram:
    closed, mapped, rows = for_all(**eqn.params)
    made, reason = choice(closed, tuple(map(bool, mapped)), rows)
    own = [a for a, m in zip(closed.in_avals, mapped, strict=True) if m]
    return _described(name_of(closed), rows, made and chosen_target()[0], reason, made, own, closed.out_avals)


def _outermost(fn: batches.Rows, args: tuple[Any, ...]) -> RowProgram:
    """The program of a call of `mbs.jit(fn, in_axes)` that no other function of JAX surrounds, and that is not one call
    of machine code."""
    size, on, reason = batches.batch_size(args, fn.in_axes), *chosen_target()
    made: list[batches.Recorded] = []
    jax.eval_shape(lambda *xs: made.append(batches.Recorded(fn.fn, fn.in_axes, xs, on)), *args)
    program = made[0].program
    runs = on if size and program.by_rows else None
    reason = reason or program.obstacle or ("; ".join(program.excluded(runs, size)) if runs else "there are no rows")
    own = [x for x in program.sources if x.rows]
    return _described(name_of_function(fn.fn), size, runs, reason, program, own, program.results)


def _described(name: str, rows: int, on: Any, reason: str, program: Any, own: Any, results: Any) -> RowProgram:
    counts = counted(program.program) if on else Counts()
    sizes = sum(map(_size, own)), sum(map(_size, results))
    return RowProgram(name, rows, 1, on.name if on else "jax.vmap", reason, *counts[:4], *sizes, counts.kept)


def _kept(closed: Any) -> tuple[int | None, int, str]:
    """(bytes that `jax.vjp` keeps, bytes of arguments among them, why there is no reverse mode)."""
    moving = [k for k, a in enumerate(closed.in_avals) if is_real(a)]
    results = [k for k, a in enumerate(closed.out_avals) if is_real(a)]
    if not moving or not results:
        return None, 0, "no floating-point arguments and results"

    def kept(*xs: Any) -> list[Any]:
        def of(*z: Any) -> list[Any]:
            y = core.jaxpr_as_fun(closed)(*replaced(xs, moving, z))
            return [y[k] for k in results]

        y, back = jax.vjp(of, *(xs[k] for k in moving))
        if any(e.primitive.name == "while" for e in equations(closed.jaxpr)):
            back([jnp.zeros_like(x) for x in y])  # such loops raise their error only in the backward pass
        return jax.tree_util.tree_leaves(back)

    try:
        with purpose("bytes"):
            jaxpr = jax.make_jaxpr(kept)(*map(shape_of, closed.in_avals)).jaxpr
    except (NotImplementedError, TypeError, ValueError) as error:  # what JAX raises where there is no derivative
        return None, 0, str(error).split("\n")[0]
    variables = {v for v in jaxpr.outvars if not isinstance(v, core.Literal)} - {*jaxpr.constvars}
    return sum(_size(v.aval) for v in variables), sum(_size(v.aval) for v in variables & {*jaxpr.invars}), ""


def _size(x: Any) -> int:
    """Bytes of an array."""
    return math.prod(x.shape) * x.dtype.itemsize
