"""Execution of a program for all rows: its steps on whole arrays, the operations between them in kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmbs.batching.recorded import Recording
from jaxmbs.batching.scalars import Entry, Operation, Source, array_of, is_known, is_shared, single
from jaxmbs.batching.targets import Kernels, Target, Whole, evaluate


@dataclass(frozen=True)
class Setting:
    """The number of rows for which a program runs, and the target that runs it."""

    rows: int
    target: Target


def execute(program: Recording, given: dict[Source, Any], setting: Setting) -> list[Any]:
    """The outputs for all rows from the `given` inputs."""
    if isinstance(setting.target, Whole):
        return setting.target.execute(program, given, setting)
    assert isinstance(setting.target, Kernels)
    steps, due, leaving = program.plan()
    run = _Execution(given, setting.rows, setting.target)
    waiting: list[list[Operation]] = [[] for _ in range(len(steps) + 1)]
    for item in program.items:
        if isinstance(item, Operation) and item in due:
            waiting[due[item]].append(item)
    for step, operations in zip(steps, waiting, strict=False):
        made = [o for o in operations if o in leaving]
        run.columns.update(zip(made, run.outputs([single(o) for o in made], operations, leaving), strict=True))
        arrays = step.run(setting, *[run.array(x) for x in step.inputs])
        run.known.update(zip(step.outputs, arrays, strict=True))
    return run.outputs(program.outputs, waiting[-1], leaving)


class _Execution:
    """The arrays and columns that have been computed so far."""

    def __init__(self, given: dict[Source, Any], rows: int, target: Kernels):
        self.known, self.rows, self.target = dict(given), rows, target
        self.columns: dict[Any, Any] = {}

    def outputs(self, wanted: list[Any], operations: list[Operation], leaving: set[Operation]) -> list[Any]:
        """The `wanted` values for all rows, after kernels have computed the operations."""
        results = {o for o in operations if o in leaving}
        if results:
            self.columns.update(evaluate(operations, results, self.operand, self.rows, self.target))
        return [self.batched(x) for x in wanted]

    def source(self, x: Source) -> Any:
        return x.value if x.value is not None else self.known[x]

    def operand(self, e: Any) -> Any:
        """An operand of a kernel: one number of every row (rows,), or one that all rows share ()."""
        return self.source(e.source).reshape(-1)[e.k] if is_shared(e) else self.column(e)

    def column(self, e: Any) -> Any:
        """One number of every row, (rows,)."""
        if isinstance(e, np.generic):
            return jnp.broadcast_to(jnp.asarray(e), (self.rows,))
        if e not in self.columns:
            array = self.source(e.source)
            if e.source.rows:
                self.columns[e] = array.reshape(self.rows, -1)[:, e.k]
            else:
                self.columns[e] = jnp.broadcast_to(array.reshape(-1)[e.k], (self.rows,))
        return self.columns[e]

    def array(self, x: Any) -> Any:
        """An input of a step: with a row axis unless it is constant or shared."""
        if isinstance(x, Source):
            return self.source(x)
        return array_of(x, x.reshape(-1)[0].dtype) if is_known(x) else self.batched(x)

    def batched(self, x: Any) -> Any:
        """A value for every row, (rows, *shape)."""
        if isinstance(x, Source):
            array = self.source(x)
            return array if x.rows else jnp.broadcast_to(array, (self.rows, *x.shape))
        if x.ndim == 0:
            return self.column(x.item())
        whole = whole_source(x)
        if whole is not None:
            return self.batched(whole)
        return jnp.stack([self.column(e) for e in x.reshape(-1)], axis=1).reshape(self.rows, *x.shape)


def whole_source(x: np.ndarray) -> Source | None:
    """The source whose entries an array holds, all of them and in order; None if there is none."""
    first = x.reshape(-1)[0]
    if isinstance(first, Entry) and first.source.shape == x.shape:
        whole = all(isinstance(e, Entry) and e.source is first.source and e.k == k for k, e in enumerate(x.reshape(-1)))
        return first.source if whole else None
    return None
