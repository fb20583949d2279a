"""A study: everything that a run, a repetition or a report needs, created in Python or read from a file."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationError

from jaxmbs.errors import ModelError, ModelWarning
from jaxmbs.io.catalogue import Catalogue, catalogue
from jaxmbs.io.columns import insert_columns
from jaxmbs.io.errors import InputError, Problem, problems_of
from jaxmbs.io.loading import from_robot, is_robot
from jaxmbs.io.toml import parse, read_bytes, with_full_paths
from jaxmbs.model.model import Model
from jaxmbs.study import units
from jaxmbs.study.folder.layout import files_of
from jaxmbs.study.outputs import Output
from jaxmbs.study.problem import checks, meshes, tables
from jaxmbs.study.problem.criteria import Criterion
from jaxmbs.study.problem.evidence import EvidenceTable
from jaxmbs.study.problem.parts import A_SECOND, NONE, File, Table, checked_parts
from jaxmbs.study.problem.programs import content
from jaxmbs.study.problem.schema import SimulationTable, StudyTable, study_file
from jaxmbs.study.sampling import reading
from jaxmbs.study.sampling.correlation import CorrelationTable
from jaxmbs.study.sampling.designs import RANDOM, SamplingPlan, check_size, dependence
from jaxmbs.study.sampling.dispersions import Dispersions

if TYPE_CHECKING:
    from jaxmbs.model.given import Coordinates, Rates
    from jaxmbs.model.joints import Joint


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Study:
    """A checked study: a mechanism at its nominal values, its dispersions, outputs of its motions and criteria on them.

    The keywords are the tables of a study's file (`jaxmbs keys`); each value is a mapping as in a file, or an object.
    Numbers are in SI units unless a `unit` is given with them.

    model: the model of one instance, from `Mechanism.build`, `mbs.load` or `mbs.set`.
    initial: state at t = 0, neutral and at rest by default: {joint: {"q": ..., "v": ...}}, or (q0, v0) with q0 (nq,) and
    v0 (nv,), each None for the default.
    simulation: `t_end` and `dt` [s], `method`, `tolerance` ...; by default one second in steps of 1 ms.
    dispersions: {target: distribution}; a target is a parameter ("link.mass") or an initial value ("initial.hinge.q"),
    a distribution is a `Normal`, `TruncatedNormal`, `Uniform`, `Lognormal`, `Discrete`, `Empirical` or `Mixture`. CSV
    files are named by their paths.
    correlations: between draws, each {"draws": names, "matrix": rows}.
    outputs: {name: output}, with the classes of `mbs.study.outputs`.
    criteria: sentences about outputs, "speed < 3 rad/s in 99 %".
    study: settings of all samples: `seed`, `design`, `levels`, `per_day`.
    evidence: `requirements` that criteria show, and statements on credibility for the report.
    modules: Python files, or modules, with your own functions and classes that the study uses, as for `mbs.save`.
    n: number of samples, needed only for a sampling plan; `of_size` sets it. file: the file that holds the study,
    created automatically.

    The study is stored as a file would hold it: components that `mbs.free` unpinned are pinned again where they are 0
    or +-1, so that samples have the same bits before and after `mbs.study.save`. A study with functions that no file
    can name can be used in a synthesis and in `rare`, but not in a run, whose folder must hold the study as a file.
    `dataclasses.replace` creates and checks a study with other parts; studies are equal if their parts are equal.

    Raises InputError, before anything is computed: one line for each mistake, with the path of its key. Warns
    (ModelWarning) about what is probably not intended.

    >>> study = mbs.study.Study(
    ...     model=mbs.library.double_pendulum().build(),
    ...     initial={"shoulder": {"q": [0.5]}},
    ...     simulation={"t_end": 1.0, "dt": 0.01},
    ...     dispersions={"lower.mass": mbs.study.Normal(apply="multiply", std=0.1)},
    ...     outputs={"speed": mbs.study.outputs.JointVelocity("elbow", reduce="max")},
    ...     criteria=["speed < 3 rad/s in 99 %"],
    ... )
    >>> study.criteria[0].bound, study.q0.tolist()
    (3.0, [0.5, 0.0])
    """

    model: Model
    initial: tuple[np.ndarray, np.ndarray]
    simulation: SimulationTable
    dispersions: Dispersions
    correlations: tuple[CorrelationTable, ...]
    outputs: Mapping[str, Output]
    criteria: tuple[Criterion, ...]
    study: StudyTable
    evidence: EvidenceTable
    n: int | None
    file: File

    def __init__(
        self, *, model: Model,
        initial: Mapping[str, Table] | tuple[Coordinates | None, Rates | None] = (None, None),
        simulation: Table | None = A_SECOND,
        dispersions: Mapping[str, Table] | Dispersions = NONE,
        correlations: Iterable[Table] = (),
        outputs: Mapping[str, Output | Table] = NONE,
        criteria: Iterable[str | Criterion] = (),
        study: Table = NONE,
        evidence: Table = NONE,
        modules: Iterable[str | Path | ModuleType] = (),
        n: int | None = None, file: File | None = None,
    ) -> None:  # fmt: skip
        given = {
            "model": model, "initial": initial, "simulation": simulation, "dispersions": dispersions,
            "correlations": correlations, "outputs": outputs, "criteria": criteria, "study": study,
            "evidence": evidence,
        }  # fmt: skip
        if file is None or not file.of(tuple(given.values())):
            given, file = checked_parts(given, tuple(modules), file if file and not file.parts else None)
        vars(self).update(given, n=n, file=file)

    def __eq__(self, other: object) -> bool:
        return self._said() == other._said() if isinstance(other, Study) else NotImplemented

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        named = (
            (self.dispersions.items, "dispersion", "dispersions"), (self.outputs, "output", "outputs"),
            (self.criteria, "criterion", "criteria"),
        )  # fmt: skip
        said = ", ".join(f"{len(x)} {one if len(x) == 1 else several}" for x, one, several in named)
        return f"<Study of {self.model.name!r}: {said}>"

    def _said(self) -> list[Any]:
        """The parts of the study in a form that can be compared; two studies are equal if these lists are."""
        drawn = {d.name: {**d.table.model_dump(), "file": None} for d in self.dispersions.items}
        state = [x.tolist() for x in self.initial]
        needed = {**self.catalogue.modules, **self.data}  # the model has the numbers of the other files
        rest = (
            self.simulation,
            self.correlations,
            self.outputs,
            self.criteria,
            self.study,
            self.evidence,
            needed,
            self.n,
        )
        return [self.model, state, list(drawn.items()), *rest]

    def _made_of(self) -> list[Any]:
        """Everything that the study's programs can depend on, for `jaxmbs.batching.content`."""
        from jaxmbs.batching.content import NotKnownError

        found, why = content(self)
        if found is None:
            raise NotKnownError(f"the study: {why}")
        return [*found, self.content, self.model, self.n]

    @property
    def joints(self) -> dict[str, Joint]:
        """The tree joints by name."""
        return {link.name: link.joint for link in self.model.structure.links}

    @cached_property
    def quantities(self) -> dict[str, str]:
        """The quantity that each output measures."""
        joints = self.joints
        return {name: output.measures(joints) for name, output in self.outputs.items()}

    @cached_property
    def shown(self) -> dict[str, units.Unit]:
        """The unit in which reports show each output."""
        return checks.shown_in(self.outputs, self.quantities, self.criteria)

    @property
    def content(self) -> bytes:
        """The bytes of the study's file. Raises ModelError, with the remedy, if no file can hold the study."""
        if self.file.fault:
            said = self.file.fault.removeprefix("save: ")
            raise ModelError(
                f"study: a run stores its study as a file, but this one cannot be written as a file: {said}"
            )
        return self.file.content

    @property
    def path(self) -> Path | None:
        """The file from which the study was read; None if it was created in Python."""
        return self.file.path

    @property
    def catalogue(self) -> Catalogue:
        """The classes and functions that its file may name."""
        return self.file.catalogue

    @property
    def plan(self) -> StudyTable:
        """The table [study]."""
        return self.study

    @property
    def seed(self) -> int:
        return self.study.seed

    def of_size(self, n: int | None) -> Study:
        """The study with n samples, or if n is None with the number that its sampling plan fixes. Raises InputError if
        the plan does not allow n or fixes no number, and if the study has no dispersions or no outputs."""
        _require("study", self.simulation, self.outputs, self.dispersions.items)
        return replace(self, n=check_size(self.plan.design, len(self.dispersions.inputs), self.plan.levels, n))

    @property
    def design(self) -> SamplingPlan | None:
        """The sampling plan; None if each sample is drawn independently. Raises InputError if the plan needs n and n is
        not known."""
        if self.plan.design == RANDOM:
            return None
        if self.n is None:
            message = (
                f'with design = "{self.plan.design}" a sample depends on the number of samples; name its run with '
                "--of DIR"
            )
            raise InputError(Problem("study.design", message))
        return SamplingPlan(self.plan.design, self.dispersions.inputs, self.n, self.seed, self.plan.levels)

    @property
    def data(self) -> Mapping[str, bytes]:
        """Content of the CSV files that the dispersions name and of the meshes that shapes name, by name."""
        return self.file.data

    @property
    def files(self) -> dict[str, bytes]:
        """Content of the other files that the study needs (modules, CSV files, parts, FMUs and meshes), by name."""
        return {**self.catalogue.modules, **self.file.columns, **self.data}

    @property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of the `files`, by name."""
        return {name: hashlib.sha256(content).hexdigest() for name, content in self.files.items()}

    @property
    def dependence(self) -> str:
        """Why samples are not independent; "" if they are independent."""
        if self.dispersions.per_day > 1 and self.dispersions.known.any():
            return "samples of one day share draws, so no confidence interval is known for the share of all samples"
        return dependence(self.plan.design)

    @property
    def q0(self) -> np.ndarray:
        return self.initial[0]

    @property
    def v0(self) -> np.ndarray:
        return self.initial[1]

    @property
    def warnings(self) -> list[str]:
        """Warnings about what is probably not intended, for readers of the study and of its report."""
        return checks.doubts(self.model, *self.initial, self.dispersions, self.simulation)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


def read(path: str | Path, need: str = "study", trust: bool = False, files: Path | None = None) -> Study:
    """Read and check the study of a TOML file; a URDF or MJCF file gives a mechanism at rest, simulated for a second.

    need: what the file must contain: "mechanism" only the mechanism, "simulation" also the table [simulation], "study"
    also outputs and dispersions; trust: run the Python `modules` and FMUs that the file names, and read meshes in other
    folders; files: the folder of modules and data, by default that of the file or, for the file of a run, where the run
    stores them. Raises InputError: one line for each mistake, with the path of its key. Warns (ModelWarning) about what is
    probably not intended.
    """
    content = read_bytes(path)
    try:
        robot = from_robot(path, on_unsupported="warn", trust=trust) if is_robot(path) else None
        study = _of_robot(path, content, need, robot) if robot else _study(Path(path), content, need, trust, files)
    except InputError as error:
        raise InputError(error.problems, path) from None
    for message in study.warnings:
        warnings.warn(f"{path}: {message}", ModelWarning, stacklevel=2)
    return study


def _of_robot(path: str | Path, content: bytes, need: str, model: Model) -> Study:
    if need == "study":
        message = (
            "a study needs dispersions and outputs, which a file of this kind cannot have; write the mechanism with "
        )
        raise InputError(Problem("", f"{message}mbs.save(mbs.load({str(path)!r}), NAME.toml) and add them"))
    return Study(model=model, file=File(content, Path(path), catalogue({}, None, False, tables.OWN)))


def _study(path: Path, content: bytes, need: str, trust: bool, files: Path | None) -> Study:
    files = files or files_of(path)
    # the table [design] is for `jaxmbs.design`
    data = {key: x for key, x in with_full_paths(path, parse(content), trust).items() if key != "design"}
    data = reading.beside_study(files, data, trust)
    meshes.beside_study(files, data, trust)
    columns = insert_columns(files, data, trust)
    known = catalogue(data, path, trust, tables.OWN, files)
    try:
        found = study_file(known.classes).model_validate(data, context=known.functions)
    except ValidationError as error:
        raise InputError(problems_of(error, data)) from None
    _require(need, found.simulation, found.outputs, found.dispersions)
    made = {name: table.build() for name, table in found.outputs.items()}
    return Study(
        model=found.mechanism.build(), initial=found.initial, simulation=found.simulation, dispersions=found.dispersions,
        correlations=found.correlations, outputs=made, criteria=found.criteria, study=found.study,
        evidence=found.evidence, file=File(content, path, known, columns),
    )  # fmt: skip


def _require(need: str, simulation: Any, outputs: Any, dispersions: Any) -> None:
    """Raises InputError if a required part is missing."""
    problems = []
    if need != "mechanism" and simulation is None:
        problems.append(Problem("simulation", "this table is missing; write [simulation] with t_end and dt [s]"))
    if need == "study" and not outputs:
        problems.append(Problem("outputs", "a study needs at least one; write [outputs.NAME] with a type"))
    if need == "study" and not dispersions:
        message = 'a study needs at least one; write [dispersions."BODY.mass"] or another'
        problems.append(Problem("dispersions", message))
    if problems:
        raise InputError(problems)
