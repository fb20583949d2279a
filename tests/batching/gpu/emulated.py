"""A target that runs PTX on the CPU, see `emulation`."""

import functools
from dataclasses import replace

import jax
import numpy as np

from jaxmbs.batching.gpu import PTX, calling, emitting, ptx
from tests.batching.gpu.emulation import Kernel


@functools.lru_cache(64)
def emulated(text):
    return Kernel(ptx.ptx(text, linked=False))


def call(code, given, repeats, rows, results, block=64, most=3):
    """As `gpu.calling.call`, with few blocks, so that each computes several groups of rows."""
    kernel = emitting.kernel(code, repeats, block)
    blocks = min(-(-rows // block), most)

    def run(*arrays):
        arrays = [np.ascontiguousarray(x) for x in arrays]
        made = [np.full(x.shape, 1, x.dtype) for x in results]
        room = [np.empty(blocks * kernel.scratch * block, np.uint8)] * bool(kernel.scratch)
        emulated(kernel.text)(arrays, [*made, *room], blocks, block)
        return tuple(made)

    return list(jax.pure_callback(run, tuple(results), *given, calling.sizes(given, repeats, rows)))


EMULATED = replace(PTX, call=call)
