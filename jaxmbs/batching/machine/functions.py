"""Functions that kernels use in addition to LLVM's own: sine and cosine, and those of the C library."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jaxmbs.batching.machine import host

# functions of the C library, called for one row after another
LIBRARY = {
    "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atan": "atan", "atan2": "atan2",
    "atanh": "atanh", "cbrt": "cbrt", "cosh": "cosh", "erf": "erf", "erfc": "erfc", "exp2": "exp2",
    "log": "log", "log1p": "log1p", "pow": "pow", "sinh": "sinh", "tan": "tan",
}  # fmt: skip
SYMBOLS = sorted({*LIBRARY.values(), "fmod", "sin", "cos"})
# pi/2 in parts with so few digits that a whole number times a part is exact; numbers of terms of the Taylor series; the
# angles up to which the reduction is accurate
_PARTS = {
    np.dtype(np.float64): (1.5707963109016418, 1.5893254712295857e-08, 6.123233932053594e-17, 6.36831716351095e-25),
    np.dtype(np.float32): (1.5703125, 0.0004837512969970703, 7.549533620476723e-08, 2.563344151594519e-12),
}
_TERMS = {np.dtype(np.float64): 8, np.dtype(np.float32): 5}
_LIMITS = {np.dtype(np.float64): 1e8, np.dtype(np.float32): 1e4}


def lanewise(name: str, dtype: np.dtype, module: Any, operands: int) -> str:
    """A function of vectors that calls a function of the C library for every lane.

    Subnormal arguments are replaced by zeros, as the processor does in XLA's threads. Only `pow` receives them as they are,
    since XLA calls the same function of the library: -2 to the power 1e-310 is NaN, but -2 to the power 0 is 1.
    """
    e, lanes, processor = host.element(dtype), module.lanes, module.processor
    v = f"<{lanes} x {e}>"
    symbol = name + "f" * (dtype.itemsize == 4)
    inlining = "noinline" if name in ("sin", "cos") else processor.inlining
    names = "ab"[:operands]
    given = ", ".join(f"{v} %{x}0" for x in names)
    taken = "0" if name == "pow" or not processor.flushes else ""
    parts = "\n".join(f"  %{x}k = extractelement {v} %{x}{taken}, i64 %k" for x in names)
    passed = ", ".join(f"{e} %{x}k" for x in names)
    mark, least = f"v{lanes}f{8 * dtype.itemsize}", host.literal(np.finfo(dtype).tiny)
    flushed = "\n".join(
        f"  %{x}s = call {v} @llvm.fabs.{mark}({v} %{x}0)\n"
        f"  %{x}z = call {v} @llvm.copysign.{mark}({v} zeroinitializer, {v} %{x}0)\n"
        f"  %{x}b = fcmp olt {v} %{x}s, splat ({e} {least})\n"
        f"  %{x} = select <{lanes} x i1> %{x}b, {v} %{x}z, {v} %{x}0"
        for x in names
        if not taken
    )
    return f"""
