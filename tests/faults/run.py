"""Which seeded faults the tests miss: `make test-faults`, or python -m tests.faults.run [-j N] [--all] [part of a name ...].

Each fault goes alone into a copy of the project, where the tests that it names must fail; with --all the whole default suite
runs in their place. First the named tests must pass without any fault.
"""

import argparse
import compileall
import os
import py_compile
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.faults.catalogue import ROOT, faults, faulty, missing_tests

COPIED = ("jaxmbs", "tests", "examples", "benchmarks", "pyproject.toml", "README.md", "Makefile")
LIMIT = 1200  # seconds for one fault
PASSED, FAILED = 0, 1  # pytest's exit codes; the others mean that something else went wrong


def workplace(folder):
    """A copy of the project in which faults are seeded; compiled programs are kept for the next run."""
    folder.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    # checked by content: a fault may leave time and size of the file as they were
    compileall.compile_dir(folder, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
    kept = ROOT / ".pytest_cache" / "faulty"
    kept.mkdir(parents=True, exist_ok=True)
    (folder / ".pytest_cache").mkdir()
    (folder / ".pytest_cache" / "compiled").symlink_to(kept)
    return folder


def pytest(folder, *arguments):
    """(exit code or None after the limit, output) of the tests in a copy."""
    command = [sys.executable, "-m", "pytest", "-q", "--tb=line", "-p", "no:cacheprovider", *arguments]
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, timeout=LIMIT, text=True, capture_output=True, check=False
        )
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout + done.stderr


def verdict(fault, folder, everything):
    """(whether a test failed, what to say)."""
    if fault.equivalent:
        return True, f"equivalent: {fault.equivalent}"
    try:
        path, text = faulty(fault, folder)
    except ValueError as error:
        return False, str(error)
    if missing := missing_tests(fault, folder):
        return False, f"STALE: no test {', '.join(missing)}"
    right = path.read_text()
    path.write_text(text)
    try:
        code, output = pytest(folder, "-x", *(() if everything else fault.tests))
    finally:
        path.write_text(right)
    if code == FAILED:
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
        return True, f"by {failed[1]}" if failed else "caught"
    if code == PASSED:
        return False, "SURVIVED"
    last = output.strip().splitlines()[-1:] or ["nothing said"]
    return False, f"after {LIMIT} s still running" if code is None else f"NOT RUN (pytest {code}): {last[0]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-j", type=int, default=2, help="how many at a time")
    parser.add_argument("--all", action="store_true", help="the whole default suite for each fault")
    parser.add_argument("--no-baseline", action="store_true", help="do not run the tests without faults first")
    parser.add_argument("parts", nargs="*", help="parts of names or files; without any, all faults")
    options = parser.parse_args()
    chosen = [f for f in faults() if not options.parts or any(x in f"{f.file}: {f.name}" for x in options.parts)]
    with tempfile.TemporaryDirectory() as temporary:
        places: queue.Queue[Path] = queue.Queue()
        for i in range(options.j):
            places.put(workplace(Path(temporary) / f"{i}"))
        if not options.no_baseline and not options.all:
            place = places.get()
            code, output = pytest(place, "-n", str(options.j), *sorted({test for f in chosen for test in f.tests}))
            places.put(place)
            if code != PASSED:
                sys.exit(f"{output}\nThese tests fail without any fault.")

        def judge(fault):
            place, begin = places.get(), time.monotonic()
            try:
                caught, words = verdict(fault, place, options.all)
            finally:
                places.put(place)
            print(
                f"{'' if caught else '!!'}\t{fault.file}: {fault.name}\t{words}\t{time.monotonic() - begin:.0f} s",
                flush=True,
            )
            return caught

        with ThreadPoolExecutor(options.j) as pool:
            results = list(pool.map(judge, chosen))
    print(f"{len(results)} faults, {results.count(False)} not caught")
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
