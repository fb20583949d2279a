"""Fixtures for the handler that launches kernels with CUDA's driver."""

import itertools

import jax
import pytest

from jaxmbs.batching.gpu import calling, driver, ptx
from tests.batching.gpu.driver import Driver

NUMBERS = itertools.count()


@pytest.fixture
def fake(monkeypatch):
    made = Driver()
    monkeypatch.setattr(driver, "_driver", lambda: made)
    monkeypatch.setattr(driver, "_KEPT", {})
    monkeypatch.setattr(
        driver, "_PREFIX", f"jaxmbs_ptx_fake_{next(NUMBERS)}"
    )  # XLA keeps what was registered under a name
    return made


@pytest.fixture
def later(monkeypatch):
    """A version of JAX whose own call has not been checked."""
    jax.clear_caches()  # of programs with XLA's call
    monkeypatch.setattr(calling, "_CHECKED", (0, 0))
    monkeypatch.setattr(calling, "_ptx", lambda text: ptx.ptx(text, linked=False))
