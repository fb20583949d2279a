"""The settings that the tests rest on."""

import os

import jax
import jax.numpy as jnp

from tests.conftest import QUICK, QUICKLY


def test_only_a_session_without_optimised_tests_compiles_quickly(request):
    quick = QUICK in os.environ.get("XLA_FLAGS", "")
    assert quick == (request.config.getoption("markexpr") in QUICKLY)
    assert not (quick and any(item.get_closest_marker("optimised") for item in request.session.items))


def test_numbers_are_double_and_ranks_are_not_promoted():
    assert jnp.ones(1).dtype == jnp.float64 and jax.config.jax_numpy_rank_promotion == "raise"


def test_programs_are_lowered_in_one_context():
    """A new one each is a tenth of all that the tests take."""
    first, second = (jax.jit(lambda x, n=n: n * x).lower(1.0).compiler_ir() for n in (1, 2))
    assert first.context is second.context
