"""python -m docs.gallery: pictures of all example files, and the page that shows them.

A picture is drawn again only if its file now says something else: it carries a hash of the file's tables.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import jaxmbs as mbs
from docs.layout import ROOT
from jaxmbs.io.toml import parse

EXAMPLES, PAGE = ROOT / "examples", ROOT / "docs" / "gallery.md"
PICTURES = EXAMPLES / "images" / "gallery"
SHOWN = ("mechanism", "initial", "simulation")  # tables that decide what a picture shows
MOMENTS = (0.0, 0.25, 0.75)  # of the motion
MADE = "Description"  # entry of a picture with the hash
DEMO = EXAMPLES / "stage_separation.toml"
FILM = EXAMPLES / "images" / "stage_separation.gif"  # what the README begins with
FRAMES, RATE = 36, 12  # of the film: number, and how many a second


def drawn() -> list[Path]:
    """The files of which there are pictures."""
    return [p for p in sorted(EXAMPLES.glob("*.toml")) if "simulation" in parse(p.read_bytes())]


def made_from(path: Path) -> str:
    """Hash of what the picture of a file shows."""
    data = {key: x for key, x in parse(path.read_bytes()).items() if key in SHOWN}
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def picture_of(path: Path) -> Path:
    return PICTURES / f"{path.stem}.png"


def is_current(path: Path, picture: Path | None = None) -> bool:
    """Whether the picture of a file, or another one, shows what the file says."""
    from PIL import Image

    try:
        with Image.open(picture or picture_of(path)) as image:
            found: Any = image.info
            return made_from(path) in (found.get(MADE), found.get("comment", b"").decode())
    except OSError:
        return False


def page() -> str:
    """The text of the page."""
    table = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    parts = []
    for path in drawn():
        row = next((x for x in table.splitlines() if f"({_link(path)})" in x), "")
        said = re.sub(r"^\| .* \| (.*) \|$", r"\1", row)
        parts.append(f"**[{path.name}]({_link(path)})**: {said}\n\n![{path.stem} at three times]"
                     f"(../{picture_of(path).relative_to(ROOT).as_posix()})\n")  # fmt: skip
    said = "The example files in motion: at the start, after a quarter and after three quarters of what they simulate."
    return f"# Gallery\n\n{said}\n\n" + "\n".join(parts)


def _link(path: Path) -> str:
    return f"../{path.relative_to(ROOT).as_posix()}"


def draw(path: Path) -> None:
    """Draw the nominal motion of a file."""
    from matplotlib.figure import Figure

    model, t, q = _motion(path)
    figure = Figure(figsize=(12, 4))
    for k, share in enumerate(MOMENTS):
        row = int(share * (len(t) - 1))
        axes: Any = figure.add_subplot(1, len(MOMENTS), k + 1, projection="3d")
        mbs.draw(model, q[row], axes, t=float(t[row]))
        axes.set_title(f"{t[row]:.3g} s")
    PICTURES.mkdir(exist_ok=True)
    figure.savefig(picture_of(path), dpi=70, bbox_inches="tight", metadata={"Software": None, MADE: made_from(path)})


def film() -> None:
    """The moving picture of the demo: the nominal motion, seen from the side, until the payload is well away."""
    import matplotlib
    from PIL import Image

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    model, t, q = _motion(DEMO)
    figure = plt.figure(figsize=(6, 2.2))
    axes: Any = figure.add_axes((-0.45, -1.35, 1.9, 3.6), projection="3d")
    frames = []
    for row in np.linspace(0, len(t) - 1, FRAMES).astype(int):
        axes.clear()
        mbs.draw(model, q[row], axes, t=float(t[row]))
        axes.set(xlim=(-4, 4), ylim=(-4, 4), zlim=(-4, 4), title="")
        axes.view_init(elev=18, azim=-72)
        axes.set_axis_off()
        figure.canvas.draw()
        frames.append(
            Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("P", palette=Image.Palette.ADAPTIVE)
        )
    plt.close(figure)
    last = [1000 // RATE] * (FRAMES - 1) + [1200]  # a rest before it begins again
    frames[0].save(FILM, save_all=True, append_images=frames[1:], duration=last, loop=0, comment=made_from(DEMO))


def _motion(path: Path) -> tuple[mbs.Model, np.ndarray, np.ndarray]:
    """(model, times, coordinates) of the nominal motion of a file."""
    from jaxmbs.study.problem.study import read
    from jaxmbs.study.reports.motion import motion

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbs.ModelWarning)
        model, found = motion(read(path, need="simulation", trust=True))
    return model, np.asarray(found.t), np.asarray(found.q)


def main() -> None:
    for path in drawn():
        if not is_current(path):
            draw(path)
            print(picture_of(path))
    if not is_current(DEMO, FILM):
        film()
        print(FILM)
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
