"""The table of a run for the terminal, and the sentences that it shares with the page.

rich is imported for the table alone; the page needs only the sentences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jaxmbs.io.errors import InputError
from jaxmbs.io.reports import printed
from jaxmbs.study.folder.lock import holder
from jaxmbs.study.folder.shell import command
from jaxmbs.study.problem.study import Study
from jaxmbs.study.results.store import Store
from jaxmbs.study.statistics.order_statistics import TOLERANCE_CONFIDENCE, Tolerance, samples_to_show
from jaxmbs.study.statistics.requirements import requirements
from jaxmbs.study.statistics.summary import CONFIDENCE, QUANTILES, Summary, Verdict, least, summarize

if TYPE_CHECKING:
    from rich.console import RenderableType

    from jaxmbs.study.units import Unit

OFTEN_AT_START = 0.1  # least share of the samples for which a note is given


def limits_said(limits: Tolerance | None, unit: Unit | None) -> str:
    """Tolerance limits in words: "> 23.1 mm (99.865 %)"."""
    if limits is None or unit is None or (limits.why and np.isnan(limits.low) and "needs" not in limits.why):
        return ""
    if limits.why:
        return f"{limits.why} for {100 * limits.content:.6g} %"
    low, high = (f"{x / unit.factor:.5g}" for x in (limits.low, limits.high))
    ends = f"< {high}" if limits.low == -np.inf else f"> {low}" if limits.high == np.inf else f"{low} .. {high}"
    return f"{ends} {unit.name} ({100 * limits.content:.6g} %)"


def required_said(v: Verdict) -> str:
    """The share of the samples in which a criterion must be met, as text."""
    return f"{100 * v.share:.6g} %"


def shortfall(study: Study, summary: Summary, v: Verdict) -> str:
    """Text that states what was required of a criterion, and what the samples show."""
    shown = f"required in {required_said(v)} of the samples, shown in {v.probability:.2%} ({v.met:,} of {v.of:,})"
    if np.isfinite(v.low):
        shown += f", with {CONFIDENCE:.0%} confidence {v.low:.2%} to {v.high:.2%}"
    criterion = next(c for c in study.criteria if c.text == v.text)
    worst = least(criterion, summary, 1)
    return shown + "".join(
        f"; the worst is {x / criterion.unit.factor:.5g} {criterion.unit.name}".rstrip() for _, x in worst
    )


def start_notes(study: Study, summary: Summary) -> list[str]:
    """Notes on extremes that often occur at t = 0, and on what to write in the file if that is not intended."""
    return [
        f"{name}.{study.outputs[name].reduce} is the value at t = 0 in {share:.3g} % of the samples: if only what "
        "comes later "
        f'counts, write from = ... in [outputs.{name}], an instant such as 0.1 or "event NAME"; if not, write from = 0'
        for name, share in ((n, 100 * x) for n, x in summary.at_start.items() if x >= OFTEN_AT_START)
    ]


def notes(study: Study, summary: Summary) -> list[str]:
    """Notes on what the table of criteria means, and on how many samples would show more."""
    if summary.dependence:
        return [summary.dependence]
    found = []
    if any(v.limits for v in summary.verdicts):
        found.append(
            f"tolerance limit: with {TOLERANCE_CONFIDENCE:.0%} confidence, at least the stated share of all samples "
            "that could be drawn, not only of these, lies on its good side"
        )
    for v in summary.verdicts:
        if v.share == 1 or v.shown or not v.passed or v.probability <= v.share:
            continue
        try:
            more = f"about {samples_to_show(v.share, v.probability, CONFIDENCE):,}"
        except InputError:  # the share that meets it is barely above the required one
            more = "more than a trillion"
        found.append(
            f"{v.text}: {more} samples would show it with {CONFIDENCE:.0%} confidence, if the same share of them "
            "meets it"
        )
    return found


def table(study: Study, store: Store, summary: Summary | None = None) -> RenderableType:
    """Table for the terminal: criteria with their probabilities, quantiles of the outputs, failures."""
    from rich.console import Group
    from rich.text import Text

    s = summary or summarize(study, store)
    parts: list[RenderableType] = [Text(f"warning: {message}", style="yellow") for message in study.warnings]
    if s.done < s.n:
        who = holder(store.folder)
        said = f"being computed by {who}" if who else command("resume", store.folder, record=store.provenance)
        parts.append(Text(f"not finished: {s.done:,} of {s.n:,} samples; {said}", style="yellow"))
    if s.verdicts:
        rows = []
        for v in (*s.verdicts, *([s.together] if s.together else [])):
            said = Text("") if v is s.together else Text(*(("met", "green") if v.passed else ("NOT met", "bold red")))
            unit = next((c.unit for c in study.criteria if c.text == v.text), None)
            cells = (f"{v.met:,}/{v.of:,}", f"{v.probability:.2%}", v.interval, limits_said(v.limits, unit))
            rows.append((v.text, said, *cells))
        right = ("met", "probability", f"{CONFIDENCE:.0%} interval", "tolerance limit")
        criteria = printed(f"criteria, {s.done:,} samples", ("criterion", "", *right), rows, right)
        failed = [v for v in s.verdicts if not v.passed and v.of]
        parts += [criteria, *(Text(f"NOT met: {v.text}: {shortfall(study, s, v)}", style="red") for v in failed)]
        parts += [*(Text(line, style="dim") for line in notes(study, s))]
    if found := requirements(study, s):
        rows = [
            (r.name, r.criterion, r.method, r.said(r.margin), r.said(r.shown),
             Text(r.outcome.replace("not met", "NOT met"), "green" if r.met else "bold red" if r.finished else "yellow"))
            for r in found
        ]  # fmt: skip
        right = ("margin required", "margin shown")
        parts.append(printed("requirements", ("requirement", "criterion", "verified by", *right, ""), rows, right))
    shares = [f"{q:.0%}" for q in QUANTILES]
    units = [(name, study.shown[name]) for name in study.outputs]
    rows = [(name, *(f"{x / unit.factor:.4g}" for x in s.quantiles(name)), unit.name) for name, unit in units]
    parts += [printed("quantiles", ("output", *shares, "unit"), rows, shares)]
    parts += [*(Text(line, style="yellow") for line in start_notes(study, s))]
    for message, failed in s.failed.items():
        many = f"{failed.count:,} sample{'' if failed.count == 1 else 's'}"
        parts.append(Text(f"{many} failed: {message} ({failed.some})", style="red"))
    if s.done:
        parts.append(Text(f"largest error of the energy balance: {s.energy_said}", style="dim"))
    return Group(*parts)
