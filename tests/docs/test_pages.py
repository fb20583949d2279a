"""Every block of the manual and the README is executed, and what a page shows is what it prints."""

import ast
import re

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import scalar
from tests.pages import ROOT, blocks, run
from tests.study.conftest import command  # noqa: F401

MANUAL = sorted((ROOT / "docs").rglob("*.md"))
PAGES = {p.relative_to(ROOT / "docs").as_posix(): p for p in MANUAL if blocks(p)}
README = ROOT / "README.md"
DEAR = {  # seconds of compilation; what they show is tested elsewhere, too
    "tutorials/2-batch.md", "tutorials/5-events.md", "tutorials/7-study.md", "tutorials/8-synthesis.md",
    "tutorials/4-loops.md", "how-to/batch.md", "how-to/events.md", "how-to/loops.md", "how-to/own-output.md",
}  # fmt: skip


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in DEAR)) for n in PAGES])
def test_a_page_shows_what_it_prints(name, tmp_path, command):  # noqa: F811
    run(PAGES[name], tmp_path, command)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_uses_names_that_exist(name):
    """Of the dear pages, too: names of the library, and no output that is still to be filled in."""
    for b in blocks(PAGES[name]):
        assert not re.search(r"^\?$", b.text, re.MULTILINE), f"{name}:{b.line}"
        if b.language != "python":
            continue
        for node in ast.walk(ast.parse(b.text)):
            if isinstance(node, ast.Attribute) and (found := _dotted(node)).startswith("mbs."):
                x = mbs
                for part in found.split(".")[1:]:
                    assert hasattr(x, part), f"{name}:{b.line}: there is no {found}"
                    x = getattr(x, part)


def test_the_glossary_is_in_order_and_its_names_are_those_of_the_code():
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^- \*\*(.+?)\*\*", text, re.MULTILINE)
    assert terms == sorted(set(terms)) and len(terms) > 60
    code = [p.read_text(encoding="utf-8") for p in (ROOT / "jaxmbs").rglob("*.py")]
    known = set(re.findall(r"\w+", " ".join(code)))
    for name in re.findall(r"`(.+?)`", text):
        if name.startswith("["):
            name = name.strip("[]").partition(".")[0]  # a table of files
        for part in re.findall(r"[\w-]+", name):
            part = part.strip("-").replace("-", "_")
            assert part in known, f"the glossary names {name!r}, but nothing in the code has the name {part!r}"


def _dotted(node):
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def test_files_of_dear_pages_are_read(tmp_path):
    for name in sorted(DEAR):
        for b in blocks(PAGES[name], "toml"):
            (tmp_path / b.title).write_text(b.text, encoding="utf-8")
            assert mbs.study.read(tmp_path / b.title).criteria


def test_passages_of_the_ascent_are_in_its_file():
    text = (ROOT / "examples" / "ascent.toml").read_text(encoding="utf-8")
    passages = blocks(PAGES["how-to/ascent.md"], "toml")
    assert len(passages) == 4 and all(f"\n\n{b.text}" in text for b in passages)


@pytest.mark.parametrize("path", [README, *MANUAL], ids=lambda p: p.name)
def test_commands_that_are_shown_exist(path):
    """Of lines that are not executed, and of words in the text, too."""
    import typer

    from jaxmbs.cli.app import app

    known = typer.main.get_command(app).commands
    text = path.read_text(encoding="utf-8")
    shown = re.findall(r"(?:^|`|\$ )jaxmbs ([a-z][a-z-]*[a-z])((?: [^`\n#]*)?)", text, re.MULTILINE)
    for name, rest in shown:
        assert name in known, f"{path.name}: jaxmbs {name}"
        options = {o for p in known[name].params for o in p.opts} | {"--help"}
        used = re.findall(r"(?<= )--?[a-z][a-z-]*", rest)
        assert name == "bench" or set(used) <= options, f"{path.name}: jaxmbs {name} {rest}"


# --- the README -------------------------------------------------------------------------------------------------------


def test_an_element_of_ones_own():
    """Drag of a body that moves at 2 m/s: factor times the square of the speed."""
    space, page = {}, PAGES["how-to/own-force.md"]
    drag = next(b.text for b in blocks(page, "python") if "class Drag" in b.text)
    exec(compile(drag, str(page), "exec"), space)
    mech = mbs.Mechanism("drop")
    mech.add_body("drop", mass=4.0)
    mech.add_joint("x", mbs.Prismatic(axis=(1, 0, 0)), parent="world", child="drop")
    mech.add_force("air", space["Drag"]("drop", factor=3.0))
    assert scalar.forward_dynamics(mech.build(), [0.0], [2.0]) == [-3.0]


def test_the_ten_lines():
    """With fewer pendulums: each swings by its own mass, and the derivatives are those of the angles."""
    (code,) = (b.text for b in blocks(README, "python"))
    assert len(README.read_bytes()) <= 8192  # what a newcomer reads
    assert len([line for line in code.splitlines() if line.strip()]) <= 12 and code.count("1000") == 2
    space = {}
    exec(compile(code.replace("1000", "4"), str(README), "exec"), space)
    angles, slopes = np.asarray(space["angles"]), np.asarray(space["slopes"])
    assert angles.shape == (4,) and slopes.shape == (4, 1)
    assert np.ptp(angles) > 1e-3
    h, model = 1e-4, space["model"]
    ends = [space["swing"](model, jnp.full(1, 0.5 + x)) for x in (-h, h)]
    one = space["jax"].grad(space["swing"], argnums=1)(model, jnp.full(1, 0.5))
    assert abs((ends[1] - ends[0]) / (2 * h) - one[0]) < 1e-6
    assert slopes[0, 0] != slopes[-1, 0] and slopes.min() < one[0] < slopes.max()


# --- the runner -------------------------------------------------------------------------------------------------------

PAGE = """# Page
```python
x = {x}
print("x is", x)
```
```text
x is ...2
```
```toml title="a.toml"
[a]
```
"""


def test_a_page_that_shows_what_is_not_printed_fails(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.pages.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(PAGE.format(x=42), encoding="utf-8")
    assert run(page, tmp_path, None)["x"] == 42 and (tmp_path / "a.toml").read_text(encoding="utf-8") == "[a]\n"
    page.write_text(PAGE.format(x=43), encoding="utf-8")
    with pytest.raises(AssertionError, match=r"page\.md:6: shows\nx is \.\.\.2\n\nbut gets\nx is 43"):
        run(page, tmp_path, None)
    page.write_text("```python\nprint(1)\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="not shown"):
        run(page, tmp_path, None)


def test_commands_of_a_page_are_run_and_compared(tmp_path, command, monkeypatch):  # noqa: F811
    monkeypatch.setattr("tests.pages.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```console\n$ make nothing\n$ jaxmbs keys pusher.stroke\n...length...\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="shows"):
        run(page, tmp_path, command)
    page.write_text("```console\n$ jaxmbs keys pusher.strok\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="not a key of a file"):
        run(page, tmp_path, command)
