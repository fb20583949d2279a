"""python -m benchmarks.series: how the saved figures have changed, from all versions of the result files that git has.

Writes docs/performance-over-time.md. Every row is one version of a file: the commit that its table was made from, or, for
early tables without one, the commit that saved it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.page import ROBOTS

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "performance-over-time.md"
NONE = "–"
PEERS = ("Pinocchio", "MuJoCo")  # of the same run: a number of their times that hardly depends on the machine
CASES = (  # function, robot, dtype, batch: some rows of the table of speeds
    ("forward dynamics", "arm7", "float64", 1),
    ("forward dynamics", "arm7", "float64", 65536),
    ("forward dynamics", "humanoid30", "float64", 65536),
    ("forward dynamics", "chain100", "float64", 4096),
    ("derivatives of forward dynamics", "arm7", "float64", 8192),
    ("constrained dynamics", "windows6", "float64", 65536),
    ("a sample of the study of a stage separation", "stage_separation", "float64", 8320),
)

INTRODUCTION = """# Speed over time

Figures of the benchmarks as they were saved, the newest last. `python -m benchmarks.series` writes this page from the
versions of the [results](../benchmarks/results) that git has; [How fast](performance.md) says what they mean. Machines
differ between rows, also those of the same name: a factor beside a peer of the same run (7×: the peer takes seven times as
long) is the safer comparison, though the peers change, too. –: not measured then.
"""

Document = Mapping[str, Any]
Figures = dict[str, str]  # head of a column: cell


@dataclass(frozen=True)
class Version:
    """A version of a result file. date: of the measurement, or else of the commit; commit: that its table was made from."""

    date: str
    commit: str
    document: Document


# --- what is shown of a file --------------------------------------------------------------------------------------------


def number(x: float) -> str:
    """Three digits, without powers of ten."""
    return f"{x:,.0f}" if abs(x) >= 100 else f"{x:.3g}"


def speeds(document: Document) -> Figures:
    """Times of an evaluation [ns] for the CASES, each with the factor by which a peer of the same run takes longer."""
    keys = ("function", "robot", "dtype", "batch")
    rows = {tuple(row["case"][k] for k in keys): row["times"] for row in document["rows"] if "case" in row}
    found = {}
    for case in CASES:
        times = {name: x[0] for name, x in rows.get(case, {}).items()}
        if "jaxmbs" in times:
            beside = [f"{name} {number(times[name] / times['jaxmbs'])}×" for name in PEERS if name in times]
            said = f" ({', '.join(beside)})" if beside else ""
            function, robot, _, batch = case
            where = f"{function.removeprefix('a sample of the ')}, {ROBOTS.get(robot, robot)}, {batch:,} [ns]"
            found[where] = number(times["jaxmbs"]) + said
    return found


def loops(document: Document) -> Figures:
    """Times of a step of rows of windows, and until their first result."""
    found = {}
    for row in document["rows"]:
        if "step_us" in row:
            found[f"{row['windows']} windows: step [µs]"] = number(row["step_us"])
            found[f"{row['windows']} windows: first result [s]"] = number(row["first_result_s"])
    return found


def separation(document: Document) -> Figures:
    """Samples per second of a separation, with jaxmbs and as a loop over a peer."""
    return {f"{name} [1/s]": number(x["per_second"]) for name, x in document.items() if "per_second" in x}


def within_jax(document: Document) -> Figures:
    """The largest and the middle ratio of times within a program of JAX and as an outermost call."""
    ratios = sorted(row["ratio"] for row in document["comparisons"])
    return {"middle ratio": number(ratios[len(ratios) // 2]), "largest ratio": number(ratios[-1])}


def workers(document: Document) -> Figures:
    """Samples per second by the number of worker processes."""
    return {f"{run['workers']} workers [1/s]": number(run["per_second"]) for run in document["runs"]}


def rare_failure(document: Document) -> Figures:
    """What an estimate of a rare failure takes, beside brute force."""
    rare = document["rare"]
    return {
        "simulations": number(rare["simulations"]),
        "time [s]": number(rare["time_s"]),
        "brute force, time [s]": number(document["time_s"]),
    }


def many_samples(document: Document) -> Figures:
    """What the statistics of very many samples take."""
    more = document["peak_MB"] - document["peak_before_MB"]
    return {
        "samples": number(document["samples"]),
        "time [s]": number(document["time_s"]),
        "memory more than before [MB]": number(more),
    }


SHOWN: dict[str, tuple[str, Callable[[Document], Figures]]] = {  # file: heading, and its figures
    "amd-epyc-2-cores-cpu": ("Speed compared with the peers: AMD EPYC, 2 cores", speeds),
    "intel-r-xeon-r-processor-2-cores-cpu": ("Speed compared with the peers: Intel Xeon, 2 cores", speeds),
    "loops": ("Rows of four-bar windows", loops),
    "separation": ("A separation compared with loops over the peers", separation),
    "within_jax": ("Within programs of JAX: time over that of an outermost call", within_jax),
    "workers": ("A study on several worker processes", workers),
    "rare_failure": ("A rare failure", rare_failure),
    "many_samples": ("Statistics of very many samples", many_samples),
}


# --- versions of a file -------------------------------------------------------------------------------------------------


def git(*words: str, root: Path = ROOT) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, encoding="utf-8", check=True)
    return done.stdout


def versions(name: str, root: Path = ROOT) -> list[Version]:
    """All versions of a result file, the oldest first, the one of the work tree last. Raises ValueError for a clone without
    history."""
    if git("rev-parse", "--is-shallow-repository", root=root).strip() == "true":
        raise ValueError("this clone has no complete history; get it by `git fetch --unshallow`")
    path = f"benchmarks/results/{name}.json"
    texts = list(_committed(path, root))
    if (root / path).exists():
        texts.append(("unknown", f"{datetime.now(UTC):%Y-%m-%d}", (root / path).read_text(encoding="utf-8")))
    return [_version(*x) for k, x in enumerate(texts) if k == 0 or x[2] != texts[k - 1][2]]


def _committed(path: str, root: Path) -> Iterator[tuple[str, str, str]]:
    """(commit, its date, text) of the versions that commits have, apart from those that remove the file."""
    for line in git("log", "--reverse", "--diff-filter=AM", "--format=%H %cs", "--", path, root=root).splitlines():
        commit, date = line.split()
        yield commit, date, git("show", f"{commit}:{path}", root=root)


def _version(commit: str, date: str, text: str) -> Version:
    document = json.loads(text)
    machine = document.get("machine")
    measured = machine.get("date") if isinstance(machine, dict) else None
    made = document.get("made_from", {}).get("commit", commit)
    return Version(measured or date, made[:7], document)


# --- the page -----------------------------------------------------------------------------------------------------------


def table(found: list[Version], figures: Callable[[Document], Figures]) -> str:
    """A row for each version whose figures differ from those before; a column for each figure that the newest one has."""
    rows: list[tuple[Version, Figures]] = []
    for version in found:
        own = figures(version.document)
        if own and (not rows or rows[-1][1] != own):
            rows.append((version, own))
    heads = list(rows[-1][1])
    lines = [("date", "commit", *heads), ("---",) * (2 + len(heads))]
    lines += [(v.date, f"`{v.commit}`", *(own.get(head, NONE) for head in heads)) for v, own in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def page() -> str:
    """The text of the page."""
    parts = [INTRODUCTION]
    for name, (heading, figures) in SHOWN.items():
        parts.append(f"## {heading}\n\n{table(versions(name), figures)}")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
