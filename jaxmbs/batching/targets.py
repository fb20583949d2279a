"""What runs programs of scalars on one kind of device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Target:
    """Runs programs of scalars on one kind of device.

    name: what it is called. serves(equation): whether it can evaluate an equation entry by entry.
    excludes(step, rows): why a step cannot be part of a kernel for so many rows, in words, empty if it can.
    call(code, given, repeats, rows, results): the results of a kernel with this `machine.code.Code` for all rows, as
    arrays such as `results`, from the arrays `given`, in the order of `code.inputs`; repeats: see
    `machine.emitting.kernel`.
    """

    name: str
    serves: Callable[[Any], bool]
    excludes: Callable[[Any, int], str]
    call: Callable[..., list[Any]]
