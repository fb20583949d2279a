"""Whether a run shows the requirements of its study, with the margins that they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.study.problem.evidence import criterion_of, margin_of
from jaxmbs.study.results.columns import at_ranks, defined

if TYPE_CHECKING:
    from jaxmbs.study.problem.study import Study
    from jaxmbs.study.statistics.summary import Summary
    from jaxmbs.study.units import Unit


@dataclass(frozen=True)
class Shown:
    """A requirement and what a run shows of it. margin: the margin that is asked for, in `unit`; shown: the margin that the
    required share of the samples has at least, negative if fewer meet the criterion, NaN if too many outputs are
    undefined; met: whether criterion and margin are met; finished: whether all samples are computed."""

    name: str
    text: str
    criterion: str
    method: str
    margin: float
    shown: float
    unit: Unit
    met: bool
    finished: bool

    @property
    def outcome(self) -> str:
        return "met" if self.met else "not met" if self.finished else "not finished"

    def said(self, margin: float) -> str:
        """A margin as text."""
        return "none: too many undefined" if np.isnan(margin) else f"{margin:.5g} {self.unit.name}".rstrip()

    @property
    def document(self) -> dict[str, Any]:
        return {
            "requirement": self.name, "text": self.text, "criterion": self.criterion, "method": self.method,
            "margin": self.margin, "shown": self.shown, "unit": self.unit.name, "met": self.met,
        }  # fmt: skip


def requirements(study: Study, summary: Summary) -> list[Shown]:
    """What a run shows of each requirement of its study."""
    found = []
    for name, required in study.evidence.requirements.items():
        k = criterion_of(required, study.criteria)
        criterion, verdict = study.criteria[k], summary.verdicts[k]
        asked, has = margin_of(required, criterion), _margin(study, summary, k)
        enough = verdict.passed and (not required.margin or has >= asked)
        factor = criterion.unit.factor
        found.append(
            Shown(name, required.text, criterion.text, required.method, asked / factor, has / factor, criterion.unit,
                  summary.done == summary.n and enough, summary.done == summary.n)
        )  # fmt: skip
    return found


def _margin(study: Study, summary: Summary, k: int) -> float:
    """The least margin [SI] of the samples that remain when as many as may miss the criterion are left out: first those
    without a value, then those with the smallest margins."""
    criterion, verdict = study.criteria[k], summary.verdicts[k]
    margins = summary.outputs[criterion.output].mapped(criterion.margin)
    known = defined(margins)
    allowed = int(np.floor((1 - criterion.share) * verdict.of * (1 + 1e-12))) - (verdict.of - known)
    return float(at_ranks(margins, [allowed])[0]) if 0 <= allowed < known else float("nan")
