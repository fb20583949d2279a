"""Hosts that a machine can pretend to be: other processors, cores, locales, folders, limits, orders of tests."""

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.sessions import optimised

ROOT = Path(__file__).parent.parent.parent
COPIED = (
    "jaxmbs",
    "tests",
    "examples",
    "docs",
    "benchmarks",
    "pyproject.toml",
    "README.md",
    "CONTRIBUTING.md",
    "Makefile",
)
LIMIT = 1800  # seconds for the files of one session


@dataclass(frozen=True)
class Host:
    """One way in which a host differs.

    variables: of its environment; shell: what sh does first; options: of pytest; has: what the processor must be able to do,
    by its name in /proc/cpuinfo; program: what must be installed; elsewhere: name of the folder that the project stands in;
    alone: each file in a process of its own.
    """

    name: str
    variables: Mapping[str, str] = field(default_factory=dict)
    shell: str = ""
    options: tuple[str, ...] = ()
    has: str = ""
    program: str = ""
    elsewhere: str = ""
    alone: bool = False


def _of_blas(core: str, has: str = "") -> Host:
    return Host(f"OpenBLAS for {core}", {"OPENBLAS_CORETYPE": core}, has=has)


def _of_xla(isa: str, has: str) -> Host:
    return Host(f"XLA for {isa}", {"XLA_FLAGS": f"--xla_cpu_max_isa={isa}"}, has=has)


def _threads(n: int) -> dict[str, str]:
    return {name: str(n) for name in ("NPROC", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "PYTHON_CPU_COUNT")}


HOSTS = (
    _of_blas("Prescott"),
    _of_blas("Haswell", "avx2"),
    _of_blas("Zen", "avx2"),
    _of_blas("SkylakeX", "avx512vl"),
    _of_xla("SSE4_2", "sse4_2"),
    _of_xla("AVX2", "avx2"),
    _of_xla("AVX512", "avx512f"),
    Host("functions as XLA makes them", {"JAXMBS_KERNELS": "xla"}),
    Host("kernels as machine code", {"JAXMBS_KERNELS": "machine"}),
    Host("one core", _threads(1), "taskset -cp 0 $$ >/dev/null && ", program="taskset"),
    Host("sixteen cores", _threads(16)),  # as many threads, whatever there is
    Host("C locale", {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    Host("folder with blanks and umlauts", elsewhere="Prüfstand für Räder"),
    Host("home that cannot be written", {"HOME": "/dev/null/home", "XDG_CACHE_HOME": "", "XDG_CONFIG_HOME": ""}),
    Host("time zone and umask of others", {"TZ": "Pacific/Chatham"}, "umask 077 && "),
    Host("256 open files", shell="ulimit -n 256 && "),
    Host("random order", options=("--random-order", "--random-order-bucket=global")),
    Host("each file alone", alone=True),
)

# what computes, and is quick: on every host
FILES = (
    "spatial/test_scalars.py", "dynamics/test_jacobian.py", "dynamics/test_manifold.py", "dynamics/state/test_calling.py",
    "dynamics/recursive/test_rnea.py", "dynamics/recursive/test_crba.py", "dynamics/recursive/test_armature.py",
    "dynamics/constrained/test_metric.py", "dynamics/constrained/test_redundant.py", "dynamics/constrained/test_planes.py",
    "dynamics/formulations/test_bias_parts.py", "absolute/test_consistent.py", "model/test_graph.py",
    "simulate/test_grid.py", "simulate/test_guards.py", "simulate/test_assembly.py", "stability/test_equilibrium.py",
    "stability/test_linearize.py", "library/test_library.py", "io/test_urdf.py",
    "batching/test_batches.py", "batching/test_machine.py", "batching/test_movement.py", "batching/test_disk_cache.py",
)  # fmt: skip
# whose files are dealt among the hosts, another share with each commit
FOLDERS = (
    "absolute", "batching", "design", "dynamics", "environment", "exporting", "flexible", "geometry", "io", "library",
    "model", "simulate", "spatial", "stability", "study", "symbolic", "view",
)  # fmt: skip
# of which `make test` runs one on one host
SHARE = (
    "spatial/test_scalars.py", "dynamics/test_jacobian.py", "dynamics/constrained/test_metric.py", "model/test_graph.py",
    "simulate/test_grid.py", "batching/test_movement.py",
)  # fmt: skip


def dealt(host: Host, number: int) -> tuple[str, ...]:
    """The files that a host runs beside those that all do; together the hosts run every file that computes."""
    tests = ROOT / "tests"
    found = sorted(str(p.relative_to(tests)) for folder in FOLDERS for p in (tests / folder).rglob("test_*.py"))
    rest = [file for file in found if file not in FILES]
    return tuple(rest[(HOSTS.index(host) + number) % len(HOSTS) :: len(HOSTS)])


@functools.cache
def abilities() -> frozenset[str]:
    """What the processor can do; everything where the system does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    return frozenset(word for line in lines if line.startswith(("flags", "Features")) for word in line.split())


def obstacle(host: Host) -> str:
    """Why this machine cannot be that host; empty if it can."""
    if host.has and host.has not in abilities():
        return f"the processor has no {host.has}"
    if host.program and not shutil.which(host.program):
        return f"{host.program} is not installed"
    return "" if os.name == "posix" or not host.shell else "it takes a POSIX shell"


def sessions(host: Host, files: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Files of the same process; as `make test` does, programs whose bits are the subject are compiled with optimisation."""
    parts = [tuple(f for f in files if optimised(Path(f)) is kind) for kind in (False, True)]
    return [one for part in parts if part for one in ([(f,) for f in part] if host.alone else [part])]


def ran(host: Host, files: tuple[str, ...], folder: Path) -> tuple[int, str]:
    """(exit status, output) of the files' tests on a host; folder: where the project is copied to, if that is the host."""
    root = _copied(folder / host.elsewhere) if host.elsewhere else ROOT
    marked = "optimised" if optimised(Path(files[0])) else "not optimised"
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "-m", marked, *host.options]
    command += [f"tests/{f}" for f in files]
    # a worker of the session that asks is none here, and its choices are not this host's
    given = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "XLA_FLAGS", "JAXMBS_KERNELS"))}
    given |= {"PYTHONPATH": str(root)} | dict(host.variables)
    if host.shell:
        command = ["sh", "-c", host.shell + 'exec "$@"', "sh", *command]
    done = subprocess.run(
        command, cwd=root, env=given, capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=LIMIT,
        check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def _copied(root: Path) -> Path:
    """A copy of the project, made once."""
    if not root.exists():
        root.mkdir(parents=True)
        for name in COPIED:
            source, skipped = ROOT / name, shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, root / name, ignore=skipped) if source.is_dir() else shutil.copy(
                source, root / name
            )
    return root
