"""Repeats single samples with their full history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from jaxmbs.batching.compiling import compiled
from jaxmbs.batching.kept import kept as kept_program
from jaxmbs.io.errors import InputError, Problem
from jaxmbs.study.batch import draws_of, instances, precision, simulated, status_of
from jaxmbs.study.outputs.folding import at_events, folded, folded_history, kept, measured, needs_mode
from jaxmbs.study.problem import Study

Array = Any


@dataclass(frozen=True)
class History:
    """Motion of S samples at T times: t (T,), q (S, T, nq), v (S, T, nv); values: what every output measures, (S, T);
    outputs: folded to one number, (S,); status (S,), energy_error (S,) [J] at the end."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    values: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]
    status: np.ndarray
    energy_error: np.ndarray


def repeat(study: Study, samples: Sequence[int] | None = None, save_every: int = 1) -> History:
    """History of the named samples, or of the nominal motion (S = 1); every save_every-th step and the last one."""
    dtype, time = precision(), study.simulation

    def one(model: mbs.Model, q: Array, v: Array) -> Any:
        caught = at_events(study.outputs)
        run = simulated(time, model, q, v, **({"fold": folded(study.outputs, dtype)} if caught else {}))
        modes = run.mode_at(model, run.t) if needs_mode(study.outputs) else None
        found = jax.vmap(lambda *now: measured(study.outputs, model, *now))(run.t, run.q, run.v, modes)
        carry = run.folded if caught else folded_history(study.outputs, run.t, found)
        outputs = kept(study.outputs, carry, run.events, model, q, v)
        values = {name: jnp.where(defined, value, jnp.nan) for name, (value, defined) in found.items()}
        return outputs, run.status, run.energy_error[-1], (run.t, run.q, run.v, values)

    if samples is not None and study.dispersions.items:
        model, axes, q, v = instances(study, draws_of(study, samples, dtype), dtype)
    else:
        model, axes, q, v = study.model, None, *(jnp.asarray(x, dtype)[None] for x in (study.q0, study.v0))
    leaves, treedef = jax.tree.flatten((model, q, v))
    # no dtype yields to others: the kept program knows shapes and dtypes only
    leaves = [jnp.asarray(x, jnp.asarray(x).dtype) for x in leaves]
    content, shapes = study.content_of_programs, [f"{x.shape} {x.dtype}" for x in leaves]

    def all_of(*leaves: Array) -> Any:
        return jax.vmap(one, (axes, 0, 0))(*treedef.unflatten(leaves))

    def program() -> jax.stages.Compiled:
        return compiled(all_of).lower(*leaves).compile()

    found = kept_program(content and [*content, "history", *shapes], 1, program)(*leaves)
    if axes is not None:
        found = (found[0], status_of(study, model, found[1]), *found[2:])
    outputs, status, error, rows = jax.tree.map(np.asarray, found)
    last = rows[0].shape[1] - 1
    some = [*range(0, last, save_every), last]
    t, q, v, values = jax.tree.map(lambda x: x[:, some], rows)
    return History(t[0], q, v, values, outputs, status, error)


def write(study: Study, history: History, path: Path, sample: int = 0, overwrite: bool = True) -> None:
    """Write one sample's history: .csv (one row per time), .npz or .zarr by the file's name.

    Raises InputError for another name, and for a file that exists where it may not be overwritten.
    """
    check_name(path, overwrite)
    columns = {"t": history.t} | _columns(study, history, sample)
    if path.suffix == ".csv":
        table = np.stack(list(columns.values()), axis=1)
        np.savetxt(path, table, delimiter=",", header=",".join(columns), comments="", fmt="%.17g")
    elif path.suffix == ".npz":
        np.savez_compressed(path, **columns)  # pyright: ignore[reportArgumentType]
    else:
        import xarray

        arrays = {name: ("t", x) for name, x in columns.items() if name != "t"}
        xarray.Dataset(arrays, coords={"t": history.t}).to_zarr(path, mode="w", consolidated=False)


def check_name(path: Path, overwrite: bool = True) -> None:
    """Raises InputError where a history cannot be written under this name."""
    if path.exists() and not overwrite:
        raise InputError(Problem(str(path), "exists already; choose another name with --out, or say --overwrite"))
    if path.suffix not in (".csv", ".npz", ".zarr"):
        raise InputError(Problem(str(path), "the name must end with .csv, .npz or .zarr"))


def _columns(study: Study, history: History, sample: int) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for joint in study.model.joint_names:
        for key, x, slice_of in (("q", history.q, study.model.q_slice), ("v", history.v, study.model.v_slice)):
            part = x[sample, :, slice_of(joint)]
            found |= {f"{joint}.{key}[{i}]": part[:, i] for i in range(part.shape[1])}
    return found | {name: x[sample] for name, x in history.values.items()}
