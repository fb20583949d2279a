"""One process at a time writes into a run's folder."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from jaxmbs.io.errors import InputError, Problem

LOCK, OWNER = ".lock", ".owner.json"


@contextmanager
def held(folder: Path, wait: bool = False) -> Iterator[None]:
    """Hold the folder's lock, which ends with the process that holds it, however it ends.

    wait: until another process lets go of it; else InputError says which process that is.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=-1 if wait else 0)
    except Timeout:
        message = f"is in use by {owner(folder)}; wait for it with --wait, or end it"
        raise InputError(Problem(str(folder), message)) from None
    try:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        said = {"process": os.getpid(), "host": platform.node(), "since": now}
        (folder / OWNER).write_text(json.dumps(said))
        yield
    finally:
        (folder / OWNER).unlink(missing_ok=True)
        lock.release()


def owner(folder: Path) -> str:
    """Who holds the lock, in words."""
    try:
        said = json.loads((folder / OWNER).read_text())
        return f"process {said['process']} on {said['host']} since {said['since']}"
    except (OSError, ValueError, KeyError):
        return "another process"
