"""The check of everything writes one table, and the pages say what it says."""

import pytest

from tests import release, sessions

ROWS = [
    ("default tests, lint and types", "4449 passed", 300.0, 590.0),
    ("a public collection of robots", "**failed** 68 passed, 1 failed `tests/io/test_robots.py::test_b`", 60.0, 90.0),
]


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Where the table is, which is not there yet."""
    monkeypatch.setattr(release, "TABLE", tmp_path / "release.md")
    return release.TABLE


def test_the_line_of_a_table(path):
    said = release.line(release.table(ROWS[:1]), "tests/release.md")
    assert "all passed, 1 of 9 stages so far" in said and release.git("rev-parse", "--short", "HEAD") in said
    assert "1 of 2 stages failed, 2 of 9 stages so far" in release.line(release.table(ROWS), "tests/release.md")
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
    """Each under its commit; a change that is not of a test begins a table anew, and one that is not committed is told."""
    names = [name for name, _ in release.STAGES.values()]
    for commit, name, same, there in (
        ("abc", 4, True, {4: "abc"}),
        ("abd", 0, True, {0: "abd", 4: "abc"}),
        ("abe", 4, True, {0: "abd", 4: "abe"}),
        ("def", 1, False, {1: "def"}),
        ("deg", 2, True, {1: "def", 2: "deg"}),
    ):
        monkeypatch.setattr(release, "git", lambda *words, here=commit: here)
        monkeypatch.setattr(release, "unchanged", lambda *revisions, same=same: same)
        path.write_text(release.table([(names[name], "3 passed", 60.0, 90.0)]), encoding="utf-8")
        text = path.read_text(encoding="utf-8")
        assert text.splitlines()[6:] == [f"| {names[k]} | 3 passed | {at} | 1.0 | 1.5 |" for k, at in there.items()]
        assert ("not committed" in text) == (not same)


@pytest.mark.parametrize(
    ("tests", "said", "mended"),
    [
        (["tests/io/test_robots.py"], "69 passed", True),
        (["tests/io/test_robots.py"], "**failed** 1 failed `tests/io/test_robots.py::test_b`", False),
        (["tests/io/test_other.py"], "3 passed", False),
    ],
)
def test_a_stage_is_mended_only_by_the_tests_that_failed(path, monkeypatch, tests, said, mended):
    """What it said before stays in its row."""
    monkeypatch.setattr(release, "unchanged", lambda *revisions: True)
    path.write_text(release.table(ROWS), encoding="utf-8")
    text = release.table([(ROWS[1][0], said, 1.0, 1.0)], tests)
    row = text.splitlines()[-1]
    assert "68 passed, 1 failed `tests/io/test_robots.py::test_b`" in row and said in row and "| 1.0 | 1.5 |" in row
    assert row.startswith(f"| {ROWS[1][0]} | {release.FAILED}") != mended
    assert ("1 of 2 stages failed" in release.line(text, "")) != mended


def test_failed_tests_are_named():
    output = "FAILED tests/a.py::test_x[1-2] - AssertionError: no\n= 1 failed, 3 passed in 2.0s =\n"
    assert release.outcome(2, output) == "**failed** 1 failed, 3 passed `tests/a.py::test_x[1-2]`"
    output = (
        "\tb.py: it moves\tby tests/b.py::test_b\n!!\ta.py: it is left out\tSURVIVED\t3 s\n9 faults, 1 not caught\n"
    )
    assert release.outcome(2, output) == "**failed** 9 faults, 1 not caught `it is left out`"
    output = (
        "| one core | 598 | none | 163 s |\n| C locale | 596 | `a.py::test_x` | 151 s |\nFAILED tests/a.py::test_x\n"
        "1 failed, 5 passed in 2.0s\n"
    )
    said = release.outcome(2, output)
    assert said == "**failed** 1 failed, 5 passed `C locale`"  # what --tests names in this stage
    assert release.again([said, "abc"], "def", ["C locale"], "1 hosts, 6 tests passed") == [
        "1 failed, 5 passed `C locale`; again at def: 1 hosts, 6 tests passed", "abc",
    ]  # fmt: skip
    assert (
        release.outcome(0, "4 passed in 1.2s\non Python 3.13.0 with JAX 0.12\n")
        == "4 passed; on Python 3.13.0 with JAX 0.12"
    )


def test_only_tests_and_words_may_change(monkeypatch, tmp_path):
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

    first = committed(**{"a.py": "x = 1\n"})
    line = committed(**{"README.md": "other", "tests/release.md": "x"})
    assert release.unchanged(first, line) and release.unchanged(line) and not release.unchanged("0123456", line)
    assert release.unchanged(first, committed(**{"tests/b.py": "y"}))
    words = committed(**{"a.py": '"""What x is."""\n\nx = 1  # one\n', "README.md": "A page."})
    assert release.unchanged(first, words)
    (tmp_path / "a.py").write_text("x = 2\n", encoding="utf-8")
    assert not release.unchanged("HEAD")
    assert not release.unchanged(line, committed(**{"a.py": "x = 2\n"}))
    assert not release.unchanged(words, committed(**{"a.py": "x = 1\n", "pyproject.toml": "y"}))
    assert not release.unchanged(words, committed(**{"pyproject.toml": "z", "b.py": "x = 1\n"}))


def test_shares_of_the_default_tests_are_all_of_them(monkeypatch):
    """Eight commits in a row with a share of one in eight run every file as for a user; the optimised ones run each time."""
    files, seen = sorted((release.ROOT / "tests").rglob("test_*.py")), []
    for turn in range(8):
        monkeypatch.setattr(sessions, "turn", lambda turn=turn: turn)
        seen += [path for path in files if sessions.drawn(path, 8)]
    for path in files:
        assert seen.count(path) == (8 if sessions.optimised(path) else 1), path
