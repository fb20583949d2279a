"""Studies from Python objects to files."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from pydantic import BaseModel

from jaxmbs.errors import ModelError, ModelWarning
from jaxmbs.io.errors import InputError
from jaxmbs.io.save import Writer, write
from jaxmbs.model import Model
from jaxmbs.model.given import Coordinates, Rates
from jaxmbs.study import instants
from jaxmbs.study.criteria import Criterion
from jaxmbs.study.distributions import Distribution
from jaxmbs.study.outputs import Output
from jaxmbs.study.outputs.base import AtEvent
from jaxmbs.study.problem import Study, classes, read

Table = Mapping[str, object] | BaseModel


def save(
    model: Model,
    path: str | Path,
    *,
    simulation: Table,
    dispersions: Mapping[str, Table],
    outputs: Mapping[str, Output | Table],
    criteria: Iterable[str] = (),
    q0: Coordinates | None = None,
    v0: Rates | None = None,
    correlations: Iterable[Table] = (),
    study: Table | None = None,
    modules: Iterable[str | Path | ModuleType] = (),
) -> Study:
    """Write a study as a TOML file at `path`, and read it: what comes back is ready for `run`.

    Tables are those of a file (`jaxmbs keys`), as mappings; outputs also objects of `jaxmbs.study.outputs`; q0 (nq,),
    v0 (nv,): state at t = 0, neutral and at rest by default. modules: Python files, or modules, with functions and classes
    of yours, as for `mbs.save`; they and the CSV files of dispersions are copied beside the file. Raises ModelError for
    what no file can hold, InputError with the path of its key for what is wrong; then nothing is written.

    >>> study = mbs.study.save(
    ...     mbs.library.double_pendulum().build(),
    ...     "swing.toml",
    ...     simulation={"t_end": 1.0, "dt": 0.01},
    ...     dispersions={"lower.mass": {"distribution": "normal", "apply": "multiply", "std": 0.1}},
    ...     outputs={"speed": mbs.study.outputs.JointVelocity("elbow", reduce="max")},
    ...     criteria=["speed < 3 rad/s"],
    ...     q0=[0.5, 0.0],
    ... )
    >>> study.criteria[0].bound
    3.0
    """
    path = Path(path)
    writer = Writer(model, modules, classes())
    draws = {name: _plain(table) for name, table in dispersions.items()}
    for name, table in dispersions.items():
        if isinstance(table, Distribution):
            writer.name(type(table), f"dispersion {name!r} is {type(table).__name__}, which")
    files = _measured(draws)
    found = {
        "criteria": list(criteria), "mechanism": writer.mechanism(), "initial": _initial(model, q0, v0),
        "dispersions": draws, "correlations": [_plain(t) for t in correlations], "simulation": _plain(simulation),
        "study": _plain(study or {}),
        "outputs": {
            name: _plain(writer.own(x, f"output {name!r}") if isinstance(x, Output) else x) for name, x in outputs.items()
        },
    }  # fmt: skip
    writer.check()
    tables = {key: x for key, x in found.items() if x}

    def written(to: Path) -> Study:
        for file in files:
            beside = to.parent / file.name
            if beside.exists() and beside.read_bytes() != file.read_bytes():
                raise ModelError(f"save: there is another {file.name} beside {to.name}; choose another folder")
            if not beside.exists():
                shutil.copy(file, beside)
        write(to, tables, writer)
        return read(to, trust=True)

    with tempfile.TemporaryDirectory() as trial, warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        try:
            written(Path(trial) / path.name)
        except InputError as error:
            raise InputError(error.problems, path) from None
    return written(path)


def _measured(draws: dict[str, dict[str, Any]]) -> list[Path]:
    """CSV files of the dispersions, which are then named as files beside the study."""
    files = []
    for table in draws.values():
        if isinstance(table.get("file"), str):
            files.append(Path(table["file"]))
            table["file"] = files[-1].name
    missing = [str(f) for f in files if not f.is_file()]
    if missing:
        raise ModelError(f"save: there is no file {', '.join(missing)} to copy beside the study")
    return files


def _initial(model: Model, q0: Coordinates | None, v0: Rates | None) -> dict[str, dict[str, Any]]:
    """The tables [initial.JOINT] of what is neither neutral nor at rest."""
    given = (("q", q0, model.neutral(), model.q_slice), ("v", v0, np.zeros(model.nv), model.v_slice))
    out: dict[str, dict[str, Any]] = {}
    for key, x, usual, part in given:
        x, usual = np.asarray(usual if x is None else x, float), np.asarray(usual, float)
        if x.shape != usual.shape:
            raise ModelError(f"save: {key}0 has shape {x.shape}; pass {usual.shape}")
        for joint in model.joint_names:
            if not np.array_equal(x[part(joint)], usual[part(joint)]):
                out.setdefault(joint, {})[key] = x[part(joint)].tolist()
    return out


def _plain(x: Any) -> Any:
    """As TOML has it."""
    if isinstance(x, BaseModel):
        x = x.model_dump(exclude_unset=True)
    if isinstance(x, Mapping):
        return {key: _plain(value) for key, value in x.items() if value is not None}
    if isinstance(x, (Criterion, AtEvent)):
        return instants.said(x)
    if isinstance(x, (np.ndarray, np.generic)):
        return x.tolist()
    return [_plain(value) for value in x] if isinstance(x, (list, tuple)) else x
