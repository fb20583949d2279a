"""LLVM instructions for every operation on scalars; the table is at the end.

An entry takes the text to which it adds, the operation, its operands' names and their dtype, and returns the name of the
result. All operands and results are vectors with one number for each row of a group.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxmbs.batching.machine import host
from jaxmbs.batching.machine.exponentials import FUNCTIONS
from jaxmbs.batching.machine.functions import LIBRARY
from jaxmbs.batching.machine.text import Text
from jaxmbs.batching.scalars import ELEMENTWISE, Operation

Emit = Callable[[Text, Operation, list[str], np.dtype], str]


def _binary(f: str = "", i: str = "", u: str = "", b: str = "") -> Emit:
    """One instruction each for floating-point (f), signed (i) and unsigned (u) numbers and truth values (b)."""

    def emit(text: Text, o: Operation, x: list[str], dtype: np.dtype) -> str:
        name = {"f": f, "i": i, "u": u or i, "b": b}[dtype.kind]
        return text.add(f"{name} {text.vector(dtype)} {x[0]}, {x[1]}")

    return emit


def _called(f: str = "", i: str = "", u: str = "", b: str = "", more: str = "") -> Emit:
    """As `_binary`, with LLVM's own functions in place of instructions; more: a last argument for integers."""

    def emit(text: Text, o: Operation, x: list[str], dtype: np.dtype) -> str:
        name = {"f": f, "i": i, "u": u or i, "b": b}[dtype.kind]
        if dtype.kind == "b":
            return text.add(f"{name} {text.vector(dtype)} {x[0]}, {x[1]}")
        return text.call(name, dtype, x, more if dtype.kind in "iu" else "")

    return emit


def _compared(f: str, i: str, u: str) -> Emit:
    def emit(text: Text, o: Operation, x: list[str], dtype: np.dtype) -> str:
        kind, predicate = ("fcmp", f) if dtype.kind == "f" else ("icmp", i if dtype.kind == "i" else u)
        return text.add(f"{kind} {predicate} {text.vector(dtype)} {x[0]}, {x[1]}")

    return emit


def _divided(name: str) -> Emit:
    """Division; for integers as in XLA: by zero the quotient is -1, the remainder the dividend; MIN / -1 is MIN."""

    def emit(text: Text, o: Operation, x: list[str], dtype: np.dtype) -> str:
        if dtype.kind == "f":
            return (
                text.add(f"fdiv {text.vector(dtype)} {x[0]}, {x[1]}")
                if name == "div"
                else text.lanewise("fmod", dtype, x)
            )
        t, zero, one = text.vector(dtype), text.splat(dtype.type(0)), text.splat(dtype.type(1))
        none = text.add(f"icmp eq {t} {x[1]}, {zero}")
        bad = none
        if dtype.kind == "i":
            least, minus = text.splat(dtype.type(np.iinfo(dtype).min)), text.splat(dtype.type(-1))
            ends = [text.add(f"icmp eq {t} {a}, {b}") for a, b in ((x[0], least), (x[1], minus))]
            over = text.add(f"and {text.truth} {ends[0]}, {ends[1]}")
            bad = text.add(f"or {text.truth} {none}, {over}")
        safe = text.select(bad, one, x[1], dtype)
        found = text.add(f"{'s' if dtype.kind == 'i' else 'u'}{name} {t} {x[0]}, {safe}")
        if name == "div":
            return text.select(none, text.splat_bits(dtype), found, dtype)
        return text.select(none, x[0], found, dtype)  # MIN / 1 stands for MIN / -1: neither leaves a remainder

    return emit


def _negated(text: Text, o: Operation, x: list[str], dtype: np.dtype) -> str:
    if dtype.kind == "f":
        return text.minus(x[0], dtype)
    return text.add(f"sub {text.vector(dtype)} {text.splat(dtype.type(0))}, {x[0]}")


def _not(text: Text, o: Operation, x: list[str], dtype: np.dtype) -> str:
    return text.add(f"xor {text.vector(dtype)} {x[0]}, {text.splat_bits(dtype)}")


