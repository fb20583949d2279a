"""Boundaries of compiled kernels: calls that XLA must not inline.

XLA:CPU fuses producers into every consumer and computes them again there; a recursion written out in scalars
would then take minutes to compile. A call marked `inlineable="false"` stays a call under any outer jit, vmap
or grad, and nothing is fused across it. Numbers known to be 0, 1 or -1 are not passed to the call; they simplify the
program inside it. Known numbers among its results simplify the program around it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import numpy as np
from jax.experimental.xla_metadata import set_xla_metadata

from jaxmbs.spatial.known import bare, known
from jaxmbs.spatial.scalar import is_number

F = TypeVar("F", bound=Callable[..., Any])


def kernel(fn: F) -> F:
    """Decorator: fn(*arguments) becomes one call in the compiled program.

    Arguments are pytrees of scalars, or hashable objects that are not pytrees (such as a joint type), which are static.
    fn must be pure. Which operations it traces may depend on known numbers only where these are 0, 1 or -1, because
    calls whose arguments agree in the places and values of these numbers share one trace. If no argument contains an
    array, and under jax.disable_jit, fn is simply called.
    """

    @functools.wraps(fn)
    def wrapper(*args: Any) -> Any:
        leaves, treedef = jax.tree_util.tree_flatten(args)
        leaves = [known(leaf) for leaf in leaves]
        interpreted = jax.config.jax_disable_jit  # pyright: ignore[reportAttributeAccessIssue]
        if interpreted or not any(isinstance(leaf, jax.Array) for leaf in leaves):
            return fn(*treedef.unflatten(leaves))
        pattern = tuple(leaf if _static(leaf) else _DYNAMIC for leaf in leaves)
        call = _compiled(fn, treedef, pattern)
        return call([bare(leaf) for leaf, p in zip(leaves, pattern, strict=True) if p is _DYNAMIC])

    return wrapper  # type: ignore[return-value]


class _Dynamic:
    """Marks a leaf that is an argument of the compiled call."""


_DYNAMIC = _Dynamic()


def _static(leaf: Any) -> bool:
    if is_number(leaf):
        return leaf in (0, 1, -1)
    return not isinstance(leaf, (jax.Array, np.ndarray, np.generic, bool))


@functools.lru_cache(maxsize=4096)
def _compiled(fn: Callable[..., Any], treedef: Any, pattern: tuple[Any, ...]) -> Callable[[list[Any]], Any]:
    result: dict[str, Any] = {}

    def inner(dynamic: list[Any]) -> list[Any]:
        rest = iter(dynamic)
        args = treedef.unflatten([next(rest) if p is _DYNAMIC else p for p in pattern])
        leaves, result["treedef"] = jax.tree_util.tree_flatten(fn(*args))
        result["pattern"] = [known(leaf) if is_number(leaf) else _DYNAMIC for leaf in leaves]
        return [leaf for leaf in leaves if not is_number(leaf)]

    jitted = jax.jit(inner)

    def call(dynamic: list[Any]) -> Any:
        with set_xla_metadata(inlineable="false"):
            values = iter(jitted(dynamic))
        return result["treedef"].unflatten([next(values) if p is _DYNAMIC else p for p in result["pattern"]])

    return call
