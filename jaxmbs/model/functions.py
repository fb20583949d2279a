"""User-defined functions: their arguments have the order (model, t, q, v), and the shape of their results is checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.model.errors import ModelError

ORDER = ("model", "t", "q", "v")
_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def check_arguments(fn: Any, where: str, order: tuple[str, ...] = ORDER) -> None:
    """Raise ModelError if fn cannot be called with these arguments, or if its parameter names indicate another order.

    where: the beginning of the message, such as "External: fn".
    """
    wanted = f"fn({', '.join(order)})"
    if not callable(fn):
        raise ModelError(f"{where} is {fn!r}; pass a function {wanted}")
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):  # some built-in functions have none
        return
    try:
        signature.bind(*order)
    except TypeError as error:
        raise ModelError(f"{where} takes {signature}: {error}; write it as {wanted}") from None
    names = [p.name for p in signature.parameters.values() if p.kind in _BY_PLACE]
    if any(name in order and order.index(name) != k for k, name in enumerate(names)):
        raise ModelError(
            f"{where} takes {signature}, but its arguments are passed in the order of {wanted}; change their order"
        )


def takes(fn: Any, count: int) -> bool:
    """Whether fn can be called with `count` arguments."""
    try:
        inspect.signature(fn).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # some built-in functions have no signature
        return True
    return True


def evaluated(
    fn: Callable[..., Any], where: str, shape: tuple[int, ...] | None, dtype: Any, *arguments: Any
) -> jax.Array:
    """fn(*arguments) as an array of this shape (None: one axis of any length) and dtype.

    A single number is accepted as an array of length one. Raises ModelError, beginning with `where`, for other results.
    """
    value, wanted = fn(*arguments), "(rows,)" if shape is None else shape
    try:
        if value is None:
            raise TypeError
        out = jnp.asarray(value)
    except (TypeError, ValueError):
        raise ModelError(f"{where} returned {value!r}; return an array {wanted}") from None
    if not jnp.issubdtype(out.dtype, jnp.number) or jnp.issubdtype(out.dtype, jnp.complexfloating):
        raise ModelError(f"{where} returned {out.dtype} numbers; return real ones {wanted}")
    out = jnp.atleast_1d(out) if shape in (None, (1,)) else out
    if out.ndim > 1 if shape is None else out.shape != shape:
        raise ModelError(f"{where} returned an array {out.shape}; return {wanted}")
    return out.astype(dtype)
