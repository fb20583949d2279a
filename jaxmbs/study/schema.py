"""The tables of a study file."""

from __future__ import annotations

import functools
from typing import Annotated, Any

from pydantic import Field, create_model

from jaxmbs.io.generated import Classes, any_of
from jaxmbs.io.mechanism import mechanism_table
from jaxmbs.io.tables import Numbers, Positive, Table
from jaxmbs.study.distributions import AnyDistribution
from jaxmbs.study.outputs import Output

# names that the store has already
RESERVED = ("sample", "status", "energy_error", "constraint_error")
DispersionName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.\-]*$")]
OutputName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]


class InitialTable(Table):
    """q and v of one joint at t = 0 (default: the neutral position, at rest)."""

    q: Numbers | None = None
    v: Numbers | None = None


class SimulationTable(Table):
    """Horizon and step [s]."""

    t_end: Positive
    dt: Positive = 1e-3


class StudyTable(Table):
    """seed: the study's key."""

    seed: Annotated[int, Field(strict=True, ge=0, lt=2**63)] = 0


class _StudyFile(Table):
    """A whole study file; everything but the mechanism may be missing in a file that is only simulated."""

    criteria: list[str] = Field(
        default_factory=list, description="sentences: output, one of < <= > >=, number, unit; before the first [table]"
    )
    modules: list[str] = Field(
        default_factory=list, description="Python files beside this one that define elements; loaded with --trust only"
    )
    initial: dict[str, InitialTable] = Field(default_factory=dict, description="[initial.JOINT]: state at t = 0")
    dispersions: dict[DispersionName, AnyDistribution] = Field(
        default_factory=dict, description='[dispersions."TARGET"]: a parameter or initial value that is scattered'
    )
    simulation: SimulationTable | None = Field(default=None, description="horizon and step")
    study: StudyTable = Field(default=StudyTable(), description="what belongs to all samples")


@functools.cache
def study_file(known: Classes) -> Any:
    """Table of a study file in which the known classes may stand."""
    outputs = dict[OutputName, any_of(Output, known)]
    return create_model(
        "StudyFile",
        __base__=_StudyFile,
        __doc__=_StudyFile.__doc__,
        mechanism=(mechanism_table(known), Field(description="the mechanism")),
        outputs=(outputs, Field(default_factory=dict, description="[outputs.NAME]: what is kept of each sample")),
    )
