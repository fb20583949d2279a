"""Which degrees of freedom are locked and which elements are switched on, for each instance."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.model.shapes import Bool

_BITS = 31  # bits used of every int32


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Sides:
    """The branch of each force element (`Force.sides`): one bit for each of its switching surfaces (`Force.corners`) and
    instants, which is set if the element is beyond it.

    The bits are packed into integers, `words`, because every number in its state makes a loop over a batch slower.
    """

    words: tuple[Any, ...]
    counts: tuple[int, ...] = field(metadata={"static": True})

    @staticmethod
    def packed(sides: list[tuple[Any, ...]]) -> Sides:
        counts = tuple(map(len, sides))
        none = Sides(tuple(jnp.zeros((), jnp.int32) for _ in range(-(-sum(counts) // _BITS))), counts)
        return none.flipped([list(own) for own in sides])

    def of(self, k: int) -> tuple[Any, ...]:
        """The sides of force element k."""
        first = sum(self.counts[:k])
        return tuple((self.words[i // _BITS] & (1 << i % _BITS)) != 0 for i in range(first, first + self.counts[k]))

    def flipped(self, where: list[list[Any]]) -> Sides:
        """The sides after flipping those that `where` marks, given as one list for each force element."""
        words = list(self.words)
        for i, flips in enumerate(x for own in where for x in own):
            words[i // _BITS] = words[i // _BITS] ^ jnp.where(flips, jnp.int32(1 << i % _BITS), 0)
        return Sides(tuple(words), self.counts)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Mode:
    """Locks and switches of a mechanism of variable structure: a pytree of boolean arrays, created by `Model.mode`.

    lock: (nv,), degrees of freedom whose acceleration is prescribed, zero unless given otherwise. They keep the rate
    that they have: `impact` brings them to rest, and `simulate` refuses any that move at the start. force: (number of
    force elements,), those that act; constraint: (number of loops and constraints,), those that hold, loops first;
    sides: the branches of the force elements during a run, otherwise None. In a run, lock, force or
    constraint may also be None, if nothing can change it: then nothing is locked, all force elements act, or all
    constraints hold.

    >>> model = mbs.library.double_pendulum().build()
    >>> model.mode(lock="elbow").lock.tolist()
    [False, True]
    """

    lock: Bool[jax.Array, " nv"] | None
    force: Bool[jax.Array, " forces"] | None
    constraint: Bool[jax.Array, " constraints"] | None
    sides: Sides | None = None
