"""python -m benchmarks.page: puts this machine's saved results into the table of docs/performance.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks import suite

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
FIRST, LAST = "| function | robot |", "|"  # the lines of the table: from the one that begins so, while they begin so
ROWS = {  # function, robot, precision and batch, with the words of the page
    ("forward dynamics", "arm7", "float64", 1): (),
    ("forward dynamics", "arm7", "float64", 64): (),
    ("forward dynamics", "arm7", "float64", 1024): (),
    ("forward dynamics", "arm7", "float64", 65536): (),
    ("forward dynamics", "arm7", "float32", 65536): (),
    ("forward dynamics", "humanoid30", "float64", 65536): (),
    ("forward dynamics", "chain100", "float64", 4096): (),
    ("inverse dynamics", "humanoid30", "float64", 8192): (),
    ("mass matrix", "humanoid30", "float64", 8192): (),
    ("forward dynamics, every mass and inertia its own", "arm7_skewed", "float64", 65536): ("arm7, no zeros",),
    ("vector-Jacobian product of forward dynamics", "humanoid30", "float64", 8192): (),
    ("derivatives of forward dynamics", "arm7", "float64", 8192): (),
    ("rollout, one evaluation of the dynamics", "arm7", "float64", 2048): (),
    ("constrained dynamics", "windows1", "float64", 65536): ("four-bar linkage",),
    ("constrained dynamics", "windows6", "float64", 65536): ("six loops, 13 rods",),
    ("a sample of the study of a stage separation", "stage_separation", "float64", 8320): ("stage separation",),
    ("a sample of a study with events", "solar_array_deployment", "float64", 2080): ("solar array of two wings",),
}
NOT_COMPARED = ("brax", "frax", "MJX")  # in the table; the page says what they took


def _ratio(x: float) -> str:
    return f"{x:.0f}×" if x >= 10 else f"{x:.1f}×"


def line(row: dict[str, Any], robot: str) -> str:
    """One row of the table, from what `jaxmbs bench --keep` saved."""
    case, times = row["case"], {name: found[0] for name, found in row["times"].items()}
    own = times.pop("jaxmbs")
    others = [f"{k} {x:,.0f} ({_ratio(x / own)})" for k, x in times.items() if k not in NOT_COMPARED]
    limit, errors = row.get("limit"), list(row["errors"].values())
    cells = (
        case["function"],
        robot,
        case["dtype"],
        f"{case['batch']:,}",
        f"{own:,.0f}",
        ", ".join(others) or "–",
        f"{limit['ns']:.3g} ({limit['by']})" if limit else "–",
        f"{row['first_call']:.1f} s",
        f"{max(errors):.0e}".replace("e-0", "e-") if errors else "–",
    )
    return f"| {' | '.join(cells)} |"


def table(saved: Path) -> list[str]:
    """The lines of the page's table below its head."""
    rows = {
        (r["case"]["function"], r["case"]["robot"], r["case"]["dtype"], r["case"]["batch"]): r
        for r in json.loads(saved.read_text(encoding="utf-8"))["rows"]
    }
    return [line(rows[key], *(words or (key[1],))) for key, words in ROWS.items()]


def written(page: str, saved: Path) -> str:
    """The page with its table made anew."""
    lines = page.splitlines()
    start = next(i for i, text in enumerate(lines) if text.startswith(FIRST)) + 2
    end = next(i for i in range(start, len(lines)) if not lines[i].startswith(LAST))
    return "\n".join([*lines[:start], *table(saved), *lines[end:]]) + "\n"


if __name__ == "__main__":
    found = sorted(suite.RESULTS.glob("*-cores-*cpu.json"))[-1]
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
    print(PAGE)
