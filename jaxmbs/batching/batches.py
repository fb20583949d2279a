"""Compilation of batches: plain jit, and a jit that knows that the rows are independent."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun
from jax.sharding import Mesh, PartitionSpec

from jaxmbs.batching.cached_jit import CachedJit
from jaxmbs.batching.machine import MACHINE
from jaxmbs.batching.mapped_program import MappedProgram, chosen_target, flat_axes, padded
from jaxmbs.batching.row_programs.equation import rows_p
from jaxmbs.batching.row_programs.instance import pruned
from jaxmbs.batching.row_programs.lowering import choice, for_all
from jaxmbs.batching.row_programs.public import rows
from jaxmbs.batching.scalars import is_traced
from jaxmbs.batching.targets import Target
from jaxmbs.errors import ModelError

# Rows of one part of a batch where XLA computes all or some of it, so that its arrays stay in the cache and need the
# memory of a part: with 512, the constrained dynamics of forty windows and solutions by LAPACK take two thirds of the
# time that they take in one part; other functions take about the same.
PART_ROWS = 512


def use_all_cores() -> int:
    """Make JAX treat every CPU core as a device; returns the number of cores.

    Call it before anything uses JAX: it raises ModelError if a backend has already started with fewer devices.

    >>> mbs.use_all_cores()  # doctest: +SKIP
    8
    """
    cores = _cores()
    try:
        jax.config.update("jax_num_cpu_devices", cores)
    except RuntimeError as error:
        if jax.device_count("cpu") >= cores:
            return cores
        raise ModelError(
            "use_all_cores() was called after the first use of JAX; call it right after the imports"
        ) from error
    return cores


def jit(fn: Callable[..., Any], in_axes: Any = None) -> Callable[..., Any]:
    """Compile fn as `jax.jit` does or, with in_axes, for a batch of independent rows.

    in_axes: None returns jax.jit(fn). Otherwise in_axes is as in `jax.vmap`: fn takes one row and is mapped over the
    rows, as `jax.jit(jax.vmap(mbs.rows(fn), in_axes))` does. On a CPU the rows thus become one call of machine code,
    which uses all cores. Where an operation cannot be machine code, for example a factorization by LAPACK, it stands
    between such calls, for some hundreds of rows at a time, which are divided among the devices. Results have the batch
    axis first.

    >>> print(mbs.jit(lambda x: 2 * x, in_axes=0)(jnp.arange(3.0)))
    [0. 2. 4.]
    """
    if in_axes is None:
        return jax.jit(fn)
    return Rows(fn, in_axes)


class Rows:
    """A mapped function, compiled for each batch size; its programs are cached on disk as by `CachedJit`."""

    def __init__(self, fn: Callable[..., Any], in_axes: Any):
        functools.update_wrapper(self, fn, updated=())
        self.fn, self.in_axes = fn, in_axes
        self._outermost = CachedJit(jax.jit(self.whole), fn, in_axes)
        self._within = jax.jit(jax.vmap(rows(fn), in_axes))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        interpreted: bool = jax.config.jax_disable_jit  # pyright: ignore[reportAttributeAccessIssue]
        if kwargs or interpreted or any(map(_bound, jax.tree_util.tree_leaves(args))):
            return self._within(*args, **kwargs)
        return self._outermost(*args)

    def whole(self, *args: Any) -> Any:
        """The results of an outermost call. This function is compiled; tools can inspect it."""
        size = batch_size(args, self.in_axes)
        mapped = jax.vmap(rows(self.fn), self.in_axes)
        closed, shape = jax.make_jaxpr(mapped, return_shape=True)(*args)
        closed, _ = pruned(closed, (True,) * len(closed.out_avals), operands=True)  # as jit will, for the same programs
        if size == 0 or all(map(_is_one_call, closed.jaxpr.eqns)):
            return jax.tree.unflatten(jax.tree.structure(shape), jaxpr_as_fun(closed)(*jax.tree.leaves(args)))
        # What `rows` leaves to JAX, perhaps because of a single sort, would be XLA's as a whole. Here nothing surrounds the
        # function, so that it can be kernels with the sort between them. They are computed for one part of the rows after
        # another, and the rows are divided among devices; one call of machine code uses all cores by itself.
        on, _ = chosen_target()
        made = Recorded(self.fn, self.in_axes, args, on)
        if not made.program.independent:
            return mapped(*args)
        run = functools.partial(_in_parts, made.run, made.mapped) if on is MACHINE else made.run
        return _divided(run, made.arrays, made.mapped, size)


def over_rows(fn: Callable[..., Any], in_axes: Any = 0, on: Target | None = None) -> Callable[..., Any]:
    """A function that returns what jax.vmap(fn, in_axes) returns, to rounding, with the batch axis first.

    on: the target that runs it as a program of scalars, None for that of the default backend.
    """

    def run(*args: Any) -> Any:
        made = Recorded(fn, in_axes, args, on or chosen_target()[0])
        return made.run(*made.arrays)

    return run


class Recorded:
    """A function of one row for a target, None for XLA, and the arguments: arrays, with the rows first where `mapped`."""

    def __init__(self, fn: Callable[..., Any], in_axes: Any, args: tuple[Any, ...], on: Target | None):
        flat, axes, treedef = flat_axes(args, in_axes)
        self.arrays = [jnp.asarray(x) if a is None else jnp.moveaxis(x, a, 0) for x, a in zip(flat, axes, strict=True)]
        self.mapped = [a is not None for a in axes]
        self.one_row, self.on = lambda *x: fn(*treedef.unflatten(x)), on
        self.program = MappedProgram(self.one_row, self.arrays, self.mapped, on)

    def run(self, *arrays: Any) -> Any:
        """The results for all rows of arrays such as these, on one device."""
        if self.on is None or not self.program.by_rows:
            return jax.vmap(self.one_row, [0 if m else None for m in self.mapped])(*arrays)
        size = next(x.shape[0] for x, m in zip(arrays, self.mapped, strict=True) if m)
        return self.program(arrays, size, self.on)


def _is_one_call(eqn: Any) -> bool:
    """Whether an equation is one call of machine code for all rows, or prepares its operands."""
    if eqn.primitive.name == "jit":  # since JAX 0.12, inline=True takes effect only when XLA compiles
        return all(map(_is_one_call, eqn.params["jaxpr"].eqns))
    return eqn.primitive.name == "transpose" or (eqn.primitive is rows_p and not choice(*for_all(**eqn.params))[1])


def _bound(x: Any) -> bool:
    """Whether an argument determines where the computation takes place: as a tracer, inside a surrounding
    transformation; as an array committed to only some of the devices, on these."""
    return is_traced(x) or (getattr(x, "committed", False) and len(x.devices()) < jax.device_count())


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _in_parts(fn: Callable[..., Any], mapped: Sequence[bool], *arrays: Any) -> Any:
    """Evaluate fn for all rows, at most PART_ROWS of them at a time."""
    size = next(x.shape[0] for x, m in zip(arrays, mapped, strict=True) if m)
    parts = -(-size // PART_ROWS)
    if parts == 1:
        return fn(*arrays)
    rows = -(-size // parts)
    shaped = [
        padded(x, rows * parts).reshape(parts, rows, *x.shape[1:]) for x, m in zip(arrays, mapped, strict=True) if m
    ]

    def part(xs: Any) -> Any:
        rest = iter(xs)
        return fn(*(next(rest) if m else x for x, m in zip(arrays, mapped, strict=True)))

    found = jax.lax.map(part, shaped)
    return jax.tree_util.tree_map(lambda x: x.reshape(rows * parts, *x.shape[2:])[:size], found)


def _divided(fn: Callable[..., Any], arrays: Sequence[Any], mapped: Sequence[bool], size: int) -> Any:
    """Evaluate fn for all rows, with a part of the rows on each device."""
    devices = jax.devices()[:size]
    if len(devices) == 1:
        return fn(*arrays)
    whole = -(-size // len(devices)) * len(devices)
    arrays = [padded(x, whole) if m else x for x, m in zip(arrays, mapped, strict=True)]
    rows, everywhere = PartitionSpec("rows"), PartitionSpec()
    specs = tuple(rows if m else everywhere for m in mapped)
    mesh = Mesh(np.array(devices), ("rows",))
    out = jax.shard_map(fn, mesh=mesh, in_specs=specs, out_specs=rows, check_vma=False)(*arrays)
    return jax.tree_util.tree_map(lambda x: x[:size], out) if whole != size else out


def batch_size(args: tuple[Any, ...], in_axes: Any) -> int:
    """Common length of the mapped axes, 0 if jax.vmap refuses the arguments; ModelError if they differ or none is mapped."""
    try:
        flat, axes, _ = flat_axes(args, in_axes)
        sizes = {np.shape(x)[a] for x, a in zip(flat, axes, strict=True) if a is not None}
    except (ValueError, TypeError, IndexError):
        return 0
    if not sizes:
        raise ModelError("jit(fn, in_axes=...): no argument has a batch axis; give at least one axis that is not None")
    if len(sizes) > 1:
        raise ModelError(f"jit(fn, in_axes=...): the mapped axes have different lengths {sorted(sizes)}")
    return sizes.pop()
