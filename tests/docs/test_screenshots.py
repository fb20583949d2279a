"""Pictures of pages in a browser: they have the width and the colours that are asked for, and faults are seen."""

import numpy as np
import pytest
from PIL import Image

from docs import screenshots

PAGE = """<!doctype html><meta name="color-scheme" content="light dark">
<style>@media (max-width: 500px) { p { color: #ff0000; background: #ff0000 } }</style><p>some words of a page</p>"""


@pytest.mark.slow
@pytest.mark.skipif(screenshots.browser() is None, reason="no Chromium here")
def test_width_and_colours(tmp_path):
    page, picture = tmp_path / "page.html", tmp_path / "page-390-dark.png"
    page.write_text(PAGE, encoding="utf-8")
    for width, narrow in ((390, True), (820, False)):
        means = []
        for colours in screenshots.COLOURS:
            screenshots.shot(page, picture, width, 300, colours)
            with Image.open(picture) as image:
                shown = np.asarray(image.convert("RGB"))[:, :width]
            assert np.any(np.all(shown == [255, 0, 0], axis=-1)) == narrow
            means.append(shown[200:].mean())
        assert means[0] < 60 and means[1] > 200


def test_faults_are_seen(tmp_path):
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, 100, size=(300, 400, 3)).astype(np.uint8)
    for name, content, said in (
        ("good-400-dark", drawn, []),
        ("bright-400-dark", 255 - drawn, ["not dark"]),
        ("empty-400-light", np.full_like(drawn, 255), ["nothing"]),
    ):
        Image.fromarray(content).save(tmp_path / f"{name}.png")
        found = list(screenshots.faults(tmp_path / f"{name}.png", 400))
        assert len(found) == len(said) and all(x in y for x, y in zip(said, found, strict=True))


def test_without_a_browser_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(screenshots, "browser", lambda: None)
    with pytest.raises(RuntimeError, match="apt-get install chromium"):
        screenshots.shot(tmp_path / "page.html", tmp_path / "page.png", 390, 300, "dark")
