"""A study, read and checked: everything that a run, a repetition or a report needs."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationError

from jaxmbs.errors import ModelError, ModelWarning
from jaxmbs.io.catalogue import Catalogue, Classes, catalogue, elements_in
from jaxmbs.io.errors import InputError, Problem, choices, dotted, problems_of
from jaxmbs.io.loading import from_robot, is_robot
from jaxmbs.io.toml import beside, parse, read_bytes
from jaxmbs.model.fields import names_in, type_name
from jaxmbs.model.kinds import Kind
from jaxmbs.study import criteria, dispersions, instants, units
from jaxmbs.study import outputs as outputs_package
from jaxmbs.study.criteria import Criterion
from jaxmbs.study.dispersions import Dispersions
from jaxmbs.study.layout import files_of
from jaxmbs.study.outputs import MinOver, Output
from jaxmbs.study.outputs.base import INSTANTS
from jaxmbs.study.outputs.folding import TIME
from jaxmbs.study.outputs.of_state import OfState
from jaxmbs.study.sampling import reading
from jaxmbs.study.sampling import tables as distributions
from jaxmbs.study.sampling.designs import RANDOM, Design, check_size, dependence
from jaxmbs.study.schema import InitialTable, SimulationTable, StudyTable, study_file

if TYPE_CHECKING:
    from jaxmbs.model import Model
    from jaxmbs.model.joints import Coordinate, Joint

_NAME = 200  # characters of an output's or dispersion's, which become a folder's


@dataclass(frozen=True)
class Study:
    """A checked study file: the model at its nominal values, and what is done with it.

    content: the file's bytes; catalogue: the classes that it may name; joints: by name; q0 (nq,), v0 (nv,):
    nominal state at t = 0; quantities: what each output measures; shown: the unit in which reports give it; data: content
    of the CSV files that it names; plan: the table [study]; n: number of samples, which a design needs.
    """

    path: Path
    content: bytes
    catalogue: Catalogue
    model: Model
    joints: Mapping[str, Joint]
    dispersions: Dispersions
    simulation: SimulationTable
    outputs: Mapping[str, Output]
    quantities: Mapping[str, str]
    shown: Mapping[str, units.Unit]
    criteria: tuple[Criterion, ...]
    data: Mapping[str, bytes] = field(default_factory=dict)
    plan: StudyTable = field(default_factory=StudyTable)
    n: int | None = None
    _as_read: tuple[Any, ...] = field(default=(), repr=False, compare=False)

    @property
    def seed(self) -> int:
        return self.plan.seed

    def _parts(self) -> tuple[Any, ...]:
        return self.simulation, self.outputs, self.criteria, self.dispersions, self.plan

    def _made_of(self) -> list[Any]:
        """All that programs of the study can depend on, for `jaxmbs.batching.content`."""
        from jaxmbs.batching.content import NotKnownError
        from jaxmbs.study.programs import content

        found, why = content(self)
        if len(self._as_read) != 5 or any(a is not b for a, b in zip(self._as_read, self._parts(), strict=True)):
            raise NotKnownError("the study: parts of it were replaced")
        if found is None:
            raise NotKnownError(f"the study: {why}")
        return [*found, self.content, self.model, self.n]

    def of_size(self, n: int | None) -> Study:
        """The study with its number of samples. Raises InputError where its design has not so many."""
        return replace(self, n=check_size(self.plan.design, len(self.dispersions.inputs), self.plan.levels, n))

    @property
    def design(self) -> Design | None:
        """Where the samples lie; None where each is drawn by itself. Raises InputError where n is not known."""
        if self.plan.design == RANDOM:
            return None
        if self.n is None:
            message = f'with design = "{self.plan.design}" samples depend on their number; name their run: --of DIR'
            raise InputError(Problem("study.design", message))
        return Design(self.plan.design, self.dispersions.inputs, self.n, self.seed, self.plan.levels)

    @property
    def files(self) -> dict[str, bytes]:
        """Content of the files that the study needs beside its own, by name."""
        return {**self.catalogue.modules, **self.data}

    @property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of these files by name."""
        return {name: hashlib.sha256(content).hexdigest() for name, content in self.files.items()}

    @property
    def dependence(self) -> str:
        """Why samples are not independent; "" where they are."""
        if self.dispersions.per_day > 1 and self.dispersions.known.any():
            return "samples of one day share draws: no interval is known for the share of all samples"
        return dependence(self.plan.design)

    @property
    def q0(self) -> np.ndarray:
        return self.dispersions.q0

    @property
    def v0(self) -> np.ndarray:
        return self.dispersions.v0

    @property
    def warnings(self) -> list[str]:
        """What is probably not meant, for readers of the study and of its report."""
        return self.dispersions.warnings

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


