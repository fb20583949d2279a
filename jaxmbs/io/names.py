"""Names of other files inside a file: which names are allowed, and where those files are.

All code that reads or writes a file by such a name checks the name here. The author of a file may be unknown to its
user. A name in it must therefore be the name of a file in the same folder, unless the user has stated that the file is
trusted.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from jaxmbs.io.errors import InputError, Problem

LONGEST = 255  # [byte] longest file name on every common file system
FULL = (errno.ENOSPC, errno.EDQUOT)  # the disk, or a user's share of it, is full
TRUST = "--trust on the command line or trust=True in Python"


def fault(name: Any) -> str:
    """What is wrong with a name as a bare file name, without a folder; "" if nothing is wrong.

    >>> fault("mine.py"), fault("../mine.py")
    ('', 'is not a bare file name')
    """
    if not isinstance(name, str) or name in ("", ".", "..") or not name.isprintable():
        return "is not a bare file name"
    if PurePosixPath(name).name != name or PureWindowsPath(name).name != name:
        return "is not a bare file name"
    if len(name.encode()) > LONGEST:
        return f"is longer than the {LONGEST} bytes that a file's name may have"
    return ""


def file_in(folder: Path, name: Any, key: str, trust: bool = False) -> Path:
    """The file of this name in a folder. Raises InputError, at `key`, for a name that is not a bare file name, and, without
    `trust`, for a symbolic link that leads out of the folder."""
    wrong = fault(name)
    if wrong:
        raise InputError(
            Problem(
                key, f'"{name}" {wrong}; give the name without a folder, and put the file beside the one that names it'
            )
        )
    path = folder / name
    if not trust and isinstance(path, Path) and not within(folder, path):
        said = (
            f'"{name}" is a symbolic link that leads out of the folder; put the file itself there, or, if you trust it'
        )
        raise InputError(Problem(key, f"{said}, pass {TRUST}"))
    return path


def within(folder: Path, path: str | Path) -> bool:
    """Whether a path, relative to `folder` unless it is absolute, lies in the folder once symbolic links are resolved."""
    try:
        return (folder / path).resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # a name that no file can have, circular links
        return False


def exists(path: Path) -> bool:
    """Whether there is such a file; False for a name that no file can have."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def remedy(error: OSError, otherwise: str) -> str:
    """The meaning of a failed system call, and its remedy. otherwise: the remedy if the system's own message is
    enough."""
    if error.errno in FULL:
        return "the disk is full, or your share of it; make room, then give the same command again"
    if error.errno == errno.ENAMETOOLONG:
        return f"the name is too long for this file system, which allows at most {LONGEST} bytes; shorten it"
    if error.errno == errno.EROFS:
        return f"the file system is read-only; {otherwise}"
    return f"{error.strerror or error}; {otherwise}"


def read_bytes(path: str | Path) -> bytes:
    """The content of a file. Raises InputError if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(Problem("", f"{path} cannot be read: {remedy(error, 'is its name right?')}"), path) from None
    except ValueError as error:  # a name with a null character
        raise InputError(Problem("", f"{str(path)!r} is not a valid file name: {error}")) from None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """The path of a file to write, which then takes the place of `path` at once. If writing fails, `path` stays as it is."""
    # a unique name, since another process may write the same file
    partial = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.partial")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
