"""Random numbers in a run, from two words of the key and a counter, so that they are part of machine code.

The generator is Threefry-2x32 with 20 rounds [Salmon et al. 2011], as in `jax.random`, whose own functions work on arrays
and not on scalars.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxmbs.model import ModelError
from jaxmbs.model.structure import SensorElement, Structure

_ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
_PARITY = 0x1BD11BDA
_MOST = 4096  # pairs of numbers that a sensor may draw at an instant


class Chance(NamedTuple):
    """words: two of 32 bits, for the noise of sensors; keys: {controller: key}, of those that take one."""

    words: Any
    keys: dict[str, Any]

    @staticmethod
    def of(structure: Structure, key: Any) -> Chance:
        if not hasattr(key, "dtype") or not (_is_key(key) or (key.dtype == jnp.uint32 and key.ndim == 1)):
            raise ModelError(f"simulate: key is {key!r}; pass one such as jax.random.key(0)")
        takers = [(k, x.name) for k, x in enumerate(structure.controllers) if x.fixed.takes_key]
        words = jax.random.bits(key, (2,), jnp.uint32)
        return Chance((words[0], words[1]), {name: jax.random.fold_in(key, k) for k, name in takers})

    def normal(self, sensor: int, instant: Any, size: int, dtype: Any) -> list[Any]:
        """Independent standard normal numbers [Box and Muller 1958] for a sensor, by its index; instant: a number that
        differs between the instants at which it measures."""
        out: list[Any] = []
        for pair in range(-(-size // 2)):
            count = instant.astype(jnp.uint32), jnp.uint32(_MOST * sensor + pair)
            a, b = ((x.astype(dtype) + 0.5) * 2.0**-32 for x in threefry(self.words, count))
            length = jnp.sqrt(-2 * jnp.log(a))
            out += [length * jnp.cos(2 * math.pi * b), length * jnp.sin(2 * math.pi * b)]
        return out[:size]


def _is_key(x: Any) -> bool:
    return jnp.issubdtype(x.dtype, jax.dtypes.prng_key) and x.ndim == 0


def threefry(key: Sequence[Any], count: Sequence[Any]) -> tuple[Any, Any]:
    """Two words of 32 bits from two words of a key and two of a counter."""
    keys = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(_PARITY))
    x, y = count[0] + keys[0], count[1] + keys[1]
    for block in range(5):
        for turn in _ROTATIONS[block % 2]:
            x = x + y
            y = ((y << jnp.uint32(turn)) | (y >> jnp.uint32(32 - turn))) ^ x
        x, y = x + keys[(block + 1) % 3], y + keys[(block + 2) % 3] + jnp.uint32(block + 1)
    return x, y


def is_noisy(structure: Structure, sensor: SensorElement) -> bool:
    """Whether a sensor has noise, or may have it: its standard deviations are not zeros that belong to the structure."""
    names = [f"{sensor.name}.{field}" for field in sensor.element.noises]
    return any(x is None for name in names for x in structure.table[name][0].pattern)


def needs_key(structure: Structure) -> str:
    """The first sensor or controller that needs a key of random numbers, for messages; "" if none does."""
    found = [f"sensor {x.name!r} has noise" for x in structure.sensors if is_noisy(structure, x)]
    found += [f"controller {x.name!r} takes a key" for x in structure.controllers if x.fixed.takes_key]
    return found[0] if found else ""
