"""Which seeded faults the tests miss: `make test-faults`, or python -m tests.faults.run [-j N] [--all] [part of a name ...].

Each fault goes alone into a copy of the project, where the tests that it names must fail; with --all the whole default suite
runs in their place. First the named tests must pass without any fault. A worker imports what the tests need once and forks
for every fault (POSIX): most of the tests take less time than these imports.
"""

import argparse
import compileall
import contextlib
import importlib
import multiprocessing
import os
import py_compile
import re
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.catalogue import ROOT, faults, faulty, missing_tests

COPIED = (
    "jaxmbs",
    "tests",
    "examples",
    "benchmarks",
    "docs",
    "pyproject.toml",
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "Makefile",
)
IMPORTED = (
    "jax", "jax.numpy", "jax.scipy.linalg", "equinox", "optimistix", "lineax", "pytest", "_pytest.assertion.rewrite",
    "hypothesis", "scipy.stats", "pinocchio", "mujoco", "pydantic", "rich.console", "typer.testing", "xarray", "zarr",
    "matplotlib.figure", "sympy",
)  # fmt: skip
LIMIT = 1200  # seconds for one fault
PASSED, FAILED, NONE = 0, 1, 5  # pytest's exit codes; the others mean that something else went wrong
SESSIONS = "not optimised", "optimised"  # those of `make test`: most programs are compiled without optimisation


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


def prepare():
    """Import what tests import, but nothing of the project, and start no backend."""
    for name in IMPORTED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for name in [x for x in sys.modules if x.split(".")[0] in ("jaxmbs", "tests")]:
        del sys.modules[name]
    sys.path[:] = [x for x in sys.path if x not in ("", str(ROOT))]
    sys.dont_write_bytecode = True


def sessions(folder, *arguments):
    """(exit code, output) of the tests in a copy, those that are compiled with optimisation last and by themselves."""
    codes = set()
    for marked in SESSIONS:
        code, output = pytest(folder, "-m", marked, *arguments)
        if code not in (PASSED, NONE):
            return code, output
        codes.add(code)
    return min(codes), output


def pytest(folder, *arguments):
    """The same in one session, a process of its own."""
    said = folder / "output"
    child = os.fork()
    if not child:
        code = 3
        try:
            signal.alarm(LIMIT)
            out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(out, 1)
            os.dup2(out, 2)
            os.chdir(folder)
            sys.path.insert(0, str(folder))
            os.environ |= {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
            code = int(sys.modules["pytest"].main(["-q", "--tb=line", "-p", "no:cacheprovider", *arguments]))
        finally:
            sys.stdout.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), said.read_text(errors="replace", encoding="utf-8")


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
    right = path.read_text(encoding="utf-8")
    path.write_text(text, encoding="utf-8")
    try:
        code, output = sessions(folder, "-x", *(() if everything else fault.tests))
    finally:
        path.write_text(right, encoding="utf-8")
    if code == FAILED:
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
        return True, f"by {failed[1]}" if failed else "caught"
    if code == PASSED:
        return False, "SURVIVED"
    last = output.strip().splitlines()[-1:] or ["nothing said"]
    return False, f"after {LIMIT} s still running" if code == -signal.SIGALRM else f"NOT RUN (pytest {code}): {last[0]}"


def work(folder, waiting, done, everything):
    """A worker: (index, whether a test failed, what to say, seconds) of one fault after another."""
    chosen, place = faults(), workplace(folder)
    prepare()
    while (k := waiting.get()) is not None:
        begin = time.monotonic()
        if k == "baseline":
            code, output = sessions(
                place, *sorted({test for f in chosen if f.name in everything[1] for test in f.tests})
            )
            done.put((k, code == PASSED, output, time.monotonic() - begin))
        else:
            done.put((k, *verdict(chosen[k], place, everything[0]), time.monotonic() - begin))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-j", type=int, default=2, help="how many at a time")
    parser.add_argument("--all", action="store_true", help="the whole default suite for each fault")
    parser.add_argument("--no-baseline", action="store_true", help="do not run the tests without faults first")
    parser.add_argument("parts", nargs="*", help="parts of names or files; without any, all faults")
    options = parser.parse_args()
    known = faults()
    chosen = [
        k for k, f in enumerate(known) if not options.parts or any(x in f"{f.file}: {f.name}" for x in options.parts)
    ]
    if not chosen:
        parser.error(f"no fault has {' or '.join(map(repr, options.parts))} in its file or name")
    jobs = [*([] if options.no_baseline or options.all else ["baseline"]), *chosen]
    context = multiprocessing.get_context("spawn")
    waiting, done = context.Queue(), context.Queue()
    for job in (*jobs, *[None] * options.j):
        waiting.put(job)
    missed = 0
    with tempfile.TemporaryDirectory() as temporary:
        said = options.all, {known[k].name for k in chosen}
        for i in range(options.j):
            context.Process(target=work, args=(Path(temporary) / f"{i}", waiting, done, said), daemon=True).start()
        for _ in jobs:
            k, caught, words, seconds = done.get()
            missed += not caught
            if k == "baseline":
                print(
                    "without a fault the tests pass" if caught else f"!!\t{words}\nThese tests fail without any fault."
                )
                continue
            print(f"{'' if caught else '!!'}\t{known[k].file}: {known[k].name}\t{words}\t{seconds:.0f} s", flush=True)
    print(f"{len(chosen)} faults, {missed} not caught")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
