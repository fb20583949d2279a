"""Compiles kernels with LLVM for the processor at hand and registers them with XLA under the hash of their text.

The code of kernels is cached on disk under the hash of the text, LLVM's version and the processor, so that the next
process does not compile it again (`folder`).
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import threading
from pathlib import Path
from typing import Any

import jax

from jaxmbs.batching import sealed
from jaxmbs.batching.folder import folder
from jaxmbs.batching.machine import functions, host

_LOCK = threading.Lock()
_KEPT: dict[str, Any] = {}  # engines, which own the code
FILES: dict[str, str] = {}  # names of the files that hold the code of kernels
_LEVEL = 2  # of LLVM's optimisation: levels 1 and 3 take the same time to compile and to run
COUNT = {"compiled": 0, "read": 0}  # numbers of kernels in this process


def registered(text: str) -> str:
    """The name under which XLA calls the kernel with this text, which is compiled if necessary."""
    name = f"jaxmbs_{hashlib.sha256(text.encode()).hexdigest()[:32]}"
    with _LOCK:
        if name not in _KEPT:
            _register(name, text)
    return name


def restored(name: str, file: str) -> bool:
    """Register a kernel again from its code in a file of the cache; returns whether XLA can call it under its name."""
    with _LOCK:
        if name not in _KEPT:
            code = _kept(file)
            if code is None:
                return False
            _register(name, _STUB, file, code)
    return True


def _register(name: str, text: str, file: str = "", code: bytes | None = None) -> None:
    if not file:
        file = _file(text)
        code = _kept(file)
    _KEPT[name], FILES[name] = handler(name, "cpu", text, _in_folder(file), code), file


def handler(name: str, platform: str, text: str, path: Path | None = None, code: bytes | None = None) -> Any:
    """Register the `handler` of a text with XLA under a name; returns what owns its code. path, code: see `_engine`."""
    engine = _engine(text, path, code)
    address = ctypes.c_void_p(engine.get_function_address("handler"))
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(address), platform=platform)
    return engine


def lacking() -> str:
    """Why kernels cannot be compiled here; empty if they can."""
    if host.llvm_version() < 19:
        return "llvmlite is too old: pip install -U llvmlite"
    header = Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h"
    if not header.exists() or "#define XLA_FFI_API_MAJOR 0\n" not in header.read_text(encoding="utf-8"):
        return "this version of jaxlib has another interface for custom calls"
    return ""


@functools.cache
def _processor() -> tuple[str, str]:
    import llvmlite.binding as llvm

    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@functools.cache
def _prepared() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    process = ctypes.CDLL(None)
    system = ("malloc", "free", "sched_yield", "madvise")
    for name in (*functions.SYMBOLS, *(f"{x}f" for x in functions.SYMBOLS), *system):
        llvm.add_symbol(name, ctypes.cast(getattr(process, name), ctypes.c_void_p).value)


def _engine(text: str, path: Path | None, code: bytes | None) -> Any:
    """The engine that holds a kernel's code; newly compiled code is cached on disk."""
    import llvmlite.binding as llvm

    _prepared()
    cpu, features = _processor()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(cpu=cpu, features=features, opt=_LEVEL, jit=True, codemodel="jitdefault")
    COUNT["read" if code else "compiled"] += 1
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_STUB if code else text), machine)
    engine.set_object_cache(lambda _, made: sealed.write(path, made) if path else None, lambda _: code)
    engine.finalize_object()
    return engine


def object_file(text: str) -> bytes:
    """The object file of a text for the processor at hand, to be linked into a shared library."""
    import llvmlite.binding as llvm

    _prepared()
    cpu, features = _processor()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=_LEVEL, reloc="pic"
    )
    module = llvm.parse_assembly(text)
    return machine.emit_object(module)


_STUB = "declare ptr @handler(ptr)"  # replaces a text whose code has been compiled before


def _file(text: str) -> str:
    """Name of the file for a kernel's code, a hash of its text, LLVM and the processor."""
    import llvmlite.binding as llvm

    content = "\n".join([text, *_processor(), llvm.get_default_triple(), str(llvm.llvm_version_info), str(_LEVEL)])
    return f"jaxmbs_{hashlib.sha256(content.encode()).hexdigest()}.o"


def _in_folder(file: str) -> Path | None:
    """Path of a cached file; None if programs are not kept."""
    where = folder()
    return where / file if where else None


def _kept(file: str) -> bytes | None:
    """Code from the cache; None if it is missing or damaged."""
    path = _in_folder(file)
    return sealed.read(path) if path else None
