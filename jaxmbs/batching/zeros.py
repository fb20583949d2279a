"""Products with a known zero: they are not computed, yet the result is NaN where the other factor is infinite or NaN.

0 x is zero for every finite x. A product with a zero that is known while recording is therefore replaced by that zero, and
x is remembered as its guard. Sums, differences and products pass on the guards of their operands; where a number is used
otherwise (as a result, in a comparison, in a function), 0 x is added to it for each guard. Zero columns of a Jacobian then
cost nothing on the way and one product at the end, and the result is NaN wherever the operations as written would give NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jaxmbs.batching.scalars import Operation

# operations whose result is not finite if one of their operands is not
_STRICT = frozenset(["add", "sub", "mul", "neg", "sin", "cos", "square"])


@dataclass(eq=False, slots=True, frozen=True)
class Guarded:
    """A number that is NaN unless all its guards are finite; `guards` is a mask of bits from `Guards`."""

    number: Any
    guards: int


class Guards:
    """The guards of one program, each represented by a bit."""

    def __init__(self) -> None:
        self.dtypes: dict[Any, Any] = {}
        self._bits: dict[Any, int] = {}
        self._members: list[Any] = []
        self._covered: dict[Any, int] = {}

    def bit(self, x: Any) -> int:
        if x not in self._bits:
            self._bits[x] = 1 << len(self._members)
            self._members.append(x)
            self._covered.clear()
        return self._bits[x]

    def fewest(self, mask: int) -> list[Any]:
        """The guards of a mask, without those that are finite whenever the others are."""
        for x in self._of(mask):
            mask &= ~self._implied(x)
        return list(self._of(mask))

    def _of(self, mask: int) -> Iterator[Any]:
        while mask:
            lowest = mask & -mask
            yield self._members[lowest.bit_length() - 1]
            mask ^= lowest

    def _implied(self, x: Any) -> int:
        """Mask of the guards, other than x, that are finite whenever x is."""
        waiting = [x]
        while waiting:
            y = waiting[-1]
            operands = _operands(y)
            missing = [z for z in operands if z not in self._covered]
            if y in self._covered or not missing:
                waiting.pop()
                mask = 0
                for z in operands:
                    mask |= self._covered[z] | self._bits.get(z, 0)
                self._covered[y] = mask
            else:
                waiting += missing
        return self._covered[x]


def _operands(x: Any) -> list[Any]:
    if isinstance(x, Operation) and x.primitive.name in _STRICT:
        return [y for y in x.operands if isinstance(y, Operation) or not hasattr(y, "dtype")]
    return []
