"""Mesh files of a study's shapes: found beside the study, compared with the bodies that carry them, stored with a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbs.io.errors import InputError, Problem, dotted
from jaxmbs.io.names import file_in
from jaxmbs.model import Model, get
from jaxmbs.model.fields import declared, parts_in, type_name
from jaxmbs.study.outputs import Mesh, Output

Keys = tuple[str | int, ...]
IMPLAUSIBLE = 100.0  # ratio of a mesh's size to the radius of gyration of its body, or the inverse


def tables_in(outputs: Any, path: Keys = ("outputs",)) -> Iterator[tuple[Keys, dict[str, Any]]]:
    """(path, table) of the shapes that name a mesh file, in the tables of outputs."""
    if isinstance(outputs, list):
        outputs = dict(enumerate(outputs))
    if not isinstance(outputs, dict):
        return
    if outputs.get("type") == type_name(Mesh) and isinstance(outputs.get("file"), str):
        yield path, outputs
    for key, x in outputs.items():
        yield from tables_in(x, (*path, key))


def beside_study(folder: Path, data: dict[str, Any], trust: bool = False) -> None:
    """Replace the names of mesh files by their paths in the folder."""
    for path, table in tables_in(data.get("outputs")):
        table["file"] = str(file_in(folder, table["file"], dotted((*path, "file")), trust))


def meshes_of(outputs: Mapping[str, Output]) -> Iterator[tuple[str, Mesh]]:
    """(path, mesh) of the shapes of outputs that are meshes."""

    def found(path: str, x: Any) -> Iterator[tuple[str, Mesh]]:
        if isinstance(x, Mesh):
            yield path, x
        for d in declared(type(x)):
            for key, part in parts_in(d, getattr(x, d.name)):
                yield from found(f"{path}.{key}", part)

    for name, output in outputs.items():
        yield from found(dotted(("outputs", name)), output)


def files_of(outputs: Mapping[str, Output]) -> dict[str, bytes]:
    """Content of the mesh files of a study, and of those with their pieces, by name. Raises InputError if two different
    ones have the same name."""
    files: dict[str, bytes] = {}
    for path, mesh in meshes_of(outputs):
        for name, content in mesh.files().items():
            if files.setdefault(name, content) != content:
                message = (
                    f'two different files are called "{name}", but all files of a study are in its folder; rename one'
                )
                raise InputError(Problem(f"{path}.file", message))
    return files


def of_wrong_size(outputs: Mapping[str, Output], model: Model) -> list[Problem]:
    """Meshes that are so large or so small for the inertia of their body that their unit must be another."""
    problems = []
    for path, mesh in meshes_of(outputs):
        if mesh.body not in model.body_names or not float(mass := get(model, f"{mesh.body}.mass")):
            continue
        gyration = float(np.sqrt(np.trace(np.asarray(get(model, f"{mesh.body}.inertia"))) / 2 / mass))
        size = mesh.size()
        if gyration and not gyration / IMPLAUSIBLE <= size <= gyration * IMPLAUSIBLE:
            message = (
                f"{mesh.called} is {size:.3g} m long, and the radius of gyration of {mesh.body} is {gyration:.3g} m; its "
                "file does not say its unit: scale = 0.001 if it is in mm, 0.0254 if in inches, 1 if in m"
            )
            problems.append(Problem(f"{path}.scale", message))
    return problems
