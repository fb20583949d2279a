"""A run with a symbolic link in it is not read and not written: what the link leads to stays as it is."""

import shutil

import pytest

from jaxmbs.io import InputError
from jaxmbs.study import read, run
from jaxmbs.study.folder import lock, storage
from tests.security.conftest import STUDY, listing
from tests.security.test_names import USES

LINKS = ("study.toml", "provenance.json", "finished.json", ".lock", ".owner.json", "report.html", "histories.npz", "files",
         "files/own.py", "results.zarr", "results.zarr/reach", "results.zarr/reach/c", "results.zarr/reach/c/0")  # fmt: skip


@pytest.mark.parametrize("name", LINKS)
def test_no_link_is_followed(folder, tmp_path, name):
    outside, path = tmp_path / "outside", folder / name
    if path.exists():
        shutil.move(path, outside)
    else:
        outside.write_text("mine", encoding="utf-8")
    path.symlink_to(outside)
    before = listing(tmp_path)
    for use in USES.values():
        with pytest.raises(InputError, match=f"{name}: is a symbolic link"):
            use(folder)
    assert listing(tmp_path) == before


def test_the_study_of_a_run_reads_no_files_through_a_link(folder, tmp_path):
    shutil.move(folder / "files", tmp_path / "outside")
    (folder / "files").symlink_to(tmp_path / "outside")
    with pytest.raises(InputError, match=r"files: is a symbolic link that leads out of the run's folder"):
        read(folder / "study.toml", trust=True)


def test_a_new_run_follows_no_link(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "cart.toml").write_text(STUDY.replace('modules = ["own.py"]\n', ""), encoding="utf-8")
    (tmp_path / "lot.csv").write_text("mass\n2.0\n2.1\n", encoding="utf-8")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "report.html").symlink_to(tmp_path / "mine" / "page")
    with pytest.raises(InputError, match=r"report\.html: is a symbolic link"):
        run(read(tmp_path / "cart.toml"), 64, tmp_path / "out", 64)
    (tmp_path / "out" / "report.html").unlink()
    (tmp_path / "out" / "files").mkdir()
    with pytest.raises(InputError, match="files: does not belong to a run"):
        run(read(tmp_path / "cart.toml"), 64, tmp_path / "out", 64)
    assert not list((tmp_path / "mine").iterdir())


def test_a_file_that_is_written_replaces_a_link(tmp_path):
    """Whoever sets one between the look and the writing gains nothing."""
    (tmp_path / "mine").write_bytes(b"mine")
    for name in ("page", lock.OWNER):
        (tmp_path / name).symlink_to(tmp_path / "mine")
        storage.write_whole(tmp_path / name, b"new")
        assert not (tmp_path / name).is_symlink() and (tmp_path / name).read_bytes() == b"new"
    assert (tmp_path / "mine").read_bytes() == b"mine" and not list(tmp_path.glob("*.partial"))


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(OSError, match="there"):
        storage.write_whole(tmp_path / "there", b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["there"]
