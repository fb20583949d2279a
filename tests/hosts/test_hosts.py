"""A share of the matrix of hosts, another one with each commit; `make test-hosts` runs all of it."""

import pytest

from tests.hosts.matrix import FILES, HOSTS, ROOT, SHARE, Host, dealt, obstacle, ran, sessions
from tests.sessions import turn


def test_a_share_of_the_matrix(tmp_path):
    possible = [host for host in HOSTS if not obstacle(host)]
    host, file = possible[turn() % len(possible)], SHARE[turn() // len(possible) % len(SHARE)]
    status, output = ran(host, (file,), tmp_path)
    assert status == 0, f"{file}, {host.name}:\n{output[-3000:]}"


@pytest.mark.slow
def test_hosts_are_what_they_are_called(tmp_path, monkeypatch):
    """What a process finds there, and that a failure is one."""
    monkeypatch.setenv("JAXMBS_KERNELS", "xla")
    (tmp_path / "tests" / "a").mkdir(parents=True)
    monkeypatch.setattr("tests.hosts.matrix.ROOT", tmp_path)
    (tmp_path / "tests" / "a" / "test_it.py").write_text(
        "import os, resource\n"
        "def test_it():\n"
        "    assert os.environ['TZ'] == 'Pacific/Chatham' and 'JAXMBS_KERNELS' not in os.environ\n"
        "    assert os.umask(0) == 0o077 and resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 256\n",
        encoding="utf-8",
    )
    host = Host("other", {"TZ": "Pacific/Chatham"}, "umask 077 && ulimit -n 256 && ")
    if reason := obstacle(host):
        pytest.skip(reason)
    assert ran(host, ("a/test_it.py",), tmp_path)[0] == 0
    status, output = ran(Host("plain"), ("a/test_it.py",), tmp_path)
    assert status == 1 and "1 failed" in output


def test_files_of_the_matrix_exist():
    assert all((ROOT / "tests" / file).is_file() for file in {*FILES, *SHARE})
    assert len({host.name for host in HOSTS}) == len(HOSTS)
    alone = next(host for host in HOSTS if host.alone)
    assert sessions(alone, FILES) == [(file,) for file in FILES]
    assert [len(part) for part in sessions(HOSTS[0], ("batching/test_disk_cache.py", *SHARE[:2]))] == [2, 1]


def test_hosts_together_run_every_file_that_computes():
    shares = [dealt(host, 5) for host in HOSTS]
    assert len({f for share in shares for f in share}) == sum(map(len, shares)) > 100
    assert not {f for share in shares for f in share} & set(FILES)
    assert dealt(HOSTS[0], 6) == shares[1] and set(dealt(HOSTS[-1], 6)) == set(shares[0])
    assert "dynamics/recursive/test_aba.py" in {f for share in shares for f in share}
