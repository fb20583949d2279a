"""User-defined functions: their arguments have the order (model, t, q, v), and the shape of their results is checked."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.model.errors import ModelError
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.fields import Element, declared, element, field
from jaxmbs.model.given import Number, Vector, shape_of
from jaxmbs.spatial.scalar import Scalar

ORDER = ("model", "t", "q", "v")
PARAMETERS = "parameters"
_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def check_arguments(fn: Any, where: str, order: tuple[str, ...] = ORDER) -> None:
    """Raise ModelError if fn cannot be called with these arguments, or if its parameter names indicate another order.

    where: the beginning of the message, such as "External: fn".
    """
    wanted = f"fn({', '.join(order)})"
    if not callable(fn):
        raise ModelError(f"{where} is {fn!r}; pass a function {wanted}")
    by_name = dict.fromkeys({PARAMETERS} & names_of(fn) - {*order})
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):  # some built-in functions have none
        return
    try:
        signature.bind(*order, **by_name)
    except TypeError as error:
        raise ModelError(f"{where} takes {signature}: {error}; write it as {wanted}") from None
    names = [p.name for p in signature.parameters.values() if p.kind in _BY_PLACE]
    if any(name in order and order.index(name) != k for k, name in enumerate(names)):
        raise ModelError(
            f"{where} takes {signature}, but its arguments are passed in the order of {wanted}; change their order"
        )


def names_of(fn: Any) -> set[str]:
    """The names of the arguments of a function; none if it has no signature, as some built-in ones."""
    try:
        return {*inspect.signature(fn).parameters}
    except (TypeError, ValueError):
        return set()


@element
class WithParameters(Element):
    """Base of the elements that have functions. The functions may take one more argument, `parameters`, a dictionary of
    numbers. These are parameters of the model, "<name>.<key>", set, varied and dispersed like all others."""

    parameters: Mapping[str, Number | Vector] | tuple[object, ...] = field(
        Kind.NUMBERS,
        "",
        "numbers and lists of numbers by name, which the function takes as `parameters`",
        default=(),
        kw_only=True,
    )

    def check_functions(self, where: str, *functions: Any) -> None:
        """Raise ModelError for parameters that are not numbers, have the name of a field, or are taken by no function."""
        given = self.parameters
        if not isinstance(given, Mapping):
            if not isinstance(given, tuple):  # in a structure, pairs of names and kinds
                raise ModelError(f"{where}: parameters is {given!r}; pass numbers by name, such as {{'cd': 1.2}}")
            return
        own = {d.name for d in declared(type(self))}
        for name, value in given.items():
            if not isinstance(name, str) or not name.isidentifier() or name in own:
                why = f"is a field of {type(self).__name__}" if name in own else "is not a name"
                raise ModelError(f"{where}: the parameter {name!r} {why}; choose another name")
            shape = shape_of(value)
            if len(shape) > 1 or shape == (0,):
                raise ModelError(f"{where}: the parameter {name!r} is {value!r}; pass a number or a list of numbers")
        if given and not any(PARAMETERS in names_of(fn) for fn in functions):
            raise ModelError(f"{where} takes no `parameters`, but has {[*given]}; add the argument, or leave them out")

    def with_parameters(
        self, fn: Callable[..., Any], values: Mapping[str, Any], dtype: Any, further: Sequence[str] = ()
    ) -> Callable[..., Any]:
        """The function, given its parameters if it takes them; values: the numbers of the element by path; further: names of
        those that it gets in addition."""
        if PARAMETERS not in names_of(fn):
            return fn
        given: Any = self.parameters  # in a structure, pairs of names and kinds
        names = (*further, *dict(given))
        return functools.partial(fn, parameters={name: _array(values[name], dtype) for name in names})

    def number(
        self,
        fn: Callable[..., Any],
        where: str,
        values: Mapping[str, Any],
        *arguments: Scalar,
        transform: Callable[..., Any] = lambda fn: fn,
    ) -> Scalar:
        """fn(*arguments), or a transformation of it such as jax.grad: an array if an argument or one of the element's
        numbers is an array, otherwise a float; where: the beginning of error messages."""
        dtypes = [x.dtype for x in jax.tree_util.tree_leaves((arguments, dict(values))) if isinstance(x, jax.Array)]

        def found(dtype: Any) -> jax.Array:
            given = self.with_parameters(fn, values, dtype)
            exact = transform(lambda *x: evaluated(given, where, (), dtype, *x))
            return exact(*(jnp.asarray(x, dtype) for x in arguments))

        if dtypes:
            return found(dtypes[0])
        with jax.enable_x64(True):
            return float(found(float))


def _array(x: Any, dtype: Any) -> Any:
    if dtype is None:
        return np.asarray(x, float)
    return jnp.stack([jnp.asarray(c, dtype) for c in x]) if isinstance(x, tuple) else jnp.asarray(x, dtype)


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
