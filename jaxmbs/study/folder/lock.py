"""Locks a run's folder or address, so that only one process at a time writes to it."""

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
from jaxmbs.study.folder import storage

LOCK, OWNER = ".lock", ".owner.json"
_PAUSE = 1.0  # [s] between two checks of whether an address is still owned
_MOMENT = 0.5  # [s] to wait for the lock: other processes hold it very briefly to check whether it is taken


@contextmanager
def held(folder: Path, wait: bool = False) -> Iterator[None]:
    """Hold the lock of a folder. The lock ends with the process that holds it, however that process ends.

    At an address, the lock on this machine separates the processes of this machine. Processes on different machines are
    separated by the owner's file, which is written only if there is none. An owner's file that an ended process of this
    machine has left is replaced; one left by an ended process of another machine must be removed by hand. wait: wait
    until the other process releases the lock; otherwise an InputError names that process.
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
    """Describes the process that computes in a folder now; "" if there is none. Writes nothing."""
    from filelock import FileLock, Timeout

    said = _owner(folder)
    if storage.is_address(folder) and (not said or said["host"] != platform.node()):
        return owner(folder) if said else ""
    if not _path(folder).exists():
        return ""
    lock = FileLock(_path(folder))
    try:
        with lock.acquire(timeout=0):
            return ""  # an owner's file may still be there, but its process has ended
    except Timeout:
        return owner(folder)
    except OSError:  # a read-only folder that belongs to somebody else
        return owner(folder) if said else ""


def owner(folder: Path) -> str:
    """Describes the process that holds the lock, as far as the owner's file identifies it."""
    said = _owner(folder)
    return f"process {said['process']} on {said['host']} since {said['since']}" if said else "another process"


def _path(folder: Path) -> Path:
    """Path of the lock file on this machine."""
    if not storage.is_address(folder):
        return folder / LOCK
    name = hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"jaxmbs-{name}{LOCK}"


def _claim(folder: Path, said: bytes, wait: bool) -> None:
    """Make this process the owner of an address. If a process of another machine owns it, this waits until that process
    releases it if `wait` is set, and otherwise raises InputError."""
    while not storage.write_new(folder / OWNER, said):
        if _owner(folder).get("host") == platform.node():  # this process has the machine's lock, so the owner has ended
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
