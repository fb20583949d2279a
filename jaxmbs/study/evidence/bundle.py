"""Bundles: a run with all that belongs to it as one file, which can be checked elsewhere.

A bundle is a ZIP file with the files of the run's folder (study, modules, data, results, record, report) and a list of
contents, bundle.json: the SHA-256 of every file, the fingerprint of the results, and the packages that were installed.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from jaxmbs.io import names
from jaxmbs.io.errors import InputError, Problem
from jaxmbs.study.folder import storage
from jaxmbs.study.folder.seal import SEAL, key_of, same, sealed_with
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.damage import Damage
from jaxmbs.study.results.examination import Examination, examined

CONTENTS = "bundle.json"
_FORMAT = 1
_TIME = (1980, 1, 1, 0, 0, 0)  # of every file, so that the same run gives the same bytes
_PIECE = 1 << 20  # [byte] read at once
# what reading a file of an archive may raise: damaged, badly packed, encrypted, packed in an unknown way
_UNREADABLE = (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError)
_LONGEST_LIST = 1 << 28  # [byte] a longer list of contents is not read


def bundle(
    folder: str | Path,
    out: str | Path | None = None,
    overwrite: bool = False,
    trust: bool = False,
    seal: str | Path | None = None,
) -> Path:
    """Write a finished run with its report, the versions of all installed packages and checksums as one ZIP file, and
    return its path. `jaxmbs verify FILE` checks it on any machine; unpacked, it is the run's folder again.

    folder: that of a run in a folder of this machine; out: the file, by default FOLDER.zip beside it; overwrite: replace
    a file that exists; trust: run the Python modules of the study, to write the report; seal: the file with the key of a
    sealed run, which also seals the list of contents. Raises InputError if the run is damaged or not finished, or if the
    file exists.
    """
    from jaxmbs.study.reports.report import report

    key = key_of(seal)
    place = storage.place(folder)
    if storage.is_address(place):
        raise InputError(Problem(str(place), "is an address; copy the run into a folder of this machine first"))
    path = Path(out) if out is not None else place.resolve().with_name(f"{place.resolve().name}.zip")
    if path.exists() and not overwrite:
        raise InputError(Problem(str(path), "exists already; choose another name with --out, or pass --overwrite"))
    if seal is not None and names.within(place, Path(seal).resolve()):
        raise InputError(Problem("--seal", f"{seal} lies in the run's folder, and would be packed; keep it elsewhere"))
    if path.resolve().is_relative_to(place.resolve()):
        raise InputError(Problem(str(path), "lies in the run's folder, which it would have to contain; choose another"))
    storage.require_own(place)  # links would pack what lies elsewhere
    stores.require_key(stores.open_folder(place, key))
    found = examined(place, trust=trust, seal=seal)
    if not found.sound:
        raise InputError([Problem(str(place), f"is damaged: {d}") for d in found.damage])
    if found.done < found.samples:
        raise InputError(Problem(str(place), f"has {found.done:,} of {found.samples:,} samples; resume it first"))
    report(place, trust, seal)
    try:
        with (
            names.replacing(path) as partial,
            zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as to,
        ):
            files = {name: _put(to, name, place / name) for name in _files(place)}
            content = _sealed(
                {
                    "format": _FORMAT, "run": place.resolve().name, "fingerprint": found.fingerprint, "files": files,
                    "packages": installed(), "python": platform.python_version(), "machine": platform.platform(),
                },
                key,
            )  # fmt: skip
            to.writestr(zipfile.ZipInfo(CONTENTS, _TIME), json.dumps(content, indent=1, sort_keys=True))
    except OSError as error:
        raise InputError(Problem(str(path), f"cannot be written: {names.remedy(error, 'choose another')}")) from None
    return path


def is_bundle(path: str | Path) -> bool:
    """Whether this is the path of a file that may be a bundle, and not a run's folder."""
    place = storage.place(path)
    return not storage.is_address(place) and place.is_file()


def examined_bundle(path: str | Path, trust: bool = False, seal: str | Path | None = None) -> Examination:
    """What `examined` finds in the run of a bundle; files that are missing, were changed or do not belong to it count as
    damage, and then nothing else is examined. trust, seal: as for `examined`. Raises InputError if the file is no bundle."""
    with unpacked(path, seal) as (folder, damage):
        if damage:
            sealed = None if seal is None else False
            return Examination(Path(path), 0, 0, None, damage, (), Path(path).stat().st_size, sealed=sealed)
        return replace(examined(folder, trust=trust, seal=seal), folder=Path(path))