def _shifted(name: str) -> Emit:
    """A shift of bits. By as many as the number has, or more, it gives 0; LLVM's own result would be undefined."""

    def emit(text: Text, o: Operation, x: list[str], dtype: np.dtype) -> str:
        t, bits = text.vector(dtype), text.splat(dtype.type(8 * dtype.itemsize))
        inside = text.add(f"icmp ult {t} {x[1]}, {bits}")
        near = text.select(inside, x[1], text.splat(dtype.type(0)), dtype)
        return text.select(inside, text.add(f"{name} {t} {x[0]}, {near}"), text.splat(dtype.type(0)), dtype)

    return emit


def _sign(text: Text, o: Operation, x: list[str], dtype: np.dtype) -> str:
    if dtype.kind == "f":
        one, zero = text.splat(dtype.type(1)), text.splat(dtype.type(0))
        signed = text.call("copysign", dtype, [one, x[0]])
        return text.select(text.add(f"fcmp one {text.vector(dtype)} {x[0]}, {zero}"), signed, x[0], dtype)
    low = text.call("smin" if dtype.kind == "i" else "umin", dtype, [x[0], text.splat(dtype.type(1))])
    return low if dtype.kind == "u" else text.call("smax", dtype, [low, text.splat(dtype.type(-1))])


def _is_finite(text: Text, o: Operation, x: list[str], dtype: np.dtype) -> str:
    return text.add(f"fcmp olt {text.vector(dtype)} {text.call('fabs', dtype, x)}, {text.splat(dtype.type(np.inf))}")


def _square(text: Text, o: Operation, x: list[str], dtype: np.dtype) -> str:
    return text.times(x[0], x[0], dtype)


def _one_minus_square(text: Text, o: Operation, x: list[str], dtype: np.dtype) -> str:
    """(1 + x) (1 - x), as in XLA: near 1 no digits are lost."""
    one, kind = f"{text.vector(dtype)} {text.splat(dtype.type(1))}", "f" if dtype.kind == "f" else ""
    return text.times(text.add(f"{kind}add {one}, {x[0]}"), text.add(f"{kind}sub {one}, {x[0]}"), dtype)


def _by_squaring(text: Text, base: str, exponent: int, dtype: np.dtype) -> str:
    """An integer power, multiplied in XLA's order."""
    n, result = abs(exponent), ""
    while n:
        if n & 1:
            result = text.times(result, base, dtype) if result else base
        n >>= 1
        if n:
            base = text.times(base, base, dtype)
    result = result or text.splat(dtype.type(1))
    if exponent >= 0:
        return result
    return text.add(f"fdiv {text.vector(dtype)} {text.splat(dtype.type(1))}, {result}")


def _whole_power(text: Text, o: Operation, x: list[str], dtype: np.dtype) -> str:
    return _by_squaring(text, x[0], o.params["y"], dtype)


def _reciprocal_root(text: Text, o: Operation, x: list[str], dtype: np.dtype) -> str:
    return text.add(f"fdiv {text.vector(dtype)} {text.splat(dtype.type(1))}, {text.call('sqrt', dtype, x)}")


def _exponential(text: Text, o: Operation, x: list[str], dtype: np.dtype) -> str:
    return text.exponential(o.primitive.name, x[0], dtype)


def _rounded(text: Text, o: Operation, x: list[str], dtype: np.dtype) -> str:
    to_even = int(o.params["rounding_method"]) == 1
    return text.call("roundeven" if to_even else "round", dtype, x)


def _chosen(text: Text, o: Operation, x: list[str], dtype: np.dtype) -> str:
    which, cases, result = x[0], x[1:], np.dtype(o.dtype)
    if dtype.kind == "b":
        return text.select(which, cases[1], cases[0], result)
    chosen = cases[0]
    for k, case in enumerate(cases[1:], 1):
        here = text.add(f"icmp eq {text.vector(dtype)} {which}, {text.splat(dtype.type(k))}")
        chosen = text.select(here, case, chosen, result)
    return chosen


