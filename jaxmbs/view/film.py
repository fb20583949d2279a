"""Films of motions, whose frames are the still pictures of `draw`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from jaxmbs.errors import ModelError
from jaxmbs.model import Model
from jaxmbs.view.draw import draw
from jaxmbs.view.shapes import Shapes

RATE, DPI = 25, 80  # frames per second, dots per inch of a figure of 6 inches


def film(
    model: Model, solution: Any, path: Path, frames: int, shapes: Shapes | None = None, over_visuals: bool = False,
    deformation_scale: float = 1.0,
) -> None:  # fmt: skip
    """Write NAME.gif or NAME.mp4 in real time: 25 frames per second, or fewer if that would be more than `frames` in all.

    Raises ModelError if ffmpeg, which writes mp4, is missing.
    """
    from matplotlib import animation
    from matplotlib.figure import Figure

    if path.suffix == ".mp4" and not animation.FFMpegWriter.isAvailable():
        raise ModelError(
            f"animate: {path.name!r} needs the program ffmpeg, which was not found; install it, or write a .gif"
        )
    t, q = np.asarray(solution.t, float), np.asarray(solution.q, float)
    span = max(t[-1] - t[0], 1 / RATE)
    count = int(np.clip(round(span * RATE), 1, frames))
    times = np.linspace(t[0], t[-1], count)
    rows = np.minimum(np.searchsorted(t, times - 1e-9 * span), len(t) - 1)
    rows = rows[np.isfinite(q[rows]).all(axis=1)]
    drawn: Any = {"shapes": shapes, "over_visuals": over_visuals, "deformation_scale": deformation_scale}
    figure = Figure(figsize=(6, 6))
    axes: Any = figure.add_subplot(projection="3d")
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for row in rows[np.unique(np.linspace(0, len(rows) - 1, 6).astype(int))]:
        draw(model, q[row], axes, t=float(t[row]), **drawn)
        limits = np.array([axes.get_xlim(), axes.get_ylim(), axes.get_zlim()])
        low, high = np.minimum(low, limits[:, 0]), np.maximum(high, limits[:, 1])
        axes.clear()
    middle, half = (low + high) / 2, (high - low).max() / 2
    writer = (animation.FFMpegWriter if path.suffix == ".mp4" else animation.PillowWriter)(
        fps=max(1, round(count / span))
    )
    with writer.saving(figure, str(path), DPI):
        for row in rows:
            axes.clear()
            draw(model, q[row], axes, t=float(t[row]), **drawn)
            for k, put in enumerate((axes.set_xlim, axes.set_ylim, axes.set_zlim)):
                put(middle[k] - half, middle[k] + half)
            axes.set_title(f"{axes.get_title()}, {t[row]:.2f} s")
            writer.grab_frame()
