"""Repeats single samples with their full history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from jaxmbs.batching import over_rows
from jaxmbs.io.errors import InputError, Problem
from jaxmbs.io.matlab import write_matlab
from jaxmbs.study.outputs.folding import folded, measured, needs_mode, results_of
from jaxmbs.study.problem.study import Study
from jaxmbs.study.samples.batch import (
    cached_result,
    draws_of,
    filled,
    noise_of,
    numbers_of,
    placed,
    precision,
    simulated,
    status_of,
)
from jaxmbs.study.sampling.targets import Numbers
from jaxmbs.study.units import si, units_of

Array = Any
_ROWS = 16  # several samples are filled up to a multiple of this number


@dataclass(frozen=True)
class History:
    """Motion of S samples at T times. t (T,), q (S, T, nq), v (S, T, nv); values: what every output measures, (S, T);
    outputs: these values reduced to one number, (S,); status (S,); energy_error (S,) [J] at the end; numbers: those
    that differ between samples, (S, ...), None for the nominal motion alone; violated (S, constraints): see
    `Solution.violated`; forces: the wrenches of force elements on the bodies as in `mbs.element_forces`, (S, T, bodies,
    6), if they were asked for."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    values: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]
    status: np.ndarray
    energy_error: np.ndarray
    numbers: Numbers | None = None
    violated: np.ndarray | None = None
    forces: dict[str, np.ndarray] = field(default_factory=dict)


def repeat(
    study: Study,
    samples: Sequence[int | None] | None = None,
    save_every: int = 1,
    draws: np.ndarray | None = None,
    forces: bool = False,
) -> History:
    """History of the given samples at every save_every-th step and the last one; that of the nominal motion (S = 1) if
    no samples are given, or if the study has no dispersions. The sample None is the nominal motion.
    draws (S, k): those of the samples, if they are already known; forces: whether the history includes the wrenches of
    force elements.
    """
    dtype, time, fold = precision(), study.simulation, folded(study.outputs, precision())

    def one(model: mbs.Model, q: Array, v: Array, key: Array | None = None) -> Any:
        run = simulated(time, model, q, v, key=key, save_every=save_every, fold=fold)
        modes = run.mode_at(model, run.t) if forces or needs_mode(study.outputs) else None
        # a loop over the times, which becomes part of the kernel

        def values_at(now: Any) -> Any:
            states, *instant = now
            own = replace(model, overrides={**model.overrides, **states})
            return measured(study.outputs, own, *instant), acting(own, *instant) if forces else {}

        found, wrenches = jax.lax.map(values_at, (run.states, run.t, run.q, run.v, modes))
        values = {name: jnp.where(defined, value, jnp.nan) for name, (value, defined) in found.items()}
        outputs = results_of(study.outputs, run.folded, run.events, model, q, v)
        return outputs, run.status, run.energy_error[-1], (run.t, run.q, run.v, values, wrenches), run.violated

    def all_of(draws: Array | None, keys: Array | None) -> Any:
        own = () if keys is None else (keys,)
        if draws is None:
            alone = (jnp.asarray(x, dtype)[None] for x in (study.q0, study.v0))
            return over_rows(one, (None, 0, 0, *(0 for _ in own)))(study.model, *alone, *own), None
        numbers = numbers_of(study, draws, dtype)
        model, axes, q, v = placed(study, numbers)
        outputs, status, *rest = over_rows(one, (axes, 0, 0, *(0 for _ in own)))(model, q, v, *own)
        return (outputs, status_of(study, model, status), *rest), numbers

    if samples is None or not study.dispersions.items:
        many, given, keys = 1, None, noise_of(study, None)
    else:
        many = len(samples)
        given = np.asarray(_draws(study, samples, dtype) if draws is None else draws, dtype)
        rows = _ROWS if many > 1 else 1
        several = [samples[k] for k in filled(np.arange(many), rows)]
        given, keys = filled(given, rows), _noise(study, several)
    name = f"history, every {save_every}" + ", forces" * forces
    found, numbers = cached_result(study, name, all_of, given, keys)
    found, numbers = jax.tree.map(lambda x: np.asarray(x)[:many], (found, numbers))
    outputs, status, error, (t, q, v, values, wrenches), violated = found
    return History(t[0], q, v, values, outputs, status, error, numbers, violated, wrenches)


def acting(model: mbs.Model, t: Array, q: Array, v: Array, mode: Any) -> dict[str, Array]:
    """The wrenches of the force elements on the bodies."""
    return {name: x.wrenches for name, x in mbs.element_forces(model, q, v, t=t, mode=mode).items()}


def _draws(study: Study, samples: Sequence[int | None], dtype: Any) -> np.ndarray:
    drawn = np.tile(study.dispersions.neutral, (len(samples), 1))
    if known := [k for k, i in enumerate(samples) if i is not None]:
        drawn[known] = draws_of(study, [i for i in samples if i is not None], dtype)
    return drawn


def _noise(study: Study, samples: Sequence[int | None]) -> Array | None:
    keys = noise_of(study, [0 if i is None else i for i in samples])
    own = noise_of(study, None)
    if keys is None or own is None or None not in samples:
        return keys
    return jnp.where(np.array([i is None for i in samples]), own, keys)


def write(study: Study, history: History, path: Path, sample: int = 0, overwrite: bool = True) -> None:
    """Write the history of one sample; the suffix of the path decides the format. .csv: one row per time, in the units
    of the study's file, which the column heads state ("reach [mm]"); .npz, .zarr or .mat (MATLAB and Octave): in SI, with
    plain names.

    Raises InputError for any other suffix, and for an existing file unless `overwrite` is set.
    """
    check_name(path, overwrite)
    columns = {"t": history.t} | _columns(study, history, sample)
    used = units_of(study)
    if path.suffix == ".csv":
        table = np.stack([x if used[n].factor == 1 else x / used[n].factor for n, x in columns.items()], axis=1)
        heads = [f"{n} [{used[n].name}]" if used[n].name else n for n in columns]
        np.savetxt(path, table, delimiter=",", header=",".join(heads), comments="", fmt="%.17g", encoding="utf-8")
    elif path.suffix == ".mat":
        write_matlab(path, columns)
    elif path.suffix == ".npz":
        np.savez_compressed(path, **columns)  # pyright: ignore[reportArgumentType]
    else:
        import xarray

        said = {name: {"units": si(used[name].quantity).name} for name in columns}
        arrays = {name: ("t", x, said[name]) for name, x in columns.items() if name != "t"}
        xarray.Dataset(arrays, coords={"t": ("t", history.t, said["t"])}).to_zarr(path, mode="w", consolidated=False)


def check_name(path: Path, overwrite: bool = True) -> None:
    """Raises InputError if a history cannot be written to this path."""
    if path.exists() and not overwrite:
        raise InputError(Problem(str(path), "exists already; choose another name with --out, or pass --overwrite"))
    if path.suffix not in (".csv", ".npz", ".zarr", ".mat"):
        raise InputError(Problem(str(path), "the name must end with .csv, .npz, .zarr or .mat"))


def _columns(study: Study, history: History, sample: int) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for joint in study.model.joint_names:
        for key, x, slice_of in (("q", history.q, study.model.q_slice), ("v", history.v, study.model.v_slice)):
            part = x[sample, :, slice_of(joint)]
            found |= {f"{joint}.{key}[{i}]": part[:, i] for i in range(part.shape[1])}
    return found | {name: x[sample] for name, x in history.values.items()}
