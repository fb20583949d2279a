"""The tables of a study file."""

from __future__ import annotations

import functools
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from jaxmbs.io.generated import Classes, any_of
from jaxmbs.io.mechanism import mechanism_table
from jaxmbs.io.tables import Numbers, Positive, Table, Vector, stated
from jaxmbs.study.distributions.tables import any_distribution
from jaxmbs.study.outputs import Output
from jaxmbs.study.problem.evidence import EvidenceTable
from jaxmbs.study.sampling.correlation import CorrelationTable

DispersionName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.\-]*$")]
OutputName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]


class WorldVelocityTable(Table):
    """Velocity of a body in world axes."""

    angular: Vector = stated("3 numbers", "angular velocity", unit="rad/s", default=(0.0, 0.0, 0.0))
    linear: Vector = stated("3 numbers", "velocity of the origin of its frame", unit="m/s", default=(0.0, 0.0, 0.0))


class InitialTable(Table):
    """State of one joint at t = 0."""

    q: Numbers | None = stated("list of numbers", "coordinates; neutral by default", default=None)
    v: Numbers | None = stated("list of numbers", "rates; at rest by default", default=None)
    world_velocity: WorldVelocityTable | None = stated(
        "table", "in place of v: velocity of the joint's child in world axes", default=None
    )


class SimulationTable(Table):
    """Duration, step and method of the simulation."""

    t_end: Positive = stated("number > 0", "time at which a motion ends", unit="s")
    dt: Positive = stated("number > 0", "step of the integration; with a tolerance the longest", unit="s", default=1e-3)
    method: str = stated(
        "text", 'method of integration: "rk4", "dopri5", "dop853", "implicit", "symplectic"', default="rk4"
    )
    tolerance: Positive | None = stated(
        "number > 0", "error allowed per step, relative to 1 + |x|: steps of each sample's own", default=None
    )
    max_steps: Annotated[int, Field(strict=True, ge=1)] | None = stated(
        "integer >= 1", "most trial steps with a tolerance", default=None
    )
    max_events: Annotated[int, Field(strict=True, ge=1)] | None = stated(
        "integer >= 1", "how often an event that repeats may happen; 16 times by default", default=None
    )


class StudyTable(Table):
    """Settings of all samples."""

    seed: Annotated[int, Field(strict=True, ge=0, lt=2**63)] = stated(
        "integer >= 0", "seed of the random numbers: with its index it determines everything about a sample", default=0
    )
    design: Literal[
        "random", "latin_hypercube", "sobol", "halton", "factorial", "one_at_a_time", "saltelli", "morris"
    ] = stated(
        "random | latin_hypercube | sobol | halton | factorial | one_at_a_time | saltelli | morris",
        "where the samples lie: drawn independently; spread evenly; sweeps over `levels`; plans for `jaxmbs sensitivity`",
        default="random",
    )
    levels: Annotated[tuple[Annotated[float, Field(strict=True, gt=0, lt=1)], ...], Field(min_length=1)] = stated(
        "list of numbers between 0 and 1",
        "probabilities at which factorial and one_at_a_time take every draw: 0.5 is its median",
        default=(0.00135, 0.5, 0.99865),
    )
    per_day: Annotated[int, Field(strict=True, ge=1)] = stated(
        "integer >= 1", "number of consecutive samples that share the draws that are known on the day", default=1
    )


class _StudyFile(Table):
    """A study file. The mechanism is always required; a simulation requires the table [simulation], and a study also
    requires outputs and dispersions."""

    criteria: list[str] = stated(
        "list of sentences",
        'output, one of < <= > >=, number, unit: "clearance > 0.02 m", "1 m/s < speed < 2 m/s", "|roll| < 3 deg in 99 %"',
        default=list,
    )
    modules: list[str] = stated(
        "list of file names",
        "Python files beside this one that define elements and functions of one's own; run with --trust only",
        default=list,
    )
    initial: dict[str, InitialTable] = stated("table per joint", "where the joint starts", default=dict)
    correlations: list[CorrelationTable] = stated("list of tables", "correlated draws", default=list)
    dispersions: Any = stated(
        "table per dispersion",
        'a parameter ("stage.mass") or initial value ("initial.JOINT.q") that varies',
        default=dict,
    )
    simulation: SimulationTable | None = stated("table", "what is simulated", default=None)
    study: StudyTable = stated("table", "what belongs to all samples", default=StudyTable())
    evidence: EvidenceTable = stated(
        "table", "requirements that criteria show, and statements for the report", default=EvidenceTable()
    )


@functools.cache
def study_file(known: Classes, mechanism: bool = True) -> Any:
    """Table class of a study file that may name the `known` classes. mechanism: whether it has the table [mechanism],
    which the arguments of `Study` do not have."""
    outputs = dict[OutputName, any_of(Output, known)]
    dispersions = dict[DispersionName, any_distribution(known)]
    first: dict[str, Any] = (
        {"mechanism": (mechanism_table(known), stated("table", "the mechanism"))} if mechanism else {}
    )
    return create_model(
        "StudyFile",
        __base__=_StudyFile,
        __doc__=_StudyFile.__doc__,
        dispersions=(dispersions, _StudyFile.model_fields["dispersions"]),
        **first,
        outputs=(outputs, stated("table per output", "what is kept of each sample", default=dict)),
    )
