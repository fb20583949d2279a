"""C source of a function without loops, one statement for each operation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from jaxmbs.batching.machine.code import Fetch, Keep, Piece
from jaxmbs.batching.machine.frame import all_nodes
from jaxmbs.batching.scalars import Operation
from jaxmbs.errors import ModelError
from jaxmbs.exporting.program import Array, Program
from jaxmbs.exporting.shared import beside, c_type, header_of, number, parameters, placed, unread

MOST_OPERATIONS = 20_000  # longer sources cannot be read, and compilers take minutes for them
INFIX = {
    "add": "+", "add_any": "+", "sub": "-", "mul": "*", "div": "/", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">",
    "ge": ">=", "and": "&", "or": "|", "xor": "^",
}  # fmt: skip
CALLS = {
    **{name: name for name in (
        "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp",
        "exp2", "expm1", "log", "log1p", "sqrt", "cbrt", "pow", "floor", "ceil", "erf", "erfc",
    )},
    "rem": "fmod",
}  # fmt: skip


def written(program: Program, path: Path, where: str) -> list[Path]:
    """Write the C source of a function, and its header beside it."""
    header = beside(path, ".h", where)
    text = source(program, header.name, where)
    return placed({path: text.encode(), header: header_of(program).encode()})


def source(program: Program, header: str, where: str) -> str:
    """The C source. Raises ModelError for functions with loops, very long ones, and operations that C lacks."""
    nodes: list[Any] = [*program.code.once, *program.code.body] if program.code else []
    if any(not isinstance(node, (Fetch, Keep, Piece)) for node in nodes):
        raise ModelError(f'{where}: the function has loops, or products of large matrices; use kind="shared"')
    size = sum(len(node.chunk.operations) for node in all_nodes(nodes) if isinstance(node, Piece))
    if size > MOST_OPERATIONS:
        raise ModelError(
            f'{where}: the function has {size:,} operations, more than {MOST_OPERATIONS:,}; use kind="shared"'
        )
    names: dict[Any, str] = {}
    body: list[str] = []
    place = {k: x.name for (kind, k), x in zip(program.origins, program.results, strict=True) if kind == "kernel"}
    for node in nodes:
        if isinstance(node, Fetch):
            k = node.place.argument
            assert k is not None and program.code is not None
            given = program.inputs[k]
            if isinstance(given, int):
                own = program.arguments[given]
                names.update({(node.source, j): _entry(own, j) for j in node.wanted})
            else:
                names.update({(node.source, j): _plain(given.reshape(-1)[j]) for j in node.wanted})
        elif isinstance(node, Piece):
            reads = dict(zip(node.chunk.reads, node.reads, strict=True))
            for o in node.chunk.operations:
                operands = [_value(x, names, reads) for x in o.operands]
                names[o] = f"_{len(body)}"
                own = c_type(Array("", (), np.dtype(o.dtype)))
                body.append(f"const {own} {names[o]} = {_expression(o, operands, where)};")
        else:
            result = next(x for x in program.results if x.name == place[node.place.result])
            body += [f"{_entry(result, k)} = {_value(x, names, {})};" for k, x in enumerate(node.given)]
    for (kind, x), result in zip(program.origins, program.results, strict=True):
        if kind == "argument":
            body += [f"{_entry(result, k)} = {_entry(program.arguments[x], k)};" for k in range(result.size)]
        elif kind == "constant":
            body += [f"{_entry(result, k)} = {number(v)};" for k, v in enumerate(x.reshape(-1))]
    loop = [
        *unread(program),
        "    for (int64_t _row = 0; _row < rows; _row++) {",
        *(f"        {line}" for line in body),
        "    }",
    ]
    head = [
        f'#include "{header}"',
        "#include <math.h>",
        "",
        *HELPERS,
        f"int {program.name}({parameters(program)})",
        "{",
    ]
    return "\n".join([*head, *loop, "    return 0;", "}", ""])


def _entry(x: Array, k: int) -> str:
    """One number of an array in the current row."""
    return f"{x.name}[{x.size} * _row + {k}]" if x.size > 1 else f"{x.name}[_row]"


def _value(x: Any, names: dict[Any, str], reads: dict[Any, Any]) -> str:
    if isinstance(x, np.generic):
        return _plain(x)
    if x in names:
        return names[x]
    own = reads[x]
    return _plain(own) if isinstance(own, np.generic) else names[own]


def _plain(x: np.generic) -> str:
    """A number in decimal, without loss of digits; negative ones in brackets."""
    if x.dtype.kind != "f" or not np.isfinite(x):
        text = number(x)
    else:
        text = repr(float(x)) if x.dtype.itemsize == 8 else f"{float(x):.9g}"
        text += "" if "." in text or "e" in text else ".0"
        text += "f" * (x.dtype.itemsize == 4)
    return f"({text})" if text.startswith("-") else text


def _extreme(t: str, name: str, sign: str) -> str:
    """A C function for the larger or the smaller of two numbers: it passes NaN on, and takes -0 for less than 0."""
    zero = "b : a" if name.startswith("_max") else "a : b"
    return (
        f"static inline {t} {name}({t} a, {t} b)\n"
        f"{{ return a != a ? a : b != b ? b : a == b ? (signbit(a) ? {zero}) : a {sign} b ? a : b; }}"
    )


HELPERS = [
    _extreme(t, f"_{name}{f}", sign)
    for t, f in (("double", ""), ("float", "f"))
    for name, sign in (("max", ">"), ("min", "<"))
]


def _wrapped(dtype: np.dtype, expression: str, *x: str) -> str:
    """An expression of whole numbers that wraps around, as in the kernel: in C only unsigned numbers do."""
    wide = "uint64_t" if dtype.itemsize == 8 else "uint32_t"
    return f"({c_type(Array('', (), dtype))})({expression.format(*(f'({wide}){y}' for y in x))})"


def _expression(o: Operation, x: list[str], where: str) -> str:
    name, dtype = o.primitive.name, np.dtype(o.dtype)
    first = o.operands[0]
    given = np.dtype(first.dtype if not hasattr(first, "source") else first.source.dtype)
    f = "f" if given == np.float32 else ""
    floats = given.kind == "f"
    whole = {"add": "{0} + {1}", "add_any": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "neg": "-{0}",
             "square": "{0} * {0}"}  # fmt: skip
    if given.kind in "iu" and name in whole:
        return _wrapped(dtype, whole[name], *x)
    if name in INFIX and (floats or name != "div"):
        return f"{x[0]} {INFIX[name]} {x[1]}"
    if name in CALLS and floats:
        return f"{CALLS[name]}{f}({', '.join(x)})"
    one = "1.0f" if f else "1.0"
    simple = {
        "neg": "-{0}", "square": "{0} * {0}", "copy": "{0}", "stop_gradient": "{0}", "abs": f"fabs{f}({{0}})",
        "rsqrt": f"{one} / sqrt{f}({{0}})", "logistic": f"{one} / ({one} + exp{f}(-{{0}}))",
        "sign": f"{{0}} > 0 ? {one} : {{0}} < 0 ? -{one} : {{0}}", "is_finite": "isfinite({0}) != 0",
        "one_minus_square": f"({one} + {{0}}) * ({one} - {{0}})",
        "max": f"_max{f}({{0}}, {{1}})", "min": f"_min{f}({{0}}, {{1}})",
        "clamp": f"_min{f}(_max{f}({{1}}, {{0}}), {{2}})",
    }  # fmt: skip
    if name in ("max", "min") and not floats:
        return f"{x[0]} {'>' if name == 'max' else '<'} {x[1]} ? {x[0]} : {x[1]}"
    if name in simple and (floats or name in ("copy", "stop_gradient")):
        return simple[name].format(*x)
    if name == "select_n" and len(x) == 3:
        return f"{x[0]} ? {x[2]} : {x[1]}"
    if name == "not":
        return f"!{x[0]}" if dtype.kind == "b" else f"~{x[0]}"
    if name == "integer_pow" and floats:
        y = abs(o.params["y"])
        power = " * ".join([x[0]] * y) or one if y <= 4 else f"pow{f}({x[0]}, {y})"
        return f"{one} / ({power})" if o.params["y"] < 0 else power
    if name == "convert_element_type":
        to = c_type(Array("", (), dtype))
        if floats and dtype.kind in "iu":  # it saturates, as in the kernel; C leaves this undefined
            low, high = (number(dtype.type(y)) for y in (np.iinfo(dtype).min, np.iinfo(dtype).max))
            inside = f"{x[0]} <= {low} ? {low} : {x[0]} >= {high} ? {high} : ({to}){x[0]}"
            return f"{x[0]} != {x[0]} ? 0 : {inside}"
        return f"{x[0]} != 0" if dtype.kind == "b" else f"({to}){x[0]}"
    raise ModelError(f'{where}: there is no plain C for {name} of {given}; use kind="shared"')
