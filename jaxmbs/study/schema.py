"""The tables of a study file."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from jaxmbs.io.catalogue import builtin
from jaxmbs.io.mechanism import mechanism_table
from jaxmbs.io.tables import Numbers, Positive, Table
from jaxmbs.study.distributions import AnyDistribution
from jaxmbs.study.outputs import AnyOutput

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


class StudyFile(Table):
    """A whole study file; everything but the mechanism may be missing in a file that is only simulated."""

    criteria: list[str] = Field(default_factory=list)
    mechanism: mechanism_table(builtin())  # pyright: ignore
    initial: dict[str, InitialTable] = Field(default_factory=dict)
    dispersions: dict[DispersionName, AnyDistribution] = Field(default_factory=dict)
    simulation: SimulationTable | None = None
    study: StudyTable = StudyTable()
    outputs: dict[OutputName, AnyOutput] = Field(default_factory=dict)
