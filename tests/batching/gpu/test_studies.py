"""Studies whose samples are computed by kernels for a GPU, run on the CPU instruction by instruction."""

import dataclasses

import jax
import numpy as np
import pytest

from jaxmbs.batching import mapped_program
from jaxmbs.batching.machine import host
from jaxmbs.study import read
from jaxmbs.study.samples.batch import keys_of, precision, samples_of
from tests.batching.gpu.emulated import EMULATED
from tests.study.conftest import CART, EXAMPLE

pytestmark = pytest.mark.cpu
ROWS = 64


def samples(path, monkeypatch, target):
    """{label: results} of the first samples, and how many kernels computed them."""
    calls = []

    def call(*given):
        calls.append(given)
        return target.call(*given)

    monkeypatch.setenv("JAXMBS_KERNELS", "machine")
    monkeypatch.setattr(mapped_program.machine, "MACHINE", dataclasses.replace(target, call=call))
    study = read(path)
    return samples_of(study, precision())(keys_of(study), np.arange(ROWS, dtype=np.uint32)), len(calls)


@pytest.mark.parametrize("name", ["cart", pytest.param("stage separation", marks=pytest.mark.slow)])
def test_samples_have_the_bits_of_machine_code(name, tmp_path, monkeypatch):
    """Draws, a motion with events, outputs that are folded on the way, and a status: one kernel."""
    path = EXAMPLE
    if name == "cart":
        path = tmp_path / "cart.toml"
        path.write_text(CART, encoding="utf-8")
    machine = mapped_program.machine.MACHINE
    want, _ = samples(path, monkeypatch, machine)
    got, kernels = samples(path, monkeypatch, EMULATED)
    assert kernels == 1
    for label, x in want.items():
        if host.processor().fuses:
            np.testing.assert_array_equal(got[label], x, err_msg=label)
        else:
            np.testing.assert_allclose(got[label], x, rtol=1e-9, atol=1e-9, err_msg=label)
    jax.clear_caches()  # of programs that call these targets
