"""The distribution: built, installed in an environment of its own, and used from an empty folder, as a user does.

`make dist` builds a source archive and a wheel in dist/, compares what is in them, and installs the wheel twice, in
temporary environments with no repository around: alone, and with the extra that studies need.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
NEVER = re.compile(r"(^|/)(\.venv|\.git|__pycache__)(/|$)|^(runs|build|dist)(/|$)|\.pyc$")
WHEEL_ALONE = """
import jaxmbs as mbs, numpy as np
from pathlib import Path
assert Path(mbs.__file__).is_relative_to({home!r}), mbs.__file__
model = mbs.library.double_pendulum().build()
run = mbs.simulate(model, np.array([0.5, 0.0]), np.zeros(2), 1.0, dt=0.01)
assert int(run.status) == 0 and abs(float(run.energy_error[-1])) < 1e-3
print("simulated", float(run.q[-1, 0]))
"""


def main() -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    ran([sys.executable, "-m", "build", "--outdir", DIST, ROOT])
    ran([sys.executable, "-m", "twine", "check", "--strict", *sorted(DIST.iterdir())])
    (wheel,), (source,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    check_contents(wheel, source)
    with tempfile.TemporaryDirectory(prefix="jaxmbs-dist-") as there:
        alone, whole = Path(there) / "alone", Path(there) / "whole"
        install(alone, str(wheel))
        use_alone(alone)
        install(whole, f"jaxmbs[study] @ {wheel.as_uri()}")
        use_with_studies(whole)
    print(f"built and tested: {wheel.name}, {source.name}")


def ran(command: list, folder: Path | None = None, code: int = 0) -> str:
    """Output of a command, which must end with this exit code."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=clean(),
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode != code:
        sys.exit(f"{command} ended with {done.returncode}, not {code}:\n{done.stdout}\n{done.stderr}")
    return done.stdout if code == 0 else done.stderr


def clean() -> dict[str, str]:
    """The environment without what would make Python find the repository."""
    found = {k: x for k, x in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV", "JAX"))}
    return found | {"JAX_PLATFORMS": "cpu", "JAXMBS_CACHE": "off", "PYTHONSAFEPATH": "1"}


def check_contents(wheel: Path, source: Path) -> None:
    """The wheel has the package and nothing else, with every file that is not Python; the source archive has all that the
    repository tracks of the package, its tests, examples and pages."""
    tracked = set(ran(["git", "ls-files"], ROOT).splitlines())
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = {name for name in archive.namelist() if ".dist-info/" not in name}
    with tarfile.open(source) as archive:
        in_source = {name.partition("/")[2] for name in archive.getnames() if "/" in name}
    package = {name for name in tracked if name.startswith("jaxmbs/")}
    problems = [f"the wheel lacks {name}" for name in sorted(package - in_wheel)]
    problems += [f"the wheel has {name}, which is no part of the package" for name in sorted(in_wheel - package)]
    wanted = {name for name in tracked if name.startswith(("jaxmbs/", "tests/", "examples/", "docs/"))}
    wanted |= {"README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", "Makefile"}
    problems += [f"the source archive lacks {name}" for name in sorted(wanted - in_source)]
    problems += [f"the source archive has {name}" for name in sorted(in_source) if NEVER.search(name)]
    if problems:
        sys.exit("\n".join(problems[:40]))


def install(home: Path, what: str) -> None:
    venv.create(home, with_pip=True, symlinks=True)
    ran([home / "bin" / "python", "-m", "pip", "install", "-q", what])
    ran([home / "bin" / "python", "-m", "pip", "check"])


def use_alone(home: Path) -> None:
    """Without extras: dynamics work, and the command line says what it needs."""
    folder = home / "empty"
    folder.mkdir()
    ran([home / "bin" / "python", "-c", WHEEL_ALONE.format(home=str(home))], folder)
    said = ran([home / "bin" / "jaxmbs", "--version"], folder, code=1)
    if "jaxmbs[study]" not in said:
        sys.exit(f"the command line without its packages says: {said}")


def use_with_studies(home: Path) -> None:
    """Every template is written and read; a study runs, is reported, verified, bundled and exported."""
    folder, jaxmbs = home / "empty", home / "bin" / "jaxmbs"
    folder.mkdir()
    ran([jaxmbs, "--version"], folder)
    for name in json.loads(ran([jaxmbs, "new", "--json"], folder)):
        ran([jaxmbs, "new", name], folder)
        ran([jaxmbs, "info", f"{name}.toml"], folder)
    ran([jaxmbs, "study", "study.toml", "-n", "128", "--out", "run"], folder)
    for command in (["report", "run"], ["verify", "run"], ["bundle", "run"], ["verify", "run.zip"], ["export", "run"]):
        ran([jaxmbs, *command], folder)
    ran([jaxmbs, "simulate", "study.toml", "--animate", "motion.html"], folder)


if __name__ == "__main__":
    main()
