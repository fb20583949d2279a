"""Storage of a run's files: in a folder, or at an address (s3://bucket/run, gs://, az://, memory://) through fsspec.

A run's location is a `Path`, or a `UPath`, which has the methods of a path; few other modules need to know which. A
bucket lacks some features of a file system, and this module works without them: files cannot be renamed, but a file
appears either whole or not at all; there are no folders; there are no locks, but a file can be created only if there is
none (see `jaxmbs.study.folder.lock`).

universal-pathlib (an optional dependency, for addresses) and zarr are imported where they are used.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.io.names import FULL, LONGEST, file_in, remedy, replacing
from jaxmbs.study.folder.shell import command

_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/{1,3}")  # a Path reduces two slashes to one
_TOLD = 6  # an error names at most this many links
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_CLIENTS = ("botocore", "aiobotocore", "aiohttp", "gcsfs", "google", "adlfs", "azure", "requests", "urllib3", "fsspec")


def place(where: Any) -> Path:
    """Location of a run: its folder, or for an address a `upath.UPath`. Pass a UPath to give options of its file system
    as well (`UPath("s3://bucket/run", endpoint_url=...)`). Raises InputError for a name that no file system takes, and
    for an address whose file system is not available.

    >>> place("file:///runs/a") == Path("/runs/a"), place("results:of/today").name
    (True, 'today')
    """
    found = _ADDRESS.match(str(where))
    if not found:
        there = where if isinstance(where, Path) else Path(str(where))
        long = [part for part in there.parts if len(part.encode(errors="replace")) > LONGEST]
        if long or "\0" in str(there):
            what = (
                f"the name {long[0][:20]}... is longer than {LONGEST} bytes" if long else "there is a zero in the name"
            )
            raise InputError(Problem(str(there)[:80], f"{what}, which no file system takes; choose another"))
        return there
    if found[1] in ("file", "local"):
        return Path("/" + str(where)[found.end() :])
    address = f"{found[1]}://{str(where)[found.end() :].rstrip('/')}"
    try:
        from upath import UPath

        # other processes write there too, so a cached listing may be out of date
        options = {**getattr(where, "storage_options", {}), "use_listings_cache": False}
        there = UPath(address, **options)
        _ = there.fs
    except (ImportError, ValueError) as error:
        message = f"{error}; addresses need pip install 'jaxmbs[cloud]', and gcsfs for gs://, adlfs for az://"
        raise InputError(Problem(address, message)) from None
    return cast(Path, there)


def is_address(path: Path) -> bool:
    """Whether a path is an address, not a folder or file of this machine."""
    return not isinstance(path, Path)


def seen_by_others(path: Path) -> bool:
    """Whether another process can see what is written there."""
    return not is_address(path) or _of(path).protocol != "memory"


@contextmanager
def reached(folder: Path) -> Iterator[None]:
    """Converts errors of a bucket, or of the connection to it, to InputError; other exceptions pass unchanged."""
    try:
        yield
    except Exception as error:
        foreign = isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _CLIENTS
        if not (is_address(folder) and foreign):
            raise
        remedy = "check address, credentials and access rights; what was already written is kept"
        raise InputError(Problem(str(folder), f"cannot be reached: {str(error) or repr(error)}; {remedy}")) from None


def make(folder: Path) -> None:
    """Create a folder if it does not exist; a bucket needs none."""
    if not is_address(folder):
        folder.mkdir(parents=True, exist_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file completely or not at all."""
    if is_address(path):
        _of(path).fs.pipe_file(_of(path).path, content)
        return
    # O_EXCL does not follow a link
    with replacing(path) as partial, os.fdopen(os.open(partial, _NEW, 0o666), "wb") as file:
        file.write(content)


def unwritten(folder: Path, error: OSError, record: Any) -> InputError:
    """The InputError, with the remedy, for a run's folder that cannot be written because of `error`; chunks that were
    written completely are kept. record: that of the run."""
    if error.errno in FULL:
        again = command("resume", folder, record=record)
        message = f"the disk is full; nothing that was computed is lost: make room, then `{again}`"
        return InputError(Problem(str(folder), message))
    return InputError(Problem(str(folder), f"cannot be written: {remedy(error, 'choose another folder')}"))


def require_own(folder: Path) -> None:
    """Raises InputError if anything in a run's folder is a symbolic link: what is written there would go elsewhere."""
    if is_address(folder):
        return
    found = sorted(_links(folder))
    if found:
        message = (
            "is a symbolic link, through which a run would read or write outside its folder; replace it by what it "
            "leads to"
        )
        raise InputError([Problem(str(path), message) for path in found[:_TOLD]])


def _links(folder: Path) -> Iterator[Path]:
    with suppress(OSError), os.scandir(folder) as entries:  # the folder is not there yet, or not any more
        for entry in entries:
            if entry.is_symlink():
                yield Path(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                yield from _links(Path(entry.path))


def write_new(path: Path, content: bytes) -> bool:
    """Write a file at an address unless there is one; returns whether it was written. If the file system can ensure
    this itself, then of two processes that find no file at the same time only one writes it."""
    if path.exists():
        return False
    try:
        _of(path).fs.pipe_file(_of(path).path, content, mode="create")
    except FileExistsError:
        return False
    except (NotImplementedError, TypeError, ValueError):
        write_whole(path, content)
    except OSError:  # some servers report an existing file in their own way
        if path.exists():
            return False
        raise
    return True


@contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """A folder to write into, which then appears as `folder` as a whole. At an address, files appear one by one."""
    if is_address(folder):
        yield folder
        return
    partial = folder.with_name(f".{folder.name.partition('.')[0]}.partial")
    if partial.exists():
        shutil.rmtree(partial)  # does not follow links
    yield partial
    os.replace(partial, folder)


def names(folder: Path) -> set[str]:
    """Names of everything in a folder; empty if the folder does not exist."""
    try:
        if not is_address(folder):
            return set(os.listdir(folder))
        return {name.rstrip("/").rpartition("/")[2] for name in _of(folder).fs.ls(_of(folder).path, detail=False)}
    except (FileNotFoundError, NotADirectoryError):
        return set()


def remove(path: Path) -> None:
    """Remove a file or a folder, if it exists."""
    if is_address(path):
        with suppress(FileNotFoundError):
            _of(path).fs.rm(_of(path).path, recursive=True)
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def size(folder: Path) -> int:
    """Total size of all files in a folder [byte]."""
    if is_address(folder):
        return int(_of(folder).fs.du(_of(folder).path))
    total = 0
    for there, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):  # the file was removed in the meantime
                total += os.lstat(os.path.join(there, name)).st_size
    return total


@contextmanager
def at_hand(folder: Path, files: Iterable[str]) -> Iterator[Path]:
    """A folder on this machine that contains these files of `folder`, as far as they exist. files: names relative to
    `folder`."""
    if not is_address(folder):
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="jaxmbs-") as here:
        for name in files:
            with suppress(FileNotFoundError):
                file_in(Path(here), name, str(folder)).write_bytes(file_in(folder, name, str(folder)).read_bytes())
        yield Path(here)


def for_zarr(path: Path) -> Any:
    """The location in the form that zarr and xarray open."""
    if not is_address(path):
        return str(path)
    from zarr.storage import FsspecStore

    return FsspecStore.from_url(str(path), storage_options=dict(_of(path).storage_options))


def for_workers(path: Path) -> Any:
    """The same location in the form that other processes can use."""
    return path if is_address(path) else str(path.absolute())


def _of(path: Path) -> Any:
    return path
