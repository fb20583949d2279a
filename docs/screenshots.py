"""python -m docs.screenshots [FOLDER]: how the report of the demo, its player and the manual look in a browser.

Every page is shown at three widths, in dark and light colours, as NAME-WIDTH-COLOURS.png in build/screenshots; the manual
only if `make docs` has made it. A picture on which nothing is drawn, or whose colours are not those that were asked for, is
an error. It needs Chromium (apt-get install chromium); JAXMBS_BROWSER names another program that takes its options.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from docs.layout import ROOT

WIDTHS = (390, 820, 1440)  # pixels: of a telephone, a tablet, a desktop
COLOURS = {"dark": 0, "light": 1}  # Blink's numbers of what a reader prefers
HEIGHT = {"report": 2400, "player": 900, "manual": 1200}
SAMPLES = 500  # of the demo's study
FOLDER = ROOT / "build" / "screenshots"
NAMES = ("chromium", "chromium-browser", "google-chrome")


def browser() -> str | None:
    """The program that shows pages; None if there is none."""
    own = os.environ.get("JAXMBS_BROWSER")
    return own or next((found for name in NAMES if (found := shutil.which(name))), None)


def shot(page: Path, picture: Path, width: int, height: int, colours: str, at: str = "") -> None:
    """Write a picture of a page in a window of this size. colours: "dark" or "light"; at: what follows # in its address.
    Raises RuntimeError if the browser makes none."""
    program = browser()
    if program is None:
        raise RuntimeError(f"no browser: none of {', '.join(NAMES)} is installed; apt-get install chromium")
    picture.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as profile:
        options = [
            "--headless=new", "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--hide-scrollbars",
            f"--user-data-dir={profile}", "--virtual-time-budget=3000", f"--window-size={width},{height}",
            f"--blink-settings=preferredColorScheme={COLOURS[colours]}", f"--screenshot={picture}",
        ]  # fmt: skip
        address = _framed(page, width, height, Path(profile), at)
        done = subprocess.run(
            [program, *options, address], capture_output=True, timeout=180, check=False, encoding="utf-8"
        )
    if not picture.exists():
        raise RuntimeError(f"{program} made no picture of {page.name}: {done.stderr[-500:]}")


def _framed(page: Path, width: int, height: int, folder: Path, at: str) -> str:
    """The address of a page with the given one in a frame, since browsers have no windows narrower than about 500 pixels."""
    inner = page.resolve().as_uri() + (f"#{at}" if at else "")
    frame = f'<iframe src="{inner}" style="border:0;width:{width}px;height:{height}px;display:block"></iframe>'
    outer = folder / "frame.html"
    outer.write_text(
        encoding="utf-8",
        data=f'<!doctype html><meta name="color-scheme" content="light dark"><body style="margin:0">{frame}',
    )
    return outer.as_uri()


def faults(picture: Path, width: int) -> Iterator[str]:
    """What is wrong with a picture."""
    import numpy as np
    from PIL import Image

    with Image.open(picture) as image:
        shown = np.asarray(image.convert("RGB"))[:, :width]
    colours = np.unique(shown.reshape(-1, 3)[::97], axis=0)
    if len(colours) < 8:
        yield "nothing is drawn on it"
    mean, name = shown.mean(), picture.stem.rsplit("-", 1)[1]
    if (mean < 128) != (name == "dark"):
        yield f"its colours are not {name}: they have a mean of {mean:.0f} of 255"


def pages(folder: Path) -> dict[str, Path]:
    """The pages that are shown, made in a folder: {name: file}."""
    run = folder / "demo"
    shutil.rmtree(run, ignore_errors=True)
    study, command = ROOT / "examples" / "stage_separation.toml", [sys.executable, "-m", "jaxmbs.cli"]
    player = folder / "player.html"
    for arguments in (
        ["study", str(study), "-n", str(SAMPLES), "--out", str(run)],
        ["report", str(run)],
        ["simulate", str(study), "--out", str(folder / "motion.csv"), "--overwrite", "--animate", str(player)],
    ):
        subprocess.run([*command, *arguments], check=True, stdout=subprocess.DEVNULL)
    found = {"report": run / "report.html", "player": player}
    manual = ROOT / "build" / "manual" / "site" / "index.html"
    return found | ({"manual": manual} if manual.exists() else {})


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    if browser() is None:
        sys.exit(f"no browser: none of {', '.join(NAMES)} is installed; apt-get install chromium")
    folder.mkdir(parents=True, exist_ok=True)
    wrong = []
    for name, page in pages(folder).items():
        for width in WIDTHS:
            for colours in COLOURS:
                picture = folder / f"{name}-{width}-{colours}.png"
                shot(page, picture, width, HEIGHT[name], colours, "0.4" if name == "player" else "")
                print(picture)
                wrong += [f"{picture.name}: {said}" for said in faults(picture, width)]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
