"""python -m benchmarks.plots: pictures of the saved results, one for each machine, next to the results."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from benchmarks import suite

COLOURS = {"jaxmbs": "C0", "Pinocchio": "C1", "MuJoCo": "C2", "MJX": "C4", "brax": "C3", "frax": "C5"}


def draw(path: Path) -> Path:
    """Forward dynamics per second: against the batch size for the arm, and against the number of links for chains."""
    kept, machine = suite.kept(path), json.loads(path.read_text(encoding="utf-8"))["machine"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4))
    for axes, chosen, along in (
        (left, [c for c in kept if c.function == suite.FORWARD and c.robot == "arm7"], lambda c: c.batch),
        (
            right,
            [c for c in kept if c.function == suite.FORWARD and c.robot.startswith("chain")],
            lambda c: int(c.robot[5:]),
        ),
    ):
        for dtype, style in (("float64", "-o"), ("float32", "--s")):
            cases = sorted((c for c in chosen if c.dtype == dtype), key=along)
            for name, colour in COLOURS.items():
                if name in ("Pinocchio", "MuJoCo") and dtype == "float32":
                    continue  # they compute in float64
                points = [(along(c), 1e3 / kept[c].times[name][0]) for c in cases if name in kept[c].times]
                if points:
                    axes.loglog(*zip(*points, strict=True), style, color=colour, label=f"{name}, {dtype}", markersize=4)
        axes.grid(alpha=0.3)
    left.set(xlabel="instances in the batch", title="arm with 7 joints")
    right.set(xlabel="links", title="chains")
    left.set_ylabel("forward dynamics, million per second")
    left.legend(fontsize=7)
    figure.suptitle(f"{machine['cpu']}, {machine['cores']} cores, {machine['device']}, {machine['date']}", fontsize=9)
    figure.tight_layout()
    out = path.with_suffix(".png")
    figure.savefig(out, dpi=110)
    plt.close(figure)
    return out


if __name__ == "__main__":
    for found in sorted(suite.RESULTS.glob("*-cores-*.json")):
        print(draw(found))
