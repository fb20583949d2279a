"""Draws: their distributions, and that they depend on nothing but study key, name, component and sample."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxmbs.study import read
from jaxmbs.study.distributions.base import (
    LARGEST_NORMAL,
    Lognormal,
    Normal,
    TruncatedNormal,
    Uniform,
    component_keys,
    quantiles,
    uniforms,
)
from jaxmbs.study.samples.batch import halves, study_key

N = 20_000
# distribution table, neutral value, law that the draws must have; one for every kind of each
LAWS = {
    "normal": (Normal(distribution="normal", mean=2.0, std=0.5), 0.0, stats.norm(2.0, 0.5)),
    "normal about the nominal": (Normal(distribution="normal", std=0.5), 3.0, stats.norm(3.0, 0.5)),
    "uniform": (Uniform(distribution="uniform", low=-1.0, high=3.0), 0.0, stats.uniform(-1.0, 4.0)),
    "lognormal": (Lognormal(distribution="lognormal", median=2.0, sigma=0.4), 1.0, stats.lognorm(0.4, scale=2.0)),
    "truncated on both sides": (
        TruncatedNormal(distribution="truncated_normal", mean=1.0, std=2.0, low=0.0, high=2.5),
        0.0,
        stats.truncnorm(-0.5, 0.75, loc=1.0, scale=2.0),
    ),
    "truncated below": (
        TruncatedNormal(distribution="truncated_normal", std=1.0, low=0.0),
        0.5,
        stats.truncnorm(-0.5, np.inf, loc=0.5),
    ),
    "truncated above": (
        TruncatedNormal(distribution="truncated_normal", mean=0.0, std=1.0, high=0.0),
        0.0,
        stats.truncnorm(-np.inf, 0.0),
    ),
}


def drawn(table, neutral, name="d", seed=1, n=N, k=1, dtype=np.float64, first=0):
    components = table.components(np.full(k, neutral), 1.0)
    keys = component_keys(study_key(*halves(seed)), name, k)
    index = jnp.arange(first, first + n, dtype=jnp.uint32)
    of = jax.vmap(lambda i: quantiles(uniforms(keys, i, dtype), components, dtype))
    return np.asarray(jax.jit(of)(index))


@pytest.mark.parametrize("law", LAWS)
def test_draws_have_their_law(law):
    table, neutral, expected = LAWS[law]
    x = drawn(table, neutral)[:, 0]
    assert stats.kstest(x, expected.cdf).pvalue > 1e-3
    # the test has power: a width or a place wrong by 5 % is found
    assert stats.kstest(x * 1.05, expected.cdf).pvalue < 1e-3 or law == "truncated above"
    assert stats.kstest(x + 0.05 * expected.std(), expected.cdf).pvalue < 1e-3


@pytest.mark.parametrize("law", LAWS)
def test_draws_stay_in_the_support_that_is_checked(law):
    table, neutral, expected = LAWS[law]
    low, high = (float(b[0]) for b in table.components(np.full(1, neutral), 1.0).support)
    x = drawn(table, neutral)
    assert np.all((x >= low) & (x <= high))
    # what the generator cannot reach has a probability below 1e-15 of the law itself
    assert expected.cdf(low) < 1e-15 + 1e-12 * (low == expected.support()[0])
    assert expected.sf(high) < 1e-15 + 1e-12 * (high == expected.support()[1])


@pytest.mark.parametrize("end", ["lowest", "highest"])
@pytest.mark.parametrize("law", LAWS)
def test_no_uniform_number_leads_beyond_the_largest_normal(law, end, monkeypatch):
    """Draws of the lowest and the highest number that the generator has lie in the support that is checked."""

    def uniform(key, shape, dtype, minval, maxval):
        share = np.asarray(0 if end == "lowest" else 1 - np.finfo(dtype).eps, dtype)  # of [0, 1)
        return jnp.maximum(minval, share * (maxval - minval) + minval)

    monkeypatch.setattr(jax.random, "uniform", uniform)
    table, neutral, _ = LAWS[law]
    low, high = (float(b[0]) for b in table.components(np.full(1, neutral), 1.0).support)
    for dtype, reach in ((np.float64, 8.0), (np.float32, 5.0)):
        x = drawn(table, neutral, n=1, dtype=dtype)[0, 0]
        assert low - np.finfo(dtype).eps <= x <= high + 4 * np.finfo(dtype).eps * abs(high), (x, low, high)
        if law == "normal":  # the support is no wider than it must be
            assert reach < abs(x - 2.0) / 0.5 < LARGEST_NORMAL


@pytest.mark.parametrize("law", LAWS)
def test_single_precision_draws_have_their_law_too(law):
    table, neutral, expected = LAWS[law]
    x = drawn(table, neutral, dtype=np.float32)
    assert x.dtype == np.float32
    assert stats.kstest(x[:, 0].astype(float), expected.cdf).pvalue > 1e-3


@pytest.mark.parametrize("table", [table for table, _, _ in LAWS.values() if not isinstance(table, Uniform)])
def test_zero_width_gives_zero_variance(table):
    width = "sigma" if isinstance(table, Lognormal) else "std"
    off = table.model_copy(update={width: 0.0})
    x = drawn(off, 1.0, n=100)
    assert np.ptp(x) == 0.0
    assert np.ptp(drawn(table, 1.0, n=100)) > 0.1  # and switched on it does not


def test_uniform_of_zero_width():
    assert np.ptp(drawn(Uniform(distribution="uniform", low=2.0, high=2.0), 0.0, n=100)) == 0.0


def test_components_names_and_seeds_are_independent():
    table = LAWS["normal"][0]
    x = drawn(table, 0.0, k=3)
    columns = [
        *x.T,
        drawn(table, 0.0, name="e")[:, 0],
        drawn(table, 0.0, seed=2)[:, 0],
        drawn(table, 0.0, first=1)[:, 0],
    ]
    correlation = np.corrcoef(columns) - np.eye(len(columns))
    assert np.abs(correlation).max() < 4 / np.sqrt(N)
    # neighbouring seeds share no sample, in any order
    assert not set(columns[0]) & set(columns[4])


def test_a_draw_is_a_function_of_key_name_and_index():
    table = LAWS["normal"][0]
    whole = drawn(table, 0.0, n=300, k=2)
    assert np.array_equal(whole[100:200], drawn(table, 0.0, n=100, k=2, first=100))
    assert np.array_equal(whole[:, :1], drawn(table, 0.0, n=300, k=1)), "a further component changes no other"


def test_the_bits_of_the_samples_stay():
    """A study that is run again years later is the same one; every bit of the seed counts."""
    table = Uniform(distribution="uniform", low=0.0, high=1.0)
    kept = {
        5: [["0x1.9672838425b52p-1", "0x1.937aa7f1d232ep-1"], ["0x1.c0fa654e5c40dp-2", "0x1.1a15803ce1290p-6"]],
        2**32 + 5: [["0x1.a9be1a3135fb2p-3", "0x1.15e8a52e6be72p-3"], ["0x1.bcbef3dfacfe4p-4", "0x1.fbc4b9192d106p-1"]],
    }
    for seed, rows in kept.items():
        x = drawn(table, 0.0, name="payload.mass", seed=seed, n=2, k=2, first=7)
        assert x.tolist() == [[float.fromhex(c) for c in row] for row in rows]


def test_another_dispersion_changes_no_draw_of_the_others(cart):
    key, index = study_key(*halves(7)), jnp.arange(64, dtype=jnp.uint32)

    def draws(path):
        d = read(path).dispersions
        keys = d.keys(key)
        flat = jax.vmap(lambda i: d.draw(keys, i, np.float64))(index)
        return {name: np.asarray(x) for name, x in d.split(flat).items()}

    added = '[dispersions."cart.com"]\ndistribution = "normal"\nstd = 0.1\n[dispersions."cart.mass"]'
    before, after = draws(cart()), draws(cart('[dispersions."cart.mass"]', added))
    assert set(after) - set(before) == {"cart.com"}
    for name, x in before.items():
        # the same random numbers; JAX 0.12 rounds what is made of them as the width of the array would have it
        np.testing.assert_allclose(x, after[name], rtol=4e-16, atol=1e-16, err_msg=name)
