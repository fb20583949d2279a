"""When, where and from which commits a run was begun."""

import datetime
import html
import platform
import subprocess
from pathlib import Path

import pytest

from jaxmbs.study import read, report, run
from jaxmbs.study.results.origin import commit, origin
from tests.study.conftest import CART


def git(folder, *words):
    named = ["-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", "-C", folder, *named, *words], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    folder = tmp_path_factory.mktemp("repository")
    git(folder, "init", "-q")
    (folder / "studies").mkdir()
    (folder / "studies" / "cart.toml").write_text(CART, encoding="utf-8")
    assert commit(folder) is None, "nothing is committed yet"
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    return folder


@pytest.mark.slow
def test_a_record_tells_when_where_and_from_what(repository, tmp_path):
    path = repository / "studies" / "cart.toml"
    store = run(read(path), 64, tmp_path / "run", 64)
    found, head = store.provenance["origin"], git(repository, "rev-parse", "HEAD")
    assert found["commits"]["study"] == head
    begun = datetime.datetime.fromisoformat(found["date"])
    assert abs((datetime.datetime.now(datetime.UTC) - begun).total_seconds()) < 600
    assert platform.system() in found["system"] and platform.python_version() in found["python"]
    page = html.unescape(report(store.folder).path.read_text(encoding="utf-8"))
    for said in (head, "commit of the study's folder", found["date"], found["system"]):
        assert said in page


def test_commits_as_git_tells_them(repository, tmp_path):
    head = git(repository, "rev-parse", "HEAD")
    git(repository, "worktree", "add", "-q", "-b", "beside", tmp_path / "beside")
    assert commit(tmp_path / "beside") == head
    git(repository, "pack-refs", "--all")
    assert commit(repository / "studies") == head and commit(tmp_path / "beside") == head
    git(repository, "checkout", "-q", "--detach")
    assert commit(repository) == head
    assert (
        commit(Path(tmp_path.anchor)) is None and "study" not in origin(Path(tmp_path.anchor, "cart.toml"))["commits"]
    )


def test_names_in_a_repository_lead_nowhere_else(tmp_path):
    """A HEAD that names a file outside is not followed."""
    (tmp_path / "secret").write_text("a" * 40, encoding="utf-8")
    (tmp_path / ".git").mkdir()
    for head in ("ref: ../secret", "ref: refs/../../secret", "ref: /etc/passwd", "nothing", ""):
        (tmp_path / ".git" / "HEAD").write_text(head, encoding="utf-8")
        assert commit(tmp_path) is None, head
