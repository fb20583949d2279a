"""Files in the folder of compiled programs: each has a checksum and is written atomically; their total size is limited."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

MOST_BYTES = 1 << 28  # of all files of the library in one folder; the least recently used is removed first
NAMES = "jaxmbs_*"  # pattern of these files; others in the folder are not touched
_CHECKSUM = 32  # bytes


def read(path: Path) -> bytes | None:
    """The content of a file, or None if it is missing or damaged; the file counts as used now."""
    with contextlib.suppress(OSError):
        found = path.read_bytes()
        if hashlib.sha256(found[_CHECKSUM:]).digest() == found[:_CHECKSUM]:
            with contextlib.suppress(OSError):  # the folder may be read-only
                os.utime(path)
            return found[_CHECKSUM:]
    return None


def write(path: Path, content: bytes) -> None:
    """Write a file atomically, so that no other process reads half of it, and remove files beyond the size limit.

    If the folder cannot be written to, nothing happens.
    """
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(content).digest() + content)
        os.replace(name, path)
        _bound(path.parent)


def _bound(folder: Path) -> None:
    total = 0
    found = [(s.st_mtime, s.st_size, path) for path in folder.glob(NAMES) for s in [path.stat()]]
    for _, size, path in sorted(found, reverse=True):
        total += size
        if total > MOST_BYTES:
            path.unlink(missing_ok=True)
