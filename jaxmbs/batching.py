"""Compilation of batches: plain jit, and jit that knows that its rows are independent."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from jaxmbs.model import ModelError
from jaxmbs.model.parameters import is_traced

BLOCK_ROWS = 1024  # rows of one inner loop on a CPU; larger working sets leave the L2 cache


def use_all_cores() -> int:
    """Make JAX show every CPU core as a device; returns their number.

    Call it before anything uses JAX: raises ModelError when a backend has started with fewer devices.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        jax.config.update("jax_num_cpu_devices", cores)
    except RuntimeError as error:
        if jax.device_count("cpu") >= cores:
            return cores
        raise ModelError("use_all_cores() came after the first use of JAX; call it right after the imports") from error
    return cores


def jit(fn: Callable[..., Any], in_axes: Any = None) -> Callable[..., Any]:
    """`jax.jit(fn)`, or, when in_axes tells that fn maps independent rows, a jit that splits the batch.

    in_axes None: equal to jax.jit(fn) for every fn. Otherwise as in `jax.vmap`: fn works on one row and is mapped
    here; the batch is padded, cut into blocks that fit the cache and split over the devices. Results have the
    batch axis first.
    """
    if in_axes is None:
        return jax.jit(fn)
    return _Rows(fn, in_axes)


class _Rows:
    """A mapped function, compiled per batch size."""

    def __init__(self, fn: Callable[..., Any], in_axes: Any):
        functools.update_wrapper(self, fn, updated=())
        self.fn, self.in_axes = fn, in_axes
        self._compiled = jax.jit(self._run, static_argnums=0)

    def __call__(self, *args: Any) -> Any:
        size = batch_size(args, self.in_axes)
        traced = any(map(is_traced, jax.tree_util.tree_leaves(args)))
        if size == 0 or traced:
            return jax.vmap(self.fn, in_axes=self.in_axes)(*args)
        return self._compiled(size, *args)

    def _run(self, size: int, *args: Any) -> Any:
        devices = jax.devices()
        rows = size if devices[0].platform != "cpu" else min(BLOCK_ROWS, -(-size // len(devices)))
        used = devices[: max(1, min(len(devices), -(-size // rows)))]
        blocks = -(-size // (rows * len(used)))
        whole = rows * blocks * len(used)
        flat, axes, treedef = _flat_axes(args, self.in_axes)
        mapped = [
            _padded(jnp.moveaxis(jnp.asarray(x), a, 0), whole) for x, a in zip(flat, axes, strict=True) if a is not None
        ]
        shared = [x for x, a in zip(flat, axes, strict=True) if a is None]

        def one_block(shared: list[Any], mapped: list[Any]) -> Any:
            def one_row(*row: Any) -> Any:
                r, s = iter(row), iter(shared)
                return self.fn(*treedef.unflatten([next(s) if a is None else next(r) for a in axes]))

            return jax.vmap(one_row)(*mapped)

        def on_device(shared: list[Any], mapped: list[Any]) -> Any:
            if blocks == 1:
                return one_block(shared, mapped)
            cut = [x.reshape(blocks, rows, *x.shape[1:]) for x in mapped]
            out = jax.lax.map(lambda m: one_block(shared, m), cut)
            return jax.tree_util.tree_map(lambda x: x.reshape(blocks * rows, *x.shape[2:]), out)

        if len(used) > 1:
            split, mesh = PartitionSpec("rows"), Mesh(np.array(used), ("rows",))
            on_device = jax.shard_map(
                on_device, mesh=mesh, in_specs=(PartitionSpec(), split), out_specs=split, check_vma=False
            )
        out = on_device(shared, mapped)
        return jax.tree_util.tree_map(lambda x: x[:size], out) if whole != size else out


def batch_size(args: tuple[Any, ...], in_axes: Any) -> int:
    """Common length of the mapped axes; ModelError if they differ or none is mapped."""
    flat, axes, _ = _flat_axes(args, in_axes)
    sizes = {np.shape(x)[a] for x, a in zip(flat, axes, strict=True) if a is not None}
    if not sizes:
        raise ModelError("jit(fn, in_axes=...): no argument has a batch axis; give at least one axis that is not None")
    if len(sizes) > 1:
        raise ModelError(f"jit(fn, in_axes=...): the mapped axes have different lengths {sorted(sizes)}")
    return sizes.pop()


def _flat_axes(args: tuple[Any, ...], in_axes: Any) -> tuple[list[Any], list[int | None], Any]:
    """Leaves of the arguments, the axis of each and their tree, with in_axes broadcast as in vmap."""
    flat, treedef = jax.tree_util.tree_flatten(args)
    if isinstance(in_axes, (int, type(None))):
        return flat, [in_axes] * len(flat), treedef
    axes: list[int | None] = []
    for argument, axis in zip(args, tuple(in_axes), strict=True):
        spread = jax.tree_util.tree_map(
            lambda a, part: [a] * len(jax.tree_util.tree_leaves(part)), axis, argument, is_leaf=lambda a: a is None
        )
        axes += jax.tree_util.tree_leaves(spread, is_leaf=lambda a: a is None)
    return flat, axes, treedef


def _padded(x: jax.Array, rows: int) -> jax.Array:
    """The last row repeated until there are `rows`."""
    extra = rows - x.shape[0]
    return x if extra == 0 else jnp.concatenate([x, jnp.broadcast_to(x[-1:], (extra, *x.shape[1:]))])
