"""The checked parts of a study, and the file that describes them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from jaxmbs.errors import ModelError, ModelWarning
from jaxmbs.io.catalogue import Catalogue
from jaxmbs.io.errors import InputError, Problem
from jaxmbs.io.save import batches
from jaxmbs.model.model import Model
from jaxmbs.study.problem import checks, meshes, tables
from jaxmbs.study.problem.evidence import checked as checked_evidence
from jaxmbs.study.problem.schema import SimulationTable
from jaxmbs.study.sampling import reading

Table = Mapping[str, Any] | BaseModel
NONE: Mapping[str, Any] = MappingProxyType({})
A_SECOND = SimulationTable(t_end=1.0)  # the simulation of a study that does not give one


@dataclass(frozen=True)
class File:
    """A study as a file. content: its bytes; path: where they were read, None for a study created in Python; catalogue:
    the classes and functions that the file may name; columns: content of the other files of its mechanism (CSV files, parts
    of flexible bodies, FMUs), by name; data: the same for measured values of its dispersions and for meshes of its shapes;
    parts: the parts of the study that it describes; fault: why no file can hold these parts, "" if this one does."""

    content: bytes
    path: Path | None
    catalogue: Catalogue
    columns: Mapping[str, bytes] = field(default_factory=dict)
    data: Mapping[str, bytes] = field(default_factory=dict)
    parts: tuple[Any, ...] = ()
    fault: str = ""

    def of(self, parts: tuple[Any, ...]) -> bool:
        """Whether this file describes these very parts: the same objects, not only equal ones."""
        return len(self.parts) == len(parts) and all(a is b for a, b in zip(self.parts, parts, strict=True))


def checked_parts(given: Mapping[str, Any], modules: Any, file: File | None) -> tuple[dict[str, Any], File]:
    """The checked parts of a study, and its file: the one from which they were read, or one generated from them."""
    model = given["model"]
    if not isinstance(model, Model):
        raise InputError(
            Problem("model", f"is of type {type(model).__name__}; pass what Mechanism.build() or mbs.load gives")
        )
    if several := batches(model):
        raise InputError([Problem(f"model.{name}", "is a batch; pass one instance") for name in several])
    found, known = tables.checked(
        {k: x for k, x in given.items() if k != "model"}, model, modules, file and file.catalogue
    )
    content, fault, fmus = b"", "", {}
    if file is None:
        try:
            content, known, fmus, again, found = tables.written(model, found, modules)
            model = model if again == model else again
        except ModelError as error:
            fault = str(error)

    find, joints = checks.Findings(), {link.name: link.joint for link in model.structure.links}
    rest = checks.initial_state({}, model, joints)
    initial = q0, v0 = find(lambda: checks.initial_state(found.initial, model, joints), rest)
    made = {name: table.build() for name, table in found.outputs.items()}
    outputs = find(lambda: checks.outputs_of(made, model, joints), {})
    data = find(lambda: {**reading.measured(found), **meshes.files_of(outputs)}, {})
    drawn: Any = find(lambda: reading.resolved(found, model, joints, q0, v0), None) if not find.problems else None
    find(lambda: checks.short(found), None)
    find(lambda: checks.method(found.simulation, model), None)
    find.stop()
    outputs = find(lambda: checks.connected(outputs, model, joints, found.simulation), {})
    find.stop()
    quantities = {name: output.measures(joints) for name, output in outputs.items()}
    criteria = find(lambda: checks.criteria_of(given["criteria"], quantities), ())
    find(lambda: checks.shown_in(outputs, quantities, criteria), {})
    find.stop()
    find(lambda: checked_evidence(found.evidence, criteria), None)
    find.stop()
    if criteria != checks.criteria_of(found.criteria, quantities):
        fault = fault or "a criterion does not agree with its text"
    parts = {
        "model": model, "initial": initial, "simulation": found.simulation or A_SECOND, "dispersions": drawn,
        "correlations": tuple(found.correlations), "outputs": outputs, "criteria": criteria, "study": found.study,
        "evidence": found.evidence,
    }  # fmt: skip
    if file is None:
        file = File(content, None, known, fmus, fault=fault)
        for message in checks.doubts(model, initial[0], initial[1], drawn, found.simulation or A_SECOND):
            warnings.warn(f"study: {message}", ModelWarning, stacklevel=4)
    return parts, replace(file, data=data, parts=tuple(parts.values()))
