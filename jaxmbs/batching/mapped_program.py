"""Turns functions of one row into functions of all rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.lax import convert_element_type_p

from jaxmbs.batching import gpu, machine
from jaxmbs.batching.execution import Setting
from jaxmbs.batching.machine.segments import execute
from jaxmbs.batching.recorded import Recording, Step
from jaxmbs.batching.recording import record
from jaxmbs.batching.row_programs.instance import tracing
from jaxmbs.batching.scalars import Source, is_traced
from jaxmbs.batching.separable import inseparable, size_of
from jaxmbs.batching.targets import Target
from jaxmbs.errors import ModelError

MOST_OPERATIONS = 100_000  # building kernels for longer programs would take too long


def chosen_target(backend: str | None = None) -> tuple[Target | None, str]:
    """(the target that runs kernels on a backend, None if XLA computes the rows by `jax.vmap`; why it does, in words).

    backend: None for JAX's default one. Kernels are machine code on a CPU and PTX on an NVIDIA GPU, if these can be
    generated; the environment variable JAXMBS_KERNELS forces "machine" (for either) or "xla".
    """
    backend = backend or jax.default_backend()
    if backend not in ("cpu", "gpu", "cuda"):
        return None, f"the default backend is {backend}"
    forced = os.environ.get("JAXMBS_KERNELS", "")
    if forced not in ("", "machine", "xla"):
        raise ModelError(f'JAXMBS_KERNELS is "{forced}": set it to "machine" or "xla", or leave it out')
    on, why = (machine.MACHINE, machine.lacking) if backend == "cpu" else (gpu.PTX, gpu.lacking)
    lacking = "JAXMBS_KERNELS is xla" if forced == "xla" else why()
    if lacking and forced == "machine":
        raise ModelError(f'JAXMBS_KERNELS is "machine", but {lacking}')
    return (None, lacking) if lacking else (on, "")


def too_long(closed: Any) -> str:
    """Why a program is too long for kernels, in words; empty if it is not."""
    size = size_of(closed)
    return f"it has {size:,} operations, more than {MOST_OPERATIONS:,}" if size > MOST_OPERATIONS else ""


def kernels() -> str:
    """Names what runs programs of scalars here. Results of anything else are equal to its results only to rounding."""
    on, _ = chosen_target()
    return f"{on.name}, {machine.compiler()}" if on else "XLA"


class MappedProgram:
    """The program of fn(*arrays), where the arrays that are `mapped` have the rows on their first axis.

    on: the target that will run it, None for any. The program is called with such arrays and the number of rows, which may
    differ from that of the `example` from which it was recorded; it returns what `jax.vmap` returns, to rounding.
    """

    def __init__(
        self, fn: Callable[..., Any], example: Sequence[Any], mapped: Sequence[bool], on: Target | None = None
    ):
        self.mapped = list(mapped)
        shapes = [x.shape[1:] if m else x.shape for x, m in zip(example, mapped, strict=True)]
        self.sources = [Source(s, x.dtype, m) for s, x, m in zip(shapes, example, mapped, strict=True)]
        weak = [getattr(x, "weak_type", False) for x in example]
        one = [jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=w) for x, w in zip(self.sources, weak, strict=True)]
        with tracing():
            closed, shape = jax.make_jaxpr(fn, return_shape=True)(*one)
        self.treedef, self.results = jax.tree_util.tree_structure(shape), closed.out_avals
        self.weak = [getattr(x, "weak_type", False) for x in closed.out_avals]
        # kernels cannot pass on the derivatives or batches of a surrounding transformation
        outer = "it contains values of a surrounding transformation" if any(map(is_traced, closed.consts)) else ""
        dependent = outer or inseparable(closed)
        self.independent = not dependent
        self.obstacle = dependent or too_long(closed)  # why the rows cannot be kernels, in words
        self.by_rows = not self.obstacle
        self.program = record(closed, self.sources, on and on.serves) if self.by_rows else Recording()

    @property
    def loops(self) -> bool:
        """Whether the program contains a loop, so that a call does much work even for few rows."""
        return any(item.loop is not None for item in self.program.items if isinstance(item, Step))

    def excluded(self, on: Target, rows: int = 2) -> list[str]:
        """Why steps that depend on the row are outside the kernels of a target, in words; empty if none is."""
        steps = [item for item in self.program.items if isinstance(item, Step) and not item.shared]
        return list(dict.fromkeys(filter(None, (on.excludes(step, rows) for step in steps))))

    def __call__(self, arrays: Sequence[Any], rows: int, on: Target) -> Any:
        out = execute(self.program, dict(zip(self.sources, arrays, strict=True)), Setting(rows, on))
        # with the weak types (those of Python numbers) that the function gives them
        out = [_weakened(x) if weak else x for x, weak in zip(out, self.weak, strict=True)]
        return jax.tree_util.tree_unflatten(self.treedef, out)


def _weakened(x: jax.Array) -> jax.Array:
    return convert_element_type_p.bind(x, new_dtype=x.dtype, weak_type=True, sharding=None)


def padded(x: jax.Array, rows: int) -> jax.Array:
    """x with its last row repeated until there are `rows` rows."""
    extra = rows - x.shape[0]
    return x if extra == 0 else jnp.concatenate([x, jnp.broadcast_to(x[-1:], (extra, *x.shape[1:]))])


def flat_axes(args: tuple[Any, ...], in_axes: Any) -> tuple[list[Any], list[int | None], Any]:
    """Leaves of the arguments, the mapped axis of each, and their tree; in_axes is broadcast as in vmap."""
    flat, treedef = jax.tree_util.tree_flatten(args)
    if isinstance(in_axes, (int, type(None))):
        return flat, [in_axes] * len(flat), treedef
    axes: list[int | None] = []
    for argument, axis in zip(args, tuple(in_axes), strict=True):
        spread = jax.tree_util.tree_map(
            lambda a, part: [a] * len(jax.tree_util.tree_leaves(part)), axis, argument, is_leaf=lambda a: a is None
        )
        axes += jax.tree_util.tree_leaves(spread, is_leaf=lambda a: a is None)
    return flat, axes, treedef
