"""Compilation of batches: plain jit, and a jit that knows that the rows are independent."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from jaxmbs.batching.cpu import CPU
from jaxmbs.batching.keeping import Keeping
from jaxmbs.batching.machine import MACHINE
from jaxmbs.batching.mapping import MappedProgram, chosen_target, default_target, flat_axes, padded
from jaxmbs.batching.row_programs.public import rows
from jaxmbs.batching.scalars import is_traced
from jaxmbs.batching.targets import Target
from jaxmbs.errors import ModelError

# Rows of one loop per CPU core, in float64: few enough that the values held between kernels stay in the cache (600 to
# 1200 were fastest, for programs of 1300 to 17000 operations), many enough that a loop is worth dividing among cores.
BLOCK_ROWS = 1104
ONE_KERNEL_ROWS = 2112  # the same for programs of one kernel, which hold no values between kernels
GPU_ROWS = 1 << 20  # of one block on a GPU: the values held between kernels then take at most a few gigabytes
# A call prepares memory for every number of a fused program (40 ns each); for fewer rows than this, jax.vmap is faster.
FEWEST_ROWS = 1024
PART_ROWS = 256  # rows of one part of a batch, for programs too large for kernels: their arrays stay in the cache


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
    rows. On a CPU the mapped function becomes machine code (with llvmlite, the extra `fast`) or else a few XLA loops
    over the rows, in blocks that fit the cache, on all cores; the environment variable JAXMBS_KERNELS, "machine" or
    "loops", forces one of the two. For whatever can become neither, for example a large factorization, the rows are
    split over the devices. Results have the batch axis first. With "loops", a call that computes sines or cosines waits
    for the results: rows with angles beyond 1e8 (float64; 1e4 in float32) are computed again by jax.vmap.

    >>> print(mbs.jit(lambda x: 2 * x, in_axes=0)(jnp.arange(3.0)))
    [0. 2. 4.]
    """
    if in_axes is None:
        return jax.jit(fn)
    return Rows(fn, in_axes)


class Rows:
    """A mapped function, compiled for each batch size."""

    def __init__(self, fn: Callable[..., Any], in_axes: Any):
        functools.update_wrapper(self, fn, updated=())
        self.fn, self.in_axes = fn, in_axes
        self._compiled = Keeping(jax.jit(self.whole), fn, in_axes)
        self._plain = jax.jit(jax.vmap(rows(fn), in_axes))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        interpreted: bool = jax.config.jax_disable_jit  # pyright: ignore[reportAttributeAccessIssue]
        if kwargs or interpreted or any(map(_bound, jax.tree_util.tree_leaves(args))):
            return self._plain(*args, **kwargs)
        results, beyond = self._compiled(*args)
        rows = np.zeros(0, int) if beyond is None else np.flatnonzero(beyond)
        return results if rows.size == 0 else self._anew(results, rows, args)

    def _anew(self, results: Any, rows: np.ndarray, args: tuple[Any, ...]) -> Any:
        """The results with `rows` computed again by jax.vmap."""
        several = np.resize(rows, 1 << (len(rows) - 1).bit_length())  # a power of two, so that few sizes are compiled
        flat, axes, treedef = flat_axes(args, self.in_axes)
        part = [x if a is None else jnp.take(jnp.asarray(x), several, a) for x, a in zip(flat, axes, strict=True)]
        found = self._plain(*treedef.unflatten(part))
        return jax.tree_util.tree_map(lambda x, y: x.at[rows].set(y[: len(rows)]), results, found)

    def whole(self, *args: Any) -> tuple[Any, Any]:
        """The results and the mask, as from `over_rows`. This function is compiled; tools can inspect it."""
        size = batch_size(args, self.in_axes)
        if size == 0:
            return jax.vmap(self.fn, self.in_axes)(*args), None
        one_row, arrays, program = self.recorded(args)
        mapped, devices = program.mapped, jax.devices()
        in_axes = [0 if m else None for m in mapped]

        def in_plain(*arrays: Any) -> tuple[Any, Any]:
            return jax.vmap(one_row, in_axes)(*arrays), None

        def in_parts(*arrays: Any) -> tuple[Any, Any]:
            return _in_parts(lambda *x: in_plain(*x)[0], arrays, mapped), None

        if not program.by_rows:
            return _split(in_parts, arrays, mapped, size, devices) if program.independent else in_plain(*arrays)
        on, _ = choice(program, size)
        if on is None:
            return in_plain(*arrays) if default_target() is CPU else _split(in_plain, arrays, mapped, size, devices)
        if program.is_one_call(on, size):
            return program(arrays, size, on)
        on_cpu = jax.default_backend() == "cpu"

        def in_rows(*arrays: Any) -> tuple[Any, Any]:
            rows = next(x.shape[0] for x, m in zip(arrays, mapped, strict=True) if m)
            return _in_blocks(program, arrays, mapped, rows, _block_rows(program, arrays) if on_cpu else GPU_ROWS, on)

        # XLA:CPU itself runs a single loop over rows on all cores, but anything else on one core per device
        if program.fused and on_cpu:
            results, beyond = in_rows(*arrays)
        else:
            results, beyond = _split(in_rows, arrays, mapped, size, devices)
        return program.weakened(results), beyond

    def recorded(self, args: tuple[Any, ...]) -> tuple[Callable[..., Any], list[Any], MappedProgram]:
        """(the function of one row, its arrays, with the rows first where they have any, its program)."""
        flat, axes, treedef = flat_axes(args, self.in_axes)
        arrays = [jnp.asarray(x) if a is None else jnp.moveaxis(x, a, 0) for x, a in zip(flat, axes, strict=True)]

        def one_row(*x: Any) -> Any:
            return self.fn(*treedef.unflatten(x))

        return one_row, arrays, MappedProgram(one_row, arrays, [a is not None for a in axes], default_target())


