"""The tables of a trade study, and of several finished runs, for the terminal; rich is imported only to show them.

The argument `called` of the functions is "design" or "run": a document has the names under this key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.io.reports import printed
from jaxmbs.study.folder.shell import command

if TYPE_CHECKING:
    from rich.console import RenderableType

NONE = "-"


def percent(x: float) -> str:
    """A share as text."""
    return NONE if np.isnan(x) else f"{x:.2%}"


def points(x: float) -> str:
    """A difference of shares as text, in percentage points."""
    return NONE if np.isnan(x) else f"{100 * x:+.3g}"


def reach(low: float, high: float, text: Any) -> str:
    """An interval as text, with its ends as `text` gives them."""
    return NONE if np.isnan(low) else f"{text(low)} .. {text(high)}"


def signed(x: float) -> str:
    """A difference as text."""
    return NONE if np.isnan(x) else f"{x:+.4g}"


def share_rows(criterion: dict[str, Any], called: str = "design") -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The head and the rows, one per design, of the table of a criterion."""
    head = (called, "met", "share", "interval", "enough", "difference, points", "its interval", "McNemar's p", "")
    rows = [
        (
            r[called], f"{r['met']:,}/{r['of']:,}", percent(r["share"]), reach(r["low"], r["high"], percent),
            "yes" if r["passed"] else "NO",
            *(
                (points(r["difference"]), reach(r["difference_low"], r["difference_high"], points),
                 NONE if r["chance"] is None else f"{r['chance']:.3g}", r["said"])
                if "said" in r else ("", "", "", "baseline")
            ),
        )
        for r in criterion[f"{called}s"]
    ]  # fmt: skip
    return head, rows


def value_rows(output: dict[str, Any], called: str = "design") -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The head and the rows, one per design, of the table of an output."""
    head = (called, "5 %", "median", "95 %", "mean difference", "its interval", "")
    rows = []
    for r in output[f"{called}s"]:
        seen = (r["quantiles"][q] for q in ("0.05", "0.5", "0.95"))
        changed = ("", "", "baseline")
        if "said" in r:
            changed = signed(r["difference"]), reach(r["difference_low"], r["difference_high"], signed), value_said(r)
        rows.append((r[called], *(NONE if np.isnan(x) else f"{x:.5g}" for x in seen), *changed))
    return head, rows


def value_said(row: dict[str, Any]) -> str:
    """The verdict on the difference of an output, with the number of samples in which only one of the two is defined."""
    more = f"; defined in one only: {row['in_one_only']:,}" if row["in_one_only"] else ""
    return row["said"] + more


def failed_said(document: dict[str, Any], called: str = "design") -> list[str]:
    """Lines about designs with samples that failed, or that were computed otherwise than the baseline."""
    found = []
    for d in document[f"{called}s"]:
        if d["failed"]:
            of = f"{d['failed']:,} of {d['samples']:,} samples failed and meet no criterion"
            found.append(f"{d[called]}: {of}; see `{command('report', d['folder'])}`")
        if d["computed_otherwise"]:
            how = "; ".join(
                x.replace("then", "the baseline").replace("now", f"this {called}") for x in d["computed_otherwise"]
            )
            found.append(f"{d[called]}: computed otherwise than the baseline ({how})")
    return found


def table(document: dict[str, Any], called: str = "design") -> RenderableType:
    """The tables of all criteria and outputs."""
    from rich.console import Group
    from rich.text import Text

    own = document[f"{called}s"]
    sizes = sorted({d["samples"] for d in own})
    each = " to ".join(f"{n:,}" for n in (sizes[0], sizes[-1])[: len(sizes)])
    parts: list[RenderableType] = [
        Text(f"{document['study']}: {len(own)} {called}s, {each} samples of each", style="bold")
    ]
    for d in own:
        changed = [Text(f"  {line}", style="green" if line[0] == "+" else "red") for line in d.get("file", ())]
        parts += [Text(f"{d[called]}:"), *changed] if changed else []
    for kind, rows_of in (("criteria", share_rows), ("outputs", value_rows)):
        for x in document[kind]:
            title = x["text"] if kind == "criteria" else x["output"] + (f" [{x['unit']}]" if x["unit"] else "")
            head, rows = rows_of(x, called)
            parts.append(printed(title, head, rows, head[1:-1]))
    parts += [Text(line, style="red") for line in failed_said(document, called)]
    left = document.get("left_out", [])
    parts += [Text(f"not of every {called}: {', '.join(left)}", style="dim")] if left else []
    return Group(*parts, *(Text(line, style="dim") for line in document["notes"]))
