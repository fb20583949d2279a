"""Compiled programs cached on disk by their content, so that other processes need not trace, lower or compile them again.

Programs are cached only if a folder is set; the command line sets its folder of compiled programs. A program is compiled as
usual if its file is missing or damaged, if any version differs, or if the code of its kernels is missing.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import platform
import re
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import jax
from jax.experimental import serialize_executable
from jax.experimental.compilation_cache import compilation_cache

import jaxmbs
from jaxmbs.batching import sealed
from jaxmbs.batching.machine import compiling
from jaxmbs.batching.mapped_program import kernels

FOLDER: Path | None = None  # where programs are cached; None: they are not
COUNT = {"made": 0, "read": 0}  # numbers of programs in this process
# packages on which programs depend: those that trace or compile them and those whose code is traced
MAKERS = (
    "jax", "jaxlib", "numpy", "scipy", "equinox", "lineax", "optimistix", "optax", "llvmlite", "jaxtyping", "ml_dtypes",
)  # fmt: skip
_KERNEL = re.compile(r"jaxmbs_[0-9a-f]{32}")


def cached(content: Iterable[str] | None, make: Callable[[], jax.stages.Compiled]) -> jax.stages.Compiled:
    """The program that `make` compiles, from the cache if it is there, for the first devices of this process.

    content: everything that the program depends on, apart from versions, settings and machine; None if it is not known.
    """
    path = None if content is None or FOLDER is None else FOLDER / f"jaxmbs_{_digest(*content, *_here())}.program"
    found = _read(path) if path else None
    COUNT["read" if found else "made"] += 1
    if found is not None:
        return found
    if path is None:
        return make()
    with _compiled_here():
        found = make()
    _write(path, found)
    return found


@contextlib.contextmanager
def _compiled_here() -> Iterator[None]:
    """Turns JAX's own cache off: programs that JAX reads from it lack parts when they are serialised again."""
    before = jax.config.values["jax_enable_compilation_cache"]
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()  # because JAX checks only once whether it is on
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", before)
        compilation_cache.reset_cache()


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(f"{len(part)} {part}" for part in parts).encode()).hexdigest()


def _here() -> list[str]:
    """Versions, settings and the machine."""
    settings = [f"{k}={v}" for k, v in sorted(jax.config.values.items()) if "compilation_cache" not in k]
    named = [f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith(("JAX_", "XLA_", "JAXMBS_K"))]
    devices = [f"{d.platform} {d.device_kind} {d.client.platform_version}" for d in jax.devices()]
    devices.append(f"mesh {jax.sharding.get_abstract_mesh()}")
    return [*_versions(), kernels(), *settings, *named, *devices, *_fixed()]


def _versions() -> list[str]:
    """Versions of Python and of all packages whose code compiles programs or becomes part of them."""
    return [f"python {platform.python_version()}", *(f"{name} {_version(name)}" for name in MAKERS)]


@functools.cache
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "is not there"


@functools.cache
def _fixed() -> list[str]:
    """Hashes of the library's own source files, and the model and features of the processor."""
    folder = Path(jaxmbs.__file__).parent
    own = [f"{p.relative_to(folder)} {hashlib.sha256(p.read_bytes()).hexdigest()}" for p in _sources()]
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        processor = sorted({line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))})
    except OSError:
        processor = [platform.machine(), platform.processor(), platform.node()]
    return [*own, *processor]


def _sources() -> list[Path]:
    return sorted(Path(jaxmbs.__file__).parent.rglob("*.py"))


def _changed() -> bool:
    """Whether a source file of the library has changed since this process started, so that it may run older code."""
    import psutil

    begun = psutil.Process().create_time()
    return any(path.stat().st_mtime > begun for path in _sources())


def _read(path: Path) -> jax.stages.Compiled | None:
    content = sealed.read(path)
    if content is None:
        return None
    with contextlib.suppress(Exception):  # whatever the error is, compiling again gives a correct program
        program, wanted, devices, factorises = pickle.loads(content)
        if factorises:
            _begin_lapack()
        if wanted and not all(compiling.restored(name, file) for name, file in wanted.items()):
            return None
        return serialize_executable.deserialize_and_load(*program, execution_devices=jax.devices()[:devices])
    return None


@functools.cache
def _begin_lapack() -> None:
    """Make JAX look up the addresses of LAPACK's functions, which programs that are read from disk need. By itself,
    JAX does so only when it lowers a call of such a function."""
    jax.jit(jax.lax.linalg.cholesky).lower(jax.ShapeDtypeStruct((1, 1), "float32"))


def _write(path: Path, program: jax.stages.Compiled) -> None:
    with contextlib.suppress(Exception):  # some programs cannot be serialised
        if _changed():
            return
        text = program.as_text() or ""
        names = set(_KERNEL.findall(text))
        wanted = {}
        if names:
            wanted = {name: compiling.FILES[name] for name in names}
        devices = max((len(s.device_set) for s in jax.tree.leaves(program.output_shardings)), default=1)
        sealed.write(path, pickle.dumps((serialize_executable.serialize(program), wanted, devices, "lapack_" in text)))
