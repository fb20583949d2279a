"""Public functions are compiled automatically when they are called with plain values."""

from __future__ import annotations

import functools
import inspect
import math
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.interpreters.ad import JVPTracer  # private: tracers have no public names
from jax._src.interpreters.batching import BatchTracer

from jaxmbs.batching.row_programs.public import as_part, is_part_of_a_row, rows
from jaxmbs.dynamics.state.programs import Program
from jaxmbs.model import Model, ModelError
from jaxmbs.model.parameters import is_traced

F = TypeVar("F", bound=Callable[..., Any])

MOST = 64  # instances of one function that are kept, those used last; each takes megabytes and holds its untraced arguments
ROOM = 66_000  # stack slots of 8 bytes in a frame; CPython then allocates 1 MB, which leaves as much again for callees

_plain: set[type] = {type(None), bool, int, float, str, np.ndarray}  # types in whose values nothing is traced
_placed: dict[int, tuple[weakref.ref[Model], bool, Model]] = {}  # results of `placed` by the identity of the model


def with_room(fn: F) -> F:
    """Wrap fn in a frame so large that CPython allocates one large stack chunk for it and for everything that it calls.

    Otherwise CPython stores frames in chunks of 16 kB, which are mapped and unmapped when a call crosses a boundary.
    This costs a fifth of the time of a trace whose calls go back and forth across such a boundary.
    """

    def wide(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    wide.__code__ = wide.__code__.replace(co_stacksize=ROOM)
    return functools.wraps(fn)(wide)  # type: ignore[return-value]


def compiles_itself(*static: str, operands: tuple[str, ...] = (), as_rows: bool = True) -> Callable[[F], F]:
    """Decorator of a public function: it is compiled when it is called, and its batches run as machine code in any JAX
    program, as with `mbs.rows`.

    static: names of arguments that are not arrays. An eager call is compiled for the structure of the model. Within an
    outer trace, arguments that are not traced, such as the model, become constants of the program, and one program is
    cached per set of these; operands: names of arguments that stay inputs of the program even there. as_rows: False if
    the result contains structural numbers that must stay known in a trace; within a trace the function is then inlined
    into its caller.
    """

    def decorate(fn: F) -> F:
        traced = with_room(fn)
        signature = inspect.signature(fn)
        instances: OrderedDict[Any, tuple[Any, Any]] = OrderedDict()

        def parts(args: Any, kwargs: Any) -> tuple[dict[str, Any], list[Any], Any]:
            """(arguments that are not arrays, leaves of the others, their tree)."""
            given = signature.bind(*args, **kwargs).arguments
            fixed = {name: given.pop(name) for name in static if name in given}
            return fixed, *jax.tree_util.tree_flatten(given)

        @functools.wraps(fn)
        def at_once(*args: Any, **kwargs: Any) -> Any:
            fixed, leaves, treedef = parts(args, kwargs)
            one = functools.wraps(fn)(lambda *xs: traced(**treedef.unflatten(xs), **fixed))
            return rows(one)(*leaves)

        jitted = jax.jit(at_once, static_argnames=static)

        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            model, others = (args[0], args[1:]) if args else (kwargs.pop("model", None), ())
            require_model(model, fn.__name__)
            if is_part_of_a_row():
                return as_part(traced, model, *others, **kwargs) if as_rows else traced(model, *others, **kwargs)
            if eager(others, kwargs):
                ready = placed(model)
                if ready is not None or eager((model,), {}):
                    return jitted(ready or model, *others, **kwargs)
            if not as_rows:
                return traced(model, *others, **kwargs)
            fixed, leaves, treedef = parts((model, *others), kwargs)
            names = treedef.unflatten(range(len(leaves)))
            inputs = {k for name in operands for k in jax.tree_util.tree_leaves(names.get(name))}
            moving = [k for k, x in enumerate(leaves) if is_traced(x) or k in inputs]
            still = [None if k in moving else x for k, x in enumerate(leaves)]
            key = (tuple(fixed.items()), treedef, tuple(map(_identity, still)))
            found = instances.pop(key, None)
            if found is None:
                still = [np.array(x) if isinstance(x, np.ndarray) else x for x in still]  # callers may write to theirs

                def instance(*xs: Any) -> Any:
                    whole = list(still)
                    for k, x in zip(moving, xs, strict=True):
                        whole[k] = x
                    return traced(**treedef.unflatten(whole), **fixed)

                found = rows(functools.wraps(fn)(instance)), still
            # not cached with a user's function, which may hold tracers of the current trace
            if not any(callable(x) and not isinstance(x, Program) for x in fixed.values()):
                instances[key] = found
                while len(instances) > MOST:
                    instances.popitem(last=False)
            return found[0](*(leaves[k] for k in moving))

        return wrapper  # type: ignore[return-value]

    return decorate


def eager(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether nothing in the arguments is traced."""
    if _plain.issuperset(map(type, args)) and (not kwargs or _plain.issuperset(map(type, kwargs.values()))):
        return True
    leaves = jax.tree_util.tree_leaves((args, kwargs))
    if any(map(is_traced, leaves)):
        return False
    _plain.update(type(x) for x in leaves if isinstance(x, jax.Array))
    return True


def placed(model: Model) -> Model | None:
    """The model with its numbers as a JAX array, which is made once for each model and not in every call.

    None for a model that has overrides, or whose numbers are traced or could be written to.
    """
    key, wide = id(model), jax.config.jax_enable_x64  # pyright: ignore[reportAttributeAccessIssue]
    found = _placed.get(key)
    if found is not None and found[0]() is model and found[1] is wide:
        return found[2]
    numbers = None if model.overrides else model.numbers
    if not isinstance(numbers, np.ndarray) or numbers.flags.writeable or not numbers.flags.owndata:
        return None
    if not jax.sharding.get_abstract_mesh().empty:  # the array would belong to the devices of the mesh
        return None
    with jax.ensure_compile_time_eval():  # also where a program of JAX is being traced
        new = replace(model, numbers=jnp.array(numbers))
    _placed[key] = weakref.ref(model, lambda _: _placed.pop(key, None)), wide, new
    return new


def may_count(*arguments: Any) -> bool:
    """Whether the number of iterations of a loop may be an input of the program of a function with these arguments.

    It may on a CPU, outside row programs, if all arguments are known, or are batches or tangents of known numbers. Reverse
    mode, which has to store what each iteration produces, is faster if the number is part of the program.
    """
    compiled = jax.default_backend() == "cpu" and not is_part_of_a_row()
    return compiled and all(map(_is_known, jax.tree_util.tree_leaves(arguments)))


def _is_known(x: Any) -> bool:
    """Whether a value is known, or a batch or a tangent of known values."""
    if isinstance(x, BatchTracer):
        return _is_known(x.val)
    if isinstance(x, JVPTracer):
        return _is_known(x.primal) and _is_known(x.tangent)
    return not is_traced(x)


def instances(*arguments: Any) -> int:
    """For how many instances `jax.vmap` calls a function at once: the sizes of all batches around it, multiplied."""
    sizes: dict[int, int] = {}

    def look(x: Any) -> None:
        if isinstance(x, BatchTracer):
            sizes[id(x._trace)] = x.val.shape[x.batch_dim]  # pyright: ignore[reportAttributeAccessIssue]
            look(x.val)
        elif isinstance(x, JVPTracer):
            look(x.primal)
            look(x.tangent)

    for x in jax.tree_util.tree_leaves(arguments):
        look(x)
    return math.prod(sizes.values())


def _identity(x: Any) -> Any:
    """The cache key of an untraced leaf: the identity of a JAX array, which is immutable, or the content of others."""
    if isinstance(x, (np.ndarray, np.generic)):
        return x.shape, x.dtype, x.tobytes()
    return id(x) if isinstance(x, jax.Array) else (type(x), x)


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


def vectors(model: Model, **given: Any) -> list[jax.Array]:
    """Arguments, called as their keywords, as arrays (nq,) for q and (nv,) for others, of one dtype; None stays None."""
    dtype = state_dtype(*given.values())
    sizes = {name: model.nq if name == "q" else model.nv for name in given}
    found: list[Any] = [None if x is None else vector(model, k, x, sizes[k], dtype) for k, x in given.items()]
    return found
