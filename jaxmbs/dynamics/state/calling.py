"""Public functions are compiled automatically when they are called with plain values."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.model import Model, ModelError
from jaxmbs.model.parameters import is_traced

F = TypeVar("F", bound=Callable[..., Any])

ROOM = 66_000  # stack slots of 8 bytes in a frame; CPython then allocates 1 MB, which leaves as much again for callees


def with_room(fn: F) -> F:
    """Wraps fn in a frame so large that CPython allocates one large stack chunk for it and for everything that it calls.

    CPython otherwise keeps frames in chunks of 16 kB, which are mapped and unmapped whenever a call crosses a boundary.
    This takes a fifth of the time of a trace whose calls go back and forth across such a boundary.
    """

    def wide(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    wide.__code__ = wide.__code__.replace(co_stacksize=ROOM)
    return functools.wraps(fn)(wide)  # type: ignore[return-value]


def compiles_itself(*static: str) -> Callable[[F], F]:
    """Decorator: eager calls are jitted, cached by the structure of the model; inside a trace the function runs unjitted.

    static: names of arguments that are not arrays. Inside an outer trace, a model that is a constant stays a constant, so
    that its numbers are literals of the program.
    """

    def decorate(fn: F) -> F:
        traced = with_room(fn)
        jitted = jax.jit(traced, static_argnames=static)
        signature = inspect.signature(fn)

        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            require_model(args[0] if args else kwargs.get("model"), fn.__name__)
            if any(map(is_traced, jax.tree_util.tree_leaves((args, kwargs)))):
                return traced(*args, **kwargs)
            bound = signature.bind(*args, **kwargs)
            return jitted(**bound.arguments)

        return wrapper  # type: ignore[return-value]

    return decorate


def require_model(model: Any, where: str) -> None:
    """Raise ModelError if the first argument is not a model."""
    if not isinstance(model, Model):
        raise ModelError(
            f"{where.lstrip('_')}: the first argument is {type(model).__name__}; pass the Model that "
            "Mechanism.build() returns"
        )


def state_dtype(*arrays: Any) -> Any:
    """Floating dtype of the state arguments; the model's numbers are cast to it."""
    given = [x for x in arrays if x is not None]
    dtype = jnp.result_type(*(x if isinstance(x, (jax.Array, np.ndarray)) else jnp.asarray(x) for x in given))
    return dtype if jnp.issubdtype(dtype, jnp.floating) else jnp.result_type(float)


def vector(model: Model, name: str, x: Any, n: int, dtype: Any) -> jax.Array:
    """x as an array (n,) of dtype; for another shape, a ModelError that names the argument and the remedy."""
    out = jnp.asarray(x, dtype)
    if out.shape != (n,):
        size = "nq" if name == "q" else "nv"
        batch = f"; for a batch use jax.vmap over {name}" if out.ndim > 1 and out.shape[-1] == n else ""
        raise ModelError(f"{name} has shape {out.shape}; model {model.name!r} needs ({n},), {size} = {n}{batch}")
    return out
