"""The version and its date, which several files state, are the same in all of them."""

import re
import tomllib

import pytest

from tests.pages import ROOT


@pytest.fixture(scope="module")
def version():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def released():
    """(version, date) of every section of the changes, the newest first."""
    return re.findall(r"^## (\d\S*)(?: - (\S+))?$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)


def test_the_citation_and_the_changes_name_this_version(version):
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    newest, date = released()[0]
    assert newest == version
    assert re.search(r"^version: (.*)$", cited, re.MULTILINE)[1] == version
    assert re.search(r"^date-released: (.*)$", cited, re.MULTILINE)[1] == date


def test_versions_of_the_changes_go_up():
    numbers = [tuple(map(int, name.split("."))) for name, _ in released()]
    assert numbers == sorted(set(numbers), reverse=True) and len(numbers) > 1
