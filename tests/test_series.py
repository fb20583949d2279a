"""Speed over time: every version that git has of a result file is a row, and the page ends with the saved results."""

import json
import subprocess

import pytest

from benchmarks import series


@pytest.fixture
def project(tmp_path):
    """A project whose table has two versions, was then removed and put back as it was; its work tree has a third."""

    def git(*words):
        name = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *name, *words], cwd=tmp_path, check=True, capture_output=True)

    def save(**more):
        path.write_text(json.dumps({"jaxmbs": {"per_second": 100.0}, **more}), encoding="utf-8")

    path = tmp_path / "benchmarks" / "results" / "separation.json"
    path.parent.mkdir(parents=True)
    git("init", "-q")
    for change in (dict, lambda: {"made_from": {"commit": "abcdef0123"}, "jaxmbs": {"per_second": 2345.6}}, None):
        if change is None:
            path.unlink()
        else:
            save(**change())
        git("add", "-A")
        git("commit", "-qm", "a table", "--date", "2026-11-20T00:00:00Z")
    save(made_from={"commit": "fedcba9876"}, machine={"date": "2026-11-28"}, peer={"per_second": 2.0})
    return tmp_path


def test_versions_of_a_file(project):
    found = series.versions("separation", project)
    head = series.git("rev-list", "--max-parents=0", "HEAD", root=project)[:7]
    assert [v.commit for v in found] == [head, "abcdef0", "fedcba9"] and found[-1].date == "2026-11-28"
    head_line, _, *rows = series.table(found, series.separation).splitlines()
    assert head_line == "| date | commit | jaxmbs [1/s] | peer [1/s] |"
    assert [row.split(" | ")[2:] for row in rows] == [["100", "– |"], ["2,346", "– |"], ["100", "2 |"]]
    assert series.table([found[0], found[0]], series.separation).count("\n") == 3, "what did not change is one row"


def test_a_clone_without_history_is_refused(project, monkeypatch):
    monkeypatch.setattr(series, "git", lambda *words, root: "true\n")
    with pytest.raises(ValueError, match="unshallow"):
        series.versions("separation", project)


@pytest.mark.parametrize("name", series.SHOWN)
def test_the_page_ends_with_what_is_saved(name):
    heading, figures = series.SHOWN[name]
    text = series.PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n\n")[2].partition("\n\n")[0]
    head, _, *rows = text.splitlines()
    saved = json.loads((series.ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))
    own = figures(saved)
    assert own and head.strip("| ").split(" | ")[2:] == list(own), "write it again: python -m benchmarks.series"
    assert rows[-1].strip("| ").split(" | ")[2:] == list(own.values()), "write it again: python -m benchmarks.series"


def test_factors_beside_a_peer():
    case = dict(zip(("function", "robot", "dtype", "batch"), series.CASES[1], strict=True))
    found = series.speeds(
        {"rows": [{"case": case, "times": {"jaxmbs": [20.0, 19.0], "Pinocchio": [100.0], "b": [1.0]}}]}
    )
    assert found == {"forward dynamics, arm7, 65,536 [ns]": "20 (Pinocchio 5×)"}
