"""The table [evidence] of a study: requirements that its criteria show, and what its authors state for the report."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from jaxmbs.io.errors import InputError, Problem, choices, dotted
from jaxmbs.io.tables import Table, stated
from jaxmbs.study.problem.criteria import NUMBER, Criterion
from jaxmbs.study.units import unit

RequirementName = Annotated[str, Field(pattern=r"^\S(?:.{0,78}\S)?$")]
_MARGIN = re.compile(rf"\s*(?P<number>{NUMBER})\s*(?P<unit>.*?)\s*")


class RequirementTable(Table):
    """A requirement of a specification, and the criterion that shows it."""

    criterion: str = stated("sentence", "the criterion that shows it, as it stands in `criteria`")
    text: str = stated("text", "what is required, in the words of the specification", default="")
    method: Literal["analysis", "test", "demonstration", "inspection", "review of design", "similarity"] = stated(
        "analysis | test | demonstration | inspection | review of design | similarity",
        "how it is verified in the end",
        default="analysis",
    )
    margin: str = stated(
        "number and unit",
        'by how much outputs must be better than the bound, in the share of the samples that the criterion requires: "5 mm"',
        default="",
    )


class EvidenceTable(Table):
    """What the report says about requirements and, factor by factor of NASA-STD-7009, about credibility."""

    requirements: dict[RequirementName, RequirementTable] = stated(
        "table per requirement", "its identifier, such as SEP-012, names it", default=dict
    )
    data_pedigree: str = stated("text", "where the data of the model come from", default="")
    verification: str = stated(
        "text", "how the code and the solution were verified, in addition to what the run shows", default=""
    )
    validation: str = stated("text", "how the model compares with tests of the real system", default="")
    input_pedigree: str = stated("text", "where the dispersions come from", default="")
    uncertainty: str = stated("text", "which uncertainties are not dispersed, and why", default="")
    robustness: str = stated("text", "how results react to what was assumed", default="")
    history: str = stated("text", "where the model was used before", default="")
    management: str = stated("text", "who changes model and study, and how it is recorded", default="")


def checked(evidence: EvidenceTable, criteria: Sequence[Criterion]) -> EvidenceTable:
    """The given table. Raises InputError for requirements whose criterion is not one of the study's, or whose margin does
    not fit it."""
    known, problems = {c.text: c for c in criteria}, []
    for name, required in evidence.requirements.items():
        where = ("evidence", "requirements", name)
        criterion = known.get(" ".join(required.criterion.split()))
        if criterion is None:
            said = f'"{required.criterion}" is not a criterion of this study; '
            said += choices(required.criterion, known, "criteria") if known else "write it into the list `criteria`"
            problems.append(Problem(dotted((*where, "criterion")), said))
            continue
        try:
            margin_of(required, criterion)
        except ValueError as error:
            problems.append(Problem(dotted((*where, "margin")), str(error)))
    if problems:
        raise InputError(problems)
    return evidence


def criterion_of(required: RequirementTable, criteria: Sequence[Criterion]) -> int:
    """Index of the criterion that shows a requirement."""
    return [c.text for c in criteria].index(" ".join(required.criterion.split()))


def margin_of(required: RequirementTable, criterion: Criterion) -> float:
    """The margin that a requirement asks for [SI], 0 if it asks for none. Raises ValueError with the remedy."""
    if not required.margin:
        return 0.0
    found = _MARGIN.fullmatch(required.margin)
    if found is None or float(found["number"]) < 0:
        raise ValueError(
            f'"{required.margin}" is not a margin; write a number of at least zero with its unit, as "5 mm"'
        )
    measure = unit(found["unit"], criterion.unit.quantity) if found["unit"] or criterion.unit.name else criterion.unit
    return float(found["number"]) * measure.factor


FACTORS: Mapping[str, str] = {  # key of the table -> name of the factor in NASA-STD-7009
    "data_pedigree": "data pedigree",
    "verification": "verification",
    "validation": "validation",
    "input_pedigree": "input pedigree",
    "uncertainty": "uncertainty characterization",
    "robustness": "results robustness",
    "history": "history of use",
    "management": "management",
}
