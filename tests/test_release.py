"""The check of everything writes one table, and the pages say what it says."""

import pytest

from tests import release, sessions

ROWS = [
    ("default tests, lint and types", "4449 passed", 300.0, 590.0),
    ("a public collection of robots", "**failed** (exit status 2): 68 passed, 1 failed", 60.0, 90.0),
]


def test_the_line_of_a_table():
    said = release.line(release.table(ROWS[:1]), "tests/release.md")
    assert "all passed" in said and release.git("rev-parse", "--short", "HEAD") in said
    assert "1 of 7 stages failed" in release.line(release.table(ROWS), "tests/release.md")
    page = release.told(f"a\n{release.BEGIN}old{release.END}\nb\n", said)
    assert page == f"a\n{release.BEGIN}{said}{release.END}\nb\n" == release.told(page, said)


@pytest.mark.parametrize("name", release.PAGES)
def test_pages_say_what_the_table_says(name):
    page = (release.ROOT / name).read_text(encoding="utf-8")
    assert page.count(release.BEGIN) == 1
    said = page.partition(release.BEGIN)[2].partition(release.END)[0]
    table = release.TABLE
    assert said == (release.line(table.read_text(encoding="utf-8"), release.PAGES[name]) if table.exists() else "")


def test_stages_of_one_commit_are_in_one_table(tmp_path, monkeypatch):
    monkeypatch.setattr(release, "SO_FAR", tmp_path / "release.md")
    names = [name for name, _ in release.STAGES.values()]
    for commit, name, there in (("abc", 4, [4]), ("abc", 0, [0, 4]), ("abc", 4, [0, 4]), ("def", 1, [1])):
        monkeypatch.setattr(release, "git", lambda *words, here=commit: here if words[0] == "rev-parse" else "")
        release.SO_FAR.write_text(release.table([(names[name], "3 passed", 60.0, 90.0)]), encoding="utf-8")
        rows = release.SO_FAR.read_text(encoding="utf-8").splitlines()[6:]
        assert rows == [f"| {names[k]} | 3 passed | 1.0 | 1.5 |" for k in there]


def test_shares_of_the_default_tests_are_all_of_them(monkeypatch):
    """Eight commits in a row with a share of one in eight run every file as for a user; the optimised ones run each time."""
    files, seen = sorted((release.ROOT / "tests").rglob("test_*.py")), []
    for turn in range(8):
        monkeypatch.setattr(sessions, "turn", lambda turn=turn: turn)
        seen += [path for path in files if sessions.drawn(path, 8)]
    for path in files:
        assert seen.count(path) == (8 if sessions.optimised(path) else 1), path
