"""Everything that the project can check of itself, one stage after another: `make test-release`, about two hours.

Writes a table after each stage: what passed, at which commit, how long it took. It is release.md beside this file, and one
line on it goes into the README and the manual, between marks that are there for it. Stages may be run by themselves, on
different days: they join the table as long as only tests, benchmarks, pages, comments and docstrings have changed since its
first commit. Where tests of a stage failed because they were wrong themselves, or by chance,
`-m tests.release STAGE --tests NAME ...` runs these again in it, and the row says both.
"""

import os
import platform
import re
import resource
import shlex
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.made_from import without_words

ROOT = Path(__file__).parent.parent
TABLE = Path(__file__).with_name("release.md")
PAGES = {"README.md": "tests/release.md", "docs/index.md": "../tests/release.md"}  # and the table as seen from there
APART = (
    "tests",
    "benchmarks",
    "docs",
    "Makefile",
)  # what may change on the way, with comments and docstrings elsewhere
NAMED = {"test-hosts": "HOSTS", "test-faults": "FAULTS"}  # what --tests names in these stages
FAILED = "**failed**"
BEGIN, END = "<!-- last release check -->", "<!-- end -->"
STAGES = {
    "default": ("default tests, lint and types", "test"),
    "again": ("the same, nothing changed (aim: 7 CPU minutes)", "test"),
    "slow": ("the long tests, published results too", "test-slow"),
    "share": ("one in sixteen of the other files, compiled as for a user", "test-share"),
    "hosts": ("the tests that compute, as on other hosts", "test-hosts"),
    "robots": ("a public collection of robots", "test-robots"),
    "faults": ("seeded faults that the tests notice", "test-faults"),
    "newest": ("default tests with the newest Python and JAX", "test-newest"),
    "gpu": ("kernels for GPUs that need not be there, with the lowest and the newest JAX", "test-gpu"),
}


def git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout.strip()


