"""The designs of a trade study: read from a file or given in Python, and checked before anything is computed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationError

from jaxmbs.building import set as with_values
from jaxmbs.errors import ModelError
from jaxmbs.io.errors import InputError, Problem, choices, dotted, problems_of
from jaxmbs.io.names import file_in, read_bytes
from jaxmbs.io.toml import parse
from jaxmbs.study.problem.study import Study
from jaxmbs.study.problem.study import read as read_study
from jaxmbs.study.sampling.targets import initial_names, parts_of
from jaxmbs.study.trades.rows import MOST, Values, combinations, rows_of
from jaxmbs.study.trades.schema import DesignsFile, value_of

if TYPE_CHECKING:
    from jaxmbs.study.sampling.dispersions import Dispersion

LONGEST = 100  # characters of a design's name
_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.+\-]*[A-Za-z0-9_+\-])?")
_RESERVED = re.compile(r"(?i)(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?|trade\.(?:html|json)")


@dataclass(frozen=True, init=False, eq=False)
class Designs:
    """Designs of a trade study: several choices of the values of some parameters in one study.

    study: the study, whose dispersions, outputs and criteria are those of every design. values: {name of a design:
    {parameter: value}} in SI; a parameter is named as in dispersions and in `mbs.set`, or "initial.JOINT.q" or ".v" for
    an initial value; the name becomes that of a folder. A parameter that a design leaves out has the study's value.
    baseline: the design with which the others are compared, the first by default. studies: the study of each design, by
    name.

    `Designs.read` reads a file of designs, `Designs.sweep` makes all combinations of values. Raises InputError, with one
    line for each mistake, for fewer than two designs or more than 1000, unknown parameters, values that no mechanism can
    have, and parameters that a dispersion replaces.

    >>> model = mbs.library.double_pendulum().build()
    >>> study = mbs.study.Study(
    ...     model=model,
    ...     simulation={"t_end": 0.1, "dt": 0.01},
    ...     dispersions={"upper.mass": mbs.study.Normal(apply="multiply", std=0.1)},
    ...     outputs={"speed": mbs.study.outputs.JointVelocity("elbow", reduce="max")},
    ... )
    >>> designs = mbs.study.Designs(study, {"light": {"lower.mass": 1.0}, "heavy": {"lower.mass": 3.0}})
    >>> designs.baseline, mbs.get(designs.studies["heavy"].model, "lower.mass")
    ('light', 3.0)
    """

    study: Study
    values: Mapping[str, Values]
    baseline: str
    studies: Mapping[str, Study]

    def __init__(self, study: Study, values: Mapping[str, Mapping[str, Any]], baseline: str | None = None) -> None:
        found, problems = _as_numbers(values), list(_wrong_names(values))
        if len(found) < 2 or len(found) > MOST:
            said = f"{len(found):,} designs; a trade study compares two or more, and {MOST:,} at most"
            problems.append(Problem("designs", said))
        if baseline is not None and baseline not in found:
            said = f'there is no design "{baseline}"; {choices(baseline, found, "designs")}'
            problems.append(Problem("baseline", said))
        problems += _unknown(study, found) + _replaced(study, found)
        if problems:
            raise InputError(problems)
        studies = {}
        for name, own in found.items():
            try:
                studies[name] = _study_of(study, own)
            except InputError as error:
                problems += [Problem(dotted(("designs", name)), str(p)) for p in error.problems]
            except ModelError as error:
                problems.append(Problem(dotted(("designs", name)), str(error)))
        if problems:
            raise InputError(problems)
        vars(self).update(study=study, values=found, baseline=baseline or next(iter(found)), studies=studies)

    @classmethod
    def read(cls, path: str | Path, trust: bool = False) -> Designs:
        """The designs in the TOML file at `path` (`jaxmbs keys trade` lists its keys). trust: run the Python modules of
        the study.

        Raises InputError, with the path of each key that is wrong.
        """
        data, folder = parse(read_bytes(path), path), Path(path).absolute().parent
        try:
            table = DesignsFile.model_validate(data)
            given = [key for key in ("designs", "sweep", "file") if getattr(table, key)]
            if len(given) != 1:
                said = f"this file has {' and '.join(given) or 'none of them'}"
                raise InputError(Problem("", f"write one of [designs.NAME], [sweep] and file = ...; {said}"))
            source = file_in(folder, table.study, "study", trust)
            values = _of_table(folder, trust, **{given[0]: getattr(table, given[0])})
        except ValidationError as error:
            raise InputError(problems_of(error, data), path) from None
        except InputError as error:
            raise InputError(error.problems, path) from None
        study = read_study(source, trust=trust)
        try:
            return cls(study, values, table.baseline)
        except InputError as error:
            raise InputError(error.problems, path) from None

    @classmethod
    def sweep(cls, study: Study, values: Mapping[str, Sequence[Any]], baseline: str | None = None) -> Designs:
        """The designs with all combinations of values: {parameter: its values}, each name made from the values as in
        "stiffness_900". study, baseline: as for `Designs`."""
        return cls(study, combinations(values), baseline)

    @property
    def axis(self) -> tuple[str, list[float]] | None:
        """The parameter that alone distinguishes the designs, and its number in each of them; None if more than one
        parameter does, or if it is a list of numbers."""
        names = {name for own in self.values.values() for name in own}
        found = [x for own in self.values.values() for x in own.values()]
        alone = len(names) == 1 and all(len(own) == 1 for own in self.values.values())
        if not alone or any(isinstance(x, list) for x in found) or len(set(found)) < len(found):
            return None
        return names.pop(), found


# --- reading ----------------------------------------------------------------------------------------------------------


def _of_table(
    folder: Path, trust: bool, designs: Any = None, sweep: Any = None, file: str | None = None
) -> dict[str, Values]:
    """{name: values} of the designs that a file describes in one of three ways."""
    if designs is not None:
        return designs
    if sweep is not None:
        return combinations(sweep)
    return rows_of(read_bytes(file_in(folder, file, "file", trust)), str(file))


# --- checks -----------------------------------------------------------------------------------------------------------


def _as_numbers(values: Mapping[str, Mapping[str, Any]]) -> dict[str, Values]:
    found: dict[str, Values] = {}
    problems = []
    for name, own in values.items():
        if not isinstance(name, str) or not isinstance(own, Mapping):
            said = f"{name!r}: {own!r} is not a design; give each a name and {{parameter: value}}"
            problems.append(Problem("designs", said))
            continue
        found[name] = {}
        for key, x in own.items():
            try:
                found[name][key] = value_of(x)
            except ValueError as error:
                problems.append(Problem(dotted(("designs", name, key)), str(error)))
    if problems:
        raise InputError(problems)
    return found


def _wrong_names(names: Mapping[str, Any]) -> Sequence[Problem]:
    """Problems of names as names of folders, also on file systems that ignore case."""
    problems, seen = [], dict[str, str]()
    for name in names:
        other = seen.setdefault(name.casefold(), name)
        if not _NAME.fullmatch(name) or _RESERVED.fullmatch(name) or len(name) > LONGEST:
            said = (
                f"the name cannot be that of a folder; use letters, digits and _ + - . in it, {LONGEST} characters at "
                "most"
            )
            problems.append(Problem(dotted(("designs", name)), said))
        elif other != name:
            said = f'differs from "{other}" in case only, which many file systems ignore; choose another name'
            problems.append(Problem(dotted(("designs", name)), said))
    return problems


def _initial_parts(study: Study) -> dict[str, tuple[str, slice]]:
    """Initial values by name: "q" or "v", and the components of that vector."""
    found: dict[str, tuple[str, slice]] = {}
    for joint, own in study.joints.items():
        for key, place in (("q", study.model.q_slice(joint)), ("v", study.model.v_slice(joint))):
            found[f"initial.{joint}.{key}"] = key, place
        for part, (components, _) in parts_of(own).items():
            start = found[f"initial.{joint}.{part[0]}"][1].start
            found[f"initial.{joint}.{part}"] = part[0], slice(start + components.start, start + components.stop)
    return found


def _unknown(study: Study, values: Mapping[str, Values]) -> list[Problem]:
    known = {*study.model.parameter_names, *_initial_parts(study)}
    listed = [*study.model.parameter_names, *initial_names(study.joints)]
    return [
        Problem(dotted(("designs", design, name)), f'there is no "{name}"; {choices(name, listed, "parameters")}')
        for design, own in values.items()
        for name in own
        if name not in known
    ]


def _replaced(study: Study, values: Mapping[str, Values]) -> list[Problem]:
    """Problems of parameters that a design sets, but that a dispersion would replace."""
    problems = []
    for name in dict.fromkeys(name for own in values.values() for name in own):
        for d in study.dispersions.items:
            if d.apply == "replace" and _same_target(study, d, name):
                said = (
                    f'dispersions."{d.name}" of the study replaces it: samples would have the numbers drawn there, not the '
                    'design\'s; in the study, write apply = "add" or "multiply", and a mean to fit (0 or 1)'
                )
                design = next(design for design, own in values.items() if name in own)
                problems.append(Problem(dotted(("designs", design, name)), said))
    return problems


def _same_target(study: Study, d: Dispersion, name: str) -> bool:
    """Whether a dispersion acts on some of the numbers that a design sets by this name."""
    parts = _initial_parts(study)
    if d.target.name not in parts or name not in parts:
        return d.target.name == name
    (a, x), (b, y) = parts[d.target.name], parts[name]
    return a == b and x.start < y.stop and y.start < x.stop


def _study_of(study: Study, values: Values) -> Study:
    """The study of a design. Raises ModelError if no mechanism can have these values."""
    parts = _initial_parts(study)
    state = {"q": study.q0.copy(), "v": study.v0.copy()}
    for name, x in values.items():
        if name in parts:
            key, place = parts[name]
            if np.size(x) != place.stop - place.start:
                raise ModelError(f"{name}: has {np.size(x)} numbers; it needs {place.stop - place.start}")
            state[key][place] = np.ravel(x)
    parameters = {name: x for name, x in values.items() if name not in parts}
    model = with_values(study.model, parameters) if parameters else study.model
    made = replace(study, model=model, initial=(state["q"], state["v"]), file=None) if values else study
    _ = made.sha256  # raises ModelError if no file can hold it, as its run must
    return made
