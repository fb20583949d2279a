"""Calls of machine code in programs of XLA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax

from jaxmbs.batching.machine import compiling, emitting
from jaxmbs.batching.machine.code import Code


def call(code: Code, given: Sequence[Any], repeats: Mapping[int, bool], rows: int, results: Sequence[Any]) -> list[Any]:
    """See `Target.call`."""
    name = compiling.registered(emitting.kernel(code, rows, repeats))
    return list(jax.ffi.ffi_call(name, results)(*given))
