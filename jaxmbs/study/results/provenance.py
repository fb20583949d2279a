"""Where a run's results come from: everything they depend on, the versions that computed them, and a digest of it all.

JAX and the modules that compute are imported only when a record is created, so reading and comparing records is quick.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from jaxmbs.batching.mapped_program import kernels
from jaxmbs.io import names
from jaxmbs.study.folder.layout import KIND, kind
from jaxmbs.study.folder.seal import SEAL, sealed_with
from jaxmbs.study.results.origin import origin, texts_of
from jaxmbs.study.sampling.designs import RANDOM

if TYPE_CHECKING:
    from jaxmbs.study.problem.study import Study

_CHUNKS = 32  # approximate number of chunks of a run: enough for workers and interruptions; each is a file per variable
# approximate number of chunks of a small run, and the most samples in one; a small run must write few files, since
# each takes half a millisecond
_FEW_CHUNKS, _SMALL_CHUNK = 8, 1 << 10
_MOST_CHUNK = 1 << 14  # most samples of a chunk, before rounding up to whole blocks
_MOST_BLOCKS = 16  # most blocks of a chunk in a valid record, if blocks are long
DIGEST = "digest"  # key in a record: the digest of everything else in it
_MOST_ROWS = 2**24  # most samples of a chunk in a valid record
_SINCE = {"seed": 0, "study": "", "generator": "", "device": "", "versions": {}}  # records of kind 1 may lack these
_HASH = re.compile("[0-9a-f]{64}")
Provenance = dict[str, Any]


def provenance(study: Study, n: int, rows: int, until: Any = None, key: bytes | None = None) -> Provenance:
    """The record of a run: everything that its results depend on, and the versions that compute them. rows: samples of
    a block; until: the rule by which the run ends; key: the key of the seal, if the run has one."""
    from jaxmbs.study.samples.batch import GENERATOR, precision

    return signed(
        {
            "format": KIND,
            "study": study.model.name,
            "file_sha256": study.sha256,
            "modules": study.hashes,
            "n": n,
            "seed": study.seed,
            "generator": GENERATOR,
            "design": study.plan.design,
            "block_rows": rows,
            "chunk_rows": _chunk(n, rows),
            "precision": str(precision()),
            "origin": origin(study.path),
            **machine(),
        }
        | ({"until": until} if until is not None else {}),
        key,
    )


def _chunk(n: int, rows: int) -> int:
    """Number of samples in a chunk of the results: a multiple of `rows`, those of a block."""
    some = max(min(-(-n // _FEW_CHUNKS), _SMALL_CHUNK), -(-n // _CHUNKS))
    return rows * -(-min(some, _MOST_CHUNK) // rows)


def machine() -> Provenance:
    """Device and versions of this process."""
    device = jax.devices()[0]
    return {
        "device": f"{device.platform}: {_processor() if device.platform == 'cpu' else device.device_kind}",
        "versions": {name: _version(name) for name in ("jaxmbs", "jax", "jaxlib", "numpy", "scipy")}
        | {"python": platform.python_version(), "kernels": kernels()},
    }


def signed(record: Provenance, key: bytes | None = None) -> Provenance:
    """The record with the digest of its content; with a key, also with its seal, which the digest covers."""
    content = {k: v for k, v in record.items() if k not in (DIGEST, SEAL)}
    if key is not None:
        content[SEAL] = sealed_with(key, _canonical(content))
    return content | {DIGEST: hashlib.sha256(_canonical(content)).hexdigest()}


def unsealed(record: Provenance, key: bytes) -> str:
    """Why a record is not the one that was sealed with this key; "" if it is."""
    if SEAL not in record:
        return "has no seal: its run was begun without --seal"
    if signed(record, key) != record:
        return "was not sealed with this key, or was changed since"
    return ""


def intact(record: Any) -> bool:
    """Whether a record is as it was written, and contains only what a run can write (see `fault`): above all, no file
    name that leads out of the run's folder."""
    if not isinstance(record, dict) or not isinstance(record.get(DIGEST), str):
        return False
    content = {k: v for k, v in record.items() if k != DIGEST}
    return record[DIGEST] == hashlib.sha256(_canonical(content)).hexdigest() and not fault(record)


def fault(record: Provenance) -> str:
    """Why a record cannot have been written by a run; "" if it can."""
    if kind(record) == 1:  # such records have fewer keys
        record = {**_SINCE, "block_rows": record.get("chunk_rows"), **record}
    files, versions = record.get("modules", {}), record.get("versions")
    if not isinstance(files, dict) or not isinstance(versions, dict):
        return "it lacks the table of files or of versions"
    for name in files:
        if wrong := names.fault(name):
            return f'it names a file "{name}", which {wrong}'
    texts = [record.get(k) for k in ("study", "generator", "device", "precision")]
    texts += [record.get("design", RANDOM), *versions.values()]
    texts += texts_of(record.get("origin", {}))
    if not all(isinstance(x, str) for x in texts) or texts[3] not in ("float32", "float64"):
        return "its texts cannot come from a run"
    if not all(isinstance(x, str) and _HASH.fullmatch(x) for x in (record.get("file_sha256"), *files.values())):
        return "its checksums of files are not checksums"
    numbers = [record.get(k) for k in ("n", "block_rows", "chunk_rows")]
    if (
        not all(type(x) is int and 1 <= x <= 2**32 for x in (*numbers, kind(record)))
        or type(record.get("seed")) is not int
    ):
        return "its numbers cannot come from a run"
    rows = record["block_rows"]
    if not rows <= record["chunk_rows"] <= max(_MOST_CHUNK + rows, rows * _MOST_BLOCKS) <= _MOST_ROWS:
        return "its numbers cannot come from a run"
    return ""


def salt(record: Provenance) -> int:
    """A 64-bit number that identifies the study of a record. It enters the checksums of all samples, so that samples of
    another study are recognised."""
    what = f"{record['file_sha256']} {record['seed']} {record['precision']}"
    if record.get("design", RANDOM) != RANDOM:  # with other sampling plans, a sample depends on n
        what += f" {record['n']}"
    if kind(record) > 2:  # what else determines a sample: its modules and data, and the generator of its draws
        what += f" {record['generator']} {json.dumps(record['modules'], sort_keys=True)}"
    return int(hashlib.sha256(what.encode()).hexdigest()[:16], 16)


def _canonical(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True).encode()


def differences(then: Provenance, now: Provenance) -> list[str]:
    """What has changed since the run began in a way that could change bits of the results."""
    keys = [k for k in ("precision", "device") if then[k] != now[k]]
    found = [f"{k}: then {then[k]}, now {now[k]}" for k in keys]
    names = [k for k in now["versions"] if then["versions"].get(k) != now["versions"][k]]
    return found + [f"{k}: then {then['versions'].get(k)}, now {now['versions'][k]}" for k in names]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        return names[0] if names else platform.processor()
    except OSError:
        return platform.processor() or platform.machine()
