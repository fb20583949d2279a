"""Functions of kernels that are made of exponentials, for all rows of a group at once: exp, expm1, tanh, logistic.

x = k ln 2 + r with a whole number k and |r| <= ln(2) / 2; then exp(x) = 2**k (1 + p), where p = exp(r) - 1 is the Taylor
polynomial, accurate relative to itself. Its error is below the rounding of the result, and expm1 and tanh do not lose
digits near zero. Infinities and NaN need no special cases.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jaxmbs.batching.machine.functions import Body

# ln 2 in two parts, of which the first times any k is exact; the degree of the polynomial; arguments beyond which exp is
# infinite or zero; arguments beyond which tanh is 1
_PARTS = {
    np.dtype(np.float64): (float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")),
    np.dtype(np.float32): (float.fromhex("0x1.63p-1"), float.fromhex("-0x1.bd0106p-13")),
}
_DEGREES = {np.dtype(np.float64): 13, np.dtype(np.float32): 8}
_ENDS = {np.dtype(np.float64): (-750.0, 720.0), np.dtype(np.float32): (-110.0, 95.0)}
_ONE = {np.dtype(np.float64): 20.0, np.dtype(np.float32): 10.0}
FUNCTIONS = ("exp", "expm1", "tanh", "logistic")
CALLED = {
    "fabs": 1,
    "copysign": 2,
    "maximum": 2,
    "minimum": 2,
    "fma": 3,
}  # functions of LLVM, and how many operands they have


def exponential(name: str, dtype: np.dtype, module: Any) -> str:
    """The text of one of FUNCTIONS, which is called `name` followed by the mark of the vector type."""
    f = Body(name, dtype, module)
    x = "%x"
    if name == "logistic":
        x = f.add("minus", f"fneg {f.v} %x")
    if name == "tanh":
        size = f.call("size", "minimum", f.call("positive", "fabs", x), f.constant(_ONE[dtype]))
        x = f.add("twice", f"fadd {f.v} {size}, {size}")
    _reduced(f, x)
    result = _TAILS[name](f)
    body = "\n".join(f.lines)
    return f"""
{f.stored_table}
define internal {f.v} @{name}_{f.mark}({f.v} %x) {f.processor.inlining} nounwind {{
{body}
  ret {f.v} {result}
}}
"""


def _reduced(f: Body, x: str) -> None:
    """Leaves p in %p, and 2**k in two factors, %low and %high, because it may be too large for one number."""
    mantissa, (least, greatest), parts = (52 if f.bits == 64 else 23), _ENDS[f.dtype], _PARTS[f.dtype]
    v, w, bias = f.v, f.w, (1023 if f.bits == 64 else 127)
    above = f.call("above", "maximum", x, f.constant(least))
    inside = f.call("inside", "minimum", above, f.constant(greatest))
    shift = f.constant(1.5 * 2.0**mantissa)  # the sum with it has no digits after the point
    f.fused("moved", inside, f.constant(1 / math.log(2.0)), shift)
    f.add("whole", f"fsub {v} %moved, {shift}")
    f.add("movedbits", f"bitcast {v} %moved to {w}")
    f.add("shiftbits", f"bitcast {v} {shift} to {w}")
    f.add("k", f"sub {w} %movedbits, %shiftbits")
    r = inside
    for n, part in enumerate(parts):
        r = f.fused(f"r{n}", "%whole", f.constant(part), r, minus=True)
    total = f.constant(1 / math.factorial(_DEGREES[f.dtype]))
    for n in range(_DEGREES[f.dtype] - 1, 1, -1):
        total = f.fused(f"total{n}", total, r, f.constant(1 / math.factorial(n)))
    f.add("square", f"fmul {v} {r}, {r}")
    f.fused("p", total, "%square", r)
    f.add("half", f"ashr {w} %k, splat (i{f.bits} 1)")
    f.add("other", f"sub {w} %k, %half")
    for name, power in (("low", "%half"), ("high", "%other")):
        f.add(f"{name}1", f"add {w} {power}, splat (i{f.bits} {bias})")
        f.add(f"{name}2", f"shl {w} %{name}1, splat (i{f.bits} {mantissa})")
        f.add(name, f"bitcast {w} %{name}2 to {v}")


def _exp(f: Body) -> str:
    f.add("onep", f"fadd {f.v} {f.constant(1.0)}, %p")
    f.add("scaled", f"fmul {f.v} %onep, %low")
    return f.add("power", f"fmul {f.v} %scaled, %high")


def _unsigned(f: Body) -> str:
    """2**k - 1 + 2**k p; exp itself where 1 is less than its rounding error, and 2**k may be too large."""
    power = _exp(f)
    f.add("scale", f"fmul {f.v} %low, %high")
    f.add("less", f"fsub {f.v} %scale, {f.constant(1.0)}")
    f.fused("sum", "%scale", "%p", "%less")
    f.add("large", f"icmp sgt {f.w} %k, splat (i{f.bits} 64)")
    return f.add("chosen", f"select {f.truth} %large, {f.v} {power}, {f.v} %sum")


def _expm1(f: Body) -> str:
    return f.call("signed", "copysign", _unsigned(f), "%x")  # the sign of zero


def _tanh(f: Body) -> str:
    """expm1(2 |x|) / (expm1(2 |x|) + 2)."""
    found = _unsigned(f)
    f.add("below", f"fadd {f.v} {found}, {f.constant(2.0)}")
    f.add("ratio", f"fdiv {f.v} {found}, %below")
    return f.call("odd", "copysign", "%ratio", "%x")


def _logistic(f: Body) -> str:
    power, one = _exp(f), f.constant(1.0)
    f.add("below", f"fadd {f.v} {one}, {power}")
    return f.add("share", f"fdiv {f.v} {one}, %below")


_TAILS = {"exp": _exp, "expm1": _expm1, "tanh": _tanh, "logistic": _logistic}
