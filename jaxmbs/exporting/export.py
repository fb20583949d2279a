"""`export`: a function as a program for other software."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jaxmbs.batching.gpu import PTX
from jaxmbs.errors import ModelError
from jaxmbs.exporting import c_source, jax_program, ptx_program, shared
from jaxmbs.exporting.fmu import package
from jaxmbs.exporting.program import identifier, program
from jaxmbs.model import Model
from jaxmbs.simulate.grid import DT

KINDS = ("shared", "c", "fmu", "jax", "ptx")


def export(
    fn: Callable[..., Any] | Model,
    args: Sequence[Any],
    path: str | Path,
    kind: str,
    *,
    dt: float | None = None,
    parameters: Sequence[str] = (),
) -> list[Path]:
    """Write fn(*args) as a program for other software, and return the paths of its files.

    fn: any function of one instance, such as dynamics, a motion with events, or a gradient; args: example arguments, a
    sequence of arrays, pytrees of them, or `jax.ShapeDtypeStruct`; their shapes and dtypes are those of the program, and
    all other values are constants in it. path: of the file, whose stem is the name of the function. kind:

    - "shared": a shared library for this kind of processor, and a header for C beside it. The function computes any number
      of instances, contiguous arrays with the rows first, and gives the results of the library's own machine code to the
      last bit; it needs no Python, keeps no state, and may be called from several threads. Needs a C compiler ($CC, or cc).
    - "c": C source of a function without loops, to be read, and a header; equal to rounding.
    - "fmu": an FMU of FMI 3.0 for this kind of processor, of a model in place of a function, with args = (q, v) at the
      start: for co-simulation with steps of at most dt [s] (1 ms by default) of "rk4", and for model exchange, with event
      indicators and directional derivatives; events and controllers that sample are included in both. Inputs are
      the generalized forces "tau.hinge.angle_rate", outputs the coordinates and rates by name; `parameters` names those of
      the model that stay parameters of the FMU. Needs a C compiler.
    - "jax": the bytes of `jax.export`, for CPUs and CUDA, to be read by `jax.export.deserialize`.
    - "ptx": a kernel for NVIDIA GPUs, one instance for each thread, and a description of its launch in JSON.

    Raises ModelError for another kind, a folder that does not exist, and a function that cannot be such a program, with the
    reason.

    >>> import tempfile
    >>> model = mbs.library.double_pendulum().build()
    >>> accelerations = lambda q, v: mbs.forward_dynamics(model, q, v)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = mbs.export(accelerations, (jnp.zeros(2), jnp.zeros(2)), f"{folder}/pendulum.c", kind="c")
    >>> [file.name for file in files]
    ['pendulum.c', 'pendulum.h']
    """
    path = Path(path)
    where = f"export {path.name!r}"
    if kind not in KINDS:
        raise ModelError(f"{where}: kind is {kind!r}; choose from {', '.join(KINDS)}")
    if kind == "fmu":
        if not isinstance(fn, Model):
            raise ModelError(f"{where}: {fn!r} is not a model; an FMU is made from a model, not from a function")
    elif not callable(fn):
        raise ModelError(f"{where}: {fn!r} is not a function")
    if not isinstance(args, (tuple, list)):
        raise ModelError(f"{where}: args is {args!r}; pass a tuple with an example of every argument")
    if not path.parent.is_dir():
        raise ModelError(f"{where}: there is no folder {str(path.parent)!r}; make it first")
    if not path.suffix:
        raise ModelError(f"{where}: the file needs a suffix, such as {SUFFIXES[kind]}")
    if kind != "fmu" and (dt is not None or len(parameters)):
        raise ModelError(f"{where}: dt and parameters are for FMUs; fix them in the function, or make them arguments")
    if isinstance(fn, Model):
        return package.written(fn, args, path, where, DT if dt is None else dt, parameters)
    if kind == "jax":
        return jax_program.written(fn, args, path, where)
    name = identifier(path.stem)
    if kind == "ptx":
        return ptx_program.written(program(fn, args, name, where, PTX), path, where)
    return {"shared": shared, "c": c_source}[kind].written(program(fn, args, name, where), path, where)


SUFFIXES = {"shared": shared.SUFFIX, "c": ".c", "fmu": ".fmu", "jax": ".jax", "ptx": ".ptx"}
