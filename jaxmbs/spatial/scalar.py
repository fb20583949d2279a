"""Functions of one scalar of any kind: JAX array, known number (`known`) or SymPy expression.

Numbers known while tracing simplify the program: zeros vanish, ones and minus ones cost no multiplication, and two
numbers combine at once. Sums and products are written with operators, everything else with these functions, so
that one algorithm serves as the compiled kernel, the reference in plain floats and the written-out formula.
"""

from __future__ import annotations

import math
import sys
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.spatial.known import NUMBERS, ZERO, Known, bare, known

Scalar = Any  # JAX array, Known or sympy.Expr; an int or float only if it never meets an array


def is_number(x: Scalar) -> bool:
    """Whether x is a number known while tracing."""
    return type(x) is Known or type(x) in NUMBERS


def vanishes(x: Scalar) -> bool:
    """Whether x is a number known while tracing, and zero."""
    return is_number(x) and x == 0


def add(a: Scalar, b: Scalar) -> Scalar:
    """Deprecated name of a + b."""
    return _deprecated("add", "+", known(a) + known(b))


def sub(a: Scalar, b: Scalar) -> Scalar:
    """Deprecated name of a - b."""
    return _deprecated("sub", "-", known(a) - known(b))


def mul(a: Scalar, b: Scalar) -> Scalar:
    """Deprecated name of a * b."""
    return _deprecated("mul", "*", known(a) * known(b))


def div(a: Scalar, b: Scalar) -> Scalar:
    """Deprecated name of a / b."""
    return _deprecated("div", "/", known(a) / known(b))


def _deprecated(name: str, sign: str, result: Scalar) -> Scalar:
    message = f"jaxmbs.spatial.scalar.{name} is deprecated; write a {sign} b, with known(number) for a Python number"
    warnings.warn(message, DeprecationWarning, stacklevel=3)
    return result


def total(*terms: Scalar) -> Scalar:
    """Sum of the terms, from the left."""
    return sum(terms, ZERO)


def _apply(name: str, x: Scalar) -> Scalar:
    x = bare(x)
    if type(x) in NUMBERS:
        return Known(getattr(math, name)(x))
    if isinstance(x, (jax.Array, np.ndarray, np.generic)):
        return getattr(jnp, name)(x)
    own = getattr(x, name, None)  # scalars of other kinds have methods of their own
    if own is not None:
        return own()
    import sympy

    return getattr(sympy, name)(x)


def sin(x: Scalar) -> Scalar:
    return _apply("sin", x)


def cos(x: Scalar) -> Scalar:
    return Known(1) if vanishes(x) else _apply("cos", x)


def sqrt(x: Scalar) -> Scalar:
    return _apply("sqrt", x)


def exp(x: Scalar) -> Scalar:
    return _apply("exp", x)


def log(x: Scalar) -> Scalar:
    return _apply("log", x)


def arctan2(y: Scalar, x: Scalar) -> Scalar:
    """Angle of (x, y); 0 with derivative 0 at the origin."""
    if is_number(y) and is_number(x):
        return Known(math.atan2(y, x))
    y, x = bare(y), bare(x)
    if isinstance(x, jax.Array) or isinstance(y, jax.Array):
        nowhere = (jnp.asarray(x) == 0) & (jnp.asarray(y) == 0)
        return jnp.where(nowhere, 0.0, jnp.arctan2(y, jnp.where(nowhere, 1.0, x)))
    import sympy

    return sympy.atan2(y, x)


def tanh(x: Scalar) -> Scalar:
    return _apply("tanh", x)


def where(condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
    """a where the condition holds, else b; decided while tracing if the condition is a Python bool, or None, which never
    holds."""
    if condition is None:
        return known(b)
    if isinstance(condition, (bool, np.bool_)):
        return known(a if condition else b)
    a, b = bare(a), bare(b)
    if isinstance(condition, (jax.Array, np.ndarray)):
        return jnp.where(condition, a, b)
    if hasattr(condition, "select"):
        return condition.select(a, b)
    import sympy

    return sympy.Piecewise((a, condition), (b, True))


def either(a: Scalar, b: Scalar) -> Scalar:
    """Whether one of two conditions holds; None never does."""
    return b if a is None else a if b is None else a | b


def maximum(a: Scalar, b: Scalar) -> Scalar:
    return where(a > b, a, b)


def minimum(a: Scalar, b: Scalar) -> Scalar:
    return where(a < b, a, b)


def safe_sqrt(x: Scalar) -> Scalar:
    """Square root whose derivative at zero is zero instead of infinite, in both modes of differentiation."""
    positive = x > 0
    return where(positive, sqrt(where(positive, x, 1.0)), 0.0 if is_number(x) else x * 0)


def safe_divide(a: Scalar, b: Scalar) -> Scalar:
    """a / b for b >= 0; zero with zero derivatives where b is zero."""
    nonzero = b > 0
    return where(nonzero, known(a) / where(nonzero, b, 1.0), 0.0 if is_number(b) else b * 0)


def divisor(x: Scalar) -> Scalar:
    """x for x >= 0, but 1 (with zero derivatives) where x is too small to divide by; symbols are returned unchanged."""
    if is_number(x):
        return known(x) if x >= 4 * sys.float_info.min else Known(1.0)
    if isinstance(x, (jax.Array, np.ndarray, np.generic)):
        array = jnp.asarray(x)
        return jnp.where(array < 4 * float(jnp.finfo(array.dtype).tiny), 1, array)
    return x
