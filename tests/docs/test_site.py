"""The manual as a site: all links lead somewhere, every page has its place, the references are those of the code."""

import importlib.util
import inspect
import re
import subprocess
import sys
import tomllib

import pytest

from docs import layout, reference
from tests.pages import ROOT

OWN = ("benchmarks", "docs", "examples", "jaxmbs", "tests")  # folders with texts of the project
MARKDOWN = sorted([*ROOT.glob("*.md"), *(p for folder in OWN for p in (ROOT / folder).rglob("*.md"))])


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path):
    """Of the files as they stand, without building anything: paths, and anchors of pages written by hand."""
    text, origin = path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()
    for m in layout.links(text):
        at = layout.target(origin, m[1])
        made = at.removeprefix("docs/") in layout.GENERATED
        assert made or (ROOT / at).exists(), f"{origin}: {m[0]} leads nowhere"
        if m[2] and at.endswith(".md") and not made:
            assert m[2][1:] in layout.slugs((ROOT / at).read_text(encoding="utf-8")), (
                f"{origin}: {m[0]}: no such heading"
            )


def test_every_page_has_its_place_in_the_site():
    """And every place its page."""
    nav = tomllib.loads((ROOT / "docs" / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    named = list(_paths(nav))
    assert len(named) == len(set(named))
    assert set(named) == {*layout.written().values(), *layout.GENERATED}


def _paths(nav):
    for x in nav:
        if isinstance(x, str):
            yield x
        else:
            for inner in x.values():
                yield from [inner] if isinstance(inner, str) else _paths(inner)


def test_links_become_those_of_the_site(tmp_path, monkeypatch):
    """A source file becomes a page, an image is copied, an anchor stays, code is left alone."""
    monkeypatch.setattr(layout, "GENERATED", {"reference/keys.md": lambda: "# Keys\n[a](../../README.md#how-fast)\n"})
    monkeypatch.setattr(
        layout, "written", lambda: {"README.md": "overview.md", "jaxmbs/simulate/README.md": "how-to/s.md"}
    )
    layout.lay_out(tmp_path)
    pages = tmp_path / "docs"
    assert "(../overview.md#how-fast)" in (pages / "reference" / "keys.md").read_text(encoding="utf-8")
    text = (pages / "how-to" / "s.md").read_text(encoding="utf-8")
    assert "](../files/benchmarks/work_precision.py.md)" in text
    assert "](../files/benchmarks/results/work-precision.png)" in text
    assert (pages / "files" / "benchmarks" / "results" / "work-precision.png").exists()
    assert "def main" in (pages / "files" / "benchmarks" / "work_precision.py.md").read_text(encoding="utf-8")
    monkeypatch.setattr(layout, "GENERATED", {"a.md": lambda: "[a](b.md)\n"})
    with pytest.raises(ValueError, match=r"docs/a\.md.*leads nowhere"):
        layout.lay_out(tmp_path)
    assert list(layout.links("`[a](b.md)`\n```\n[c](d.md)\n```\n")) == []


@pytest.mark.slow
def test_the_reference_is_that_of_the_code():
    """Names, keys, commands and equations that one would look for; no page has an address of this process in it."""
    from jaxmbs import public

    api = {room: page() for room, page in reference.api_pages().items()}
    everything = "\n".join(api.values())
    for name, x in vars(public).items():
        assert name.startswith("_") or inspect.ismodule(x) or f"## mbs.{name}\n" in everything
    assert " at 0x" not in everything and "<function" not in everything and "ForwardRef" not in everything
    assert "    dt: float | None = None,\n" in api["simulate"] and "### Model.q_slice" in api["model"]
    keys = reference.keys()
    assert "| `stroke` | number > 0 | m | required | extension at which the push ends |" in keys
    assert "## jaxmbs study\n" in reference.commands() and "--precision" in reference.commands()
    equations = reference.equations()
    (row,) = re.findall(r"^\| Y 3\.190 \|.*$", equations, re.MULTILINE)
    assert "dynamics/constrained/multipliers.py](../../jaxmbs/dynamics/constrained/multipliers.py)" in row
    assert reference.citations("a [Y 3.86, 3.170; the hinge force of Y 3.4; W 3.1]") == [
        "Y 3.86",
        "Y 3.170",
        "Y 3.4",
        "W 3.1",
    ]
    assert reference.citations("x[K] [W @ B for W, B in y] [T (2), (5)] [Y table 3.1]") == [
        "K",
        "T (2)",
        "T (5)",
        "Y table 3.1",
    ]


def test_saved_results_are_on_a_page():
    """Of every kind that is saved beside the benchmarks."""
    assert "| forward dynamics | arm7 | float64 | 8,192 |" in reference.benchmarks()


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("zensical") is None, reason="needs zensical: pip install 'jaxmbs[docs]'")
def test_the_site_is_built(tmp_path):
    layout.lay_out(tmp_path)
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "site" / "tutorials" / "1-pendulum.html").read_text(encoding="utf-8")
    assert "elliptic" in page and (tmp_path / "site" / "reference" / "keys.html").exists()