declare {e} @{processor.library}{symbol}({", ".join([e] * operands)}) nounwind
define internal {v} @each_{symbol}({given}) {inlining} nounwind {{
{flushed}
  br label %turn
turn:
  %k = phi i64 [0, %0], [%next, %turn]
  %part = phi {v} [zeroinitializer, %0], [%more, %turn]
{parts}
  %y = call {e} @{processor.library}{symbol}({passed})
  %more = insertelement {v} %part, {e} %y, i64 %k
  %next = add i64 %k, 1
  %done = icmp eq i64 %next, {lanes}
  br i1 %done, label %end, label %turn
end:
  ret {v} %more
}}
"""


class Body:
    """The instructions of a function of one vector x.

    Its constants are in a table, or in the instructions if the processor inlines.
    The address of the table is loaded once. An empty assembly statement hides the origin of this address: because the code
    may be placed anywhere in memory, the compiler would otherwise load a separate address for each constant.
    """

    def __init__(self, name: str, dtype: np.dtype, module: Any):
        self.name, self.dtype, self.lanes, self.bits = name, dtype, module.lanes, 8 * dtype.itemsize
        self.processor, lanes = module.processor, module.lanes
        e = self.element = host.element(dtype)
        self.v, self.w, self.truth = f"<{lanes} x {e}>", f"<{lanes} x i{self.bits}>", f"<{lanes} x i1>"
        self.mark = f"v{lanes}f{self.bits}"
        self.table: list[str] = []
        address = f'  %table = call ptr asm "", "=r,0"(ptr @table_{name}_{self.mark})'
        self.lines = [] if self.processor.inlines else [address]

    def constant(self, x: float) -> str:
        k, e, v = len(self.table), self.element, self.v
        if self.processor.inlines:
            return f"splat ({e} {host.literal(self.dtype.type(x))})"
        self.table.append(f"{e} {host.literal(self.dtype.type(x))}")
        self.lines.append(
            f"  %at{k} = getelementptr inbounds {e}, ptr %table, i64 {k}\n"
            f"  %one{k} = load {e}, ptr %at{k}, align {self.dtype.itemsize}\n"
            f"  %first{k} = insertelement {v} poison, {e} %one{k}, i64 0\n"
            f"  %all{k} = shufflevector {v} %first{k}, {v} poison, <{self.lanes} x i32> zeroinitializer"
        )
        return f"%all{k}"

    def add(self, name: str, text: str) -> str:
        self.lines.append(f"  %{name} = {text}")
        return f"%{name}"

    def fused(self, name: str, a: str, b: str, c: str, minus: bool = False) -> str:
        """c + a b or c - a b, rounded once if the processor can."""
        if not self.processor.fuses:
            product = self.add(f"{name}.product", f"fmul {self.v} {a}, {b}")
            return self.add(name, f"{'fsub' if minus else 'fadd'} {self.v} {c}, {product}")
        return self.call(name, "fma", self.add(f"{name}.minus", f"fneg {self.v} {a}") if minus else a, b, c)

    def call(self, name: str, function: str, *x: str) -> str:
        """A function of LLVM, which has to be declared (`Text.declare`)."""
        given = ", ".join(f"{self.v} {a}" for a in x)
        return self.add(name, f"call {self.v} @llvm.{function}.{self.mark}({given})")

    @property
    def stored_table(self) -> str:
        if not self.table:
            return ""
        listed = ", ".join(self.table)
        return f"@table_{self.name}_{self.mark} = private constant [{len(self.table)} x {self.element}] [{listed}], align 64"


def sine_and_cosine(dtype: np.dtype, module: Any) -> str:
    """A function for both, as polynomials; angles beyond `_LIMITS` go to the C library.

    The argument is reduced by whole quarter turns with pi/2 in four parts [Cody, Waite 1980, Software manual for the
    elementary functions, 8]; on [-pi/4, pi/4] the Taylor series has converged. Results are within three units in the
    last place, even where they are small.
    The number of quarter turns is found by adding a number so large that the sum has no digits after the point. The
    last bits of the sum are those of the number of turns, and nothing is undefined for infinities and NaN.
    """
    f = Body("sine_and_cosine", dtype, module)
    bits, v, w, b, mark, lanes, c, add = f.bits, f.v, f.w, f.truth, f.mark, f.lanes, f.constant, f.add

    shift = c(1.5 * 2.0 ** (52 if bits == 64 else 23))
    f.fused("t", "%x", c(2.0 / math.pi), shift)
    add("n", f"bitcast {v} %t to {w}")
    add("q", f"fsub {v} %t, {shift}")
    r = "%x"
    for k, part in enumerate(_PARTS[dtype]):
        r = f.fused(f"r{k}", "%q", c(part), r, minus=True)
    add("z", f"fmul {v} {r}, {r}")
    unit = c(1.0)
    for name, offset in (("s", 1), ("c", 0)):
        total = ""
        for k in range(_TERMS[dtype], 0, -1):
            term = c((-1) ** k / math.factorial(2 * k + offset))
            total = f.fused(f"{name}a{k}", total, "%z", term) if total else term
        f.fused(f"{name}1", total, "%z", unit)
    add("sine", f"fmul {v} {r}, %s1")
    one, sign = f"splat (i{bits} 1)", f"splat (i{bits} {-(1 << (bits - 1))})"
    add("odd0", f"and {w} %n, {one}")
    add("odd", f"icmp ne {w} %odd0, zeroinitializer")
    add("s0", f"select {b} %odd, {v} %c1, {v} %sine")
    add("c0", f"select {b} %odd, {v} %sine, {v} %c1")
    add("n1", f"add {w} %n, {one}")
    for name, turns in (("s", "%n"), ("c", "%n1")):
        add(f"{name}h", f"shl {w} {turns}, splat (i{bits} {bits - 2})")
        add(f"{name}g", f"and {w} %{name}h, {sign}")
        add(f"{name}b", f"bitcast {v} %{name}0 to {w}")
        add(f"{name}x", f"xor {w} %{name}b, %{name}g")
        add(f"{name}y", f"bitcast {w} %{name}x to {v}")
    limit = c(_LIMITS[dtype])
    pair = f"{{ {v}, {v} }}"
    body = "\n".join(f.lines)
    return f"""
{f.stored_table}
define internal {pair} @sine_and_cosine_{mark}({v} %x) {f.processor.inlining} nounwind {{
{body}
  %size = call {v} @llvm.fabs.{mark}({v} %x)
  %large = fcmp ogt {v} %size, {limit}
  %any = call i1 @llvm.vector.reduce.or.v{lanes}i1({b} %large)
  br i1 %any, label %slow, label %end, !prof !0
slow:
  %far_s = call {v} @each_sin{"f" * (bits == 32)}({v} %x)
  %far_c = call {v} @each_cos{"f" * (bits == 32)}({v} %x)
  %slow_s = select {b} %large, {v} %far_s, {v} %sy
  %slow_c = select {b} %large, {v} %far_c, {v} %cy
  br label %end
end:
  %out_s = phi {v} [%sy, %0], [%slow_s, %slow]
  %out_c = phi {v} [%cy, %0], [%slow_c, %slow]
  %half = insertvalue {pair} poison, {v} %out_s, 0
  %both = insertvalue {pair} %half, {v} %out_c, 1
  ret {pair} %both
}}
"""