def classes() -> Classes:
    """What a study file may name besides the elements of a mechanism: outputs, their shapes, and distributions."""
    return *elements_in(outputs_package), *elements_in(distributions)


def read(path: str | Path, need: str = "study", trust: bool = False, files: Path | None = None) -> Study:
    """Study of a TOML file, checked completely; a URDF or MJCF file is a mechanism at rest, simulated for a second.

    need: "mechanism" lets the rest be missing, "simulation" the outputs and criteria; trust: run the Python `modules`
    that the file names, and read meshes of other folders; files: the folder of modules and data, by default that of the
    file, or where the file's run keeps them. Raises InputError: one line for everything that is wrong, each with the path of
    its key. Warns (ModelWarning) of what is probably not meant.
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
    joints = {link.name: link.joint for link in model.structure.links}
    q0, v0 = _initial_state({}, model, joints)
    none = dispersions.resolve({}, model, joints, q0, v0)
    return Study(
        Path(path), content, catalogue({}, None, False), model, joints, none, SimulationTable(t_end=1.0), {}, {}, {}, ()
    )  # fmt: skip


def _method(simulation: SimulationTable | None, model: Model) -> None:
    """Raises InputError where the method does not serve the mechanism or the tolerance, and where limits have no use."""
    if simulation is not None and simulation.max_steps is not None and simulation.tolerance is None:
        why = "bounds the steps of a run with a tolerance; leave it out, or add tolerance"
        raise InputError(Problem("simulation.max_steps", why))
    if simulation is not None and simulation.max_events is not None:
        from jaxmbs.simulate.run import checked_events

        try:
            checked_events(simulation.max_events, model)
        except ModelError as error:
            raise InputError(Problem("simulation.max_events", str(error).removeprefix("simulate: "))) from None
    if simulation is None or (simulation.method, simulation.tolerance) == ("rk4", None):
        return  # which serves all, and what it takes to ask need not be imported
    from jaxmbs.simulate.steppers import serving

    try:
        serving(simulation.method, model, simulation.tolerance)
    except ModelError as error:
        raise InputError(Problem("simulation.method", str(error).removeprefix("simulate: "))) from None


def _study(path: Path, content: bytes, need: str, trust: bool, files: Path | None) -> Study:
    files = files or files_of(path)
    # the table [design] is for `jaxmbs.design`
    data = {key: x for key, x in beside(path, parse(content), trust).items() if key != "design"}
    data = reading.beside_study(files, data, trust)
    known = catalogue(data, path, trust, classes(), files)
    try:
        file = study_file(known.classes).model_validate(data, context=known.functions)
    except ValidationError as error:
        raise InputError(problems_of(error, data)) from None
    model = file.mechanism.build()
    joints = {link.name: link.joint for link in model.structure.links}
    _require(file, need)

    find = _Findings()
    rest = _initial_state({}, model, joints)
    q0, v0 = find(lambda: _initial_state(file.initial, model, joints), rest)
    made = {name: table.build() for name, table in file.outputs.items()}
    outputs = find(lambda: _checked_outputs(made, model, joints), {})
    measured = find(lambda: reading.measured(file), {})
    varied: Any = find(lambda: reading.resolved(file, model, joints, q0, v0), None) if not find.problems else None
    find(lambda: _short(file), None)
    find(lambda: _method(file.simulation, model), None)
    if find.problems:
        raise InputError(find.problems)
    outputs = find(lambda: _connected(outputs, model, joints, file.simulation), {})
    if find.problems:
        raise InputError(find.problems)
    quantities = {name: output.measures(joints) for name, output in outputs.items()}
    sentences = find(lambda: _criteria(file.criteria, quantities), ())
    shown = find(lambda: _shown(outputs, quantities, sentences), {})
    if find.problems:
        raise InputError(find.problems)
    simulation = file.simulation or SimulationTable(t_end=1.0)
    study = Study(
        path,
        content,
        known,
        model,
        joints,
        varied,
        simulation,
        outputs,
        quantities,
        shown,
        sentences,
        measured,
        file.study,
    )
    return replace(study, _as_read=study._parts())


class _Findings:
    """Collects the problems of independent checks, so that one run of the command shows them all."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def __call__(self, check: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return check()
        except InputError as error:
            self.problems += error.problems
            return otherwise


