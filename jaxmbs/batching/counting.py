"""Numbers of operations and loops of a recorded program."""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

from jaxmbs.batching.recorded import Recording
from jaxmbs.batching.scalars import Operation

_DIVISIONS = frozenset(["div", "rem", "sqrt", "rsqrt", "cbrt"])
_TRANSCENDENTAL = frozenset([
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1",
    "log", "log1p", "logistic", "pow", "sin", "sinh", "tan", "tanh",
])  # fmt: skip


class Counts(NamedTuple):
    """Counts of one row. arithmetic, divisions (with roots), transcendental: numbers of operations, as often as loops do
    them; loops: the numbers of iterations, each loop before those inside it; kept: bytes that loops stack."""

    arithmetic: int = 0
    divisions: int = 0
    transcendental: int = 0
    loops: tuple[int, ...] = ()
    kept: int = 0


def counted(program: Recording) -> Counts:
    """The counts of what is needed for the outputs of a program."""
    steps, needed, _ = program.plan()
    found = Counter(map(_kind, needed))
    products = [step.product for step in steps if step.product is not None]
    found["arithmetic"] += sum(2 * math.prod(x.matrix.shape) for x in products)
    loops: list[int] = []
    kept = 0
    for step in steps:
        loop = step.loop
        if loop is None:
            continue
        inner = counted(loop.program)
        for kind, n in zip(Counts._fields, inner[:3], strict=False):
            found[kind] += loop.length * n
        if step.name == "scan":  # else a loop over the rows of an array that another one has stacked
            loops += [loop.length, *inner.loops]
            kept += loop.kept + inner.kept
    return Counts(found["arithmetic"], found["divisions"], found["transcendental"], tuple(loops), kept)


def _kind(o: Operation) -> str:
    name = o.primitive.name
    return "divisions" if name in _DIVISIONS else "transcendental" if name in _TRANSCENDENTAL else "arithmetic"