@contextmanager
def unpacked(path: str | Path, seal: str | Path | None = None) -> Iterator[tuple[Path, tuple[Damage, ...]]]:
    """A temporary folder with the run of a bundle, and the damage that its list of contents shows. Only files that the
    list names are unpacked, and only into this folder. Raises InputError if the file is no bundle."""
    key = key_of(seal)
    with tempfile.TemporaryDirectory(prefix="jaxmbs-") as there:
        try:
            with zipfile.ZipFile(path) as archive:
                content = _contents(archive, path)
                _require_room(archive, Path(there), path)
                damage = list(_unpack(archive, content["files"], Path(there)))
        except (zipfile.BadZipFile, EOFError) as error:
            said = f"is not a bundle, or is damaged: {error}; have it sent again"
            raise InputError(Problem(str(path), said)) from None
        if key is not None and not same(content.get(SEAL), key, _canonical(content)):
            damage.append(Damage(CONTENTS, "was not sealed with this key, or was changed since"))
        yield Path(there), tuple(damage)


def _files(folder: Path) -> list[str]:
    """Names of all files of a run that belong into a bundle, relative to its folder."""
    found = (p.relative_to(folder) for p in folder.rglob("*") if p.is_file())
    files = sorted(p.as_posix() for p in found if not any(part.startswith(".") for part in p.parts))
    return [name for name in files if name != CONTENTS]  # that of a bundle which was unpacked


def installed() -> dict[str, str]:
    """{package: version} of everything that is installed in this environment."""
    found = {dist.metadata["Name"]: dist.version for dist in distributions() if dist.metadata["Name"]}
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def _put(to: zipfile.ZipFile, name: str, path: Path) -> str:
    """Write a file into an archive; returns its SHA-256. What is compressed already, such as chunks of results, is only
    stored."""
    info = zipfile.ZipInfo(name, _TIME)
    info.compress_type = zipfile.ZIP_DEFLATED if path.suffix in (".html", ".json", ".toml", ".csv", ".py") else 0
    info.file_size = path.stat().st_size
    total = hashlib.sha256()
    with path.open("rb") as source, to.open(info, "w") as target:
        while piece := source.read(_PIECE):
            total.update(piece)
            target.write(piece)
    return total.hexdigest()


def _contents(archive: zipfile.ZipFile, path: str | Path) -> dict[str, Any]:
    """The list of contents. Raises InputError if there is none that this version can read."""
    if CONTENTS not in archive.namelist():
        message = f"is a ZIP file without {CONTENTS}, so it is no bundle; `jaxmbs bundle DIR` writes one"
        raise InputError(Problem(str(path), message))
    try:
        if archive.getinfo(CONTENTS).file_size > _LONGEST_LIST:
            raise ValueError("it is too long")
        found = json.loads(archive.read(CONTENTS))
        if not isinstance(found, dict) or found.get("format") != _FORMAT:
            raise ValueError(f"it does not say that it has the format {_FORMAT}, the only one that is known here")
        files = found.get("files")
        if not isinstance(files, dict) or not all(isinstance(x, str) for x in files.values()):
            raise ValueError("it has no checksums of files")
    except (ValueError, RecursionError, *_UNREADABLE) as error:
        raise InputError(Problem(str(path), f"has a list of contents that cannot be read: {error}")) from None
    return found


def _require_room(archive: zipfile.ZipFile, folder: Path, path: str | Path) -> None:
    """Raises InputError if the disk does not have the space that an archive needs when it is unpacked."""
    needed, free = sum(x.file_size for x in archive.infolist()), shutil.disk_usage(folder).free
    if needed > free:
        message = f"needs {needed / 1e6:,.0f} MB in {folder.parent}, where {free / 1e6:,.0f} MB are free"
        raise InputError(Problem(str(path), f"{message}; set TMPDIR to a folder with more"))


def _unpack(archive: zipfile.ZipFile, files: Mapping[str, str], folder: Path) -> Iterator[Damage]:
    """Unpack the files that the list of contents names; yields what is missing, was changed or is not in the list."""
    there = {x.filename: x for x in archive.infolist() if not x.is_dir()}
    for name in sorted(set(there) - set(files) - {CONTENTS}):
        yield Damage(name, "is not in the list of contents")
    for name, wanted in files.items():
        if name not in there:
            yield Damage(name, "is missing")
            continue
        if any(names.fault(part) for part in name.split("/")):
            yield Damage(name, "is not the name of a file of a run")
            continue
        path = folder.joinpath(*name.split("/"))
        total = hashlib.sha256()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(there[name]) as source, path.open("wb") as target:
                while piece := source.read(_PIECE):
                    total.update(piece)
                    target.write(piece)
        except OSError as error:
            if error.errno in names.FULL:
                raise
            yield Damage(name, f"cannot be unpacked: {error.strerror}")
            continue
        except _UNREADABLE as error:
            yield Damage(name, f"cannot be unpacked: {error}")
            continue
        if total.hexdigest() != wanted:
            yield Damage(name, "was changed: its SHA-256 is not the one in the list of contents")


def _sealed(content: dict[str, Any], key: bytes | None) -> dict[str, Any]:
    return content if key is None else content | {SEAL: sealed_with(key, _canonical(content))}


def _canonical(content: Mapping[str, Any]) -> bytes:
    return json.dumps({k: x for k, x in content.items() if k != SEAL}, sort_keys=True).encode()
