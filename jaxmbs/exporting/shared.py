"""Shared libraries: the machine code of a kernel behind a function of C, linked by the C compiler of the system."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbs.batching.machine import compiling, emitting
from jaxmbs.errors import ModelError
from jaxmbs.exporting.program import C_TYPES, Array, Program
from jaxmbs.io.names import replacing


def written(program: Program, path: Path, where: str) -> list[Path]:
    """Write a shared library, and its header beside it."""
    header = beside(path, ".h", where)
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / header.name).write_text(header_of(program), encoding="utf-8")
        source, code = here / "call.c", here / "rows.o"
        source.write_text(wrapper(program, header.name), encoding="utf-8")
        objects = []
        if program.code is not None:
            code.write_bytes(compiling.object_file(block(program)))
            objects.append(code)
        made = here / "library"
        linked([source, *objects], made, where)
        return placed({path: made.read_bytes(), header: header_of(program).encode()})


def beside(path: Path, suffix: str, where: str) -> Path:
    """The path of a program's second file, beside the first. Raises ModelError if the first has this suffix itself."""
    if path.suffix == suffix:
        raise ModelError(
            f"{where}: a file {path.with_suffix(suffix).name!r} is written beside it; choose another suffix"
        )
    return path.with_suffix(suffix)


def placed(files: Mapping[Path, bytes]) -> list[Path]:
    """Write files, each at once in the place of the old one, which a program may have loaded."""
    for path, content in files.items():
        with replacing(path) as partial:
            partial.write_bytes(content)
    return list(files)


def block(program: Program) -> str:
    """The LLVM text of the kernel, whose function is called NAME_rows; the last of its arrays is its scratch memory, of
    NAME_scratch bytes."""
    assert program.code is not None
    text = emitting.block(program.code).replace(
        "define internal void @block(", f"define hidden void @{program.name}_rows("
    )
    size = found[1] if (found := _CLAIM.search(text)) else 0
    last = len(program.inputs) + sum(kind == "kernel" for kind, _ in program.origins)
    given = f"%given = getelementptr ptr, ptr %arrays, i64 {last}\n  %claimed = load ptr, ptr %given"
    text = _CLAIM.sub(given, text).replace("call void @free(ptr %claimed)", "")
    return f"@{program.name}_scratch = hidden constant i64 {size}\n{text}"


# the kernel itself does not check whether it got memory; the function of C does
_CLAIM = re.compile(r"%claimed = call ptr @malloc\(i64 (\d+)\)")


def compiler() -> list[str]:
    """The command of the C compiler: $CC, or cc."""
    given = shlex.split(os.environ.get("CC", "")) or ["cc"]
    if shutil.which(given[0]) is None:
        raise ModelError(
            f"the C compiler {given[0]!r} was not found; install one (gcc or clang), or name it in the variable CC"
        )
    return given


def linked(files: list[Path], path: Path, where: str, *flags: str) -> None:
    """Make a shared library of C sources and object files. Raises ModelError with what the compiler says."""
    try:
        command = [*compiler(), "-O2", "-fPIC", "-shared", *flags, "-o", str(path), *map(str, files), "-lm"]
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from None
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    if done.returncode:
        raise ModelError(f"{where}: {shlex.join(command[:1])} failed: {done.stderr.strip()[-1000:]}")


def c_type(x: Array) -> str:
    return C_TYPES[str(x.dtype)]


def parameters(program: Program) -> str:
    """The list of parameters of the function in C."""
    given = [f"const {c_type(x)} *{x.name}" for x in program.arguments]
    return ", ".join(["int64_t rows", *given, *(f"{c_type(x)} *{x.name}" for x in program.results)])


