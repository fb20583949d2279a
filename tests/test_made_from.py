"""Kept tables carry the commit and the code that made them, and are out of date when that code changes."""

import json

import pytest

from benchmarks import made_from, suite

MACHINE = {"machine": "another"}


def test_every_kept_table_has_its_files():
    kept = {p.relative_to(made_from.ROOT).as_posix() for p in (made_from.ROOT / "benchmarks/results").glob("*.json")}
    assert kept | {"tests/io/robots.md"} == set(made_from.tables())
    for name, files in made_from.TABLES.items():
        lost = [pattern for pattern in files if not list(made_from.ROOT.glob(pattern))]
        assert not lost, f"{name}: no file is called {lost}"


def test_what_code_is(tmp_path):
    """A change of what runs counts, one of words and layout does not; so does a file more."""
    source = tmp_path / "a.py"

    def digest(text):
        source.write_text(text, encoding="utf-8")
        return made_from.code(("*.py",), tmp_path)

    plain = digest('"""Says."""\n\ndef f(x):\n    """Doubles."""\n    return 2 * x\n')
    assert plain == digest('"""Tells."""\ndef f( x ):\n    # why\n    return 2*x\n')
    assert plain != digest('"""Says."""\n\ndef f(x):\n    """Doubles."""\n    return 3 * x\n')
    digest('"""Says."""\n\ndef f(x):\n    """Doubles."""\n    return 2 * x\n')
    (tmp_path / "b.py").write_text("", encoding="utf-8")
    assert plain != made_from.code(("*.py",), tmp_path)


def test_a_table_of_other_code_is_out_of_date(tmp_path, monkeypatch):
    (tmp_path / "code.py").write_text("x = 1\n", encoding="utf-8")
    (tmp_path / "robots.md").write_text("no commit", encoding="utf-8")
    monkeypatch.setattr(made_from, "ROOT", tmp_path)
    monkeypatch.setattr(made_from, "TABLES", {"speed.json": ("*.py",), "robots.md": ("*.py",)})
    monkeypatch.setattr(made_from, "code", lambda files, code=made_from.code: code(files, tmp_path))
    made_from.keep(tmp_path / "speed.json", MACHINE | {"ns": 17})
    made = made_from.carried(tmp_path / "speed.json")
    assert set(made) == {"commit", "code"} and made_from.out_of_date() == ["robots.md"]
    text = f"Written from commit {made['commit']}, code {made['code']}."
    (tmp_path / "robots.md").write_text(text, encoding="utf-8")
    assert made_from.out_of_date() == []
    (tmp_path / "code.py").write_text("x = 2\n", encoding="utf-8")
    assert made_from.out_of_date() == ["speed.json", "robots.md"]


@pytest.mark.slow
@pytest.mark.parametrize("table", made_from.tables())
def test_no_table_is_older_than_its_code(table):
    """Before a release: write it anew (make test-robots, make bench, or the module of the same name with --keep)."""
    assert table not in made_from.out_of_date()


def test_a_table_carries_the_machine_unless_it_has_it(tmp_path):
    path = tmp_path / "speed.json"
    made_from.keep(path, {"ns": 17})
    found = json.loads(path.read_text(encoding="utf-8"))
    assert list(found) == ["made_from", "machine", "ns"] and found["machine"] == suite.machine()
    assert {"cpu", "cores", "versions", "date"} <= set(found["machine"])
    made_from.keep(path, MACHINE)
    assert json.loads(path.read_text(encoding="utf-8"))["machine"] == "another"


def test_tables_of_gpus_are_kept(tmp_path, monkeypatch):
    (tmp_path / "code.py").write_text("x = 1\n", encoding="utf-8")
    monkeypatch.setattr(made_from, "ROOT", tmp_path)
    monkeypatch.setattr(made_from, "TABLES", {"on-nvidia-x.json": ("*.py",)})
    monkeypatch.setattr(made_from, "code", lambda files, code=made_from.code: code(files, tmp_path))
    made_from.keep(tmp_path / "on-nvidia-x.json", MACHINE)
    assert not made_from.out_of_date(elsewhere=True)
    (tmp_path / "code.py").write_text("x = 2\n", encoding="utf-8")
    assert made_from.out_of_date(elsewhere=True) == ["on-nvidia-x.json"] and not made_from.out_of_date()


def test_one_machine_needs_a_current_baseline(tmp_path, monkeypatch):
    """The baselines of the other machines are kept, until none is current."""
    (tmp_path / "code.py").write_text("x = 1\n", encoding="utf-8")
    monkeypatch.setattr(made_from, "ROOT", tmp_path)
    monkeypatch.setattr(made_from, "BASELINES", "*-cores-*.json")
    monkeypatch.setattr(made_from, "TABLES", {"*-cores-*.json": ("*.py",)})
    monkeypatch.setattr(made_from, "code", lambda files, code=made_from.code: code(files, tmp_path))
    made_from.keep(tmp_path / "a-2-cores-cpu.json", MACHINE)
    (tmp_path / "code.py").write_text("x = 2\n", encoding="utf-8")
    made_from.keep(tmp_path / "b-2-cores-cpu.json", MACHINE)
    assert not made_from.out_of_date() and made_from.out_of_date(elsewhere=True) == ["a-2-cores-cpu.json"]
    (tmp_path / "code.py").write_text("x = 3\n", encoding="utf-8")
    assert made_from.out_of_date() == ["a-2-cores-cpu.json", "b-2-cores-cpu.json"]
