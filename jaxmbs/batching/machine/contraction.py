"""Which products a kernel adds or subtracts with one rounding (fused multiply-add), and how.

The choice is made here, not by the compilers of the processors, so that the results are the same bits on all that have an
instruction for it: a CPU with FMA, and a GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxmbs.batching.machine.text import Text
from jaxmbs.batching.scalars import Operation

_SUMS = frozenset(["add", "add_any", "sub"])


def absorbed(operations: Sequence[Operation], leaving: set[Operation]) -> dict[Operation, Operation]:
    """{sum: the product that is computed as a part of it}, for products that nothing else uses.

    operations: those of a piece; leaving: the ones whose results are used outside the piece.
    """
    uses = Counter(x for o in operations for x in o.operands if isinstance(x, Operation))
    inside = set(operations)
    found: dict[Operation, Operation] = {}
    for o in operations:
        if o.primitive.name in _SUMS and np.dtype(o.dtype).kind == "f":
            for x in o.operands:
                if isinstance(x, Operation) and x in inside and uses[x] == 1 and x not in leaving and _factors(x):
                    found[o] = x
                    break
    return found


def emit(text: Text, o: Operation, product: Operation, value: Callable[[Any], str]) -> str:
    """The sum or difference `o`, one of whose operands is the product."""
    dtype = np.dtype(o.dtype)
    a, b = map(value, _factors(product))
    first = o.operands[0] is product
    other = value(o.operands[1 if first else 0])
    if o.primitive.name == "sub":
        if first:
            other = text.minus(other, dtype)
        else:
            a = text.minus(a, dtype)
    return text.fused(a, b, other, dtype)


def _factors(x: Operation) -> tuple[Any, ...]:
    """What an operation multiplies; empty if it is no product."""
    if x.primitive.name == "mul":
        return x.operands
    squares = x.primitive.name == "square" or (x.primitive.name == "integer_pow" and x.params["y"] == 2)
    return x.operands * 2 if squares else ()
