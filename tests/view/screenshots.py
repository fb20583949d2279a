"""make screenshots: the report of a run and a page that plays a motion, as a browser shows them; PAGE... FOLDER.

The browser is Qt's, which is Chromium; it is installed from PyPI into an environment of its own. Every page is drawn at
three widths, for light and for dark displays; a report in full length, a motion at its middle, with forces and gaps. Ends
with an error if a page reports one, is wider than its window, shows nothing, or is dark where it should be light.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

WIDTHS = (390, 900, 1440)  # pixels: a telephone, half a screen, a screen
HEIGHTS = {"motion": 800, "report": 12_000}  # of a report at most
FEW = 8  # colours, below which a picture shows nothing
DRAWN = 2500  # milliseconds, after which a page has drawn itself
THEMES = {"light": 1, "dark": 0}  # as Chromium counts them
SOFTWARE = "--no-sandbox --use-gl=angle --use-angle=swiftshader --enable-unsafe-swiftshader --ignore-gpu-blocklist"
MIDDLE = (
    "if (typeof kinds !== 'undefined') { play(false); kinds.force = true; go((start + end) / 2); }"
    "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
)


def main() -> None:
    *pages, folder = sys.argv[1:]
    for theme, number in THEMES.items():
        flags = f"{SOFTWARE} --blink-settings=preferredColorScheme={number}"
        settings = {"QT_QPA_PLATFORM": "offscreen", "QTWEBENGINE_CHROMIUM_FLAGS": flags, "SCREENSHOT_THEME": theme}
        subprocess.run([sys.executable, __file__, "--draw", *pages, folder], check=True, env={**os.environ, **settings})


def draw(pages: list[str], folder: Path, theme: str) -> None:
    """Draw all pages at all widths. Exits with 1 if there was an error."""
    from PyQt6.QtCore import QEventLoop, QTimer, QUrl  # pyright: ignore[reportMissingImports]
    from PyQt6.QtWebEngineCore import QWebEnginePage  # pyright: ignore[reportMissingImports]
    from PyQt6.QtWebEngineWidgets import QWebEngineView  # pyright: ignore[reportMissingImports]
    from PyQt6.QtWidgets import QApplication  # pyright: ignore[reportMissingImports]

    faults: list[str] = []

    class Page(QWebEnginePage):
        def javaScriptConsoleMessage(self, level, message, line, source):  # Qt's name
            if level == QWebEnginePage.JavaScriptConsoleMessageLevel.ErrorMessageLevel:
                faults.append(f"{Path(self.url().fileName())}, line {line}: {message}")

    def wait(milliseconds: int) -> None:
        loop = QEventLoop()
        QTimer.singleShot(milliseconds, loop.quit)
        loop.exec()

    def asked(page: Page, script: str) -> list[float]:
        found: list[float] = []
        loop = QEventLoop()
        page.runJavaScript(script, lambda x: (found.extend(x or ()), loop.quit()))
        loop.exec()
        return found

    application = QApplication(sys.argv[:1])
    for path in map(Path, pages):
        kind = "motion" if "motion" in path.stem else "report"
        for width in WIDTHS:
            view = QWebEngineView()
            page = Page(view)
            view.setPage(page)
            view.resize(width, HEIGHTS["motion"])
            view.show()
            loaded = QEventLoop()
            page.loadFinished.connect(loaded.quit)
            page.load(QUrl.fromLocalFile(str(path.resolve())))
            loaded.exec()
            wait(DRAWN)
            wide, high = asked(page, MIDDLE)
            if wide > width + 1:
                faults.append(f"{path.name} is {wide:.0f} pixels wide in a window of {width}")
            if kind == "report":
                view.resize(width, min(int(high), HEIGHTS["report"]))
                wait(DRAWN)
            wait(500)
            picture = folder / f"{path.stem}_{width}_{theme}.png"
            view.grab().save(str(picture))
            seen = view.grab().toImage().scaled(48, 48)
            pixels = [seen.pixelColor(x, y) for x in range(48) for y in range(48)]
            if len({p.rgb() for p in pixels}) < FEW:
                faults.append(f"{picture.name} shows nothing")
            if (sum(p.lightness() for p in pixels) / len(pixels) < 128) != (theme == "dark"):
                faults.append(f"{picture.name} is not {theme}")
            view.close()
    application.quit()
    for fault in faults:
        print(fault, file=sys.stderr)
    sys.stdout.flush()
    os._exit(bool(faults))  # Qt's browser may crash as it is taken down


if __name__ == "__main__":
    if sys.argv[1] == "--draw":
        draw(sys.argv[2:-1], Path(sys.argv[-1]), os.environ["SCREENSHOT_THEME"])
    main()
