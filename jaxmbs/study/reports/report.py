"""Reports of a run: a table for the terminal, a page for people, plain data for programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.io.errors import InputError
from jaxmbs.study.folder import storage
from jaxmbs.study.folder.layout import PAGE as PAGE
from jaxmbs.study.folder.lock import holder
from jaxmbs.study.folder.seal import key_of, marked
from jaxmbs.study.folder.shell import command
from jaxmbs.study.folder.storage import write_whole
from jaxmbs.study.problem.study import Study
from jaxmbs.study.reports.repeated import repeated
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.damage import require_sound
from jaxmbs.study.results.provenance import salt
from jaxmbs.study.results.store import Store
from jaxmbs.study.statistics.order_statistics import TOLERANCE_CONFIDENCE, Tolerance, samples_to_show
from jaxmbs.study.statistics.summary import CONFIDENCE, QUANTILES, Summary, Verdict, document, least, summarize

if TYPE_CHECKING:
    from rich.console import RenderableType

    from jaxmbs.study.units import Unit

OFTEN_AT_START = 0.1  # least share of the samples for which a note is given


@dataclass(frozen=True)
class Written:
    """A report. path: that of the page; table: for the terminal; document: the run as plain data; passed: whether every
    criterion is met."""

    path: Path
    table: RenderableType
    document: dict[str, Any]
    passed: bool

    def _repr_html_(self) -> str:
        from jaxmbs.study.reports.notebook import table_html

        return table_html(self.table)


def report(folder: str | Path, trust: bool = False, seal: str | Path | None = None) -> Written:
    """Write the page of the run in a folder, finished or not.

    trust: run the Python modules of the study; seal: a file with the key of a sealed run, which also seals the page.
    Raises InputError if there is no run, and if results are damaged, naming what is damaged.
    """
    store = stores.open_folder(folder, key_of(seal))
    study = stores.read_study(store, trust)
    stores.require_results(study, store)
    require_sound(study, store)
    summary = summarize(study, store)
    from jaxmbs.study.reports.page import page, wanted

    picked = wanted(study, summary)
    text = page(study, store, summary, picked, repeated(study, store, summary, picked))
    path = store.folder / PAGE
    try:
        write_whole(path, marked(text.encode(), f"{salt(store.provenance):x}", store.key))
    except OSError as error:
        raise storage.unwritten(store.folder, error, store.provenance) from None
    return Written(path, table(study, store, summary), document(study, store, summary), summary.passed)


def limits_said(limits: Tolerance | None, unit: Unit | None) -> str:
    """Tolerance limits in words: "> 23.1 mm (99.865 %)"."""
    if limits is None or unit is None or (limits.why and np.isnan(limits.low) and "needs" not in limits.why):
        return ""
    if limits.why:
        return f"{limits.why} ({limits.content:.6g})"
    low, high = (f"{x / unit.factor:.5g}" for x in (limits.low, limits.high))
    ends = f"< {high}" if limits.low == -np.inf else f"> {low}" if limits.high == np.inf else f"{low} .. {high}"
    return f"{ends} {unit.name} ({100 * limits.content:.6g} %)"


def required_said(v: Verdict) -> str:
    """The share of the samples in which a criterion must be met, as text."""
    return f"{100 * v.share:.6g} %"


def shortfall(study: Study, summary: Summary, v: Verdict) -> str:
    """Says what was required of a criterion, and what the samples show."""
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
        f"{name}.{study.outputs[name].reduce} is its value at t = 0 in {share:.3g} % of the samples: say from = ... in "
        f'[outputs.{name}], an instant such as 0.1 or "event NAME", where only what comes later counts; from = 0 if not'
        for name, share in ((n, 100 * x) for n, x in summary.at_start.items() if x >= OFTEN_AT_START)
    ]


def notes(study: Study, summary: Summary) -> list[str]:
    """Notes on what the table of criteria means, and on how many samples would show more."""
    if summary.dependence:
        return [summary.dependence]
    found = []
    if any(v.limits for v in summary.verdicts):
        found.append(f"tolerance limit: with {TOLERANCE_CONFIDENCE:.0%} confidence so many of all samples lie within")
    for v in summary.verdicts:
        if v.share == 1 or v.shown or not v.passed or v.probability <= v.share:
            continue
        try:
            more = f"about {samples_to_show(v.share, v.probability, CONFIDENCE):,}"
        except InputError:  # the share that meets it is barely above the required one
            more = "more than a trillion"
        found.append(f"{v.text}: {more} samples would show it with {CONFIDENCE:.0%} confidence, if as many meet it")
    return found


def table(study: Study, store: Store, summary: Summary | None = None) -> RenderableType:
    """Table for the terminal: criteria with their probabilities, quantiles of the outputs, failures."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    s = summary or summarize(study, store)
    parts: list[RenderableType] = [Text(f"warning: {message}", style="yellow") for message in study.warnings]
    if s.done < s.n:
        who = holder(store.folder)
        said = f"being computed by {who}" if who else command("resume", store.folder, record=store.provenance)
        parts.append(Text(f"not finished: {s.done:,} of {s.n:,} samples; {said}", style="yellow"))
    if s.verdicts:
        criteria = Table(title=f"criteria, {s.done:,} samples", title_justify="left", title_style="bold")
        for name in ("criterion", "", "met", "probability", f"{CONFIDENCE:.0%} interval", "tolerance limit"):
            criteria.add_column(name, justify="left" if name in ("criterion", "") else "right")
        for v in (*s.verdicts, *([s.together] if s.together else [])):
            said = Text("") if v is s.together else Text(*(("met", "green") if v.passed else ("NOT met", "bold red")))
            unit = next((c.unit for c in study.criteria if c.text == v.text), None)
            cells = (f"{v.met:,}/{v.of:,}", f"{v.probability:.2%}", v.interval, limits_said(v.limits, unit))
            criteria.add_row(Text(v.text), said, *map(Text, cells))
        failed = [v for v in s.verdicts if not v.passed and v.of]
        parts += [criteria, *(Text(f"NOT met: {v.text}: {shortfall(study, s, v)}", style="red") for v in failed)]
        parts += [*(Text(line, style="dim") for line in notes(study, s))]
    outputs = Table(title="quantiles", title_justify="left", title_style="bold")
    outputs.add_column("output")
    for q in QUANTILES:
        outputs.add_column(f"{q:.0%}", justify="right")
    outputs.add_column("unit")
    for name in study.outputs:
        unit = study.shown[name]
        outputs.add_row(name, *(f"{x / unit.factor:.4g}" for x in s.quantiles(name)), unit.name)
    parts += [outputs, *(Text(line, style="yellow") for line in start_notes(study, s))]
    for message, failed in s.failed.items():
        many = f"{failed.count:,} sample{'' if failed.count == 1 else 's'}"
        parts.append(Text(f"{many} failed: {message} ({failed.some})", style="red"))
    if s.done:
        parts.append(Text(f"largest error of the energy balance: {s.energy_said}", style="dim"))
    return Group(*parts)
