"""Kernels on a GPU: each program of a grid holds a block of rows in registers, one row for each thread.

They are written in Pallas and compiled by Triton. A chunk with an operation that Triton lacks is left to XLA, which
generates its own kernels for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from jaxmbs.batching.ordering import Chunk
from jaxmbs.batching.scalars import is_shared
from jaxmbs.batching.targets import Kernels, Target, run

BLOCK = 128  # rows of one program: four warps
MOST_ROWS = 1 << 20  # held at a time: the values between kernels then take at most a few gigabytes
LACKING = frozenset(["erf", "erfc", "is_finite", "logistic", "round"])  # not in Triton or not for float64, jax 0.10


def fuse(chunk: Chunk, operands: Sequence[Any], rows: int, interpret: bool = False) -> list[Any]:
    """Evaluates a chunk in one GPU kernel, as `Kernels.fuse` says; truth values are passed as bytes."""
    if any(o.primitive.name in LACKING for o in chunk.operations):
        return run(chunk, operands, (rows,))
    block = BLOCK if rows % BLOCK == 0 else rows
    shared = [is_shared(x) for x in chunk.reads]
    truth = [x.dtype == bool for x in operands]
    given = [x.astype(jnp.int8) if b else x for x, b in zip(operands, truth, strict=True)]
    given = [x.reshape(1) if on else x for x, on in zip(given, shared, strict=True)]
    stored = [np.dtype(np.int8) if o.dtype == bool else o.dtype for o in chunk.results]

    def body(*refs: Any) -> None:
        inputs, outputs = refs[: len(given)], refs[len(given) :]
        values = [jnp.broadcast_to(ref[...], (block,)) for ref in inputs]
        values = [x != 0 if b else x for x, b in zip(values, truth, strict=True)]
        for ref, x, dtype in zip(outputs, run(chunk, values, (block,)), stored, strict=True):
            ref[...] = x.astype(dtype)

    column, number = pl.BlockSpec((block,), lambda i: (i,)), pl.BlockSpec((1,), lambda i: (0,))
    columns = pl.pallas_call(
        body,
        out_shape=[jax.ShapeDtypeStruct((rows,), dtype) for dtype in stored],
        grid=(rows // block,),
        in_specs=[number if on else column for on in shared],
        out_specs=[column] * len(stored),
        compiler_params=triton.CompilerParams(num_warps=4, num_stages=1),
        interpret=interpret,
    )(*given)
    return [x != 0 if o.dtype == bool else x for o, x in zip(chunk.results, columns, strict=True)]


def _interpreted(chunk: Chunk, operands: Sequence[Any], rows: int) -> list[Any]:
    return fuse(chunk, operands, rows, interpret=True)


# The limits are not measured yet: values that exceed the 255 registers of a thread go through the first-level cache.
GPU = Kernels(fuse, name="GPU kernels", most_operations=4000, most_columns=220, granule=BLOCK)
INTERPRETED = replace(GPU, fuse=_interpreted)  # the same kernels on any device, for tests


def in_blocks(program: Any, arrays: Sequence[Any], size: int, most: int = MOST_ROWS, on: Target = GPU) -> Any:
    """Run a `MappedProgram` in blocks of about `most` rows, one after another; the last overlaps the one before it.

    Memory is needed only for inputs, outputs and one block, however long the batch is.
    """
    blocks = -(-size // most)
    if blocks == 1:
        return program(arrays, size, on)
    rows = -(-size // blocks)

    def add(k: Any, whole: Any) -> Any:
        start, part = block(k)
        return jax.tree_util.tree_map(lambda x, y: jax.lax.dynamic_update_slice_in_dim(x, y, start, 0), whole, part)

    def block(k: Any) -> tuple[Any, Any]:
        start, pairs = jnp.minimum(k * rows, size - rows), zip(arrays, program.mapped, strict=True)
        return start, program([jax.lax.dynamic_slice_in_dim(x, start, rows) if m else x for x, m in pairs], rows, on)

    shapes = jax.eval_shape(lambda: block(0)[1])
    empty = jax.tree_util.tree_map(lambda x: jnp.zeros((size, *x.shape[1:]), x.dtype), shapes)
    return jax.lax.fori_loop(0, blocks, add, empty)
