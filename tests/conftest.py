"""Settings of the tests: float64, no silent rank promotion, warnings are errors; `--slow` adds the long ones.

Tests marked `interpreted` run without compilation; what they check is checked compiled, too, by others. A session
of `-m "not optimised"` compiles without XLA's optimisation, and so does one of the slow tests of these. Compiled programs
are kept in a folder, for other processes, for a process that has dropped them, and for the next run.
"""

import atexit
import gc
import os
from contextlib import nullcontext
from fnmatch import fnmatchcase as fnmatch
from itertools import count
from pathlib import Path

import jax
import pytest

from jaxmbs.batching import disk_cache
from jaxmbs.dynamics.state.calling import with_room
from tests.lowering import share_contexts
from tests.sessions import drawn, optimised

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")

KEPT = {
    "jax_compilation_cache_dir": str(Path(__file__).parent.parent / ".pytest_cache" / "compiled"),
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
    "jax_persistent_cache_enable_xla_caches": "none",  # else programs are known by the path of the folder as well
}
for option, value in KEPT.items():
    jax.config.update(option, value)
    os.environ[option.upper()] = str(value)  # for the commands that tests start

if "PYTEST_XDIST_WORKER" in os.environ:
    atexit.register(os._exit, 0)  # before JAX takes its programs apart one by one, after all that tests register

share_contexts()
gc.disable()  # until all is imported: a third of the start would be a search among what stays

# XLA without LLVM's optimisation and its newer emitters: a fifth of the time to compile, the same mathematics
QUICKLY = ("not optimised", "slow and not optimised")  # sessions that run so
QUICK = "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"
if jax.__version_info__ < (0, 11):  # XLA ends a process that names an option which is no more
    QUICK += " --xla_cpu_use_fusion_emitters=false"


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the tests marked slow too")
    parser.addoption(
        "--share", type=int, default=1, help="of the files that are not optimised one in so many, by commit"
    )


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: minutes; only with --slow")
    config.addinivalue_line("markers", "usually(*variants): patterns of the variants that are not slow")
    config.addinivalue_line("markers", "optimised: compiled as for a user, with all of XLA's optimisation")
    config.addinivalue_line("markers", "cpu: of programs for a CPU; not where JAX computes on something else")
    config.addinivalue_line("markers", "interpreted: not compiled, which is quicker for a single evaluation")
    config.addinivalue_line("filterwarnings", "error")
    flags = os.environ.get("XLA_FLAGS", "")  # a worker has those of its session
    if config.getoption("markexpr") in QUICKLY and QUICK not in flags:
        os.environ["XLA_FLAGS"] = f"{QUICK} {flags}".strip()  # before XLA reads them
    # by JAX 0.12; a kernel for GPUs that replaces it needs one to be tested on
    config.addinivalue_line("filterwarnings", "ignore:The Pallas Triton backend is deprecated:DeprecationWarning")
    # another process is writing the entry: the program is compiled here
    config.addinivalue_line("filterwarnings", "ignore:Error reading persistent compilation cache")


def pytest_ignore_collect(collection_path, config):
    """Neither of the two sessions imports the files of the other."""
    if collection_path.suffix != ".py":
        return None
    other = {"optimised": False, **dict.fromkeys(QUICKLY, True)}.get(config.getoption("markexpr"))
    return (
        True if optimised(collection_path) is other or not drawn(collection_path, config.getoption("share")) else None
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    for item in items:
        if optimised(item.path):
            item.add_marker("optimised")
        usual = item.get_closest_marker("usually")
        if usual and not any(fnmatch(item.callspec.id, pattern) for pattern in usual.args):
            item.add_marker("slow")
    if not any("::" in argument for argument in config.args):  # all variants of a test are there
        _check_usual(items)
    if not config.getoption("--slow"):
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]


def _check_usual(items):
    """A pattern that no variant has would leave a test out unseen."""
    known = {}
    for item in items:
        if marker := item.get_closest_marker("usually"):
            known.setdefault((item.parent.nodeid, item.originalname, marker.args), []).append(item.callspec.id)
    for (_, name, patterns), variants in known.items():
        if idle := [p for p in patterns if not any(fnmatch(v, p) for v in variants)]:
            raise pytest.UsageError(f"{name}: no variant is called {', '.join(idle)}; there are {', '.join(variants)}")


def pytest_collection_finish(session):
    gc.freeze()  # what is imported stays: no need to search it for garbage again and again
    gc.enable()
    gc.set_threshold(500_000, 20, 20)  # tracing makes many objects and little garbage


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish():
    gc.collect()
    gc.freeze()  # pytest searches five times more


def pytest_runtest_setup(item):
    if item.get_closest_marker("cpu") and jax.default_backend() != "cpu":
        pytest.skip("of programs for a CPU")


MOST_MAPS = 40_000  # Linux allows a process 65,530; XLA crashes where it gets no more


def pytest_runtest_teardown(item, nextitem, tests=count(1)):
    """Every compiled program holds some mappings of memory; a process that tests for long drops the old ones."""
    maps = Path("/proc/self/maps")
    # counted after every tenth test, for to count them takes as long as a short test; a long one makes thousands of them
    due = next(tests) % 10 == 0 or item.get_closest_marker("slow")
    if due and maps.exists() and maps.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()
        gc.collect()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Tests trace deep below pytest's own calls."""
    pyfuncitem.obj = with_room(pyfuncitem.obj)


@pytest.fixture(autouse=True)
def interpreted(request):
    """Compiling takes seconds, one evaluation operation by operation less than one; what is compiled is kept whole."""
    changed = "monkeypatch" in request.fixturenames  # what a program is made of, perhaps
    disk_cache.FOLDER = None if changed else Path(KEPT["jax_compilation_cache_dir"])
    with jax.disable_jit() if request.node.get_closest_marker("interpreted") else nullcontext():
        yield
