"""Numbers of rows into lanes and back, where fewer rows are left than lanes: nothing beyond the last row is touched."""

import ctypes

import llvmlite.binding as llvm
import numpy as np
import pytest

from jaxmbs.batching.machine import compiling, movement
from jaxmbs.batching.machine.text import Module, Text

LANES, STRIDE = 8, 3


@pytest.fixture(scope="module", params=["float64", "float32", "bool"])
def movers(request):
    """(fetch, keep) as functions of this process, and their dtype."""
    dtype, module = np.dtype(request.param), Module(LANES)
    names = [movement._one_by_one(module, dtype, fetch) for fetch in (True, False)]
    compiling._prepared()
    target = llvm.Target.from_default_triple().create_target_machine(jit=True)
    parsed = llvm.parse_assembly("\n".join(module.parts[n].replace("define internal", "define") for n in names))
    engine = llvm.create_mcjit_compiler(parsed, target)
    engine.finalize_object()
    form = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)

    def mover(name):
        move = form(engine.get_function_address(name))
        return lambda to, source, count: move(to.ctypes.data, source.ctypes.data, STRIDE, count)

    yield *map(mover, names), dtype
    engine.close()


@pytest.mark.parametrize("count", range(1, LANES + 1))
def test_lanes_beyond_the_last_row_have_its_number(movers, count):
    """Whatever lies behind the array is not read: here it is the opposite of the row's own."""
    fetch, _, dtype = movers
    rows = np.full((LANES + 1, STRIDE), False if dtype.kind == "b" else -1, dtype)
    rows[:count, 0] = np.arange(count) % 2 == (count - 1) % 2 if dtype.kind == "b" else 1 + np.arange(count)
    lanes = np.zeros(LANES, dtype)
    fetch(lanes, rows, count)
    assert lanes.tolist() == [rows[min(k, count - 1), 0] for k in range(LANES)]


@pytest.mark.parametrize("count", range(1, LANES + 1))
def test_rows_beyond_the_last_are_not_written(movers, count):
    _, keep, dtype = movers
    rows = np.zeros((LANES + 1, STRIDE), dtype)
    keep(rows, np.ones(LANES, dtype), count)
    wanted = np.zeros_like(rows)
    wanted[:count, 0] = 1
    assert np.array_equal(rows, wanted)


def test_masked_rows_are_read_by_every_version_of_llvm():
    """Before LLVM 22, their alignment is a number of its own; later versions read that too."""
    module = Module(4)
    text = Text(module)
    rows = movement._Rows(text, np.dtype("float64"), 3, 0, 3)
    rows.store(0, rows.load(1))
    compiling._prepared()
    body = ["define void @f(ptr %at) {", *text.lines, "  ret void", "}"]
    llvm.parse_assembly("\n".join([*module.parts.values(), *body])).verify()
    assert sum(", i32 8, " in line for line in text.lines) == 2
