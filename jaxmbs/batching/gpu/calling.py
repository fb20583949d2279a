"""Calls of PTX kernels in programs of XLA, which loads and launches them by itself.

XLA takes the text of a kernel as an attribute of a call and passes pointers alone. The number of rows is therefore an
array of one number, so that the text does not depend on it, and scratch memory a further result, which is dropped.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.batching.gpu import emitting, ptx
from jaxmbs.batching.machine.code import Code

MOST_KEPT = 1 << 20  # bytes of a row that a loop may keep
MOST_SCRATCH = 2 << 30  # bytes of scratch memory: with more, the blocks take turns
MOST_BLOCKS = (1 << 31) - 1
_CALL = "__gpu$xla.gpu.ptx"  # XLA's own name, which is not documented


def call(code: Code, given: Sequence[Any], repeats: Mapping[int, bool], rows: int, results: Sequence[Any]) -> list[Any]:
    """See `Target.call`."""
    kernel = emitting.kernel(code, repeats)
    blocks = min(-(-rows // kernel.block), MOST_BLOCKS)
    made = list(results)
    if kernel.scratch:
        blocks = max(1, min(blocks, MOST_SCRATCH // (kernel.scratch * kernel.block)))
        made.append(jax.ShapeDtypeStruct((blocks * kernel.scratch * kernel.block,), np.uint8))
    inputs = [*given, sizes(given, repeats, rows)]
    one = np.int32(1)
    found = jax.ffi.ffi_call(_CALL, made)(
        *inputs, name=emitting.NAME, kernel_type="ptx", kernel_data=_ptx(kernel.text),
        grid_x=np.int32(blocks), grid_y=one, grid_z=one, block_x=np.int32(kernel.block), block_y=one, block_z=one,
        shared_mem_bytes=np.int32(0), output_indices=tuple(np.int32(len(inputs) + k) for k in range(len(made))),
    )  # fmt: skip
    return list(found)[: len(results)]


def sizes(given: Sequence[Any], repeats: Mapping[int, bool], rows: int) -> jax.Array:
    """What a kernel is told about the rows, see `emitting.Kernel`."""
    found = [rows]
    for k, successive in repeats.items():
        own = given[k].shape[0]
        found.append(rows // own if successive else own)
    return jnp.asarray(np.array(found, np.int64).view(np.int32))  # as JAX may not have whole numbers of 64 bits


@functools.lru_cache(256)
def _ptx(text: str) -> str:
    return ptx.ptx(text)
