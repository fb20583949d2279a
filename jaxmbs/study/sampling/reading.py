"""Reads the draws of a study file: measured data next to it, and dispersions with their correlations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.io.errors import InputError, Problem, dotted
from jaxmbs.io.names import file_in
from jaxmbs.study.distributions.tables import Empirical
from jaxmbs.study.sampling import dispersions
from jaxmbs.study.sampling.designs import RANDOM
from jaxmbs.study.sampling.dispersions import Dispersions

if TYPE_CHECKING:
    from jaxmbs.model import Model
    from jaxmbs.model.joints import Joint


def beside_study(folder: Path, data: dict[str, Any], trust: bool = False) -> dict[str, Any]:
    """The tables, with the names of CSV files replaced by their paths in the folder."""
    for name, table in data["dispersions"].items() if isinstance(data.get("dispersions"), dict) else ():
        file = table.get("file") if isinstance(table, dict) else None
        if isinstance(file, str):
            table["file"] = str(file_in(folder, file, dotted(("dispersions", name, "file")), trust))
    return data


def measured(file: Any) -> dict[str, bytes]:
    """Content of the CSV files of a study, by name."""
    found: dict[str, bytes] = {}
    problems: list[Problem] = []
    for name, table in file.dispersions.items():
        if isinstance(table, Empirical):
            source = Path(table.file)
            try:
                content = source.read_bytes()
                if found.setdefault(source.name, content) != content:
                    message = (
                        f'two different files are called "{source.name}", but all files of a study are in its folder; '
                        "rename one"
                    )
                    problems.append(Problem(dotted(("dispersions", name, "file")), message))
            except OSError as error:
                message = f'"{source.name}" cannot be read from the folder of the study: {error.strerror}'
                problems.append(Problem(dotted(("dispersions", name, "file")), message))
    if problems:
        raise InputError(problems)
    return found


def resolved(file: Any, model: Model, joints: Mapping[str, Joint], q0: np.ndarray, v0: np.ndarray) -> Dispersions:
    """The checked dispersions with their correlations, and with the number of samples that share a day. Raises
    InputError, also if the sampling plan does not allow correlations or days."""
    own = file.study
    found = dispersions.resolve(file.dispersions, model, joints, q0, v0, file.correlations, own.per_day)
    if own.design != RANDOM and own.per_day > 1:
        raise InputError(
            Problem("study.per_day", f'is for design = "random" only, not for "{own.design}"; leave one out')
        )
    if own.per_day > 1 and not found.known.any():
        raise InputError(
            Problem("study.per_day", "no dispersion has known = true; mark those that are known on the day")
        )
    if own.design in ("saltelli", "morris") and found.triangle is not None:
        message = f'design = "{own.design}" needs independent draws, and some are correlated; take "random"'
        raise InputError(Problem("study.design", message))
    return found
