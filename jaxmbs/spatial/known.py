"""Numbers that are known while tracing; their arithmetic with arrays omits operations that have no effect.

A zero vanishes, a one or minus one costs no multiplication, and two known numbers combine at once. A formula therefore
reads as in a textbook, and the same lines serve as the compiled kernel, the reference in plain floats and the
written-out formula.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

NUMBERS = (int, float)
NOT_SCALARS: set[type] = {str, bytes, list, tuple, dict, set, type(None)}  # and vectors, matrices, ...


class Known:
    """A Python number as an operand.

    An operation with an array, a symbol or any other kind of scalar gives the same result as with the number itself,
    but omits what has no effect; 0 times anything is 0. An operation with a number gives a known number.

    Arrays leave operations to it because they do not recognise it as a number. For the same reason functions of
    jax.numpy do not accept it as an argument; those of `jaxmbs.spatial.scalar` do, and so do functions wrapped by
    `accepting`. `jnp.asarray` converts it to an array.

    >>> from jaxmbs.spatial.known import known
    >>> zero, x = known(0), jnp.ones(())
    >>> print(jax.make_jaxpr(lambda x: zero * x + known(1) * x)(x))
    { lambda ; a:f64[]. let  in (a,) }
    """

    __slots__ = ("value",)
    __array_ufunc__ = None  # NumPy leaves operations to it
    _op_priority = 100.0  # and so does SymPy

    def __init__(self, value: int | float):
        self.value = value

    def __add__(self, other: Any) -> Any:
        return NotImplemented if type(other) in NOT_SCALARS else _sum(self.value, bare(other))

    def __radd__(self, other: Any) -> Any:
        return NotImplemented if type(other) in NOT_SCALARS else _sum(bare(other), self.value)

    def __sub__(self, other: Any) -> Any:
        return NotImplemented if type(other) in NOT_SCALARS else _difference(self.value, bare(other))

    def __rsub__(self, other: Any) -> Any:
        return NotImplemented if type(other) in NOT_SCALARS else _difference(bare(other), self.value)

    def __mul__(self, other: Any) -> Any:
        return NotImplemented if type(other) in NOT_SCALARS else _product(self.value, bare(other))

    def __rmul__(self, other: Any) -> Any:
        return NotImplemented if type(other) in NOT_SCALARS else _product(bare(other), self.value)

    def __truediv__(self, other: Any) -> Any:
        return NotImplemented if type(other) in NOT_SCALARS else _quotient(self.value, bare(other))

    def __rtruediv__(self, other: Any) -> Any:
        return NotImplemented if type(other) in NOT_SCALARS else _quotient(bare(other), self.value)

    def __pow__(self, other: Any) -> Any:
        return NotImplemented if type(other) in NOT_SCALARS else known(self.value ** bare(other))

    def __rpow__(self, other: Any) -> Any:
        if self.value == 1:
            return known(other)
        return NotImplemented if type(other) in NOT_SCALARS else known(other**self.value)

    def __neg__(self) -> Known:
        return Known(-self.value)

    def __pos__(self) -> Known:
        return self

    def __abs__(self) -> Known:
        return Known(abs(self.value))

    def __lt__(self, other: Any) -> Any:
        return self.value < bare(other)

    def __le__(self, other: Any) -> Any:
        return self.value <= bare(other)

    def __gt__(self, other: Any) -> Any:
        return self.value > bare(other)

    def __ge__(self, other: Any) -> Any:
        return self.value >= bare(other)

    def __eq__(self, other: Any) -> Any:
        return self.value == bare(other)

    def __ne__(self, other: Any) -> Any:
        return self.value != bare(other)

    def __hash__(self) -> int:
        return hash(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.value, digits)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.value, dtype)

    def _sympy_(self) -> Any:
        import sympy

        return sympy.sympify(self.value)

    def __repr__(self) -> str:
        return repr(self.value)

    def __format__(self, form: str) -> str:
        return format(self.value, form)


def known(x: Any) -> Any:
    """A Python number as a Known; anything else unchanged."""
    return Known(x) if type(x) in NUMBERS else x


def bare(x: Any) -> Any:
    """The Python number of a Known; anything else unchanged."""
    return x.value if type(x) is Known else x


def accepting(function: F) -> F:
    """Wrap a function, for instance one of jax.numpy, so that its arguments may be known numbers.

    >>> from jaxmbs.spatial.known import accepting, known
    >>> print(accepting(jnp.abs)(known(-2.0)))
    2.0
    """

    @functools.wraps(function)
    def accepts(*x: Any, **options: Any) -> Any:
        return function(*map(bare, x), **options)

    return accepts  # type: ignore[return-value]


ZERO, ONE = Known(0), Known(1)


def _sum(a: Any, b: Any) -> Any:
    if type(a) in NUMBERS and a == 0:
        return known(b)
    if type(b) in NUMBERS and b == 0:
        return known(a)
    return known(a + b)


def _difference(a: Any, b: Any) -> Any:
    if type(b) in NUMBERS and b == 0:
        return known(a)
    if type(a) in NUMBERS and a == 0:
        return known(-b)
    return known(a - b)


def _product(a: Any, b: Any) -> Any:
    for x, other in ((a, b), (b, a)):
        if type(x) in NUMBERS:
            if x == 0:
                return ZERO
            if x == 1:
                return known(other)
            if x == -1:
                return known(-other)
    return known(a * b)


def _quotient(a: Any, b: Any) -> Any:
    if type(a) in NUMBERS and a == 0:
        return ZERO
    if type(b) in NUMBERS:
        if b == 1:
            return known(a)
        if b == -1:
            return known(-a)
    return known(a / b)
