"""A run's folder: results.zarr, the study file and where it all comes from."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.io.errors import InputError, Problem
from jaxmbs.simulate import Status
from jaxmbs.study.batch import DRAWS, precision
from jaxmbs.study.units import si

if TYPE_CHECKING:
    import xarray

    from jaxmbs.study.problem import Study

RESULTS, STUDY, PROVENANCE = "results.zarr", "study.toml", "provenance.json"
NOT_RUN = int(Status.NOT_RUN)
_CHUNKS = 256  # of a large run along `sample`, about: each is a file per variable
_MOST_BLOCKS = 16  # in a zarr chunk
Provenance = dict[str, Any]


def provenance(study: Study, n: int, rows: int) -> Provenance:
    """Everything that the results depend on, and the versions that made them."""
    import jax

    device = jax.devices()[0]
    return {
        "study": study.model.name,
        "file_sha256": study.sha256,
        "modules": study.catalogue.hashes,
        "n": n,
        "seed": study.seed,
        "generator": "threefry2x32",
        "block_rows": rows,
        "chunk_rows": rows * min(_MOST_BLOCKS, -(-n // (rows * _CHUNKS))),
        "precision": str(precision()),
        "device": f"{device.platform}: {_processor() if device.platform == 'cpu' else device.device_kind}",
        "versions": {name: _version(name) for name in ("jaxmbs", "jax", "jaxlib", "numpy", "scipy")}
        | {"python": platform.python_version()},
    }


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


@dataclass(frozen=True)
class Store:
    """Access to a run's folder."""

    folder: Path
    provenance: Provenance

    @property
    def n(self) -> int:
        return self.provenance["n"]

    @property
    def chunk_rows(self) -> int:
        return self.provenance["chunk_rows"]

    def arrays(self) -> dict[str, Any]:
        import zarr

        group = zarr.open_group(str(self.folder / RESULTS), mode="r+")
        return dict(group.arrays())

    def dataset(self) -> xarray.Dataset:
        """The results, lazily."""
        import xarray

        return xarray.open_zarr(self.folder / RESULTS)

    def status(self) -> np.ndarray:
        """(n,) status of every sample, NOT_RUN where it has not been computed."""
        return self.arrays()["status"][:]

    def missing(self) -> Iterator[tuple[int, int]]:
        """(first, last + 1) of every run of zarr chunks that are not complete, in samples."""
        rows, status = self.chunk_rows, self.status()
        open_chunks = [bool(np.any(status[i : i + rows] == NOT_RUN)) for i in range(0, self.n, rows)]
        first = None
        for i, is_open in enumerate([*open_chunks, False]):
            if is_open and first is None:
                first = i
            elif not is_open and first is not None:
                yield first * rows, min(i * rows, self.n)
                first = None

    def write(self, arrays: Mapping[str, Any], first: int, results: Mapping[str, np.ndarray]) -> None:
        """Write whole zarr chunks from sample `first` on. status comes last: it says that the others are there."""
        for name in sorted(results, key=lambda name: name == "status"):
            stop = min(first + len(results[name]), self.n)
            arrays[name][first:stop] = results[name][: stop - first]


def columns(study: Study, results: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Results of a batch as the variables of the store."""
    draws = study.dispersions.split(results[DRAWS])
    own = {name: x[:, 0] if x.shape[1] == 1 else x for name, x in draws.items()}
    return {**{name: x for name, x in results.items() if name != DRAWS}, **own}


def create(study: Study, folder: Path, record: Provenance) -> Store:
    """A new run's folder. Raises InputError where one is there already: results are never overwritten."""
    for name in (RESULTS, PROVENANCE):
        if (folder / name).exists():
            message = f"has results already; continue them with `jaxmbs resume {folder}`, or choose another folder"
            raise InputError(Problem(str(folder), message))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / STUDY, study.content)
        for name, content in study.catalogue.modules.items():
            _write(folder / name, content)
        _write(folder / PROVENANCE, json.dumps(record, indent=2).encode())
    except OSError as error:
        raise InputError(Problem(str(folder), f"cannot be written: {error.strerror}; choose another folder")) from None
    store = Store(folder, record)
    allocate(study, store)
    return store


def allocate(study: Study, store: Store) -> None:
    """Lay out results.zarr in full, every status "not run". It appears at once, or not at all."""
    import zarr

    final, partial = store.folder / RESULTS, store.folder / ".results.partial"
    shutil.rmtree(partial, ignore_errors=True)
    record = {"study": study.model.name, "seed": study.seed, "file_sha256": study.sha256}
    group = zarr.create_group(str(partial), zarr_format=3, attributes=record)
    n, rows, dtype = store.n, store.chunk_rows, np.dtype(store.provenance["precision"])

    def add(name: str, attributes: Mapping[str, Any], size: int = 1, kind: Any = dtype, fill: Any = np.nan) -> None:
        tail, dims = ((size,), [f"component_{size}"]) if size > 1 else ((), [])
        group.create_array(
            name, shape=(n, *tail), chunks=(rows, *tail), dtype=kind, fill_value=fill,
            dimension_names=["sample", *dims], attributes=dict(attributes),
        )  # fmt: skip

    for name, quantity in study.quantities.items():
        add(name, {"units": si(quantity).name, "long_name": name.replace("_", " ")})
    add("energy_error", {"units": "J", "long_name": "error of the energy balance"})
    add("constraint_error", {"long_name": "violation of the constraints"})
    for d in study.dispersions.items:
        unit = si(d.quantity).name if d.quantity else "SI"
        add(d.name, {"units": unit, "applied": d.apply, "target": d.target.name}, size=d.k)
    add("status", {"long_name": "status", **flags()}, kind=np.int32, fill=NOT_RUN)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # consolidated metadata is not in zarr's specification yet; xarray wants it
        zarr.consolidate_metadata(str(partial))
    os.replace(partial, final)


def flags() -> dict[str, Any]:
    """What the numbers in `status` mean, as CF attributes."""
    return {"flag_values": [int(s) for s in Status], "flag_meanings": " ".join(s.name.lower() for s in Status)}


def open_folder(folder: Path) -> Store:
    """An existing run. Raises InputError where there is none, or where its study file was changed."""
    try:
        record = json.loads((folder / PROVENANCE).read_text())
        files = {STUDY: record["file_sha256"]} | record.get("modules", {})
        found = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in files}
    except (OSError, json.JSONDecodeError):
        message = "there is no study here; start one with `jaxmbs study FILE -n N --out DIR`"
        raise InputError(Problem(str(folder), message)) from None
    for name, wanted in files.items():
        if found[name] != wanted:
            message = (
                "was changed since the run began and does not describe the results; put it back, or run anew elsewhere"
            )
            raise InputError(Problem(str(folder / name), message))
    return Store(folder, record)


def differences(store: Store, now: Provenance) -> list[str]:
    """What has changed since the run began in a way that could change bits of the results."""
    then = store.provenance
    keys = [k for k in ("precision", "device") if then[k] != now[k]]
    found = [f"{k}: then {then[k]}, now {now[k]}" for k in keys]
    names = [k for k in now["versions"] if then["versions"].get(k) != now["versions"][k]]
    return found + [f"{k}: then {then['versions'].get(k)}, now {now['versions'][k]}" for k in names]


def _write(path: Path, content: bytes) -> None:
    """The whole file or none of it."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(content)
    os.replace(partial, path)
