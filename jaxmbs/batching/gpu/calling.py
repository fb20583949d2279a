"""Calls of PTX kernels in programs of XLA.

A kernel gets pointers alone. The number of rows is therefore passed in an array, so that the text does not depend on it,
and scratch memory is a further result, which is dropped. XLA can load and launch a kernel by itself, given its text as an
attribute of a call. The name of this call is not documented; it is used in versions of JAX in which it has been checked,
and CUDA's driver in later ones.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.batching.gpu import driver, emitting, ptx
from jaxmbs.batching.machine.code import Code

MOST_KEPT = 1 << 20  # bytes of a row that a loop may keep
MOST_SCRATCH = 2 << 30  # bytes of scratch memory: with more, the blocks take turns
MOST_BLOCKS = (1 << 31) - 1
_CALL = "__gpu$xla.gpu.ptx"
_CHECKED = (0, 12)  # the newest version of JAX in which XLA's own call has been checked (`make test-gpu`)


def call(
    code: Code, given: Sequence[Any], repeats: Mapping[int, bool], rows: int, results: Sequence[Any],
    block: int = emitting.BLOCK, most_blocks: int = MOST_BLOCKS,
) -> list[Any]:  # fmt: skip
    """See `Target.call`; block: threads of a block. With more rows than `most_blocks` blocks have, the blocks take turns."""
    kernel = emitting.kernel(code, repeats, block)
    blocks = min(-(-rows // kernel.block), most_blocks)
    made = list(results)
    if kernel.scratch:
        blocks = max(1, min(blocks, MOST_SCRATCH // (kernel.scratch * kernel.block)))
        made.append(jax.ShapeDtypeStruct((blocks * kernel.scratch * kernel.block,), np.uint8))
    arrays, text = [*given, sizes(given, repeats, rows)], _ptx(kernel.text)
    if jax.__version_info__[:2] > _CHECKED:
        name = driver.registered(text, kernel.block, len(arrays), len(made))
        found = jax.ffi.ffi_call(name, made)(*arrays, blocks=np.int32(blocks))
    else:
        one = np.int32(1)
        found = jax.ffi.ffi_call(_CALL, made)(
            *arrays, name=emitting.NAME, kernel_type="ptx", kernel_data=text, shared_mem_bytes=np.int32(0),
            grid_x=np.int32(blocks), grid_y=one, grid_z=one, block_x=np.int32(kernel.block), block_y=one, block_z=one,
            output_indices=tuple(np.int32(len(arrays) + k) for k in range(len(made))),
        )  # fmt: skip
    return list(found)[: len(results)]


def sizes(given: Sequence[Any], repeats: Mapping[int, bool], rows: int) -> jax.Array:
    """What a kernel is told about the rows, see `emitting.Kernel`."""
    found = [rows]
    for k, successive in repeats.items():
        own = given[k].shape[0]
        found.append(rows // own if successive else own)
    return jnp.asarray(np.array(found, np.int64).view(np.int32))  # because JAX may have no integers of 64 bits


@functools.lru_cache(256)
def _ptx(text: str) -> str:
    return ptx.ptx(text)
