"""A synthesis problem from a TOML file: the tables of a study, and [design]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optax
from pydantic import ValidationError, create_model

from jaxmbs.design import objectives as objectives_package
from jaxmbs.design.free import Factor, Free
from jaxmbs.design.mass_distribution import MassDistribution
from jaxmbs.design.objectives.base import Setting
from jaxmbs.design.objectives.measurements import with_data
from jaxmbs.design.problem import Problem
from jaxmbs.design.tables import FactorTable, ParameterTable, design_table
from jaxmbs.design.variables import Item
from jaxmbs.io.catalogue import catalogue, elements_in
from jaxmbs.io.errors import InputError, choices, dotted, problems_of
from jaxmbs.io.errors import Problem as Fault
from jaxmbs.io.tables import Table, stated
from jaxmbs.io.toml import parse, read_bytes
from jaxmbs.model import Model, ModelError
from jaxmbs.study import Study, units
from jaxmbs.study import read as read_study
from jaxmbs.study.problem.schema import study_file
from jaxmbs.study.problem.tables import OWN


@dataclass(frozen=True)
class DesignFile:
    """A checked file: its problem, its study, and `check`, the number of samples that the report compares."""

    problem: Problem
    study: Study
    check: int


def read(path: str | Path, trust: bool = False) -> DesignFile:
    """Read a TOML file and check it completely.

    trust: run the Python `modules` that the file names. Raises InputError with one line for each mistake, which gives the
    path of its key.
    """
    study = read_study(path, need="mechanism", trust=trust)
    data = parse(read_bytes(path), path)
    try:
        return _design(study, data, Path(path), trust)
    except InputError as error:
        raise InputError(error.problems, path) from None


def file_table() -> type[Table]:
    """Everything that a file may contain: the tables of a study, and [design]."""
    of_studies, objectives = (catalogue({}, None, False, own).classes for own in (OWN, elements_in(objectives_package)))
    wanted = stated("table", "what `jaxmbs synthesize` searches for", default=None)
    table: Any = design_table(objectives) | None
    made: Any = create_model("File", __base__=study_file(of_studies), design=(table, wanted))
    return made


def _design(study: Study, data: dict[str, Any], path: Path, trust: bool) -> DesignFile:
    if "design" not in data:
        message = (
            "this table is missing; it lists the free parameters and the objectives; "
            f"{choices('design', data, 'tables')}"
        )
        raise InputError(Fault("design", message))
    known = catalogue(data, path, trust, elements_in(objectives_package))
    only = {"design": data["design"]}
    try:
        made: Any = create_model("File", __base__=Table, design=(design_table(known.classes), ...))
        table = made.model_validate(only, context=known.functions).design
    except ValidationError as error:
        raise InputError(problems_of(error, only)) from None
    model, faults = study.model, []
    free: list[Item] = []
    for i, row in enumerate(table.free):
        try:
            items = list(_items(row, model))
            for item in items:
                item.part(model)
            free += items
        except (ModelError, ValueError) as error:
            faults.append(Fault(dotted(("design", "free", i)), str(error).removeprefix("free: ")))
    setting = Setting(model, table.seed, study)
    objectives = [row.build() for row in table.objectives]
    for i, objective in enumerate(objectives):
        try:
            objectives[i] = with_data(objective, model, path.parent)
            objectives[i].ready(setting).check(setting)
        except ModelError as error:
            faults.append(Fault(dotted(("design", "objectives", i)), str(error)))
    if faults:
        raise InputError(faults)
    options = {
        k: getattr(table, k) for k in ("starts", "seed", "spread", "tolerance", "max_steps", "method", "learning_rate")
    }
    if callable(table.method):
        options["method"] = table.method(table.learning_rate)
        if not isinstance(options["method"], optax.GradientTransformation):
            said = f"the function returned {options['method']!r}; return an optimiser of optax"
            raise InputError(Fault("design.method", said))
    return DesignFile(Problem(model, free, objectives, study=study, **options), study, table.check)


def _scaled(bound: Any, factor: float) -> Any:
    """A bound, one number or several, converted to SI by the factor."""
    return tuple(factor * x for x in bound) if isinstance(bound, tuple) else bound if bound is None else factor * bound


def _items(row: Any, model: Model) -> Sequence[Item]:
    """The items of `Problem.free` that one table describes."""
    if isinstance(row, ParameterTable):
        factor = 1.0
        if row.unit and row.names[0] in model.structure.table:
            quantity = units.quantity(model.structure.table[row.names[0]][0].unit)
            factor = units.unit(row.unit, quantity).factor
        low, high = (_scaled(bound, factor) for bound in (row.low, row.high))
        return [Free(tuple(row.names), low, high, None if row.components is None else tuple(row.components))]
    if isinstance(row, FactorTable):
        return [Factor(tuple(row.names), row.low, row.high)]
    if len(row.bodies) > 1 and (row.equal or row.mirrored):
        raise ModelError("equal and mirrored are for a table with a single body; write a table for each body")
    envelope = {"center": row.center, "half_axes": row.half_axes, "pole": row.pole}
    group = {"equal": tuple(row.equal), "mirrored": tuple(row.mirrored), "across": row.across}
    mass = None if row.mass is None else (row.mass[0], row.mass[1])
    return [
        MassDistribution(body, mass, **envelope, **group, least_thickness=row.least_thickness) for body in row.bodies
    ]
