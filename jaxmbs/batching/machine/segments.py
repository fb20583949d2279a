"""Whole programs as kernels of a target: everything between two steps on arrays is one kernel, loops included."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.batching.execution import Setting, whole_source
from jaxmbs.batching.machine.code import Code
from jaxmbs.batching.recorded import Recording, Step
from jaxmbs.batching.repeated import Repeated
from jaxmbs.batching.scalars import Entry, Operation, Source, array_of, dtype_of, is_known

MOST_ENTRIES = 2048  # numbers of a row that an iteration of a loop reads or produces


@dataclass
class _Segment:
    """Operations and loops of one kernel, the step on arrays after it, and what later kernels use of it."""

    items: list[Any] = field(default_factory=list)
    step: Step | None = None
    numbers: dict[Any, Entry] = field(default_factory=dict)  # packed entry of each operation or array () of a loop
    packed: list[Source] = field(default_factory=list)
    arrays: list[Source] = field(default_factory=list)


def execute(program: Recording, given: dict[Source, Any], setting: Setting) -> list[Any]:
    """The outputs for all rows from the `given` inputs."""
    known = dict(given)
    first, segments = _segments(program, setting)

    def array(x: Source, apart: bool = False) -> Any:
        """The array of a source. apart: leave repeated rows as they are, for a kernel, which finds them by itself."""
        found = x.value if x.value is not None else known[x]
        return found if apart or not isinstance(found, Repeated) else found.repeat.expanded(found.array)

    for step in first:
        known.update(zip(step.outputs, step.run(setting, *[_constant(x, array) for x in step.inputs]), strict=True))
    moved: dict[Any, Entry] = {}
    values: list[Any] = []
    results: list[Any] = []
    for segment in segments:
        here = {y for item in segment.items if isinstance(item, Step) for y in item.outputs if y.shape}
        values = program.outputs if segment.step is None else segment.step.inputs
        values = [_as_array(x, here) for x in values]
        made = [x for x in values if (x in here if isinstance(x, Source) else not is_known(x))]
        packs = [_members(segment, source) for source in segment.packed]
        found = _kernel(segment.items, [*made, *packs, *segment.arrays], moved, array, setting)
        known.update(zip((*segment.packed, *segment.arrays), found[len(made) :], strict=True))
        moved.update(segment.numbers)
        fresh = iter(found)
        results = [next(fresh) if any(x is y for y in made) else _constant(x, array) for x in values]
        if segment.step is not None:
            known.update(zip(segment.step.outputs, segment.step.run(setting, *results), strict=True))
    return [
        x if _has_rows(v) else jnp.broadcast_to(x, (setting.rows, *v.shape))
        for v, x in zip(values, results, strict=True)
    ]


def _kernel(items: list[Any], wanted: list[Any], moved: dict[Any, Entry], array: Any, setting: Setting) -> list[Any]:
    """The wanted values for all rows, from one kernel."""
    if not wanted:
        return []
    code = Code(items, wanted, moved)
    given = [array(source, True) for source in code.inputs]
    repeats = {k: x.repeat.each > 1 for k, x in enumerate(given) if isinstance(x, Repeated)}
    results = [jax.ShapeDtypeStruct((setting.rows, *x.shape), dtype_of(x)) for x in wanted]
    given = [jnp.asarray(x.array if isinstance(x, Repeated) else x) for x in given]
    return setting.target.call(code, given, repeats, setting.rows, results)


def _as_array(x: Any, here: set[Source]) -> Any:
    """The value as the array that it is a copy of (all numbers, in order), if there is one; else the value itself."""
    source = None if isinstance(x, Source) else whole_source(x)
    there = source is not None and source.rows and (source in here or source.shape)
    return source if there and not isinstance(x, Source) else x


def _constant(x: Any, array: Any) -> Any:
    """The array of a value that needs no kernel: one that exists already, or a constant."""
    return array(x) if isinstance(x, Source) else array_of(x, x.reshape(-1)[0].dtype)


def _has_rows(x: Any) -> bool:
    return x.rows if isinstance(x, Source) else not is_known(x)


def _members(segment: _Segment, source: Source) -> np.ndarray:
    """What the kernel of a segment stores in a packed array: operations and numbers that loops leave."""
    out = np.empty(source.shape, object)
    for x, entry in segment.numbers.items():
        if entry.source is source:
            out[entry.k] = Entry(x, 0) if isinstance(x, Source) else x
    return out


def excluding(most_kept: Callable[[int], int]) -> Callable[[Step, int], str]:
    """A `Target.excludes`: a step is part of a kernel if it is a product with a shared matrix, arrays that are joined, or
    a loop of operations whose iterations are small enough.

    most_kept(rows): how many bytes of a row a loop may keep in scratch memory, in a kernel for so many rows.
    """

    def excludes(step: Step, rows: int) -> str:
        loop = step.loop
        if step.product is not None or step.joined is not None:
            return ""
        if loop is None:
            return f"{step.name} acts on whole arrays"
        if within := next(filter(None, (excludes(x, rows) for x in loop.program.items if isinstance(x, Step))), ""):
            return within
        each = sum(math.prod(x.shape) for x in (*loop.turns, *loop.program.outputs))
        if each > MOST_ENTRIES:
            return f"an iteration of a loop reads and produces {each:,} numbers, more than {MOST_ENTRIES:,}"
        if loop.kept > most_kept(rows):
            return f"a loop of {loop.length:,} iterations keeps {loop.kept:,} bytes of each row"
        return ""

    return excludes


def _segments(program: Recording, setting: Setting) -> tuple[list[Step], list[_Segment]]:
    """The steps that are the same for all rows, and the segments, both in order."""

    def embeds(step: Step) -> bool:
        return not setting.target.excludes(step, setting.rows)

    due: dict[Any, int] = {}  # segment, counted from the end, of operations, loops and the arrays that loops leave
    steps: list[Step] = []
    first: list[Step] = []
    alive: set[Source] = set()

    def need(x: Any, when: int) -> None:
        for e in _numbers(x):
            if isinstance(e, Operation):
                due[e] = max(due.get(e, 0), when)
            elif not isinstance(e, np.generic):
                source = e.source if isinstance(e, Entry) else e
                alive.add(source)
                due[source] = max(due.get(source, 0), when)

    for x in program.outputs:
        need(x, 0)
    for item in reversed(program.items):
        if isinstance(item, Operation):
            if item in due:
                need(_values(item.operands), due[item])
        elif alive.intersection(item.outputs):
            if item.shared:
                first.append(item)
            elif embeds(item):
                due[item] = max(due[y] for y in item.outputs if y in due)
            else:
                steps.append(item)
            when = len(steps) if not embeds(item) else due[item]
            for x in item.inputs:
                need(x, when)
    segments = [_Segment(step=step) for step in (*reversed(steps), None)]
    home: dict[Any, int] = {}
    for item in program.items:
        if item in due:
            home[item] = len(steps) - due[item]
            segments[home[item]].items.append(item)
            if isinstance(item, Step):
                home.update(dict.fromkeys(item.outputs, home[item]))
    _carry_over(program, segments, home)
    return first[::-1], segments


def _carry_over(program: Recording, segments: list[_Segment], home: dict[Any, int]) -> None:
    """Record what each kernel has to pass on to later ones."""
    packs: dict[tuple[int, np.dtype], list[Any]] = {}
    for k, segment in enumerate(segments):
        used = [e for item in segment.items for x in _inputs(item) for e in _numbers(x)]
        values = program.outputs if segment.step is None else segment.step.inputs
        for e in (*used, *(e for x in values for e in _numbers(x))):
            x = e.source if isinstance(e, Entry) else e
            if isinstance(x, np.generic) or home.get(x, k) >= k:
                continue
            if isinstance(x, Source) and x.shape:
                if x not in segments[home[x]].arrays:
                    segments[home[x]].arrays.append(x)
            else:
                waiting = packs.setdefault((home[x], np.dtype(x.dtype)), [])
                if x not in segments[home[x]].numbers:
                    segments[home[x]].numbers[x] = Entry(None, 0)  # type: ignore[arg-type]
                    waiting.append(x)
    for (k, dtype), waiting in packs.items():
        source = Source((len(waiting),), dtype, True)
        segments[k].packed.append(source)
        segments[k].numbers.update((x, Entry(source, i)) for i, x in enumerate(waiting))


def _inputs(item: Any) -> Sequence[Any]:
    return [_values(item.operands)] if isinstance(item, Operation) else item.inputs


def _values(operands: Sequence[Any]) -> np.ndarray:
    out = np.empty(len(operands), object)
    out[:] = operands
    return out


def _numbers(x: Any) -> Iterator[Any]:
    """The parts of a value: numbers, entries and operations, or an array as a whole."""
    yield from [x] if isinstance(x, Source) else x.reshape(-1)
