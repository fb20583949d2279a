"""Everything that the project can check of itself, one stage after another: `make test-release`, about two hours.

Writes a table after each stage: what passed, how long it took, on which machine, from which commit. It is release.md
beside this file, and one line on it goes into the README and the manual, between marks that are there for it. Stages may be
run by themselves, on different days: they join the table as long as nothing but this has changed since its commit. Seeded
faults may change, too, and this file: then the stage of the faults alone has to run again, and says at which commit it did.
"""

import os
import platform
import re
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parent.parent
TABLE = Path(__file__).with_name("release.md")
PAGES = {"README.md": "tests/release.md", "docs/index.md": "../tests/release.md"}  # and the table as seen from there
WRITTEN = ("tests/release.md", "tests/io/robots.md", *PAGES)  # by the stages; of a page, only its line
CATALOGUE = ("tests/faults/*.toml", "tests/release.py", "tests/test_release.py")  # what the other stages do not check
BEGIN, END = "<!-- last release check -->", "<!-- end -->"
STAGES = {
    "default": ("default tests, lint and types", "test"),
    "again": ("the same, nothing changed (aim: 7 CPU minutes)", "test"),
    "slow": ("all tests, the long ones and published results too", "test-slow"),
    "hosts": ("the tests that compute, as on other hosts", "test-hosts"),
    "robots": ("a public collection of robots", "test-robots"),
    "faults": ("seeded faults that the tests notice", "test-faults"),
    "newest": ("default tests with the newest Python and JAX", "test-newest"),
}
FAULTS = STAGES["faults"][0]


def git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout.strip()


def ran(target):
    """(exit status, output, wall seconds, CPU seconds) of a make target; its output is shown as it comes."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    lines = []
    command = ["make", "--no-print-directory", target]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8") as run:
        for line in run.stdout:
            sys.stdout.write(line)
            lines.append(line)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return run.returncode, "".join(lines), time.monotonic() - start, cpu


def outcome(status, output):
    """In words: what pytest counted last in each of its sessions and what these ran on, or what the stage said last."""
    counted = re.findall(r"^(?:=+ )?(\d+ (?:passed|failed).*?) in ", output, re.MULTILINE)
    counted += re.findall(r"^on Python .*$", output, re.MULTILINE)
    said = "; ".join(counted) or next((x.strip() for x in reversed(output.splitlines()) if x.strip()), "nothing")
    return said if status == 0 else f"**failed** (exit status {status}): {said}"


def unchanged(since, until=None, apart=()):
    """Whether nothing but what is written here, and files apart, has changed between two commits; until = None: the work
    tree."""
    others = [f":!{x}" for x in (*WRITTEN, *apart)]
    command = ["git", "diff", "--quiet", since, *([until] if until else []), "--", ".", *others]
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        return False
    pages = [[told(page(name, revision), "") for name in PAGES] for revision in (since, until)]
    return pages[0] == pages[1]


def page(name, revision):
    """The text of a page in a commit; revision = None: in the work tree."""
    return git("show", f"{revision}:{name}") if revision else (ROOT / name).read_text(encoding="utf-8").strip()


def before():
    """(commit, {stage: its row as it stands in the table}) of earlier stages with the same code; this commit and none."""
    text = TABLE.read_text(encoding="utf-8") if TABLE.exists() else ""
    found = re.search(r"from commit (\w+)\. ", text)
    rows = {row.split(" | ")[0].removeprefix("| "): row for row in text.splitlines()[6:]}
    if found and unchanged(found[1], "HEAD"):
        return found[1], rows
    if found and unchanged(found[1], "HEAD", CATALOGUE):
        of_faults = rows.get(FAULTS, "")
        again = re.search(r"at (\w+), ", of_faults)
        return found[1], rows if again and unchanged(again[1], "HEAD") else {
            k: x for k, x in rows.items() if k != FAULTS
        }
    return git("rev-parse", "--short", "HEAD"), {}


def table(rows):
    """The table with these rows and those before."""
    commit, found = before()
    if not unchanged(commit, "HEAD"):
        newer = f"at {git('rev-parse', '--short', 'HEAD')}, where the list of faults is newer: "
        rows = [(name, newer + said if name == FAULTS else said, wall, cpu) for name, said, wall, cpu in rows]
    changed = "" if unchanged("HEAD") else " and changes that are not committed"
    machine = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"
    head = (
        f"# The last run of everything\n\nWritten by `make test-release` on {datetime.now(UTC):%Y-%m-%d}, from commit "
        f"{commit}{changed}. The last stage ran on {machine}, "
        f"Python {platform.python_version()}.\n\n| stage | outcome | minutes | CPU minutes |\n|---|---|---|---|\n"
    )
    found |= {name: f"| {name} | {said} | {wall / 60:.1f} | {cpu / 60:.1f} |" for name, said, wall, cpu in rows}
    return head + "".join(f"{found[name]}\n" for name, _ in STAGES.values() if name in found)


def line(text, link):
    """What a page says of a table."""
    date, commit = re.search(r" on (\S+), from commit (\w+)", text).groups()
    ran, failed = sum(f"| {name} |" in text for name, _ in STAGES.values()), text.count("**failed**")
    said = f"{failed} of {ran} stages failed" if failed else "all passed"
    if ran < len(STAGES):
        said += f", {ran} of {len(STAGES)} stages so far"
    return f"[Last check of everything]({link}): {date}, commit {commit}, {said}."


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


def main(names):
    rows, failed = [], False
    for key in names or STAGES:
        name, target = STAGES[key]
        status, output, wall, cpu = ran(target)
        failed |= status != 0
        rows.append((name, outcome(status, output), wall, cpu))
        TABLE.write_text(table(rows), encoding="utf-8")  # what is known stays if a later stage is stopped
        tell()
    print(TABLE.read_text(encoding="utf-8"))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
