"""A run with a module and measured data, and what surrounds it, which nothing may change."""

import hashlib
import json
import shutil

import pytest

from jaxmbs.study import read, run
from jaxmbs.study.results.provenance import signed
from tests.study.conftest import CART

N, ROWS = 100, 64
STUDY = 'modules = ["own.py"]\n' + CART.replace(
    'distribution = "normal"\napply = "multiply"\nstd = 0.02',
    'distribution = "empirical"\nfile = "lot.csv"\ncolumns = ["mass"]',
)
MODULE, DATA = "import jaxmbs as mbs\n", "mass\n1.9\n2.0\n2.1\n"


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("security")
    for name, text in (("cart.toml", STUDY), ("own.py", MODULE), ("lot.csv", DATA)):
        (folder / name).write_text(text, encoding="utf-8")
    run(read(folder / "cart.toml", trust=True), N, folder / "run", ROWS)
    return folder / "run"


@pytest.fixture
def folder(whole, tmp_path):
    """A copy of the run inside a folder of its own."""
    return shutil.copytree(whole, tmp_path / "around" / "run")


def forge(folder, edit, **copies):
    """Write a record as whoever forges one does: with its right digest, and with copies in the results."""
    path, root = folder / "provenance.json", folder / "results.zarr" / "zarr.json"
    record = signed(edit(json.loads(path.read_bytes())))
    path.write_text(json.dumps(record), encoding="utf-8")
    metadata = json.loads(root.read_bytes())
    metadata["attributes"]["provenance"] = json.dumps(record)
    metadata["attributes"]["files"] = json.dumps(json.loads(metadata["attributes"]["files"]) | copies)
    root.write_text(json.dumps(metadata), encoding="utf-8")


def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


def listing(folder):
    """All files below a folder with their content, links not followed, but for locks."""
    found = [p for p in folder.rglob("*") if p.name != ".lock" and (p.is_symlink() or p.is_file())]
    return {p: p.readlink() if p.is_symlink() else p.read_bytes() for p in found}
