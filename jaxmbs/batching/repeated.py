"""Operands of which several rows are the same, as in nested `jax.vmap` if only one of the axes maps an operand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp


class Repeat(NamedTuple):
    """How the n rows of an operand are repeated: each serves `each` successive rows, and the whole sequence comes `times`
    times; one of the two numbers is 1."""

    each: int
    times: int

    def expanded(self, x: Any) -> Any:
        """The operand with all rows in memory."""
        n, shape = x.shape[0], x.shape[1:]
        rows = self.times * n * self.each
        return jnp.broadcast_to(x[None, :, None], (self.times, n, self.each, *shape)).reshape(rows, *shape)

    def summed(self, x: Any) -> Any:
        """For each row of the operand, the sum over the rows that it serves: the transpose of `expanded`."""
        n = x.shape[0] // (self.times * self.each)
        return x.reshape(self.times, n, self.each, *x.shape[1:]).sum((0, 2))


@dataclass(frozen=True)
class Repeated:
    """An operand for machine code, which finds the rows by itself."""

    array: Any
    repeat: Repeat


def expanded(xs: Any, mapped: Any) -> tuple[list[Any], tuple[bool, ...]]:
    """Operands with all rows in memory, and for each whether it has rows."""
    whole = [m.expanded(x) if isinstance(m, Repeat) else x for x, m in zip(xs, mapped, strict=True)]
    return whole, tuple(map(bool, mapped))
