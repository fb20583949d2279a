"""The loop of a search: steps of all starts, their history, checkpoints."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np

from jaxmbs.batching.compiling import compiled
from jaxmbs.design.local import Local
from jaxmbs.design.optimisers import least_squares, stochastic
from jaxmbs.design.problem import Prepared
from jaxmbs.design.status import Status
from jaxmbs.design.tally import current
from jaxmbs.model import ModelError
from jaxmbs.study.folder.storage import write_whole

Array = Any
# called with (number of steps, number of points evaluated in the last step, smallest cost); if the cost of a search
# does not include the conditions, only points that meet them count; `tally` has the violation of the conditions
Progress = Callable[[int, int, float], None]
KEEP = 5.0  # [s] between two checkpoints
FEWER = 4  # the batch shrinks by this factor when the running starts fit into less; each size is compiled once
FEWEST = 4


def silent(steps: int, points: int, cost: float) -> None:
    """Reports nothing."""


def optimiser(method: Any) -> ModuleType:
    """The module with the states and steps of a method."""
    return stochastic if method == "adam" or not isinstance(method, str) else least_squares


def search(
    prepared: Prepared, checkpoint: Path | None = None, progress: Progress = silent, starts: np.ndarray | None = None
) -> tuple[Any, np.ndarray, np.ndarray]:
    """(final states of all starts, costs (steps, starts), largest residuals of the objectives at the first start).

    starts (s, n): starting points, by default those of the problem, the nominal values first.

    checkpoint: a file in which the state is saved every few seconds, and from which a search of the same problem
    continues with bitwise identical results. Raises ModelError if it belongs to another problem.
    """
    method = optimiser(prepared.problem.method)
    state, costs, before = method.start(prepared, prepared.starts() if starts is None else starts), [], np.zeros(0)
    digest = prepared.digest()
    if checkpoint is not None and checkpoint.exists():
        state, costs, before = _kept(checkpoint, state, digest)
    fixed = None if method is stochastic else prepared.data()
    quick = not any(o.simulates for o in prepared.objectives)
    run = _AllStarts(partial(method.step, prepared), quick)
    saved = time.perf_counter()
    while np.any(running := np.asarray(state.status) == int(Status.RUNNING)):
        state = run(state, prepared.data(len(costs)) if fixed is None else fixed)
        costs.append(state.cost)
        before = state.worst[0] if len(costs) == 1 else before
        _count(prepared, state)
        progress(len(costs), int(np.sum(running)), float(np.min(state.cost)))
        if checkpoint is not None and time.perf_counter() - saved > KEEP:
            _keep(checkpoint, state, costs, before, digest)
            saved = time.perf_counter()
    if checkpoint is not None:
        _keep(checkpoint, state, costs, before, digest)
    return state, np.array(costs), before


def _count(prepared: Prepared, state: Any) -> None:
    """Record the present state of all starts in the tally; steps from before a checkpoint count, too."""
    tally, conditions = current(), prepared.conditions
    tally.evaluations = int(np.sum(state.steps))
    for cost, worst in zip(state.cost, state.worst, strict=True):
        tally.add(float(cost), float(np.max(worst[conditions])) if conditions.any() else None)


class _AllStarts:
    """One step of all starts that are still running, (states, data) -> states. The batch shrinks as starts end, so that
    the last few cost little.

    `mbs.jit` over starts would unroll the instances and directions of one start, tens of thousands of evaluations, into one
    program of scalars, and tracing alone would take minutes. An array program, by jax.vmap, is fast enough.
    """

    def __init__(self, step: Callable[..., Any], quick: bool):
        self.step = compiled(jax.vmap(step, in_axes=(0, None)), quick)

    def __call__(self, state: Any, data: Any) -> Any:
        running = np.flatnonzero(np.asarray(state.status) == int(Status.RUNNING))
        size = len(state.status)
        while size > FEWEST and len(running) <= size // FEWER:
            size = -(-size // FEWER)
        chosen = np.resize(running, size) if size < len(state.status) else np.arange(size)
        new = jax.tree.map(np.asarray, self.step(jax.tree.map(lambda x: x[chosen], state), data))

        def merged(whole: Array, part: Array) -> np.ndarray:
            whole = np.array(whole)
            whole[chosen] = part
            return whole

        return jax.tree.map(merged, state, new)


class Kept:
    """Saves the results at all points that a search has evaluated in a file, if there is one. The same search, started
    again, takes these results from the file, and so continues with bitwise identical results."""

    def __init__(self, path: Path | None, digest: str, traded: int = 0):
        """traded: how many margins, the first ones, are objectives with opposite sign instead of conditions."""
        self.path, self.digest, self.traded, self.saved = path, digest, traded, time.perf_counter()
        self.known: dict[bytes, tuple[np.ndarray, ...]] = {}
        if path is not None and path.exists():
            with np.load(path) as found:
                _same(path, str(found["digest"]), digest)
                columns = [found[f"leaf_{k}"] for k in range(len(found.files) - 1)]
            self.known = {row[0].tobytes(): row for row in zip(*columns, strict=True)}
            current().evaluations += len(self.known)

    def answers(self, x: np.ndarray, evaluate: Callable[[np.ndarray], Any]) -> list[Any]:
        """The results of `evaluate` at the points x (s, n), new or saved: for each point a tuple of arrays, the first
        of which is the point."""
        keys = [row.tobytes() for row in x]
        new = [k for k, key in enumerate(keys) if key not in self.known]
        found = dict(zip(new, evaluate(x[new]), strict=True)) if new else {}
        answers = [found[k] if k in found else self.known[key] for k, key in enumerate(keys)]
        current().evaluations += len(new)
        self._count(answers)
        if self.path is not None:
            self.known.update(zip(keys, answers, strict=True))
            if time.perf_counter() - self.saved > KEEP:
                self.write()
        return answers

    def _count(self, answers: list[Any]) -> None:
        """Record the answers in the tally."""
        tally, n = current(), self.traded
        for here in (Local(*row) for row in answers):
            rest = here._replace(margins=here.margins[n:])
            conditioned = len(rest.equal) + len(rest.margins)
            tally.add(float(-here.margins[0] if n else here.cost), rest.violation if conditioned else None)

    def write(self) -> None:
        """Write all results to the file, if there is one."""
        if self.path is not None and self.known:
            columns = [np.stack([np.asarray(a) for a in column]) for column in zip(*self.known.values(), strict=True)]
            leaves: dict[str, Any] = {f"leaf_{k}": column for k, column in enumerate(columns)}
            _written(self.path, digest=self.digest, **leaves)
            self.saved = time.perf_counter()


def _written(path: Path, **arrays: Any) -> None:
    """Write a file completely or not at all."""
    content = io.BytesIO()
    np.savez(content, **arrays)
    write_whole(path, content.getvalue())


def _same(path: Path, found: str, digest: str) -> None:
    if found != digest:
        raise ModelError(
            f"{path} is the checkpoint of another problem, or comes from another process and contains a function that "
            "cannot be compared (because it reads a file, for example); remove it, or use another folder"
        )


def _keep(path: Path, state: Any, costs: list[np.ndarray], before: np.ndarray, digest: str) -> None:
    leaves: dict[str, Any] = {f"leaf_{k}": np.asarray(x) for k, x in enumerate(jax.tree.leaves(state))}
    _written(path, digest=digest, costs=np.array(costs), before=before, **leaves)


def _kept(path: Path, like: Any, digest: str) -> tuple[Any, list[np.ndarray], np.ndarray]:
    with np.load(path) as found:
        _same(path, str(found["digest"]), digest)
        leaves, tree = jax.tree.flatten(like)
        return tree.unflatten([found[f"leaf_{k}"] for k in range(len(leaves))]), list(found["costs"]), found["before"]
