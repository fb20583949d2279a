"""A key of the user over a run: whoever has it not can change nothing that `verify --seal` does not name."""

import json
import shutil

import pytest

from jaxmbs.io import InputError
from jaxmbs.study import read, report, resume, run
from jaxmbs.study.folder.checksums import CHECKSUM, checksums
from jaxmbs.study.folder.seal import fault_of_marked, key_of, marked
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.examination import examined
from jaxmbs.study.results.provenance import salt, signed
from tests.study.conftest import CART

N, ROWS = 100, 64


@pytest.fixture(scope="module")
def sealed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("seal")
    (folder / "cart.toml").write_text(CART, encoding="utf-8")
    (folder / "key").write_text("0123456789abcdef0123456789abcdef\n", encoding="utf-8")
    run(read(folder / "cart.toml"), N, folder / "run", ROWS, seal=folder / "key")
    report(folder / "run", seal=folder / "key")
    return folder / "run", folder / "key"


@pytest.fixture
def folder(sealed, tmp_path):
    return shutil.copytree(sealed[0], tmp_path / "run")


@pytest.fixture
def key(sealed):
    return sealed[1]


def faults(folder, key):
    return {d.file: d.what for d in examined(folder, seal=key).damage}


def test_a_sealed_run(folder, key, tmp_path):
    found = examined(folder, seal=key)
    assert found.sound and found.sealed and examined(folder).sound and examined(folder).sealed is None
    other = tmp_path / "other"
    other.write_text("f" * 32, encoding="utf-8")
    assert "not sealed with this key" in faults(folder, other)["provenance.json"]
    with pytest.raises(InputError, match="not sealed with this key"):
        resume(folder, seal=other)
    assert key.read_text(encoding="utf-8").strip() not in (folder / "provenance.json").read_text(encoding="utf-8")


def forged_number(folder):
    """Another number, with its right checksum, in a note that knows it."""
    store = stores.open_folder(folder)
    arrays = store.arrays()
    values = {name: x[:] for name, x in arrays.items()}
    values["reach"][3] += 1
    arrays["reach"][:] = values["reach"]
    own = {name: x for name, x in values.items() if name != CHECKSUM}
    arrays[CHECKSUM][:] = checksums(own, 0, salt(store.provenance))
    note = json.loads((folder / "finished.json").read_bytes())
    store.finish()
    return note, json.loads((folder / "finished.json").read_bytes())


def test_a_number_with_its_checksum_is_not_the_sealed_one(folder, key):
    note, new = forged_number(folder)
    assert examined(folder).sound, "checksums are not secret"
    assert "not sealed" in faults(folder, key)["finished.json"]
    for forged in (
        note | {"fingerprint": new["fingerprint"]},
        new | {"seal": note["seal"], "contents": note["contents"]},
    ):
        (folder / "finished.json").write_text(json.dumps(forged), encoding="utf-8")
        assert "finished.json" in faults(folder, key)
    resume(folder, seal=key)
    assert examined(folder, seal=key).sound


def test_numbers_changed_under_the_note_are_found(folder, key, monkeypatch):
    """Even where fingerprint and checksums stay: the seal is over every bit."""
    monkeypatch.setattr(stores.Store, "contents", lambda self: "another")
    assert faults(folder, key) == {"finished.json": "does not belong to these results, which were changed since"}


@pytest.mark.parametrize("edit", [{"seed": 8}, {"until": "decided"}, {"versions": {}}])
def test_a_record_is_sealed(folder, key, edit):
    record = json.loads((folder / "provenance.json").read_bytes())
    seal = record["seal"]
    for forged in (signed(record | edit), signed(record)):
        forged = {k: v for k, v in forged.items() if k != "digest"} | {"seal": seal} | edit
        (folder / "provenance.json").write_text(json.dumps(signed_as(forged)), encoding="utf-8")
        assert "provenance.json" in faults(folder, key)
    (folder / "provenance.json").write_text(json.dumps(signed(record)), encoding="utf-8")
    assert "has no seal" in faults(folder, key)["provenance.json"]
    assert examined(folder, seal=key).sealed is False and examined(folder).sealed is None


def test_lost_results_are_not_sealed(folder, key):
    shutil.rmtree(folder / "results.zarr")
    assert examined(folder, seal=key).sealed is False


def signed_as(record):
    """With the digest of all of it, a seal that is not its own included."""
    import hashlib

    return record | {"digest": hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["report.html", "histories.npz"])
def test_what_a_report_wrote_is_covered_and_written_again(folder, key, name):
    path, of = folder / name, f"{salt(stores.open_folder(folder).provenance):x}"
    content = path.read_bytes()
    for other, said in (
        (content.replace(content[100:110], b"0123456789", 1), "was changed, or was not made"),
        (b"mine", "does not state which run it belongs to"),
        (content[:-200], "does not state which run it belongs to"),
    ):
        path.write_bytes(other)
        found = {d.file: d.what for d in examined(folder).damage}
        assert set(found) == {name} and said in found[name] and f"jaxmbs report {folder}" in found[name]
    path.write_bytes(marked(b"mine", of, None))
    assert examined(folder).sound and "was not made with this key" in faults(folder, key)[name]
    assert examined(folder, repair=True, seal=key).repaired == (name,) and not path.exists()
    report(folder, seal=key)
    assert path.exists() and examined(folder, seal=key).sound


def test_resume_needs_the_key(folder, key):
    (folder / "results.zarr" / "reach" / "c" / "1").unlink()
    with pytest.raises(InputError, match=r"begun with a key.*--seal KEYFILE"):
        resume(folder)
    resume(folder, seal=key)
    assert examined(folder, seal=key).sound


def test_a_note_that_is_lost_is_made_again(folder, key):
    (folder / "finished.json").unlink()
    resume(folder, seal=key)
    assert examined(folder, seal=key).sound and (folder / "finished.json").exists()


def test_a_mark_is_of_one_run():
    page = marked(b"page", "of this run", b"k" * 16)
    assert fault_of_marked(page, "of this run") == fault_of_marked(page, "of this run", b"k" * 16) == ""
    assert page.startswith(b"page\n<!--") and "was not made from these results" in fault_of_marked(page, "of another")
    assert "with this key" in fault_of_marked(page, "of this run", b"j" * 16)


def test_bad_keys(tmp_path, command):
    (tmp_path / "short").write_text("secret", encoding="utf-8")
    for name, said in (("nothing", "cannot be read"), ("short", "openssl rand -hex 32")):
        with pytest.raises(InputError, match=said):
            key_of(tmp_path / name)
    (tmp_path / "cart.toml").write_text(CART, encoding="utf-8")
    done = command("study", tmp_path / "cart.toml", "-n", 64, "--out", tmp_path / "run", "--seal", tmp_path / "short")
    assert done.returncode == 1 and "--seal" in done.stderr and not (tmp_path / "run").exists()


@pytest.mark.slow
def test_commands_take_a_key(folder, key, command):
    done = command("verify", folder, "--seal", key)
    assert done.returncode == 0 and "sealed with this key" in done.stdout
    (folder / "results.zarr" / "reach" / "c" / "1").unlink()
    assert command("resume", folder).returncode == 1
    assert command("resume", folder, "--seal", key).returncode == 0
    assert command("report", folder, "--seal", key).returncode == 0
    assert command("verify", folder, "--seal", key).returncode == 0
    done = command("verify", folder, "--mend")
    assert done.returncode == 0 and "--repair" in done.stderr
