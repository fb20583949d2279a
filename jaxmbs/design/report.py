"""The files of a synthesis: design.json and an HTML page, whose module is imported only when needed (matplotlib is
slow)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbs.design.comparison import Comparison
from jaxmbs.design.status import Status
from jaxmbs.design.synthesize import Design
from jaxmbs.design.terminal import estimates

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
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)
    return path


def as_json(design: Design, comparison: Comparison) -> dict[str, Any]:
    """The design as data for programs: `set` takes the "parameters" as they are."""
    found = design.findings
    return {
        "parameters": {name: np.asarray(x).tolist() for name, x in design.parameters.items()},
        "status": design.status.name,
        "reason": design.reason,
        "largest_residuals": {name: _finite(x) for name, x in design.largest.items()},
        "largest_residuals_before": {name: _finite(x) for name, x in design.before.items()},
        "cost": _finite(design.cost),
        "starts": {
            Status(s).name: int(n) for s, n in zip(*np.unique(design.statuses, return_counts=True), strict=True)
        },
        "rank": found.rank if found else None,
        "coordinates": [c.name for c in found.coordinates] if found else [],
        "linear": found.linear if found else None,
        "indifferent": list(found.indifferent) if found else [],
        "relations": [
            {"text": r.text, "value": r.value, "unit": r.unit, "residual": r.residual, "exact": r.exact, "std": r.std}
            for r in design.relations
        ],
        "undetermined": list(design.undetermined),
        "failed_samples": [
            {"samples": f.samples, "statuses": {s.name: n for s, n in f.statuses.items()}, "too_many": f.too_many}
            for f in design.failed
        ],
        "estimates": [
            {
                "name": e.name,
                "value": e.value,
                "unit": e.unit,
                "std": e.std if np.isfinite(e.std) else None,
                "interval": [_finite(e.low), _finite(e.high)] if np.isfinite(e.std) else None,
                "profiled": e.profiled,
            }
            for e in estimates(design)
        ],
        "correlation": None
        if design.uncertainty is None
        else [[x if np.isfinite(x) else None for x in row] for row in design.uncertainty.correlation.tolist()],
        "comparison": [
            {"what": row.what, "unit": row.unit, "before": row.before, "after": row.after} for row in comparison.rows
        ],
    }


def _finite(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None