def _require(file: Any, need: str) -> None:
    problems = []
    if need != "mechanism" and file.simulation is None:
        problems.append(Problem("simulation", "this table is missing; write [simulation] with t_end and dt [s]"))
    if need == "study" and not file.outputs:
        problems.append(Problem("outputs", "a study needs at least one; write [outputs.NAME] with a type"))
    if need == "study" and not file.dispersions:
        message = 'a study needs at least one; write [dispersions."BODY.mass"] or another'
        problems.append(Problem("dispersions", message))
    if problems:
        raise InputError(problems)


def _short(file: Any) -> None:
    """Outputs and draws are folders of a store."""
    named = [(key, name) for key in ("outputs", "dispersions") for name in getattr(file, key) if len(name) > _NAME]
    said = f"the name is longer than {_NAME} characters; shorten it"
    if named:
        raise InputError([Problem(dotted((key, f"{name[:20]}...")), said) for key, name in named])


def _initial_state(
    tables: Mapping[str, InitialTable], model: Model, joints: Mapping[str, Joint]
) -> tuple[np.ndarray, np.ndarray]:
    q = np.array([c for link in model.structure.links for c in link.joint.neutral()], float)
    v, problems = np.zeros(model.nv), []
    for joint, table in tables.items():
        if joint not in joints:
            message = f'there is no joint "{joint}"; {choices(joint, joints, "joints")}'
            problems.append(Problem(dotted(("initial", joint)), message))
            continue
        own = joints[joint]
        for key, vector, where, components in (
            ("q", q, model.q_slice(joint), own.coordinates()),
            ("v", v, model.v_slice(joint), own.speeds()),
        ):
            values = getattr(table, key)
            if values is None:
                continue
            if len(values) != where.stop - where.start:
                message = f"{list(values)} has {len(values)} numbers; {_layout(own, components)}"
                problems.append(Problem(dotted(("initial", joint, key)), message))
                continue
            vector[where] = values
        first, start = own.quaternion, model.q_slice(joint).start
        if first is not None and not np.any(q[start + first : start + first + 4]):
            message = "the quaternion qw, qx, qy, qz is zero; no rotation is 1, 0, 0, 0"
            problems.append(Problem(dotted(("initial", joint, "q")), message))
    if problems:
        raise InputError(problems)
    return q, v


def _layout(joint: Joint, components: tuple[Coordinate, ...]) -> str:
    said = (f"{c.name} [{c.unit}]" if c.unit else c.name for c in components)
    return f"{type_name(type(joint))} takes {len(components)}" + (f": {', '.join(said)}" if components else "")


