"""Marks, for `explain` alone, of functions that are left to JAX as they are: these leave no equation of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.extend import core
from jax.interpreters import ad, batching, mlir

# what `explain` is tracing for: the "programs" of a function, or the "bytes" that reverse mode keeps; empty outside
# `explain`. It is part of the key of every cache of jit.
purpose = jax.make_user_context("")

mark_p = core.Primitive(
    "left_to_jax"
)  # name: of the function; reason: in words; rows: their number, 1 for one instance
mark_p.multiple_results = True


def marked(xs: Sequence[Any], name: str, reason: str) -> list[Any]:
    """The operands of a function that is left to JAX; if `explain` asks for programs, the equation of a mark returns
    them."""
    return mark_p.bind(*xs, name=name, reason=reason, rows=1) if xs and purpose.value == "programs" else list(xs)


@mark_p.def_impl
def _same(*xs: Any, **params: Any) -> list[Any]:
    return list(xs)


def _batched(xs: Any, axes: Any, *, rows: int, **params: Any) -> tuple[list[Any], Any]:
    size = next(x.shape[a] for x, a in zip(xs, axes, strict=True) if a is not None)
    return mark_p.bind(*xs, rows=rows * size, **params), axes


def _jvp(primals: Any, tangents: Any, **params: Any) -> tuple[list[Any], list[Any]]:
    """Where bytes are counted, the operands themselves are returned: reverse mode keeps these, and no copies of them."""
    return list(primals) if purpose.value == "bytes" else mark_p.bind(*primals, **params), list(tangents)


mark_p.def_abstract_eval(_same)
batching.primitive_batchers[mark_p] = _batched
ad.primitive_jvps[mark_p] = _jvp
mlir.register_lowering(mark_p, mlir.lower_fun(_same, multiple_results=True))
