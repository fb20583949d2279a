"""Where a run's bytes lie: in a folder, or at an address (s3://bucket/run, gs://, az://, memory://) through fsspec.

No other module of the studies knows which: a run's place is a `Path`, or a `UPath` that has a path's methods. What a bucket
has not, and how one goes without: no files that are renamed, but one appears whole or not at all; no folders; no locks,
but one that is made only where none is (see `jaxmbs.study.lock`).
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.io.names import FULL, LONGEST, beside, remedy
from jaxmbs.study.shell import command

_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/{1,3}")  # a path keeps one of two slashes
_TOLD = 6  # links that are named
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_CLIENTS = ("botocore", "aiobotocore", "aiohttp", "gcsfs", "google", "adlfs", "azure", "requests", "urllib3", "fsspec")


def place(where: Any) -> Path:
    """The place of a run: its folder, or for an address a `upath.UPath`. One is given with what its file system takes beside
    (`UPath("s3://bucket/run", endpoint_url=...)`). Raises InputError where nothing is known of such addresses.

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

        # other processes write there, too: what was listed once is not what is there
        options = {**getattr(where, "storage_options", {}), "use_listings_cache": False}
        there = UPath(address, **options)
        _ = there.fs
    except (ImportError, ValueError) as error:
        message = f"{error}; addresses need pip install 'jaxmbs[cloud]', and gcsfs for gs://, adlfs for az://"
        raise InputError(Problem(address, message)) from None
    return cast(Path, there)


def is_address(path: Path) -> bool:
    """Whether it is none of a folder or file of this machine."""
    return not isinstance(path, Path)


def seen_by_others(path: Path) -> bool:
    """Whether another process finds what is written there."""
    return not is_address(path) or _of(path).protocol != "memory"


@contextmanager
def reached(folder: Path) -> Iterator[None]:
    """Raises InputError for what a bucket or the way to it refuses; nothing else is touched."""
    try:
        yield
    except Exception as error:
        foreign = isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _CLIENTS
        if not (is_address(folder) and foreign):
            raise
        remedy = "are address, credentials and rights as they should be? What was written stays"
        raise InputError(Problem(str(folder), f"cannot be reached: {str(error) or repr(error)}; {remedy}")) from None


def make(folder: Path) -> None:
    """A folder that is there; a bucket has none."""
    if not is_address(folder):
        folder.mkdir(parents=True, exist_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """The whole file or none of it."""
    if is_address(path):
        _of(path).fs.pipe_file(_of(path).path, content)
        return
    partial = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.partial")
    try:
        # another process may write the same file, and a link that waits here is not followed
        with os.fdopen(os.open(partial, _NEW, 0o666), "wb") as file:
            file.write(content)
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def unwritten(folder: Path, error: OSError, record: Any) -> InputError:
    """What to do where the folder of the run with this record takes no more; whole chunks that are there stay."""
    if error.errno in FULL:
        again = command("resume", folder, record=record)
        message = f"the disk is full; nothing that was computed is lost: make room, then `{again}`"
        return InputError(Problem(str(folder), message))
    return InputError(Problem(str(folder), f"cannot be written: {remedy(error, 'choose another folder')}"))


def require_own(folder: Path) -> None:
    """Raises InputError where something in a run's folder is a symbolic link: what is written there would be elsewhere."""
    if is_address(folder):
        return
    found = sorted(_links(folder))
    if found:
        message = (
            "is a symbolic link, by which a run would read or write outside its folder; put there what it leads to"
        )
        raise InputError([Problem(str(path), message) for path in found[:_TOLD]])


def _links(folder: Path) -> Iterator[Path]:
    with suppress(OSError), os.scandir(folder) as entries:  # none is there yet, or was there a moment ago
        for entry in entries:
            if entry.is_symlink():
                yield Path(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                yield from _links(Path(entry.path))


def write_new(path: Path, content: bytes) -> bool:
    """Write a file at an address unless one is there, which the file system sees to itself where it can: of two processes
    that find none in the same instant one writes."""
    if path.exists():
        return False
    try:
        _of(path).fs.pipe_file(_of(path).path, content, mode="create")
    except FileExistsError:
        return False
    except (NotImplementedError, TypeError, ValueError):
        write_whole(path, content)
    except OSError:  # a server's own word for it
        if path.exists():
            return False
        raise
    return True


@contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """Where to write what then appears as `folder` at once. At an address it does so file by file."""
    if is_address(folder):
        yield folder
        return
    partial = folder.with_name(f".{folder.name.partition('.')[0]}.partial")
    if partial.exists():
        shutil.rmtree(partial)  # which follows no link
    yield partial
    os.replace(partial, folder)


def names(folder: Path) -> set[str]:
    """What is in a folder; nothing where it is not there."""
    try:
        if not is_address(folder):
            return set(os.listdir(folder))
        return {name.rstrip("/").rpartition("/")[2] for name in _of(folder).fs.ls(_of(folder).path, detail=False)}
    except (FileNotFoundError, NotADirectoryError):
        return set()


def remove(path: Path) -> None:
    """A file or a folder that is not there afterwards."""
    if is_address(path):
        with suppress(FileNotFoundError):
            _of(path).fs.rm(_of(path).path, recursive=True)
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def size(folder: Path) -> int:
    """Of all files in it [byte]."""
    if is_address(folder):
        return int(_of(folder).fs.du(_of(folder).path))
    total = 0
    for there, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):  # it was there a moment ago
                total += os.lstat(os.path.join(there, name)).st_size
    return total


@contextmanager
def at_hand(folder: Path, files: Iterable[str]) -> Iterator[Path]:
    """A folder of this machine with these files of `folder`, named without one, as far as they are there."""
    if not is_address(folder):
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="jaxmbs-") as here:
        for name in files:
            with suppress(FileNotFoundError):
                beside(Path(here), name, str(folder)).write_bytes(beside(folder, name, str(folder)).read_bytes())
        yield Path(here)


def for_zarr(path: Path) -> Any:
    """What zarr and xarray open."""
    if not is_address(path):
        return str(path)
    from zarr.storage import FsspecStore

    return FsspecStore.from_url(str(path), storage_options=dict(_of(path).storage_options))


def for_workers(path: Path) -> Any:
    """The same place as other processes name it."""
    return path if is_address(path) else str(path.absolute())


def _of(path: Path) -> Any:
    return path
