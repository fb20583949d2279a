"""What an equation `rows` becomes: one call of a kernel for all rows or, if there is none, `jax.vmap`."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax._src import config, dispatch  # private: there is no public way to partition a call in a lowering
from jax.experimental.custom_partitioning import custom_partitioning
from jax.extend import core
from jax.interpreters import mlir
from jax.sharding import NamedSharding, PartitionSpec

from jaxmbs.batching import arrays, recording
from jaxmbs.batching.mapped_program import MappedProgram, chosen_target, too_long
from jaxmbs.batching.repeated import Repeat, Repeated, expanded
from jaxmbs.batching.row_programs.equation import rows_p
from jaxmbs.batching.row_programs.instance import Mode, once, program
from jaxmbs.batching.scalars import ELEMENTWISE
from jaxmbs.batching.separable import equations, inseparable

_RECORDED = {
    *ELEMENTWISE,
    *arrays.RULES,
    *recording.CALLS,
    "scan",
    "cond",
    "while",
    "counted",
    "iota",
}  # operations that become scalar ones


def obstacle(closed: Any) -> str | None:
    """Why a function cannot become an equation `rows`, in words; None if it can.

    Such a function is left to JAX as it is: as an equation it would be computed twice in reverse mode, and XLA could
    not optimise it together with the code around it. The names of its operations decide, because recording the whole
    program would take as long as tracing it.
    """
    on, lacking = chosen_target()
    if on is None:
        return lacking
    if different := indivisible(closed):
        return different
    if long := too_long(closed):
        return long
    whole = sorted({e.primitive.name for e in equations(closed.jaxpr)} - _RECORDED)
    return f"there are no scalar operations for {', '.join(whole)}" if whole else None


def indivisible(closed: Any) -> str:
    """Why a function is no computation of rows at all, in words; empty if it is one."""
    if dependent := inseparable(closed):
        return dependent
    if closed.effects:
        return "it has effects"
    return "" if closed.out_avals else "it returns nothing"


def choice(
    closed: Any, mapped: tuple[bool, ...], rows: int, backend: str | None = None
) -> tuple[MappedProgram | None, str]:
    """(the program that computes all rows in kernels, None for `jax.vmap`; why there are none, or not one call, in words).

    backend: see `chosen_target`."""
    on, lacking = chosen_target(backend)
    if on is None:
        return None, lacking
    if not rows:
        return None, "there are no rows"
    shapes = [
        jax.ShapeDtypeStruct((2, *a.shape) if m else a.shape, a.dtype)
        for a, m in zip(closed.in_avals, mapped, strict=True)
    ]
    run = core.jaxpr_as_fun(closed)
    made = once(closed, ("program", mapped, on.name), lambda: MappedProgram(run, shapes, mapped, on))
    if not made.by_rows:
        return None, made.obstacle
    outside = "; ".join(made.excluded(on, rows))
    return (None if outside and not made.loops else made), outside


def _computed(given: Sequence[Any], closed: Any, mapped: tuple[bool, ...], rows: int, backend: str) -> Any:
    """The results for all rows, on one device."""
    on, _ = chosen_target(backend)
    made, outside = choice(closed, tuple(map(bool, mapped)), rows, backend)
    if on and made is not None and not outside:
        found = [Repeated(x, m) if isinstance(m, Repeat) else x for x, m in zip(given, mapped, strict=True)]
        return made(found, rows, on)
    given, mapped = expanded(given, mapped)
    if on and made is not None:
        return made(given, rows, on)
    return jax.vmap(core.jaxpr_as_fun(closed), [0 if m else None for m in mapped], axis_size=rows)(*given)


def _divided(given: Sequence[Any], closed: Any, mapped: tuple[bool, ...], rows: int, backend: str) -> Any:
    """The results for all rows, which XLA divides among devices."""

    def run(*xs: Any) -> Any:
        own = next((x.shape[0] for x, m in zip(xs, mapped, strict=True) if m), rows)
        return _computed(xs, closed, mapped, own, backend)

    def axes(name: str, count: int, leads: bool) -> str:
        return " ".join([*(["r"] if leads else []), *(f"{name}{k}" for k in range(count - leads))])

    operands = ", ".join(axes(f"x{i}y", x.ndim, m) for i, (x, m) in enumerate(zip(given, mapped, strict=True)))
    results = ", ".join(axes(f"z{i}y", len(a.shape) + 1, True) for i, a in enumerate(closed.out_avals))
    others = sorted({word for word in f"{operands} {results}".replace(",", " ").split() if word != "r"})

    def partition(mesh: Any, operand_shapes: Any, result_shapes: Any) -> Any:
        spec = next((s.sharding.spec for s, m in zip(operand_shapes, mapped, strict=True) if m), PartitionSpec())
        along = NamedSharding(mesh, PartitionSpec(spec[0] if len(spec) else None))
        everywhere = NamedSharding(mesh, PartitionSpec())
        return mesh, run, [along] * len(result_shapes), tuple(along if m else everywhere for m in mapped)

    call = custom_partitioning(jax.jit(run))
    call.def_partition(partition, sharding_rule=f"{operands} -> {results}", need_replication_factors=tuple(others))
    return call(*given)


def counts_of(jaxpr: Any) -> set[int]:
    """Indices of the operands that determine how often loops are repeated (`counted`)."""
    needed: set[Any] = set()
    for e in reversed(jaxpr.eqns):
        given = e.invars if e.primitive.name == "counted" or needed.intersection(e.outvars) else []
        if e.primitive.name == "scan":
            given = [*given, *(e.invars[k] for k in counts_of(e.params["jaxpr"].jaxpr))]
        elif e.primitive.name == "cond":
            given = [*given, *(e.invars[1 + k] for b in e.params["branches"] for k in counts_of(b.jaxpr))]
        needed.update(x for x in given if not isinstance(x, core.Literal))
    return {k for k, x in enumerate(jaxpr.invars) if x in needed}


def for_all(jaxpr: Any, mapped: Any, rows: int | None, mode: Mode) -> tuple[Any, tuple[bool, ...], int]:
    """What an equation computes: (the jaxpr of one instance, for each operand whether it has the rows, their number).
    One instance is a batch of one row."""
    closed = program(jaxpr, mode)
    if rows is not None:
        return closed, mapped, rows
    shared = counts_of(closed.jaxpr)
    return closed, tuple(k not in shared for k in range(len(closed.in_avals))), 1


@functools.lru_cache(128)
def _call(jaxpr: Any, mapped: Any, rows: int | None, mode: Mode, several: bool, backend: str, *shapes: Any) -> Any:
    """The jaxpr of the call, built once however often the equation occurs in a program."""

    closed, along, count = for_all(jaxpr, mapped, rows, mode)

    def run(*given: Any) -> list[Any]:
        if rows is None:
            one = [x[None] if m else x for x, m in zip(given, along, strict=True)]
            return [x[0] for x in _computed(one, closed, along, count, backend)]
        return list((_divided if several and any(mapped) else _computed)(given, closed, along, count, backend))

    with config._check_vma(False):
        return jax.make_jaxpr(run)(*shapes)


def _lowered(*given: Any, jaxpr: Any, mapped: Any, rows: int | None, mode: Mode, backend: str) -> Any:
    shapes = [jax.ShapeDtypeStruct(jnp.shape(x), x.dtype) for x in given]
    return core.jaxpr_as_fun(_call(jaxpr, mapped, rows, mode, jax.device_count() > 1, backend, *shapes))(*given)


def _plain(*given: Any, jaxpr: Any, mapped: Any, rows: int | None, mode: Mode) -> Any:
    one = core.jaxpr_as_fun(program(jaxpr, mode))
    every, mapped = expanded(given, mapped)
    return one(*every) if rows is None else jax.vmap(one, [0 if m else None for m in mapped], axis_size=rows)(*every)


def _in_kernels(backend: str, context: Any, *given: Any, **params: Any) -> Any:
    """Machine code exists only in this process, so programs for export are those of XLA."""
    exported = context.module_context.lowering_parameters.for_export
    run = _plain if exported else functools.partial(_lowered, backend=backend)
    return _written(run, context, *given, **params)


def _written(run: Any, context: Any, *given: Any, **params: Any) -> Any:
    """`run` as the lowering of an equation. Its jaxprs know nothing of the axes of a `shard_map` (see `tracing`)."""
    with config._check_vma(False):
        return mlir.lower_fun(run, multiple_results=True)(context, *given, **params)


mlir.register_lowering(rows_p, functools.partial(_written, _plain))
for _backend in ("cpu", "cuda"):
    mlir.register_lowering(rows_p, functools.partial(_in_kernels, _backend), platform=_backend)
dispatch.prim_requires_devices_during_lowering.add(rows_p)
