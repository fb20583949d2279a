"""Physical limits: the least operations and bytes that an evaluation needs, and the most that the machine can do.

An operation is an addition, multiplication, comparison, division or root of one number; a fused multiply-add counts as two,
a sine or a cosine as the additions and multiplications of its polynomial. Divisions and roots thus count for less than they
cost, so that the fraction reached is more likely too small than too large. Bytes are those of the arguments and results of
one batch row; intermediate values need not leave the processor.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from jaxmbs.batching.mapped_program import MappedProgram, flat_axes
from jaxmbs.batching.recorded import Recording, Step

SERIES = {"float64": 25, "float32": 18}  # operations of a sine or cosine: reduction of the argument and a polynomial
SIZES = (1 << 20, 1 << 24, 1 << 28)  # bytes copied on each core: in its own cache, in the shared cache, in memory
PRODUCT = 1536  # rows of the matrices that are multiplied
LINEAR = {"cholesky": 1 / 3, "lu": 2 / 3, "triangular_solve": 1, "eigh": 9, "qr": 4 / 3}  # times n^3, or n^2 per column
FREE = {
    "broadcast_in_dim", "reshape", "squeeze", "slice", "dynamic_slice", "dynamic_update_slice", "concatenate", "transpose",
    "convert_element_type", "gather", "scatter", "iota", "copy", "pad", "rev", "stop_gradient", "expand_dims", "split",
}  # fmt: skip


DEVICES = {  # as published: operations per second, bytes per second
    name: {"float32": single, "float64": double, "copy": {"0": memory}}
    for name, single, double, memory in (
        ("H100", 67e12, 34e12, 3.35e12), ("H200", 67e12, 34e12, 4.8e12), ("A100", 19.5e12, 9.7e12, 2.0e12)
    )
}  # fmt: skip


def peaks_of(device: str) -> dict[str, Any] | None:
    """The peaks of a kind of device: measured for a CPU, as published for a GPU, None for an unknown device."""
    return peaks() if device == "cpu" else next((p for name, p in DEVICES.items() if name in device), None)


def peaks(rounds: int = 12) -> dict[str, Any]:
    """What all cores of this machine achieve together, the best of several rounds: operations per second in matrix products
    {"float64", "float32"}, and bytes per second read and written in copying, by the size of the copy."""
    cores = len(os.sched_getaffinity(0))
    rng = np.random.default_rng(0)
    found: dict[str, Any] = {}
    for dtype in SERIES:
        a, b = (rng.normal(size=(PRODUCT, PRODUCT)).astype(dtype) for _ in range(2))
        out = np.empty_like(a)
        found[dtype] = 2 * PRODUCT**3 / _quickest(lambda a=a, b=b, out=out: np.matmul(a, b, out=out), rounds)
    found["copy"] = {}
    with ThreadPoolExecutor(cores) as pool:
        for size in SIZES:
            pairs = [(np.zeros(size // 16), np.ones(size // 16)) for _ in range(cores)]
            times = max(1, (1 << 27) // size)  # so that a round takes several milliseconds

            def copy(pair: tuple[np.ndarray, np.ndarray], times: int = times) -> None:
                for _ in range(times):
                    np.copyto(*pair)

            took = _quickest(lambda pairs=pairs: list(pool.map(copy, pairs)), rounds)
            found["copy"][str(size)] = size * times * cores / took
    return found


def _quickest(work: Callable[[], Any], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def limit(operations: float, moved: float, batch: int, dtype: str, peaks: dict[str, Any]) -> tuple[float, str]:
    """(ns, "arithmetic" or "memory"): the least time of an evaluation, and what determines it."""
    sizes = sorted(peaks["copy"], key=int)
    cores = len(os.sched_getaffinity(0))
    size = next((s for s in sizes if int(s) >= moved * batch / cores), sizes[-1])
    times = {"arithmetic": operations / peaks[dtype] * 1e9, "memory": moved / peaks["copy"][size] * 1e9}
    return max((t, by) for by, t in times.items())


def needs(fn: Callable[..., Any], args: tuple[Any, ...], in_axes: Any, dtype: str) -> dict[str, float]:
    """{"operations", "moved"} of one batch row. Operations are those of the recorded program, which has no structural zeros,
    if the function can be recorded."""
    flat, axes, treedef = flat_axes(args, in_axes)
    mapped = [a is not None for a in axes]

    def one(*leaves: Any) -> Any:
        return fn(*treedef.unflatten(leaves))

    program = MappedProgram(one, flat, mapped)
    example = [jax.ShapeDtypeStruct(x.shape[1:] if m else x.shape, x.dtype) for x, m in zip(flat, mapped, strict=True)]
    results = jax.tree.leaves(jax.eval_shape(one, *example))
    moved = sum(_bytes(x) for x in (*(x for x, m in zip(example, mapped, strict=True) if m), *results))
    if program.by_rows:
        return {"operations": recorded(program.program, dtype), "moved": moved}
    return {"operations": traced(jax.make_jaxpr(one)(*example).jaxpr, dtype), "moved": moved}


def _bytes(x: Any) -> int:
    return math.prod(x.shape) * x.dtype.itemsize


def recorded(program: Recording, dtype: str) -> float:
    """Operations of a recorded program, including every iteration of its loops."""
    steps, due, _ = program.plan()
    own = sum(SERIES[dtype] if o.primitive.name in ("sin", "cos") else 1 for o in due)
    return own + sum(_of_step(s, dtype) for s in steps)


def _of_step(step: Step, dtype: str) -> float:
    return step.loop.length * recorded(step.loop.program, dtype) if step.loop else 0.0


def traced(jaxpr: Any, dtype: str) -> float:
    """Operations of a traced function, element by element."""
    return sum(_of_equation(e, dtype) for e in jaxpr.eqns)


def _of_equation(e: Any, dtype: str) -> float:
    name, size = e.primitive.name, sum(math.prod(v.aval.shape) for v in e.outvars)
    inner = [
        getattr(x, "jaxpr", x) for p in e.params.values() for x in _listed(p) if hasattr(getattr(x, "jaxpr", x), "eqns")
    ]
    if name == "cond":
        return max(traced(j, dtype) for j in inner)
    if inner:
        return e.params.get("length", 1) * sum(traced(j, dtype) for j in inner)
    if name == "dot_general":
        (axes, _), _ = e.params["dimension_numbers"]
        return 2 * size * math.prod(e.invars[0].aval.shape[a] for a in axes)
    if name in LINEAR:
        shape = e.invars[0].aval.shape
        columns = e.outvars[0].aval.shape[-1] if name == "triangular_solve" else shape[-1]
        return LINEAR[name] * math.prod(shape) * columns
    if name in FREE:
        return 0.0
    if name.startswith("reduce"):
        return float(math.prod(e.invars[0].aval.shape))
    return size * (SERIES[dtype] if name in ("sin", "cos") else 1)


def _listed(x: Any) -> Sequence[Any]:
    return x if isinstance(x, (list, tuple)) else (x,)