def ran(target, tests=()):
    """(exit status, output, wall seconds, CPU seconds) of a make target; its output is shown as it comes."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    lines = []
    some = f"{NAMED.get(target, 'TESTS')}={shlex.join(tests)}"
    command = ["make", "--no-print-directory", target, *([some] if tests else [])]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8") as run:
        for line in run.stdout:
            sys.stdout.write(line)
            lines.append(line)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return run.returncode, "".join(lines), time.monotonic() - start, cpu


def outcome(status, output):
    """In words: what pytest counted last in each of its sessions and what these ran on, or what the stage said last; and
    which tests failed."""
    counted = re.findall(r"^(?:=+ )?(\d+ (?:passed|failed).*?) in ", output, re.MULTILINE)
    counted += re.findall(r"^on Python .*$", output, re.MULTILINE)
    lines = [x.strip() for x in output.splitlines()]
    said = "; ".join(counted) or next((x for x in reversed(lines) if x and not x.startswith("make")), "nothing")
    failed = re.findall(r"^FAILED ([^ \n]+)", output, re.MULTILINE)
    hosts = re.findall(r"^\| ([^|]+) \| \d+ \| `[^|]*` \| \d+ s \|$", output, re.MULTILINE)
    failed = hosts or failed  # what `--tests` names in that stage
    failed += re.findall(r"^!!\t[^:\n]+: ([^\t\n]+)\t", output, re.MULTILINE)  # seeded faults
    return said if status == 0 else f"{FAILED} {said} {' '.join(f'`{name}`' for name in failed)}".rstrip()


def unchanged(since, until=None):
    """Whether two commits differ in tests, benchmarks, pages, comments and docstrings alone; until = None: the work tree."""
    try:
        names = git("diff", "--name-only", since, *([until] if until else []), "--", ".", *(f":!{x}" for x in APART))
    except subprocess.CalledProcessError:  # a commit that this clone lacks
        return False
    code = [name for name in names.splitlines() if not name.endswith(".md")]
    return all(name.endswith(".py") and statements(name, since) == statements(name, until) for name in code)


def statements(name, revision):
    """What Python executes of a file in a commit, None if it is not there; revision = None: in the work tree."""
    if revision:
        listed = git("ls-tree", "--name-only", revision, "--", name)
        return without_words(git("show", f"{revision}:{name}")) if listed else None
    path = ROOT / name
    return without_words(path.read_text(encoding="utf-8")) if path.exists() else None


def before():
    """{stage: its cells} of earlier stages, if only tests and words have changed since the first of their commits."""
    text = TABLE.read_text(encoding="utf-8") if TABLE.exists() else ""
    rows = [[x.strip() for x in row.strip("|").split(" | ")] for row in text.splitlines()[6:]]
    same = bool(rows) and all(unchanged(commit, "HEAD") for commit in {row[2] for row in rows})
    return {row[0]: row[1:] for row in rows} if same else {}


def again(row, here, tests, said):
    """The cells of a stage after files with tests of it have run once more: all that failed has to be in them, and pass."""
    before, *rest = row
    failed = re.findall(r"`([^`]+)`", before)
    mended = FAILED not in said and failed and all(name.startswith(tuple(tests)) for name in failed)
    before = before.replace(f"{FAILED} ", "")
    return [f"{before}; again at {here}: {said}" if mended else f"{FAILED} {before}; again at {here}: {said}", *rest]


def table(rows, tests=()):
    """The table with these rows, (stage, outcome, wall seconds, CPU seconds), and those before."""
    found, here = before(), git("rev-parse", "--short", "HEAD")
    changed = "" if unchanged("HEAD") else " Some had changes that are not committed."
    machine = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"
    head = (
        f"# The last run of everything\n\nWritten by `make test-release` on {datetime.now(UTC):%Y-%m-%d}; its commits "
        f"differ in tests, benchmarks, pages, comments and docstrings alone.{changed} The last stage ran on {machine}, "
        f"Python {platform.python_version()}.\n\n"
        "| stage | outcome | commit | minutes | CPU minutes |\n|---|---|---|---|---|\n"
    )
    for name, said, wall, cpu in rows:
        if tests and name in found:
            found[name] = again(found[name], here, tests, said)
        else:
            found[name] = [said, here, f"{wall / 60:.1f}", f"{cpu / 60:.1f}"]
    return head + "".join(f"| {' | '.join([name, *found[name]])} |\n" for name, _ in STAGES.values() if name in found)


def line(text, link):
    """What a page says of a table."""
    date = re.search(r" on (\S+);", text)[1]
    commits = dict.fromkeys(row.split(" | ")[2] for row in text.splitlines()[6:])
    ran, failed = sum(f"| {name} |" in text for name, _ in STAGES.values()), text.count(f"| {FAILED}")
    said = f"{failed} of {ran} stages failed" if failed else "all passed"
    if ran < len(STAGES):
        said += f", {ran} of {len(STAGES)} stages so far"
    return f"[Last check of everything]({link}): {date}, commit {', '.join(commits)}, {said}."


def told(page, said):
    """A page with another line between its marks."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}{said}{END}{rest.partition(END)[2]}"


def tell():
    """Say what the table says in every page that has its place."""
    text = TABLE.read_text(encoding="utf-8")
    for name, link in PAGES.items():
        page = (ROOT / name).read_text(encoding="utf-8")
        (ROOT / name).write_text(told(page, line(text, link)), encoding="utf-8")


def main(arguments):
    place = arguments.index("--tests") if "--tests" in arguments else len(arguments)
    asked, tests, failed = arguments[:place], arguments[place + 1 :], False
    for key in asked or STAGES:
        name, target = STAGES[key]
        status, output, wall, cpu = ran(target, tests)
        failed |= status != 0
        text = table([(name, outcome(status, output), wall, cpu)], tests)
        TABLE.write_text(text, encoding="utf-8")  # what is known stays if a later stage is stopped
        tell()
    print(TABLE.read_text(encoding="utf-8"))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