def choice(program: MappedProgram, size: int) -> tuple[Target | None, str]:
    """(the target that runs a batch of `size` rows, None for `jax.vmap`; why it is not machine code, or not one call of
    it, in words)."""
    on, lacking = chosen_target()
    if not size or not program.by_rows:
        return None, program.obstacle or "there are no rows"
    if on is CPU and program.fused and not program.loops and size < FEWEST_ROWS:
        return None, f"{lacking}; for fewer than {FEWEST_ROWS:,} rows, preparing XLA loops takes too long"
    if on is None or on is CPU:
        return on, lacking
    outside = "; ".join(program.excluded(on, size))
    if on is MACHINE:
        return on, outside
    return (on, lacking) if program.fused else (None, f"{lacking}; {outside}")


def _bound(x: Any) -> bool:
    """Whether an argument determines where the computation takes place: as a tracer, inside a surrounding
    transformation; as an array committed to only some of the devices, on these."""
    return is_traced(x) or (getattr(x, "committed", False) and len(x.devices()) < jax.device_count())


def _block_rows(program: MappedProgram, arrays: Sequence[Any]) -> int:
    """Rows of one block on a CPU."""
    if not program.fused:
        return BLOCK_ROWS
    columns = [x for x, m in zip(arrays, program.mapped, strict=True) if m and jnp.issubdtype(x.dtype, jnp.floating)]
    widest = max((x.dtype.itemsize for x in columns), default=8)
    each = ONE_KERNEL_ROWS if program.is_one_kernel(CPU) else BLOCK_ROWS
    return each * _cores() * 8 // widest


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _in_blocks(
    program: MappedProgram, arrays: Sequence[Any], mapped: Sequence[bool], size: int, most: int, on: Target = CPU
) -> Any:
    """Run the program in blocks of about `most` rows, one after another; the last block overlaps the one before it.

    Memory is needed only for inputs, outputs and one block, however long the batch is.
    """
    blocks = max(-(-size // most), 1 + (size % 256 == 0 and on is CPU))
    if blocks == 1:
        return program(arrays, size, on)
    rows = -(-size // (blocks * 16)) * 16
    rows += 16 * (rows % 256 == 0)  # columns a power of two apart compete for cache lines, which is three times slower

    def block(k: Any) -> tuple[Any, Any]:
        start = jnp.minimum(k * rows, size - rows)
        part = [jax.lax.dynamic_slice_in_dim(x, start, rows) if m else x for x, m in zip(arrays, mapped, strict=True)]
        return start, program(part, rows, on)

    def add(k: Any, whole: Any) -> Any:
        start, part = block(k)
        return jax.tree_util.tree_map(lambda x, y: jax.lax.dynamic_update_slice_in_dim(x, y, start, 0), whole, part)

    shapes = jax.eval_shape(lambda: block(0)[1])
    empty = jax.tree_util.tree_map(lambda x: jnp.zeros((size, *x.shape[1:]), x.dtype), shapes)
    return jax.lax.fori_loop(0, blocks, add, empty)


def _in_parts(fn: Callable[..., Any], arrays: Sequence[Any], mapped: Sequence[bool]) -> Any:
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
    return jax.tree_util.tree_map(lambda x: x.reshape(-1, *x.shape[2:])[:size], found)


def _split(
    fn: Callable[..., Any], arrays: Sequence[Any], mapped: Sequence[bool], size: int, devices: Sequence[Any]
) -> Any:
    """Evaluate fn for all rows, with a part of the rows on each device."""
    used = devices[: min(len(devices), size)]
    if len(used) == 1:
        return fn(*arrays)
    whole = -(-size // len(used)) * len(used)
    arrays = [padded(x, whole) if m else x for x, m in zip(arrays, mapped, strict=True)]
    rows, everywhere = PartitionSpec("rows"), PartitionSpec()
    specs = tuple(rows if m else everywhere for m in mapped)
    mesh = Mesh(np.array(used), ("rows",))
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
