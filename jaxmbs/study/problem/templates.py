"""Commented study files to start from."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from jaxmbs.io.errors import InputError, Problem, choices


def about() -> dict[str, str]:
    """The first line of every template, by name."""
    found = sorted(p.name.removesuffix(".toml") for p in _folder().iterdir() if p.name.endswith(".toml"))
    return {name: _text(name).splitlines()[0].lstrip("# ") for name in found}


def write(name: str, out: Path | None = None) -> Path:
    """Write a template to a file. Raises InputError if there is no template of this name, or if the file exists."""
    known = about()
    if name not in known:
        raise InputError(Problem(name, f"is not a template; {choices(name, known, 'templates')}"))
    path = out or Path(f"{name}.toml")
    if path.exists():
        raise InputError(Problem(str(path), "exists already; choose another name with --out"))
    path.write_text(_text(name), encoding="utf-8")
    return path


def _folder():
    return files("jaxmbs.study.problem") / "template_files"


def _text(name: str) -> str:
    return (_folder() / f"{name}.toml").read_text(encoding="utf-8")
