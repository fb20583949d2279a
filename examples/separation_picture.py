"""The picture of the README: python examples/separation_picture.py RUN [IMAGE]

RUN is the folder of a finished `jaxmbs study examples/stage_separation.toml ...`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Polygon

import jaxmbs as mbs
from jaxmbs.study.problem.study import read
from jaxmbs.study.results.store import open_folder
from jaxmbs.study.samples.repeat import repeat
from jaxmbs.study.statistics.summary import extremes, summarize

IMAGE = Path(__file__).parent / "images" / "stage_separation.png"
STAGE, PAYLOAD, LINE = "#8a94a6", "#2f6fb3", "#c0392b"

# outlines in body axes, x along the vehicle, y across [m]
OUTLINES = {
    "stage": [
        [(-6, -0.62), (-1.2, -0.62), (-1.2, 0.62), (-6, 0.62)],
        [(-1.2, 0.50), (0, 0.50), (0, 0.62), (-1.2, 0.62)],
        [(-1.2, -0.62), (0, -0.62), (0, -0.50), (-1.2, -0.50)],
    ],
    "payload": [
        [(0.02, -0.55), (1.6, -0.55), (1.6, 0.55), (0.02, 0.55)],
        [(0.02, -0.1), (-0.9, -0.445), (-0.9, 0.445), (0.02, 0.1)],
    ],
}


def scene(axes: Axes, model: mbs.Model, q: np.ndarray) -> None:
    """Side view of both bodies, in the axes of the stage."""
    poses = mbs.body_poses(model, q)
    R0, p0 = np.asarray(poses.rotation[0]), np.asarray(poses.position[0])
    for name, R, p in zip(model.body_names, np.asarray(poses.rotation), np.asarray(poses.position), strict=True):
        for outline in OUTLINES[name]:
            points = np.array([(x, y, 0.0) for x, y in outline]) @ R.T + p
            corners = (points - p0) @ R0
            color = STAGE if name == "stage" else PAYLOAD
            axes.add_patch(Polygon(corners[:, :2], facecolor=color, edgecolor="white", lw=0.8, alpha=0.9))
    axes.set(xlim=(-3.0, 3.2), ylim=(-0.85, 0.85), aspect="equal")
    axes.axis("off")


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    run, image = Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else IMAGE
    study, store = read(run / "study.toml"), open_folder(run)
    summary = summarize(study, store)
    found = extremes(study, summary, "clearance", low_is_bad=True)
    assert found, "the run has no sample with a clearance"
    history = repeat(study, found)
    figure, parts = plt.subplot_mosaic(
        [["start", "middle", "end"], ["history", "history", "histogram"]], figsize=(11, 4.6), height_ratios=(1, 1.7)
    )
    for name, t in (("start", 0.0), ("middle", 0.55), ("end", 1.0)):
        k = int(np.argmin(np.abs(history.t - t)))
        scene(parts[name], study.model, history.q[0, k])
        parts[name].set_title(f"t = {history.t[k]:.2f} s", fontsize=9)
    for row, (label, style) in enumerate((("worst", LINE), ("median", "#555"), ("best", "#3a8f5c"))):
        clearance = np.ma.masked_invalid(1e3 * history.values["clearance"][row])
        parts["history"].plot(history.t, clearance, color=style, label=f"{label} (sample {found[row]})")
    parts["history"].axhline(20, color=LINE, ls="--", lw=0.8)
    parts["history"].set(xlabel="time [s]", ylabel="nozzle to shell [mm]")
    parts["history"].legend(frameon=False, fontsize=8)
    values = 1e3 * summary.outputs["clearance"]
    parts["histogram"].hist(values[np.isfinite(values)], bins=60, color=PAYLOAD)
    parts["histogram"].axvline(20, color=LINE, ls="--", lw=0.8)
    parts["histogram"].set(xlabel=f"smallest clearance of {store.n} samples [mm]", yticks=[])
    for name in ("history", "histogram"):
        parts[name].spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    image.parent.mkdir(exist_ok=True)
    figure.savefig(image, dpi=110)
    print(image)


if __name__ == "__main__":
    main()
