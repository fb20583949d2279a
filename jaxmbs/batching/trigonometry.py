"""Sine and cosine as polynomials, so that a loop over rows can compute them for several rows at once.

The argument is reduced by whole quarter turns with pi/2 in four parts [Cody, Waite 1980, Software manual for the elementary
functions, 8]; on [-pi/4, pi/4] the Taylor series has converged. Results are within three units in the last place, even where
they are small, for arguments up to `LIMITS`; the caller has to compute rows with larger arguments in another way.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jax import lax

from jaxmbs.batching.scalars import Operation

# pi/2 in parts with so few digits that a whole number times a part is exact
_PARTS = {
    np.dtype(np.float64): (1.5707963109016418, 1.5893254712295857e-08, 6.123233932053594e-17, 6.36831716351095e-25),
    np.dtype(np.float32): (1.5703125, 0.0004837512969970703, 7.549533620476723e-08, 2.563344151594519e-12),
}
_TERMS = {np.dtype(np.float64): 8, np.dtype(np.float32): 5}
LIMITS = {np.dtype(np.float64): 1e8, np.dtype(np.float32): 1e4}


def sin(x: Any) -> Any:
    """Sine of x, float32 or float64."""
    r, quarter = _reduced(x)
    value = lax.select(_odd(quarter), _cosine(r), _sine(r))
    return lax.select(_odd(lax.floor(quarter * _constant(x, 0.5))), -value, value)


def cos(x: Any) -> Any:
    """Cosine of x, float32 or float64."""
    r, quarter = _reduced(x)
    value = lax.select(_odd(quarter), _sine(r), _cosine(r))
    return lax.select(_odd(lax.floor((quarter + _constant(x, 1.0)) * _constant(x, 0.5))), -value, value)


def too_large(x: Any) -> Any:
    """Whether an argument is too large for sin and cos here; an infinite one is not, since its sine is NaN anyway."""
    size = lax.abs(x)
    return (size > _constant(x, LIMITS[np.dtype(x.dtype)])) & (size < _constant(x, np.inf))


def _reduced(x: Any) -> tuple[Any, Any]:
    """x minus the nearest whole number of quarter turns, and that number."""
    quarter = lax.floor(x * _constant(x, 2.0 / math.pi) + _constant(x, 0.5))
    r = x
    for part in _PARTS[np.dtype(x.dtype)]:
        r = r - quarter * _constant(x, part)
    return r, quarter


def _odd(n: Any) -> Any:
    half = n * _constant(n, 0.5)
    return lax.floor(half) != half


def _sine(r: Any) -> Any:
    # a product, so that -0 and the smallest numbers stay unchanged
    return r * (_constant(r, 1.0) + _series(r, 1))


def _cosine(r: Any) -> Any:
    return _constant(r, 1.0) + _series(r, 0)


def _series(r: Any, offset: int) -> Any:
    """Sum of (-r^2)^k / (2 k + offset)! for k from 1 on."""
    square, total = r * r, None
    for k in range(_TERMS[np.dtype(r.dtype)], 0, -1):
        term = _constant(r, (-1) ** k / math.factorial(2 * k + offset))
        total = term if total is None else total * square + term
    return total * square


def _constant(x: Any, value: float) -> Any:
    return np.asarray(value, x.dtype)[()]


OWN = {"sin": sin, "cos": cos}


def computes(o: Operation) -> bool:
    """Whether an operation is a sine or cosine that can be computed by sin or cos here."""
    return o.primitive.name in OWN and o.dtype in _PARTS and not isinstance(o.operands[0], np.generic)
