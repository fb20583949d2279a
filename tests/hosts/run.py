"""The tests that compute, on every host that this machine can pretend to be: `make test-hosts`; writes build/hosts.md."""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.hosts.matrix import FILES, HOSTS, ROOT, dealt, obstacle, ran, sessions
from tests.sessions import turn

TABLE = ROOT / "build" / "hosts.md"

NOTHING = 5  # exit status of pytest where all tests of a file are long ones


def row(host, files, folder):
    """(a line of the table, whether all passed, what failed)."""
    if reason := obstacle(host):
        return f"| {host.name} | not here: {reason} | | |", True, ""
    start, passed, failed, said = time.monotonic(), 0, [], []
    for part in sessions(host, files):
        try:
            status, output = ran(host, part, folder)
        except subprocess.TimeoutExpired as error:
            status, output = 124, f"took more than {error.timeout:.0f} s"
        passed += sum(map(int, re.findall(r"(\d+) passed", output)))
        found = re.findall(r"^(?:FAILED|ERROR) (\S+)", output, re.M)
        if status and not (status == NOTHING and len(part) == 1):
            failed += found or [f"{', '.join(part)}: exit status {status}"]
            said.append(output)
    names = ", ".join(f"`{name.removeprefix('tests/')}`" for name in failed)
    return (
        f"| {host.name} | {passed} | {names or 'none'} | {time.monotonic() - start:.0f} s |",
        not failed,
        "\n".join(said),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", nargs="*", default=[], help="parts of their names; all if left out")
    parser.add_argument("--files", nargs="*", default=[], help="parts of their names; all if left out")
    parser.add_argument("-j", type=int, default=2, help="hosts at a time")
    given = parser.parse_args()
    hosts = [h for h in HOSTS if not given.hosts or any(part in h.name for part in given.hosts)]
    number = turn()

    def files(host):
        every = FILES + dealt(host, number)
        return tuple(f for f in every if not given.files or any(part in f for part in given.files))

    lines, bad = ["| host | passed | failed | time |", "|---|---|---|---|"], 0
    print("\n".join(lines), flush=True)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.j) as pool:
        for line, passed, said in pool.map(lambda host: row(host, files(host), Path(folder)), hosts):
            lines.append(line)
            print(line, flush=True)
            if not passed:
                bad += 1
                print(said[-4000:], file=sys.stderr, flush=True)
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    passed = sum(int(found[1]) for found in (re.match(r"\| [^|]* \| (\d+) \|", line) for line in lines) if found)
    print(f"{len(hosts)} hosts, {passed} tests passed, {bad or 'no'} host{'' if bad == 1 else 's'} with failures")
    return 0 if passed and not bad else 1


if __name__ == "__main__":
    sys.exit(main())
