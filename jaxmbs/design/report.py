"""The files of a synthesis: design.json and an HTML page, whose module is imported only when needed (matplotlib is
slow)."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbs.design.comparison import Comparison
from jaxmbs.design.status import Status
from jaxmbs.design.synthesize import Design
from jaxmbs.design.terminal import estimates
from jaxmbs.io.reports import plain
from jaxmbs.study.folder.storage import write_whole

DESIGN, PAGE = "design.json", "report.html"


def written(design: Design, comparison: Comparison, folder: Path) -> tuple[Path, Path]:
    """Write design.json and the page into the folder; returns their paths."""
    from jaxmbs.design.page import page

    record = as_json(design, comparison)
    return (
        write(folder / DESIGN, json.dumps(record, indent=1, allow_nan=False) + "\n"),
        write(folder / PAGE, page(design, comparison)),
    )


def write(path: Path, text: str) -> Path:
    """Write the file completely or not at all; returns its path."""
    write_whole(path, text.encode())
    return path


def as_json(design: Design, comparison: Comparison) -> dict[str, Any]:
    """The design as data for programs: `set` takes the "parameters" as they are."""
    found, unsure = design.findings, design.uncertainty
    record = {
        "parameters": design.parameters,
        "status": design.status.name,
        "reason": design.reason,
        "largest_residuals": design.largest,
        "largest_residuals_before": design.before,
        "cost": design.cost,
        "starts": {
            Status(s).name: int(n) for s, n in zip(*np.unique(design.statuses, return_counts=True), strict=True)
        },
        "rank": found.rank if found else None,
        "coordinates": [c.name for c in found.coordinates] if found else [],
        "linear": found.linear if found else None,
        "indifferent": found.indifferent if found else [],
        "relations": [
            {"text": r.text, "value": r.value, "unit": r.unit, "residual": r.residual, "exact": r.exact, "std": r.std}
            for r in design.relations
        ],
        "undetermined": design.undetermined,
        "failed_samples": [
            {"samples": f.samples, "statuses": {s.name: n for s, n in f.statuses.items()}, "too_many": f.too_many}
            for f in design.failed
        ],
        "estimates": [
            {
                "name": e.name,
                "value": e.value,
                "unit": e.unit,
                "std": e.std,
                "interval": (e.low, e.high) if np.isfinite(e.std) else None,
                "profiled": e.profiled,
            }
            for e in estimates(design)
        ],
        "correlation": unsure.correlation if unsure else None,
        "comparison": [asdict(row) for row in comparison.rows],
    }
    return plain(record)
