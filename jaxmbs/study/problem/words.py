"""Dispersions in words: descriptions by the library, and the comments in the study file."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

from jaxmbs.study.sampling.dispersions import Dispersion


def described(d: Dispersion) -> str:
    """The distribution in words, in the file's unit."""
    t = d.table
    return (
        t.in_words(f" {t.unit}" if t.unit else "")
        + (", common" if t.common else "")
        + (", known on the day" if t.known else "")
        + (f", same draws as all of {t.draw}" if t.draw else "")
    )


_HEADER = r"""^\s*\[{}\.(?:"([^"]+)"|'([^']+)'|([\w\-]+))\]\s*(#.*)?$"""


def said_in_the_file(content: bytes, of: str = "dispersions") -> dict[str, str]:
    """The comments at the ends of lines, by the name of the dispersion or output in whose table they stand. They may state
    where its numbers come from, or what it means. of: "dispersions" or "outputs"."""
    found: dict[str, list[str]] = {}
    name = None
    for line in content.decode(errors="replace").splitlines():
        header = re.match(_HEADER.format(of), line)
        if header or line.lstrip().startswith("["):
            name = next(filter(None, header.groups()[:3]), None) if header else None
        comment = re.search(r"""^(?:[^"'#]|"[^"]*"|'[^']*')*#\s*(.*)$""", line)
        if name and comment and not line.lstrip().startswith("# -") and not line.lstrip().startswith("#"):
            found.setdefault(name, []).append(comment[1].strip())
    return {name: "; ".join(dict.fromkeys(x)) for name, x in found.items()}


_MARK = r"\[([A-Z])\]"


def marks_in_the_file(content: bytes, texts: Iterable[str]) -> dict[str, str]:
    """What the marks in some comments of the file mean, such as [A] for an assumption: the mark, and what the comment at the
    head of the file says after it, up to a comma, a semicolon or a full stop."""
    head = itertools.takewhile(
        lambda line: not line or line.startswith("#"), content.decode(errors="replace").splitlines()
    )
    said = " ".join(line.lstrip("# ") for line in head)
    meant = dict(re.findall(_MARK + r"\s+([^\[\],;.]+)", said))
    used = {mark for text in texts for mark in re.findall(_MARK, text)}
    return {mark: meaning.strip() for mark, meaning in meant.items() if mark in used}
