"""The check of everything writes one table, and the pages say what it says."""

import pytest

from tests import release, sessions

ROWS = [
    ("default tests, lint and types", "4449 passed", 300.0, 590.0),
    ("a public collection of robots", "**failed** (exit status 2): 68 passed, 1 failed", 60.0, 90.0),
]


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Where the table is, which is not there yet."""
    monkeypatch.setattr(release, "TABLE", tmp_path / "release.md")
    return release.TABLE


def test_the_line_of_a_table(path):
    said = release.line(release.table(ROWS[:1]), "tests/release.md")
    assert "all passed, 1 of 7 stages so far" in said and release.git("rev-parse", "--short", "HEAD") in said
    assert "1 of 2 stages failed, 2 of 7 stages so far" in release.line(release.table(ROWS), "tests/release.md")
    whole = release.table([(name, "3 passed", 60.0, 90.0) for name, _ in release.STAGES.values()])
    assert release.line(whole, "tests/release.md").endswith(", all passed.")
    page = release.told(f"a\n{release.BEGIN}old{release.END}\nb\n", said)
    assert page == f"a\n{release.BEGIN}{said}{release.END}\nb\n" == release.told(page, said)


@pytest.mark.parametrize("name", release.PAGES)
def test_pages_say_what_the_table_says(name):
    page = (release.ROOT / name).read_text(encoding="utf-8")
    assert page.count(release.BEGIN) == 1
    said = page.partition(release.BEGIN)[2].partition(release.END)[0]
    table = release.TABLE
    assert said == (release.line(table.read_text(encoding="utf-8"), release.PAGES[name]) if table.exists() else "")


def test_stages_with_the_same_code_are_in_one_table(path, monkeypatch):
    """Under the commit of the first; any other change begins a table anew, and one that is not committed is told."""
    names = [name for name, _ in release.STAGES.values()]
    for commit, name, same, there, told in (
        ("abc", 4, True, [4], "abc. "),
        ("abd", 0, True, [0, 4], "abc. "),
        ("abd", 4, True, [0, 4], "abc. "),
        ("def", 1, False, [1], "def and changes that are not committed. "),
        ("def", 2, True, [2], "def. "),
    ):
        monkeypatch.setattr(release, "git", lambda *words, here=commit: here)
        monkeypatch.setattr(release, "unchanged", lambda *revisions, same=same: same)
        path.write_text(release.table([(names[name], "3 passed", 60.0, 90.0)]), encoding="utf-8")
        text = path.read_text(encoding="utf-8")
        assert text.splitlines()[6:] == [f"| {names[k]} | 3 passed | 1.0 | 1.5 |" for k in there]
        assert f"from commit {told}" in text


def test_only_what_the_check_itself_writes_may_change(monkeypatch, tmp_path):
    """Between the commits of stages that join one table."""
    monkeypatch.setattr(release, "ROOT", tmp_path)
    for folder in ("tests", "docs"):
        (tmp_path / folder).mkdir()
    release.git("init", "-q")

    def committed(**texts):
        for name, text in ({page: "said" for page in release.PAGES} | texts).items():
            said = f"{release.BEGIN}{text}{release.END}" if name in release.PAGES else text
            (tmp_path / name).write_text(said, encoding="utf-8")
        release.git("add", ".")
        release.git("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "-m", "m")
        return release.git("rev-parse", "HEAD")

    first = committed(**{"a.py": "x"})
    line = committed(**{"README.md": "other", "tests/release.md": "x"})
    assert release.unchanged(first, line) and release.unchanged(line) and not release.unchanged("0123456", line)
    assert not release.unchanged(line, committed(**{"a.py": "y"}))
    (tmp_path / "README.md").write_text(f"A page.{release.BEGIN}{release.END}", encoding="utf-8")
    assert not release.unchanged("HEAD")


def test_a_newer_list_of_faults_leaves_the_other_stages(path, monkeypatch):
    """Their rows stay; that of the faults goes, until they have run again."""
    monkeypatch.setattr(release, "unchanged", lambda *revisions: True)
    path.write_text(
        release.table([(name, "3 passed", 60.0, 90.0) for name, _ in release.STAGES.values()]), encoding="utf-8"
    )
    first = release.git("rev-parse", "--short", "HEAD")
    monkeypatch.setattr(release, "git", lambda *words: "abc1")
    monkeypatch.setattr(
        release, "unchanged", lambda since, until=None, apart=(): bool(apart) or since in ("abc1", "HEAD")
    )
    commit, rows = release.before()
    assert commit == first and len(rows) == len(release.STAGES) - 1 and release.FAULTS not in rows
    path.write_text(release.table([(release.FAULTS, "9 faults, 0 not caught", 60.0, 90.0)]), encoding="utf-8")
    assert f"| {release.FAULTS} | at abc1, where the list of faults is newer: 9 faults" in path.read_text(
        encoding="utf-8"
    )
    assert release.before()[1].keys() == {name for name, _ in release.STAGES.values()}


def test_shares_of_the_default_tests_are_all_of_them(monkeypatch):
    """Eight commits in a row with a share of one in eight run every file as for a user; the optimised ones run each time."""
    files, seen = sorted((release.ROOT / "tests").rglob("test_*.py")), []
    for turn in range(8):
        monkeypatch.setattr(sessions, "turn", lambda turn=turn: turn)
        seen += [path for path in files if sessions.drawn(path, 8)]
    for path in files:
        assert seen.count(path) == (8 if sessions.optimised(path) else 1), path
