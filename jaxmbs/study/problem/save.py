"""Writing studies to TOML files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from jaxmbs.io.loading import is_robot
from jaxmbs.io.save import write
from jaxmbs.model import Model
from jaxmbs.study.problem.study import Study, read


def save(model: Study | Model, path: str | Path, **parts: Any) -> Study:
    """Write a study to a TOML file at `path`, read it back, and return that study, which equals the given one.

    If the study was read from a TOML file, that file's bytes are written, comments included. The modules and CSV files
    that it names are written next to it. If `model` is a model, `parts` are the other keywords of `mbs.study.Study`,
    and q0 (nq,) and v0 (nv,), the state at t = 0. Raises ModelError if no file can hold the study, and InputError, with
    the paths of the keys, for mistakes; nothing is written in either case.

    >>> study = mbs.study.save(
    ...     mbs.library.double_pendulum().build(),
    ...     "swing.toml",
    ...     simulation={"t_end": 1.0, "dt": 0.01},
    ...     dispersions={"lower.mass": mbs.study.Normal(apply="multiply", std=0.1)},
    ...     outputs={"speed": mbs.study.outputs.JointVelocity("elbow", reduce="max")},
    ...     criteria=["speed < 3 rad/s"],
    ...     q0=[0.5, 0.0],
    ... )
    >>> mbs.study.read("swing.toml") == study
    True
    """
    if isinstance(model, Study):
        study = replace(model, file=None) if model.path is not None and is_robot(model.path) else model
    else:
        study = Study(model=model, initial=(parts.pop("q0", None), parts.pop("v0", None)), **parts)
    write(Path(path), study.content, study.files)
    need = "study" if study.outputs and study.dispersions.items else "mechanism"
    return replace(read(path, need, trust=True), n=study.n)
