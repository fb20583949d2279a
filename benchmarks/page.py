"""python -m benchmarks.page: puts saved results into the tables and sentences of the manual's pages."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import solvers, suite

DOCS = Path(__file__).parent.parent / "docs"
ROBOTS = {  # names on the page
    "arm7_skewed": "arm7, no zeros",
    "windows1": "four-bar linkage",
    "windows6": "six loops, 13 rods",
    "stage_separation": "stage separation",
    "solar_array_deployment": "solar array of two wings",
}
APART = ("brax", "frax", "MJX")  # in a sentence of the page, not in its table


def _speed(row: dict[str, Any]) -> tuple[str, ...]:
    """A row of the table of docs/performance.md, from a result that `jaxmbs bench --keep` saved."""
    case, times = row["case"], {name: found[0] for name, found in row["times"].items()}
    own, robot = times.pop("jaxmbs"), str(case["robot"])
    others = [f"{name} {x:,.0f} ({_ratio(x / own)})" for name, x in times.items() if name not in APART]
    limit, errors = row.get("limit"), list(row["errors"].values())
    return (
        case["function"],
        ROBOTS.get(robot, robot),
        case["dtype"],
        f"{case['batch']:,}",
        f"{own:,.0f}",
        ", ".join(others) or "–",
        f"{limit['ns']:.3g} ({limit['by']})" if limit else "–",
        f"{row['first_call']:.1f} s",
        f"{max(errors):.0e}".replace("e-0", "e-") if errors else "–",
    )


def _ratio(x: float) -> str:
    return f"{x:.0f}×" if x >= 10 else f"{x:.1f}×"


def rewritten(page: str, rows: Sequence[Sequence[str]], cells: int) -> str:
    """The page in which a row replaces the line of a table that has the same first cells."""
    made = {tuple(row[:cells]): f"| {' | '.join(row)} |" for row in rows}
    lines = page.splitlines()
    return "\n".join(made.get(tuple(x.strip("| ").split(" | ")[:cells]), x) for x in lines) + "\n"


def with_memory(page: str, found: dict[str, Any]) -> str:
    """The page in which the memory that the statistics of very many samples take is that of the saved results."""
    more = found["peak_MB"] - found["peak_before_MB"]
    page, times = re.subn(r"\([\d,]+ samples in [\d,]+ MB\)", f"({found['samples']:,} samples in {more:,.0f} MB)", page)
    assert times == 1
    return page


def pages() -> dict[Path, str]:
    """The pages with saved results, and their texts with these results updated."""
    speed, formulas, capabilities = DOCS / "performance.md", DOCS / "theory" / "formulas.md", DOCS / "capabilities.md"
    text, theory, able = (path.read_text(encoding="utf-8") for path in (speed, formulas, capabilities))
    plotted = re.search(r"benchmarks/results/(\S+)\.png", text)  # the page is about one machine, and shows its plot
    assert plotted
    rows = saved(suite.RESULTS / f"{plotted[1]}.json")["rows"]
    sums = solvers.summary(saved(solvers.RESULTS)["problems"])
    return {
        capabilities: with_memory(able, saved(suite.RESULTS / "many_samples.json")),
        speed: rewritten(text, [_speed(row) for row in rows], 4), formulas: rewritten(theory, sums, 1),
    }  # fmt: skip


def saved(path: Path) -> dict[str, Any]:
    """Results that a benchmark saved."""
    return json.loads(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(path)
