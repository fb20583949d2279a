"""The parts of a study as the tables of a file: built from the arguments of `Study`, and written with the model."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ValidationError

from jaxmbs.errors import ModelWarning
from jaxmbs.io.catalogue import RUN, Catalogue, Classes, catalogue, elements_in, joined, source
from jaxmbs.io.errors import InputError, Problem, problems_of
from jaxmbs.io.save import Writer, plain, toml_text
from jaxmbs.io.toml import parse, with_full_paths
from jaxmbs.model.fields import type_name
from jaxmbs.study import distributions
from jaxmbs.study import outputs as outputs_package
from jaxmbs.study.distributions.base import Distribution
from jaxmbs.study.outputs import Output
from jaxmbs.study.outputs.base import AtEvent
from jaxmbs.study.problem import instants, meshes
from jaxmbs.study.problem.criteria import Criterion
from jaxmbs.study.problem.schema import study_file
from jaxmbs.study.sampling.dispersions import Dispersions

if TYPE_CHECKING:
    from jaxmbs.model import Model

# classes that a study file may name besides the elements of a mechanism: outputs, their shapes, and distributions
OWN: Classes = (*elements_in(outputs_package), *elements_in(distributions))


def checked(
    given: Mapping[str, Any], model: Model, modules: Iterable[str | Path | ModuleType], known: Catalogue | None
) -> tuple[Any, Catalogue]:
    """The arguments `given` to `Study` as checked tables, and the catalogue of the classes and functions that they may
    name: `known`, the catalogue of a file, or else one built from `modules` and `given`.

    Raises InputError, with the path of each key as in a file.
    """
    initial, outputs, drawn = given["initial"], given["outputs"], given["dispersions"]
    if isinstance(drawn, Dispersions):
        drawn = {d.name: d.table for d in drawn.items}
    made = {k: x for k, x in outputs.items() if isinstance(x, Output)} if isinstance(outputs, Mapping) else {}
    if known is None:
        files = dict(source(module)[1] for module in modules)
        known = catalogue({"modules": list(files)}, None, True, OWN, given=files)
        tables = [x for x in drawn.values() if isinstance(x, Distribution)] if isinstance(drawn, Mapping) else []
        classes = _joined(_joined(known.classes, made.values(), "outputs"), tables, "dispersions")
        known = Catalogue(classes, {}, known.functions)
    if isinstance(initial, tuple):
        initial = _initial(model, *initial)
    if made:
        outputs = {**outputs, **{name: {"type": type_name(type(x)), **plain(x)} for name, x in made.items()}}
    data = _plain({**given, "initial": initial, "outputs": outputs, "dispersions": drawn})
    of_draws = data["dispersions"].values() if isinstance(data["dispersions"], dict) else ()
    for table in (*of_draws, *(table for _, table in meshes.tables_in(data["outputs"]))):
        if isinstance(table, dict) and isinstance(table.get("file"), str):
            table["file"] = str(Path(table["file"]).absolute())  # valid even if this process changes its working folder
    try:
        return study_file(known.classes, False).model_validate(data, context=known.functions), known
    except ValidationError as error:
        raise InputError(problems_of(error, data)) from None


def _joined(known: Classes, made: Iterable[Any], where: str) -> Classes:
    """The known classes and the classes of the objects `made` in Python. The modules have been run again, which created
    their classes anew; such a class replaces an object's class of the same name."""
    family = Output if where == "outputs" else Distribution
    theirs = {type_name(c) for c in known if c.__module__.startswith(RUN) and issubclass(c, family)}
    return joined(known, {type(x): None for x in made if type_name(type(x)) not in theirs}, where)


def written(
    model: Model, tables: Any, modules: Iterable[str | Path | ModuleType]
) -> tuple[bytes, Catalogue, dict[str, bytes], Model, Any]:
    """The file of a study: its content, its catalogue, the content of its FMUs by name, and the model and the tables that
    are read back from it.

    Raises ModelError if no file can hold the study.
    """
    writer = Writer(model, modules, OWN)
    mechanism = writer.mechanism()
    data = _plain(tables)
    files = {name: table["file"] for name, table in data.get("dispersions", {}).items() if "file" in table}
    for name, file in files.items():
        data["dispersions"][name]["file"] = Path(file).name
    made = {name: table.build() for name, table in tables.outputs.items()}
    data["outputs"] = {name: _plain(writer.own(x, f"output {name!r}")) for name, x in made.items()}
    paths = [table["file"] for _, table in meshes.tables_in(data["outputs"])]
    for _, table in meshes.tables_in(data["outputs"]):
        table["file"] = Path(table["file"]).name
    for name, table in tables.dispersions.items():
        writer.name(type(table), f"dispersion {name!r} is {type(table).__name__}, which")
    writer.check()
    found = {"modules": list(writer.modules), "criteria": data.pop("criteria", []), "mechanism": mechanism, **data}
    content = toml_text({key: x for key, x in found.items() if x}).encode()

    back = with_full_paths("study.toml", parse(content), trust=True)
    for name, file in files.items():
        back["dispersions"][name]["file"] = file
    for (_, table), file in zip(meshes.tables_in(back.get("outputs")), paths, strict=True):
        table["file"] = file
    for table in back["mechanism"].get("fmus", ()):
        table["file"] = writer.fmus[table["file"]]
    known = catalogue(back, None, True, OWN, given=writer.modules)
    try:
        read = study_file(known.classes).model_validate(back, context=known.functions)
    except ValidationError as error:
        raise InputError(problems_of(error, back)) from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # the model has given these warnings already
        fmus = {name: x.content for name, x in writer.fmus.items()}
        return content, known, fmus, read.mechanism.build(), read


def _initial(model: Model, q0: Any, v0: Any) -> dict[str, dict[str, Any]]:
    """The tables [initial.JOINT] of all joints that are not neutral or not at rest."""
    given = (("q", q0, model.neutral(), model.q_slice), ("v", v0, np.zeros(model.nv), model.v_slice))
    out: dict[str, dict[str, Any]] = {}
    for key, x, usual, part in given:
        x, usual = np.asarray(usual if x is None else x, float), np.asarray(usual, float)
        if x.shape != usual.shape:
            raise InputError(Problem("initial", f"{key}0 has shape {x.shape}; pass {usual.shape}"))
        for joint in model.joint_names:
            if x[part(joint)].tobytes() != usual[part(joint)].tobytes():
                out.setdefault(joint, {})[key] = x[part(joint)].tolist()
    return out


def _plain(x: Any) -> Any:
    """A value in the form that TOML can hold."""
    if isinstance(x, BaseModel):
        x = x.model_dump(exclude_unset=True)
    if isinstance(x, Mapping):
        return {key: _plain(value) for key, value in x.items() if value is not None}
    if isinstance(x, Criterion | AtEvent):
        return instants.said(x)
    if isinstance(x, (np.ndarray, np.generic)):
        return x.tolist()
    return [_plain(value) for value in x] if isinstance(x, (list, tuple)) else x
