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
from jaxmbs.exporting.shared import c_type, header_of, number, parameters

MOST_OPERATIONS = 20_000  # longer sources are no reading, and compilers take minutes for them
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
    header = path.with_suffix(".h")
    text = source(program, header.name, where)
    path.write_text(text, encoding="utf-8")
    header.write_text(header_of(program), encoding="utf-8")
    return [path, header]


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
                names.update({(node.source, j): number(given.reshape(-1)[j]) for j in node.wanted})
        elif isinstance(node, Piece):
            reads = dict(zip(node.chunk.reads, node.reads, strict=True))
            for o in node.chunk.operations:
                operands = [_value(x, names, reads) for x in o.operands]
                names[o] = f"v{len(body)}"
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
    loop = ["    for (int64_t row = 0; row < rows; row++) {", *(f"        {line}" for line in body), "    }"]
    head = [f'#include "{header}"', "#include <math.h>", "", f"void {program.name}({parameters(program)})", "{"]
    return "\n".join([*head, *loop, "}", ""])


def _entry(x: Array, k: int) -> str:
    """One number of an array in the current row."""
    return f"{x.name}[{x.size} * row + {k}]" if x.size > 1 else f"{x.name}[row]"


def _value(x: Any, names: dict[Any, str], reads: dict[Any, Any]) -> str:
    if isinstance(x, np.generic):
        return _plain(x)
    if x in names:
        return names[x]
    own = reads[x]
    return _plain(own) if isinstance(own, np.generic) else names[own]


def _plain(x: np.generic) -> str:
    """A number as one reads it, if no digits are lost."""
    if x.dtype.kind == "f" and np.isfinite(x):
        return (
            repr(float(x))
            if x.dtype.itemsize == 8
            else f"{float(x):.9g}" + ("f" if "." in f"{float(x):.9g}" else ".0f")
        )
    return number(x)


def _expression(o: Operation, x: list[str], where: str) -> str:
    name, dtype = o.primitive.name, np.dtype(o.dtype)
    first = o.operands[0]
    given = np.dtype(first.dtype if not hasattr(first, "source") else first.source.dtype)
    f = "f" if given == np.float32 else ""
    floats = given.kind == "f"
    if name in INFIX and (floats or name not in ("div",)):
        return f"{x[0]} {INFIX[name]} {x[1]}"
    if name in CALLS and floats:
        return f"{CALLS[name]}{f}({', '.join(x)})"
    one = "1.0f" if f else "1.0"
    simple = {
        "neg": "-{0}", "square": "{0} * {0}", "copy": "{0}", "stop_gradient": "{0}", "abs": f"fabs{f}({{0}})",
        "rsqrt": f"{one} / sqrt{f}({{0}})", "logistic": f"{one} / ({one} + exp{f}(-{{0}}))",
        "sign": "({0} > 0) - ({0} < 0) + 0 * {0}", "is_finite": "isfinite({0}) != 0",
        "one_minus_square": f"({one} + {{0}}) * ({one} - {{0}})",
        "max": "{0} != {0} || {0} > {1} ? {0} : {1}", "min": "{0} != {0} || {0} < {1} ? {0} : {1}",
    }  # fmt: skip
    if name in simple and (floats or name in ("neg", "square", "copy", "max", "min", "stop_gradient")):
        return simple[name].format(*x)
    if name == "select_n" and len(x) == 3:
        return f"{x[0]} ? {x[2]} : {x[1]}"
    if name == "not":
        return f"!{x[0]}" if dtype.kind == "b" else f"~{x[0]}"
    if name == "clamp":
        return f"{x[1]} < {x[0]} ? {x[0]} : {x[1]} > {x[2]} ? {x[2]} : {x[1]}"
    if name == "integer_pow" and floats:
        y = abs(o.params["y"])
        power = " * ".join([x[0]] * y) if y <= 4 else f"pow{f}({x[0]}, {y})"
        return f"{one} / ({power})" if o.params["y"] < 0 else power
    if name == "convert_element_type":
        to = c_type(Array("", (), dtype))
        return f"{x[0]} != 0" if dtype.kind == "b" else f"({to}){x[0]}"
    raise ModelError(f'{where}: there is no plain C for {name} of {given}; use kind="shared"')
