"""Measured and mixed distributions, correlations, plans: test statistics, each with a control that must fail."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.stats.qmc import discrepancy

from jaxmbs.io import InputError
from jaxmbs.io.columns import columns
from jaxmbs.study import read, run
from jaxmbs.study.distributions.base import Normal, Uniform, quantiles
from jaxmbs.study.distributions.tables import Discrete, Empirical, Mixture, Part
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.described import read_study
from jaxmbs.study.results.provenance import provenance
from jaxmbs.study.samples.batch import draws_of, halves, study_key
from jaxmbs.study.sampling import designs
from jaxmbs.study.sampling.designs import SamplingPlan, permuted
from tests.study.test_samplers import drawn

N = 20_000
LOT = "serial,mass,x\n1,1.0,10\n2,1.5,15\n3,1.2,12\n4,2.0,20\n"
MIXTURE = Mixture(
    distribution="mixture",
    parts=[
        Part(weight=3.0, of=Normal(distribution="normal", mean=1.0, std=0.1)),
        Part(weight=1.0, of=Uniform(distribution="uniform", low=0.0, high=3.0)),
    ],
)


def draws(path, n=N):
    study = read(path)
    d = study.dispersions
    keys = d.keys(study_key(*halves(study.seed)))
    found = jax.jit(jax.vmap(lambda i: d.draw(keys, i, np.float64)))(jnp.arange(n, dtype=jnp.uint32))
    return {name: np.asarray(x) for name, x in d.split(found).items()}


# --- distributions ----------------------------------------------------------------------------------------------------


def test_discrete_values_come_as_often_as_their_weights():
    table = Discrete(distribution="discrete", values=(3.0, 1.0, 2.0), weights=(5.0, 2.0, 3.0))
    x = drawn(table, 0.0)[:, 0]
    counts = [np.count_nonzero(x == v) for v in (3.0, 1.0, 2.0)]
    assert sum(counts) == N and stats.chisquare(counts, N * np.array([0.5, 0.2, 0.3])).pvalue > 1e-3
    assert stats.chisquare(counts, N * np.array([0.48, 0.22, 0.3])).pvalue < 1e-3
    law = table.components(np.zeros(1), 1.0)
    assert law.middle == [2.5] or law.middle == [3.0] or law.middle == [2.0]
    assert law.spread == pytest.approx([x.std()], rel=0.02)


def test_weights_are_not_negative_nor_all_zero():
    for weights in ((2.0, -1.0, 1.0), (0.0, 0.0, 0.0)):
        with pytest.raises(ValueError, match="weights must be zero or more, and not all zero"):
            Discrete(distribution="discrete", values=(3.0, 1.0, 2.0), weights=weights).components(np.zeros(1), 1.0)


def test_tables_of_spreadsheets_are_read():
    mass, note = columns("\ufeffmass, note\r\n1.5, 1\r\n\r\n2.5, 2\r\n".encode(), "lot.csv", ["mass", "note"])
    assert mass.tolist() == [1.5, 2.5] and note.tolist() == [1.0, 2.0]


def test_a_table_with_an_open_quotation_mark_is_refused():
    with pytest.raises(ValueError, match=r"lot.csv.*is a quotation mark left open"):
        columns(b'mass\n"1.5\n' + b"2.5\n" * 40_000, "lot.csv", ["mass"])


def test_measured_values_are_drawn_as_they_are_and_between(tmp_path):
    data = np.sort(np.random.default_rng(1).normal(size=40))
    (tmp_path / "lot.csv").write_text("a\n" + "\n".join(map(repr, data.tolist())), encoding="utf-8")
    at = {"distribution": "empirical", "file": str(tmp_path / "lot.csv"), "columns": ["a"]}
    x = drawn(Empirical(**at), 0.0)[:, 0]
    assert set(x) == set(data)
    assert stats.chisquare([np.count_nonzero(x == v) for v in data]).pvalue > 1e-3
    table = Empirical(**at, between=True)
    y, law = drawn(table, 0.0)[:, 0], table.components(np.zeros(1), 1.0)
    cdf = lambda v: np.interp(v, data, np.linspace(0, 1, 40))  # noqa: E731
    assert stats.kstest(y, cdf).pvalue > 1e-3 and stats.kstest(y + 0.05, cdf).pvalue < 1e-3
    assert law.spread == pytest.approx([y.std()], rel=0.02) and law.middle == [np.median(data)]


def test_a_mixture_has_its_law_and_grows_with_the_uniform_number():
    x = drawn(MIXTURE, 0.0)[:, 0]
    cdf = lambda v: 0.75 * stats.norm(1, 0.1).cdf(v) + 0.25 * stats.uniform(0, 3).cdf(v)  # noqa: E731
    assert stats.kstest(x, cdf).pvalue > 1e-3
    assert stats.kstest(x, lambda v: 0.7 * stats.norm(1, 0.1).cdf(v) + 0.3 * stats.uniform(0, 3).cdf(v)).pvalue < 1e-3
    components = MIXTURE.components(np.zeros(1), 1.0)
    one = lambda s: quantiles(s, components, np.float64)[0]  # noqa: E731
    s = jnp.linspace(-0.999, 0.999, 41)[:, None]
    both = jax.jit(jax.vmap(jax.value_and_grad(one)))
    value, slope = both(s)
    assert np.all(np.diff(value) > 0)
    assert np.allclose(cdf(np.asarray(value)), (s[:, 0] + 1) / 2, atol=1e-12)
    ends = [both(s + h)[0] for h in (-1e-6, 1e-6)]
    assert np.allclose(slope[:, 0], (ends[1] - ends[0]) / 2e-6, rtol=1e-4)
    assert components.spread == pytest.approx([x.std()], rel=0.02)


def test_rows_of_a_file_are_drawn_whole(cart, tmp_path):
    """A mass and its place of one unit; numbers of different units never meet."""
    (tmp_path / "lot.csv").write_text(LOT, encoding="utf-8")
    added = """
