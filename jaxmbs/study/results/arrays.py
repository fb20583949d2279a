"""The metadata of a run's results: the arrays, their names, and the codecs that pack them.

zarr, which is slow to import, is imported by the functions that open or create arrays.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.simulate.status import Status
from jaxmbs.study.folder.checksums import CHECKSUM
from jaxmbs.study.folder.layout import FILES, RESULTS, STUDY, kind
from jaxmbs.study.folder.shell import command
from jaxmbs.study.outputs.folding import AT_START, EVENT_COUNTS, EVENT_TIMES
from jaxmbs.study.units import si

if TYPE_CHECKING:
    from jaxmbs.study.problem.study import Study
    from jaxmbs.study.results.store import Store

NOT_RUN = int(Status.NOT_RUN)
CODECS = {"bytes", "zstd", "crc32c"}  # of the arrays; others are refused, because they could run unknown code
TYPES = {"float32", "float64", "int32", "uint32"}


def require_codecs(folder: Path, record: Mapping[str, Any]) -> None:
    """Raises InputError if the metadata cannot be read or names a codec or data type that no run uses: zarr would run
    any codec that is named there."""
    path = folder / RESULTS / "zarr.json"
    try:
        found = json.loads(path.read_bytes())
        arrays = found["consolidated_metadata"]["metadata"].values()
        used = {(codec["name"], found["zarr_format"]) for x in (found, *arrays) for codec in x.get("codecs", ())}
        used |= {(x["data_type"], 3) for x in arrays if x["data_type"] not in TYPES}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        message = f"cannot be read; `{command('resume', folder, record=record)}` writes it again"
        raise InputError(Problem(str(path), message)) from None
    if odd := sorted(str(name) for name, version in used if name not in CODECS or version != 3):
        message = f"names {', '.join(odd)}, which no run uses to store its numbers; they are not read"
        raise InputError(
            Problem(str(path), f"{message}: `{command('verify', folder, record=record)}` shows what else was changed")
        )


def metadata(study: Study, store: Store) -> dict[str, bytes]:
    """The contents of the metadata files of results.zarr by path; the file that describes all others comes last."""
    from zarr.storage import MemoryStore

    files: dict[str, Any] = {}
    lay_out(study, store, MemoryStore(files))
    return {path: files[path].to_bytes() for path in sorted(files, key=lambda path: (path.count("/") == 0, path))}


def lay_out(study: Study, store: Store, where: Any) -> None:
    """Write the metadata of results.zarr: a group whose attributes describe the run, and its arrays."""
    import zarr
    from zarr.codecs import Crc32cCodec, ZstdCodec

    prefix = f"{FILES}/" if kind(store.provenance) > 2 else ""
    files = {STUDY: study.content, **{prefix + name: content for name, content in study.files.items()}}
    record = {
        "study": study.model.name,
        "seed": study.seed,
        "file_sha256": study.sha256,
        "provenance": json.dumps(store.provenance),
        "files": json.dumps({name: content.decode(errors="replace") for name, content in files.items()}),
    }
    group = zarr.create_group(where, zarr_format=3, attributes=record)
    n, rows, dtype = store.n, store.chunk_rows, np.dtype(store.provenance["precision"])

    def add(name: str, attributes: Mapping[str, Any], size: int = 1, kind: Any = dtype, fill: Any = np.nan) -> None:
        tail, dims = ((size,), [f"component_{size}"]) if size > 1 else ((), [])
        group.create_array(
            name, shape=(n, *tail), chunks=(rows, *tail), dtype=kind, fill_value=fill,
            compressors=[ZstdCodec(level=0), Crc32cCodec()], dimension_names=["sample", *dims],
            attributes=dict(attributes),
        )  # fmt: skip

    called = store.labels(study)
    for name, quantity in study.quantities.items():
        add(called.outputs[name], {"units": si(quantity).name, "long_name": name.replace("_", " ")})
    add("energy_error", {"units": "J", "long_name": "error of the energy balance"})
    add("constraint_error", {"long_name": "violation of the constraints"})
    for d in study.dispersions.items:
        unit = si(d.quantity).name if d.quantity else "SI"
        add(called.draws[d.name], {"units": unit, "applied": d.apply, "target": d.target.name}, size=d.k)
    if study.model.event_names:
        told = {"events": list(study.model.event_names)}
        count = len(study.model.event_names)
        add(EVENT_COUNTS, {"long_name": "how often each event happened", **told}, count, np.int32, -1)
        add(EVENT_TIMES, {"units": "s", "long_name": "when each event happened first", **told}, count)
    if names := store.starting(study):
        told = {"long_name": "whether each output is its value at the start", "outputs": list(names)}
        add(AT_START, told, len(names), np.int32, -1)
    add("status", {"long_name": "status", **flags()}, kind=np.int32, fill=NOT_RUN)
    add(CHECKSUM, {"long_name": "checksum of the sample's numbers"}, kind=np.uint32, fill=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # consolidated metadata is not in zarr's specification yet, but xarray needs it
        zarr.consolidate_metadata(where)


def flags() -> dict[str, Any]:
    """Meaning of the numbers in `status`, as CF attributes."""
    return {"flag_values": [int(s) for s in Status], "flag_meanings": " ".join(s.name.lower() for s in Status)}
