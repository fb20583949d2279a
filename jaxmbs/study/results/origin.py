"""When, on what system and from which commits a run was started."""

from __future__ import annotations

import contextlib
import datetime
import os
import platform
import re
from pathlib import Path
from typing import Any

import jaxmbs

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def origin(study: Path | None) -> dict[str, Any]:
    """Date (UTC), system, processors and Python version of this process, and the commits of the Git repositories that
    contain the study file and the library, if there are any."""
    places = ({"study": study.parent} if study else {}) | {"jaxmbs": Path(jaxmbs.__file__).parent}
    commits = {name: found for name, place in places.items() if (found := commit(place))}
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count() or 1} processors",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "commits": commits,
    }


def texts_of(found: Any) -> list[Any]:
    """All values of an origin, which are strings if it is valid; [None] if `found` is not a dictionary of that form."""
    if not isinstance(found, dict) or not isinstance(commits := found.get("commits", {}), dict):
        return [None]
    return [*(x for key, x in found.items() if key != "commits"), *commits.values()]


def commit(folder: Path) -> str | None:
    """Commit that is checked out in the repository that contains a folder; None outside of repositories and before the
    first commit.

    The repository's files are read directly, because Git itself would run programs that the repository's configuration
    names.
    """
    for place in (folder := folder.absolute(), *folder.parents):
        if "site-packages" in place.parts:
            return None  # an installed package: a repository around it merely holds the environment
        git = place / ".git"
        with contextlib.suppress(OSError, ValueError):
            if git.is_file():  # an additional worktree, or a submodule
                git = place / _text(git).removeprefix("gitdir:").strip()
            if not git.is_dir():
                continue
            return _head(git)
    return None


def _head(git: Path) -> str | None:
    shared = git / _text(git / "commondir") if (git / "commondir").is_file() else git
    found = _text(git / "HEAD")
    for _ in range(5):  # a reference may name another reference
        if not found.startswith("ref:"):
            break
        name = found.removeprefix("ref:").strip()
        if not re.fullmatch(r"refs(?:/[^/.][^/]*)+", name):
            return None
        loose = next((path for path in (git / name, shared / name) if path.is_file()), None)
        found = _text(loose) if loose else _packed(shared / "packed-refs", name)
    return found if _COMMIT.fullmatch(found) else None


def _packed(path: Path, name: str) -> str:
    lines = (line.split() for line in _text(path).splitlines()) if path.is_file() else ()
    return next((words[0] for words in lines if words[1:] == [name]), "")


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip()