[dispersions."cart.com"]
distribution = "empirical"
file = "lot.csv"
columns = ["x"]
draw = "unit"
common = true
unit = "mm"
apply = "add"
[simulation]"""
    path = cart(
        'distribution = "normal"\napply = "multiply"\nstd = 0.02',
        'distribution = "empirical"\napply = "multiply"\nfile = "lot.csv"\ncolumns = ["mass"]\ndraw = "unit"',
        "[simulation]", added,
    )  # fmt: skip
    x = draws(path, 2000)
    assert set(x["cart.mass"][:, 0]) == {1.0, 1.2, 1.5, 2.0}
    assert np.allclose(x["cart.com"][:, 0], 0.01 * x["cart.mass"][:, 0], rtol=1e-12)
    apart = path.read_text(encoding="utf-8").replace('draw = "unit"\ncommon', "common")
    path.write_text(apart, encoding="utf-8")
    y = draws(path, 2000)
    assert abs(np.corrcoef(y["cart.com"][:, 0], y["cart.mass"][:, 0])[0, 1]) < 0.1, "the control: two draws"


def test_measured_data_belong_to_the_run(cart, tmp_path):
    (tmp_path / "lot.csv").write_text(LOT, encoding="utf-8")
    path = cart('distribution = "normal"\napply = "multiply"\nstd = 0.02',
                'distribution = "empirical"\nfile = "lot.csv"\ncolumns = ["mass"]')  # fmt: skip
    study = read(path)
    store = stores.create(study, tmp_path / "run", provenance(study, 64, 64))
    assert (store.folder / "files" / "lot.csv").read_text(encoding="utf-8") == LOT
    read_study(stores.open_folder(store.folder))
    (store.folder / "files" / "lot.csv").write_text(LOT.replace("2.0", "2.1"), encoding="utf-8")
    with pytest.raises(InputError, match=r"lot\.csv: was changed"):
        stores.open_folder(store.folder)


# --- what goes together -----------------------------------------------------------------------------------------------


TIED = """
[[correlations]]
draws = ["cart.mass", "initial.rail.v", "spring.stiffness"]
kind = "{}"
matrix = [[1.0, 0.8, -0.3], [0.8, 1.0, 0.0], [-0.3, 0.0, 1.0]]
[simulation]"""


def test_correlated_draws(cart):
    path = cart("[simulation]", TIED.format("rank"))
    x = draws(path)
    drawn = [x[name][:, 0] for name in ("cart.mass", "initial.rail.v", "spring.stiffness")]
    wanted = np.array([[1, 0.8, -0.3], [0.8, 1, 0], [-0.3, 0, 1]])
    reach = 4.4 * (1 - wanted**2 + np.eye(3)) / np.sqrt(N)
    found = stats.spearmanr(drawn, axis=1).statistic
    assert np.all(np.abs(found - wanted) < reach)
    # what each draw is by itself has not changed
    assert stats.kstest(drawn[0], stats.norm(1, 0.02).cdf).pvalue > 1e-3
    assert stats.kstest(drawn[1], stats.uniform(-0.1, 0.2).cdf).pvalue > 1e-3
    scores = draws(cart("[simulation]", TIED.format("normal")))
    z = [scores["cart.mass"][:, 0], stats.norm.ppf((scores["initial.rail.v"][:, 0] + 0.1) / 0.2)]
    assert abs(np.corrcoef(z)[0, 1] - 0.8) < reach[0, 1]
    assert abs(stats.spearmanr(*z).statistic - 0.8) > reach[0, 1], "the control: correlations of another kind"


def test_a_covariance_of_the_components(cart):
    C = np.array([[4.0, 1.2, 0.0], [1.2, 1.0, -0.5], [0.0, -0.5, 9.0]])
    added = f'[dispersions."cart.com"]\ndistribution = "normal"\nunit = "mm"\ncovariance = {C.tolist()}\n[simulation]'
    x = draws(cart("[simulation]", added))["cart.com"]
    found = np.cov(x.T) * 1e6
    reach = 5 * np.sqrt((np.outer(np.diag(C), np.diag(C)) + C**2) / N)
    assert np.all(np.abs(found - C) < reach)
    assert not np.all(np.abs(found - np.diag(np.diag(C))) < reach), "the control: independent components"
    assert np.allclose(x.mean(0), [0.0, 0.1, 0.0], atol=1e-4)


WRONG = {
    "unknown": ('"cart.mass", ', '"cart.mas", ', 'no draw "cart.mas"'),
    "indefinite": ("[[1.0, 0.8, -0.3], [0.8, 1.0, 0.0]", "[[1.0, 0.9, -0.9], [0.9, 1.0, 0.9]", "symmetric|eigenvalue"),
    "diagonal": ("[[1.0, 0.8", "[[2.0, 0.8", "1 on the diagonal"),
    "rows": (", [-0.3, 0.0, 1.0]]", "]", "list of 2 numbers"),
    "twice": ('"spring.stiffness"]', '"cart.mass"]', "appears twice"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_correlations_are_refused(cart, case):
    old, new, said = WRONG[case]
    path = cart("[simulation]", TIED.format("normal").replace(old, new))
    with pytest.raises(InputError, match=said):
        read(path)


REFUSED = {
    "no column": ('columns = ["mass"]', 'columns = ["weight"]', 'no column "weight"'),
    "no number": ('columns = ["mass"]', 'columns = ["note"]', 'line 3: note is "b"'),
    "no file": ("lot.csv", "lots.csv", "cannot be read from the folder"),
    "elsewhere": ("lot.csv", "../lot.csv", "not a bare file name"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_data_are_refused(cart, tmp_path, case):
    (tmp_path / "lot.csv").write_text("mass,note\n1,1\n2,b\n", encoding="utf-8")
    old, new, said = REFUSED[case]
    text = 'distribution = "empirical"\nfile = "lot.csv"\ncolumns = ["mass"]'
    with pytest.raises(InputError, match=said):
        read(cart('distribution = "normal"\napply = "multiply"\nstd = 0.02', text.replace(old, new)))


def test_samples_of_a_day_share_what_is_known_then(cart):
    path = cart("std = 0.02", "std = 0.02\nknown = true", "seed = 7", "seed = 7\nper_day = 10")
    x = draws(path, 1000)
    mass, other = x["cart.mass"].reshape(100, 10), x["spring.stiffness"].reshape(100, 10)
    assert np.all(np.ptp(mass, axis=1) == 0) and np.all(np.ptp(other, axis=1) > 0)
    assert len(np.unique(mass)) == 100 and stats.kstest(mass[:, 0], stats.norm(1, 0.02).cdf).pvalue > 1e-3
    assert "one day" in read(path).dependence
    with pytest.raises(InputError, match="no dispersion has known"):
        read(cart("seed = 7", "seed = 7\nper_day = 10"))


# --- plans ------------------------------------------------------------------------------------------------------------


def design(kind, n, inputs=3, levels=(0.1, 0.5, 0.9), seed=4):
    return SamplingPlan(kind, tuple(f"x{i}" for i in range(inputs)), n, seed, levels)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 64, 1000])
def test_permutations_by_index(n):
    whole = permuted(np.arange(n), n, 99)
    assert sorted(whole) == list(range(n))
    assert np.array_equal(permuted(np.arange(n)[n // 2 :], n, 99), whole[n // 2 :])
    if n == 1000:
        assert stats.kstest(whole[:100] / n, "uniform").pvalue > 1e-3, "the first ones lie anywhere"
        assert abs(np.corrcoef(whole, np.arange(n))[0, 1]) < 0.1
        assert abs(np.corrcoef(whole, permuted(np.arange(n), n, 98))[0, 1]) < 0.1


@pytest.mark.parametrize(
    "kind", ["latin_hypercube", "sobol", "halton", "saltelli", "morris", "factorial", "one_at_a_time"]
)
def test_points_are_a_function_of_the_index(kind):
    n = {"factorial": 27, "one_at_a_time": 10, "saltelli": 50, "morris": 40}.get(kind, 100)
    d = design(kind, n)
    whole = d.points(0, n)
    assert whole.shape == (n, 3) and np.all((whole > 0) & (whole < 1))
    parts = np.concatenate([d.points(a, b) for a, b in ((0, 7), (7, 8), (8, n))])
    assert np.array_equal(whole, parts)


@pytest.mark.parametrize("kind", ["latin_hypercube", "sobol", "halton"])
def test_plans_are_more_even_than_chance(kind):
    x = design(kind, 256).points(0, 256)
    random = [discrepancy(np.random.default_rng(s).uniform(size=(256, 3))) for s in range(20)]
    assert discrepancy(x) < min(random)
    slices = np.sort(np.floor(x[:, 1] * 256 + 1e-9))
    stratified = np.array_equal(slices, np.arange(256))
    assert stratified == (kind != "halton"), "one point in each slice, of Latin hypercubes and of 2^k Sobol points"
    assert all(stats.kstest(c, "uniform").pvalue > 1e-3 for c in x.T)


def test_the_largest_fraction_stays_on_the_grid_of_morris(monkeypatch):
    """All bits set: (2^53 - 1/2) / 2^53 is nearer to 1 than to any other number, and 1 is a level beyond the last."""
    monkeypatch.setattr(designs, "mixed", lambda x: np.full_like(x, 2**64 - 1))
    x = design("morris", 4).points(0, 4)
    assert x.min() >= 0.02 and x.max() <= 0.98


def test_points_of_a_latin_hypercube_lie_anywhere_in_their_slices():
    x = design("latin_hypercube", 1000).points(0, 1000) * 1000
    within = x - np.floor(x)
    assert all(stats.kstest(c, "uniform").pvalue > 1e-3 for c in within.T)
    assert np.abs(np.corrcoef(np.column_stack([within, x]).T) - np.eye(6)).max() < 0.15


def test_sweeps():
    x = design("factorial", 27).points(0, 27)
    assert len(np.unique(x, axis=0)) == 27 and set(x.ravel()) == {0.1, 0.5, 0.9}
    y = design("one_at_a_time", 10).points(0, 10)
    assert np.all(y[0] == 0.5) and np.all((y != 0.5).sum(1) <= 1) and np.array_equal(y[4], [0.5, 0.1, 0.5])


def test_groups_for_sensitivities():
    x = design("saltelli", 50).points(0, 50).reshape(10, 5, 3)
    a, b = x[:, 0], x[:, -1]
    for j in range(3):
        assert np.array_equal(x[:, 1 + j, j], b[:, j]) and np.array_equal(
            np.delete(x[:, 1 + j], j, 1), np.delete(a, j, 1)
        )
    walks = design("morris", 4000).points(0, 4000).reshape(1000, 4, 3)
    steps = np.diff(walks, axis=1)
    assert np.all((np.abs(steps) > 1e-9).sum(2) == 1) and np.all((np.abs(steps) > 1e-9).sum(1) == 1)
    assert np.allclose(np.abs(steps).max(2), 0.96 * 2 / 3)
    assert np.allclose(sorted(set(np.round(walks.ravel(), 12))), 0.02 + 0.96 * np.arange(4) / 3)
    orders = [tuple(np.abs(s).argmax(1)) for s in steps]
    assert stats.chisquare([orders.count(o) for o in set(orders)]).pvalue > 1e-3 and len(set(orders)) == 6


@pytest.mark.slow
def test_a_run_takes_the_points_of_its_plan(cart, tmp_path):
    """A run in blocks, its samples repeated one by one, and its own number of samples as part of the key."""
    from jaxmbs.study import repeat

    path = cart("seed = 7", 'seed = 7\ndesign = "latin_hypercube"')
    store = run(read(path), 200, tmp_path / "run", 64)
    data = store.dataset()
    v = np.sort((data["initial.rail.v"].values + 0.1) / 0.2 * 200)
    assert np.array_equal(np.floor(v), np.arange(200))
    study = read(path).of_size(200)
    some = [0, 63, 64, 199]
    assert np.allclose(draws_of(study, some, float)[:, 2], data["initial.rail.v"].values[some], rtol=1e-14)
    assert np.allclose(repeat(study, some).outputs["reach"], data["reach"].values[some], rtol=1e-12)
    with pytest.raises(InputError, match="depends on the number of samples"):
        repeat(read(path), [3])
    sweep = cart("seed = 7", 'seed = 7\ndesign = "one_at_a_time"')
    assert read(sweep).of_size(None).n == 10
    with pytest.raises(InputError, match="has 10 samples here, not 200"):
        read(sweep).of_size(200)
