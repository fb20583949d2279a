"""Importing jaxmbs and building a model start no backend and change no setting."""

import subprocess
import sys

import pytest

SCRIPT = """
import jax
from jax._src import xla_bridge
before = {k: v for k, v in jax.config.values.items()}
import jaxmbs as mbs
for make in (lambda: mbs.library.chain(3), mbs.library.arm7, mbs.library.humanoid30, mbs.library.double_pendulum,
             mbs.library.stage_separation):
    model = make().build()
mbs.set(model, {"payload.mass": 400.0}); mbs.get(model, "payload.mass"); mbs.free(model, ["payload.com"])
assert not xla_bridge.backends_are_initialized(), "a backend was started"
after = {k: v for k, v in jax.config.values.items()}
assert before == after, {k: (before.get(k), v) for k, v in after.items() if before.get(k) != v}
jax.numpy.zeros(1)
assert xla_bridge.backends_are_initialized()  # the question itself works
"""


@pytest.mark.slow
def test_import_and_build_touch_no_device():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr


def test_import_needs_the_core_dependencies_only():
    """What belongs to the extras is imported when it is used."""
    extras = ("mujoco", "pinocchio", "sympy", "viser", "typer", "rich", "pydantic", "xarray", "zarr", "matplotlib")
    script = f"import sys, jaxmbs; print([m for m in {extras!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, encoding="utf-8")
    assert done.stdout.strip() == "[]"