def header_of(program: Program) -> str:
    """The header of the function."""

    def described(x: Array) -> str:
        shape = " ".join(f"[{n}]" for n in x.shape)
        return f" *   {x.name}: {c_type(x)} [rows]{' ' * bool(shape)}{shape}"

    guard = f"{program.name}_H"
    lines = [
        f"/* {program.name}: computes `rows` instances, each from its own row of the arguments.", " *",
        " * All arrays are contiguous, with the rows first. The function keeps no state: it may be called from several",
        " * threads, each with its own results. It allocates scratch memory for long loops, and frees it; it returns 0, or",
        " * 1 if there is no memory left, and then has computed nothing. Results must not overlap arguments; truth values",
        " * are 0 or 1; matrices are row by row.", " *",
        " * Arguments:", *map(described, program.arguments), " *", " * Results:", *map(described, program.results), " */",
        f"#ifndef {guard}", f"#define {guard}", "#include <stdint.h>", "#ifdef __cplusplus", 'extern "C" {', "#endif",
        f"int {program.name}({parameters(program)});", "#ifdef __cplusplus", "}", "#endif", "#endif", "",
    ]  # fmt: skip
    return "\n".join(lines)


def wrapper(program: Program, header: str) -> str:
    """The C source of the function, as a file."""
    return f'#include "{header}"\n#include <stdlib.h>\n#include <string.h>\n{definition(program)}'


def definition(program: Program, storage: str = "") -> str:
    """The C source of the function: it hands the arrays to the kernel, and copies results that are arguments or constants.
    storage: "static " for a function that is not seen from outside."""
    lines = []
    if program.code is not None:
        lines.append(f"void {program.name}_rows(void **arrays, int64_t first, int64_t last);")
        lines.append(f"extern const int64_t {program.name}_scratch;")
    constants, inputs = [], []
    for k, x in enumerate(program.inputs):
        if isinstance(x, int):
            inputs.append(f"(void *){program.arguments[x].name}")
        else:
            constants.append(_constant(f"{program.name}_shared_{k}", x))
            inputs.append(f"(void *){program.name}_shared_{k}")
    for k, (kind, x) in enumerate(program.origins):
        if kind == "constant":
            constants.append(_constant(f"{program.name}_constant_{k}", x))
    lines += [
        *constants,
        f"{storage}int {program.name}({parameters(program)})",
        "{",
        *unread(program),
        "    if (rows <= 0) return 0;",
    ]
    kernel = sorted(
        (k, x.name) for (kind, k), x in zip(program.origins, program.results, strict=True) if kind == "kernel"
    )
    if program.code is not None:
        room = f"{program.name}_scratch"
        given = ", ".join([*inputs, *(f"(void *){name}" for _, name in kernel), "_scratch"])
        lines += [
            f"    void *_scratch = {room} ? malloc((size_t){room}) : NULL;",
            f"    if ({room} && !_scratch) return 1;",
            f"    void *_arrays[] = {{{given}}};",
            f"    {program.name}_rows(_arrays, 0, rows);",
            "    free(_scratch);",
        ]
    for k, ((kind, x), result) in enumerate(zip(program.origins, program.results, strict=True)):
        size = result.size * result.dtype.itemsize
        if kind == "argument":
            lines.append(f"    memcpy({result.name}, {program.arguments[x].name}, (size_t)rows * {size});")
        elif kind == "constant":
            to = f"(char *){result.name} + _row * {size}"
            lines.append(
                f"    for (int64_t _row = 0; _row < rows; _row++) memcpy({to}, {program.name}_constant_{k}, {size});"
            )
    return "\n".join([*lines, "    return 0;", "}", ""])


def unread(program: Program) -> list[str]:
    """Lines without effect, for compilers that warn of arguments that are not read."""
    return [f"    (void){x.name};" for x in program.arguments]


def _constant(name: str, x: np.ndarray) -> str:
    """A constant array in C, to the last bit."""
    own = Array(name, (), x.dtype)
    listed = ", ".join(number(v) for v in x.reshape(-1)) or "0"
    return f"static const {c_type(own)} {name}[] = {{{listed}}};"


def number(x: Any) -> str:
    """A number as C writes it, to the last bit."""
    if x.dtype.kind == "u":
        return f"{int(x)}u"
    if x.dtype.kind != "f":
        return str(int(x)) if int(x) != -(2**63) else "(-9223372036854775807 - 1)"
    f = "f" * (x.dtype.itemsize == 4)
    if np.isfinite(x):
        return float(x).hex() + f
    top = "0.0" if np.isnan(x) else "1.0" if x > 0 else "-1.0"
    return f"({top}{f}/0.0{f})"


SUFFIX = ".dylib" if sys.platform == "darwin" else ".so"