def _clamped(text: Text, o: Operation, x: list[str], dtype: np.dtype) -> str:
    low, high = {"f": ("maximum", "minimum"), "i": ("smax", "smin"), "u": ("umax", "umin")}[dtype.kind]
    return text.call(high, dtype, [text.call(low, dtype, [x[1], x[0]]), x[2]])


def _converted(text: Text, o: Operation, x: list[str], dtype: np.dtype) -> str:
    new = np.dtype(o.dtype)
    old_type, new_type = text.vector(dtype), text.vector(new)
    if new == dtype:
        return x[0]
    if new.kind == "b":
        compared = "fcmp une" if dtype.kind == "f" else "icmp ne"
        return text.add(f"{compared} {old_type} {x[0]}, {text.splat(dtype.type(0))}")
    if dtype.kind == "f" and new.kind in "iu":
        name = "fptosi" if new.kind == "i" else "fptoui"
        return text.call_named(f"llvm.{name}.sat.{text.mark(new)}.{text.mark(dtype)}", new, [(dtype, x[0])])
    if dtype.kind == "f":
        name = "fptrunc" if new.itemsize < dtype.itemsize else "fpext"
    elif new.kind == "f":
        name = "sitofp" if dtype.kind == "i" else "uitofp"
    elif dtype.kind != "b" and new.itemsize == dtype.itemsize:
        return x[0]
    elif dtype.kind != "b" and new.itemsize < dtype.itemsize:
        name = "trunc"
    else:
        name = "sext" if dtype.kind == "i" else "zext"
    return text.add(f"{name} {old_type} {x[0]} to {new_type}")


def _sine(text: Text, o: Operation, x: list[str], dtype: np.dtype) -> str:
    return text.sine_and_cosine(x[0], dtype)[o.primitive.name == "cos"]


def _same(text: Text, o: Operation, x: list[str], dtype: np.dtype) -> str:
    return x[0]


def _power(text: Text, o: Operation, x: list[str], dtype: np.dtype) -> str:
    """Squares, cubes, reciprocals and square roots are computed as such, as in XLA and LLVM; the rest by the C library."""
    exponent = o.operands[1]
    if not isinstance(exponent, np.generic) or exponent not in (-1, 0.5, 1, 2, 3):
        return text.lanewise("pow", dtype, x)
    if exponent != 0.5:
        return _by_squaring(text, x[0], int(exponent), dtype)
    least, greatest = text.splat(dtype.type(-np.inf)), text.splat(dtype.type(np.inf))
    root = text.call("fabs", dtype, [text.call("sqrt", dtype, x[:1])])  # the power of -0.0 is 0.0
    return text.select(text.add(f"fcmp oeq {text.vector(dtype)} {x[0]}, {least}"), greatest, root, dtype)


