"""Where a run's results come from: everything they depend on, the versions that made them, and a digest of it all."""

from __future__ import annotations

import hashlib
import json
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxmbs.study.origin import origin
from jaxmbs.study.sampling.designs import RANDOM

if TYPE_CHECKING:
    from jaxmbs.study.problem import Study

_CHUNKS = 32  # of a large run along `sample`, about: each is a file per variable, half a millisecond of work
_MOST_BLOCKS = 16  # in a zarr chunk
DIGEST = "digest"  # of the rest of the record
FORMAT = 3  # of a run's folder; 1: without the events of samples, 2: without what stays at its start
Provenance = dict[str, Any]


def provenance(study: Study, n: int, rows: int, until: Any = None) -> Provenance:
    """Everything that the results depend on, and the versions that made them; until: the rule by which the run ends."""
    from jaxmbs.study.batch import precision

    return sealed(
        {
            "format": FORMAT,
            "study": study.model.name,
            "file_sha256": study.sha256,
            "modules": study.hashes,
            "n": n,
            "seed": study.seed,
            "generator": "threefry2x32",
            "design": study.plan.design,
            "block_rows": rows,
            "chunk_rows": rows * min(_MOST_BLOCKS, -(-n // (rows * _CHUNKS))),
            "precision": str(precision()),
            "origin": origin(study.path),
            **machine(),
        }
        | ({"until": until} if until is not None else {})
    )


def machine() -> Provenance:
    """Device and versions of this process."""
    import jax

    from jaxmbs.batching.mapping import kernels

    device = jax.devices()[0]
    return {
        "device": f"{device.platform}: {_processor() if device.platform == 'cpu' else device.device_kind}",
        "versions": {name: _version(name) for name in ("jaxmbs", "jax", "jaxlib", "numpy", "scipy")}
        | {"python": platform.python_version(), "kernels": kernels()},
    }


def sealed(record: Provenance) -> Provenance:
    """The record with the digest of its content."""
    content = {k: v for k, v in record.items() if k != DIGEST}
    return content | {DIGEST: hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()}


def intact(record: Any) -> bool:
    """Whether a record is as it was written."""
    return isinstance(record, dict) and DIGEST in record and sealed(record) == record


def salt(record: Provenance) -> int:
    """A number (64 bits) that belongs to this study alone: results of another one do not fit."""
    what = f"{record['file_sha256']} {record['seed']} {record['precision']}"
    if record.get("design", RANDOM) != RANDOM:  # samples depend on their number
        what += f" {record['n']}"
    return int(hashlib.sha256(what.encode()).hexdigest()[:16], 16)


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
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        return names[0] if names else platform.processor()
    except OSError:
        return platform.processor() or platform.machine()
