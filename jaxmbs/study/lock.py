"""One process at a time writes where a run is."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.study import storage

LOCK, OWNER = ".lock", ".owner.json"
_PAUSE = 1.0  # [s] between two looks at an address
_MOMENT = 0.5  # [s] that the lock is waited for: others hold it for an instant, to see whether anybody does


@contextmanager
def held(folder: Path, wait: bool = False) -> Iterator[None]:
    """Hold the folder's lock, which ends with the process that holds it, however it ends.

    At an address the lock of this machine keeps its processes apart, and the owner's file, which is written only where none
    is, those of different machines: what a process of this machine has left there ends with it, what one of another machine
    has left is for its user to remove. wait: until another process lets go; else InputError says which process that is.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(_path(folder))
    try:
        lock.acquire(timeout=-1 if wait else _MOMENT)
    except Timeout:
        message = f"is in use by {owner(folder)}; wait for it with --wait, or end it"
        raise InputError(Problem(str(folder), message)) from None
    try:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        said = json.dumps({"process": os.getpid(), "host": platform.node(), "since": now}).encode()
        if storage.is_address(folder):
            _claim(folder, said, wait)
        else:
            storage.write_whole(folder / OWNER, said)
        try:
            yield
        finally:
            (folder / OWNER).unlink(missing_ok=True)
    finally:
        lock.release()


def holder(folder: Path) -> str:
    """Who computes in a folder now, in words; "" where nobody does. Nothing is written to find out."""
    from filelock import FileLock, Timeout

    said = _owner(folder)
    if storage.is_address(folder) and (not said or said["host"] != platform.node()):
        return owner(folder) if said else ""
    if not _path(folder).exists():
        return ""
    lock = FileLock(_path(folder))
    try:
        with lock.acquire(timeout=0):
            return ""  # whatever is said of an owner: it has ended
    except Timeout:
        return owner(folder)
    except OSError:  # a folder that can only be read, of somebody else
        return owner(folder) if said else ""


def owner(folder: Path) -> str:
    """Who holds the lock, in words."""
    said = _owner(folder)
    return f"process {said['process']} on {said['host']} since {said['since']}" if said else "another process"


def _path(folder: Path) -> Path:
    """Where the lock of this machine is."""
    if not storage.is_address(folder):
        return folder / LOCK
    name = hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"jaxmbs-{name}{LOCK}"


def _claim(folder: Path, said: bytes, wait: bool) -> None:
    """Be the owner of an address. Raises InputError where a process of another machine is, unless it is waited for."""
    while not storage.write_new(folder / OWNER, said):
        if _owner(folder).get("host") == platform.node():  # whose lock is held here: it has ended
            storage.write_whole(folder / OWNER, said)
            return
        if not wait:
            remedy = f"wait for it with --wait, or if it has ended remove {folder / OWNER}"
            raise InputError(Problem(str(folder), f"is in use by {owner(folder)}; {remedy}"))
        time.sleep(_PAUSE)


def _owner(folder: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        said = json.loads((folder / OWNER).read_bytes())
        if isinstance(said, dict) and {"process", "host", "since"} <= set(said):
            return said
    return {}