def _looked_up(text: Text, o: Operation, x: list[str], dtype: np.dtype) -> str:
    """A number of a table for each row; an index outside the table means its first or last row."""
    table, width, column = o.params["table"].numbers, o.params["width"], o.params["column"]
    made, stored = np.dtype(o.dtype), host.stored(np.dtype(o.dtype))
    name = f"table_{o.params['table'].digest}"
    if name not in text.module.parts:
        listed = ", ".join(f"{stored} {host.literal(number)}" for number in table)
        text.module.parts[name] = f"@{name} = private constant [{table.size} x {stored}] [{listed}], align 64"
    low = text.call("smax", dtype, [x[0], text.splat(dtype.type(0))])
    index = text.call("smin", dtype, [low, text.splat(dtype.type(table.size // width - 1))])
    if width > 1:  # written in the same way for all columns, so that LLVM finds the places of a row once
        index = text.add(f"mul {text.vector(dtype)} {index}, {text.splat(dtype.type(width))}")
    out = "undef"
    for lane in range(text.module.lanes):
        here = text.add(f"extractelement {text.vector(dtype)} {index}, i64 {lane}")
        at = text.add(f"getelementptr inbounds {stored}, ptr @{name}, {host.element(dtype)} {here}")
        if column:
            at = text.add(f"getelementptr inbounds {stored}, ptr {at}, i64 {column}")
        number = text.add(f"load {stored}, ptr {at}")
        out = text.add(f"insertelement {text.vector(made)} {out}, {stored} {number}, i64 {lane}")
    return out


def _by_library(text: Text, o: Operation, x: list[str], dtype: np.dtype) -> str:
    return text.lanewise(LIBRARY[o.primitive.name], dtype, x)


# name: (kinds of operands that are served: f, i, u, b or anything that can be moved; the function that writes it)
OPERATIONS: dict[str, tuple[str, Emit]] = {
    "add": ("fiu", _binary("fadd", "add")),
    "add_any": ("fiu", _binary("fadd", "add")),
    "sub": ("fiu", _binary("fsub", "sub")),
    "mul": ("fiu", _binary("fmul", "mul")),
    "div": ("fiu", _divided("div")),
    "rem": ("fiu", _divided("rem")),
    "neg": ("fiu", _negated),
    "abs": ("fi", _called("fabs", "abs", more="i1 false")),
    "sign": ("fiu", _sign),
    "square": ("fiu", _square),
    "one_minus_square": ("fiu", _one_minus_square),
    "integer_pow": ("f", _whole_power),
    "sqrt": ("f", _called("sqrt")),
    "rsqrt": ("f", _reciprocal_root),
    "floor": ("f", _called("floor")),
    "ceil": ("f", _called("ceil")),
    "round": ("f", _rounded),
    "is_finite": ("f", _is_finite),
    "max": ("fiub", _called("maximum", "smax", "umax", "or")),
    "min": ("fiub", _called("minimum", "smin", "umin", "and")),
    "clamp": ("fiu", _clamped),
    "eq": ("fiub", _compared("oeq", "eq", "eq")),
    "ne": ("fiub", _compared("une", "ne", "ne")),
    "lt": ("fiub", _compared("olt", "slt", "ult")),
    "le": ("fiub", _compared("ole", "sle", "ule")),
    "gt": ("fiub", _compared("ogt", "sgt", "ugt")),
    "ge": ("fiub", _compared("oge", "sge", "uge")),
    "and": ("iub", _binary(i="and", b="and")),
    "or": ("iub", _binary(i="or", b="or")),
    "xor": ("iub", _binary(i="xor", b="xor")),
    "not": ("iub", _not),
    "shift_left": ("iu", _shifted("shl")),
    "shift_right_logical": ("iu", _shifted("lshr")),
    "select_n": ("anything", _chosen),
    "convert_element_type": ("fiub", _converted),
    "copy": ("anything", _same),
    "stop_gradient": ("anything", _same),
    "sin": ("f", _sine),
    "cos": ("f", _sine),
    **{name: ("f", _exponential) for name in FUNCTIONS},
    **{name: ("f", _by_library) for name in LIBRARY},
    "pow": ("f", _power),
    "lookup": ("i", _looked_up),
}


def serves(eqn: Any) -> bool:
    """Whether an equation can be evaluated entry by entry."""
    name, given, made = eqn.primitive.name, *([v.aval.dtype for v in x] for x in (eqn.invars, eqn.outvars))
    if not all(map(host.holds, (*given, *made))):
        return False
    if name in ELEMENTWISE:
        return _has(name, given, made[0])
    return not name.startswith(("dot_general", "reduce_", "arg")) or all(map(host.computes, (*given, *made)))


def _has(name: str, given: list[Any], made: Any) -> bool:
    """Whether there are instructions for a primitive with operands and a result of these dtypes."""
    if name not in OPERATIONS:
        return False
    kinds = OPERATIONS[name][0]
    if kinds == "anything":
        return name != "select_n" or host.computes(given[0])
    return host.computes(made) and all(host.computes(t) and t.kind in kinds for t in map(np.dtype, given))
