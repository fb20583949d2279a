"""Which pages the manual has, and how links between them, and to files of the project, become links of the site.

A page is Markdown. It is in this folder, elsewhere in the project (`INCLUDED`: texts next to the code that they
describe), or generated from the code (`GENERATED`). Its links are relative to its place in the project. A link to any
other text file of the project leads to a page that shows that file; images are copied.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from docs import reference, validation
from docs.notebook import notebook

ROOT = Path(__file__).parent.parent
HERE = "docs"
INCLUDED = {
    "README.md": "overview.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changes.md",
    "tests/README.md": "project/tests.md",
    "tests/io/robots.md": "reference/robots.md",
    "jaxmbs/dynamics/README.md": "theory/formulations.md",
    "jaxmbs/simulate/README.md": "how-to/simulate.md",
    "jaxmbs/stability/README.md": "how-to/stability.md",
}
GENERATED: dict[str, Callable[[], str]] = {
    "reference/keys.md": reference.keys,
    "reference/commands.md": reference.commands,
    "reference/benchmarks.md": reference.benchmarks,
    "reference/equations.md": reference.equations,
    "reference/validation.md": validation.page,
    **{f"reference/api/{room}.md": page for room, page in reference.api_pages().items()},
}
ALIASES = {"benchmarks/results": "reference/benchmarks.md"}
IMAGES = (".png", ".svg", ".gif")
FENCE = re.compile(r"^(`{3,}).*?^\1$|`[^`\n]+`", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(?<=\]\()(?![a-z]+:)([^)\s#]*)(#[^)\s]*)?(?=\))")


def written() -> dict[str, str]:
    """{place in the project: place in the manual} of the pages that are written by hand."""
    own = {f"{HERE}/{p.relative_to(ROOT / HERE)}": str(p.relative_to(ROOT / HERE)) for p in _own()}
    return own | INCLUDED


def _own() -> Iterator[Path]:
    apart = ROOT / HERE / "README.md", ROOT / HERE / "paper" / "paper.md"  # the latter is for a journal's own program
    return (p for p in sorted((ROOT / HERE).rglob("*.md")) if p not in apart)


def links(text: str) -> Iterator[re.Match[str]]:
    """Relative links of a page, except those in code; groups: the path, and the anchor with its #."""
    code = [m.span() for m in FENCE.finditer(text)]
    return (m for m in LINK.finditer(text) if not any(a <= m.start() < b for a, b in code))


def target(origin: str, path: str) -> str:
    """Where in the project a link of the page at `origin` leads."""
    return os.path.normpath(os.path.join(os.path.dirname(origin), path)) if path else origin


def lay_out(folder: Path) -> None:
    """Write the whole manual into a folder, with the configuration of the site. Raises ValueError for a dead link."""
    shutil.rmtree(folder, ignore_errors=True)
    pages, places = folder / "docs", written() | ALIASES
    places |= {f"{HERE}/{page}": page for page in GENERATED}
    sources: set[str] = set()

    def moved(text: str, origin: str, place: str) -> str:
        """The text with its links changed to those from its place in the manual."""

        def link(match: re.Match[str]) -> str:
            at = target(origin, match[1])
            to = places.get(at)
            if to is None and not (ROOT / at).is_file():
                raise ValueError(f"{origin}: the link {match[0]!r} leads nowhere")
            if to is None:
                to = f"files/{at}" if at.endswith(IMAGES) else f"files/{at}.md"
                sources.add(at)
            return os.path.relpath(to, os.path.dirname(place)) + (match[2] or "")

        out, end = [], 0
        for m in links(text):
            out += [text[end : m.start()], link(m)]
            end = m.end()
        return "".join([*out, text[end:]])

    texts = {place: ((ROOT / origin).read_text(encoding="utf-8"), origin) for origin, place in written().items()}
    texts |= {place: (make(), f"{HERE}/{place}") for place, make in GENERATED.items()}
    for place, (text, origin) in texts.items():
        more = ""
        if place.startswith("tutorials/"):
            name = Path(place).with_suffix(".ipynb")
            write(pages / name, notebook(text))
            more = f"\n[This page as a notebook]({name.name})\n"
        write(pages / place, moved(text, origin, place) + more)
    for name in sorted(sources):
        if name.endswith(IMAGES):
            (pages / "files" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, pages / "files" / name)
        else:
            write(pages / "files" / f"{name}.md", shown(name))
    shutil.copy(ROOT / HERE / "zensical.toml", folder / "zensical.toml")
    shutil.copy(ROOT / HERE / "site.css", pages / "site.css")


def shown(name: str) -> str:
    """A page with the text of a file."""
    language = {".py": "python", ".toml": "toml"}.get(Path(name).suffix, "text")
    return f"# {name}\n\n``````{language}\n{(ROOT / name).read_text(encoding='utf-8').rstrip()}\n``````\n"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def slugs(text: str) -> set[str]:
    """Anchors of the headings of a page."""
    plain = FENCE.sub(lambda m: m[0].strip("`") if not m[0].startswith("```") else "", text)
    found = re.findall(r"^#{1,6} (.+?)\s*$", plain, re.MULTILINE)
    words = (re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in found)
    return {re.sub(r"[\s-]+", "-", w) for w in words}