def _checked_outputs(outputs: Mapping[str, Output], model: Model, joints: Mapping[str, Joint]) -> dict[str, Output]:
    problems, known = [], ("world", *model.body_names)
    for name, output in outputs.items():
        where = ("outputs", name)
        if output.reduce == "time_out" and output.always_defined:
            message = "time_out goes with rim_clearance and the like; this output is defined at all times"
            problems.append(Problem(f"{dotted(where)}.reduce", message))
        unknown = [(*n, known, "body", "bodies") for n in names_in(output, Kind.BODY, Kind.BODY_OR_WORLD)]
        unknown += [(*n, tuple(joints), "joint", "joints") for n in names_in(output, Kind.JOINT)]
        unknown = [u for u in unknown if u[1] not in u[2]]
        for key, element, there, kind, kinds in unknown:
            message = f'there is no {kind} "{element}"; {choices(element, there, kinds)}'
            problems.append(Problem(f"{dotted(where)}.{key}", message))
        if not unknown:
            faults = [*output.faults(joints), *(output.unfit(model) if isinstance(output, OfState) else ())]
            problems += [Problem(f"{dotted(where)}.{key}", said) for key, said in faults]
            if not faults:
                problems += [Problem(f"{dotted(where)}.{key}", said) for key, said in output.incomplete(joints)]
    if problems:
        raise InputError(problems)
    return dict(outputs)


def _connected(
    outputs: Mapping[str, Output], model: Model, joints: Mapping[str, Joint], simulation: SimulationTable | None
) -> dict[str, Output]:
    """Outputs with what they name of one another found."""
    found, problems = dict(outputs), []
    for name, output in outputs.items():
        if not isinstance(output, MinOver):
            continue
        others = {n: o.quantity(joints) for n, o in outputs.items() if not isinstance(o, MinOver)}
        unknown = [of for of in output.of if of not in others]
        problems += [
            Problem(dotted(("outputs", name, "of")), f'there is no output "{of}"; {choices(of, others, "outputs")}')
            for of in unknown
        ]
        kinds = sorted({others[of] for of in output.of if of in others})
        if len(kinds) > 1:
            problems.append(Problem(dotted(("outputs", name, "of")), f"measure {' and '.join(kinds)}; take one kind"))
        elif kinds:
            found[name] = replace(output, of_quantity=kinds[0])
    quantities = {TIME: "time", **{name: o.quantity(joints) for name, o in found.items()}}
    for name, output in found.items():
        for key in INSTANTS:
            said = getattr(output, key)
            try:
                at = None if said is None else instants.parse(said, quantities, model.event_names)
                found[name] = replace(found[name], **{key: at})
            except ValueError as error:
                problems.append(Problem(dotted(("outputs", name, key.rstrip("_"))), str(error)))
        if not problems:
            unfit = instants.empty(found[name], simulation)
            problems += [Problem(dotted(("outputs", name, key)), said) for key, said in unfit]
    if problems:
        raise InputError(problems)
    return found


def _criteria(sentences: list[str], quantities: Mapping[str, str]) -> tuple[Criterion, ...]:
    found, problems = [], []
    for i, sentence in enumerate(sentences):
        try:
            found.append(criteria.parse(sentence, quantities))
        except ValueError as error:
            problems.append(Problem(dotted(("criteria", i)), str(error)))
    if problems:
        raise InputError(problems)
    return tuple(found)


def _shown(
    outputs: Mapping[str, Output], quantities: Mapping[str, str], sentences: tuple[Criterion, ...]
) -> dict[str, units.Unit]:
    shown, problems = {}, []
    for name, output in outputs.items():
        spoken = next((c.unit for c in sentences if c.output == name), units.si(quantities[name]))
        try:
            shown[name] = units.unit(output.unit, quantities[name]) if output.unit is not None else spoken
        except ValueError as error:
            problems.append(Problem(dotted(("outputs", name, "unit")), str(error)))
    if problems:
        raise InputError(problems)
    return shown
