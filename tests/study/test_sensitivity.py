"""Indices of Ishigami's function and of a separation in closed form; pairs of runs; rare failures of a study."""

import numpy as np
import pytest
from scipy import stats

from jaxmbs.io import InputError
from jaxmbs.study import read, run
from jaxmbs.study.sampling.designs import SamplingPlan
from jaxmbs.study.statistics.comparison import compared, paired_numbers, paired_shares
from jaxmbs.study.statistics.sensitivity import elementary_effects, sensitivity, sobol_indices

NAMES = ("a", "b", "c")


def design(kind, groups):
    n = groups * {"saltelli": 5, "morris": 4}[kind]
    return SamplingPlan(kind, NAMES, n, 3, (0.5,))


def ishigami(points):
    x, y, z = np.pi * (2 * points.T - 1)
    return np.sin(x) + 7 * np.sin(y) ** 2 + 0.1 * z**4 * np.sin(x)


def test_sobol_indices_of_ishigami():
    """First and total indices in closed form (Ishigami and Homma 1990), and beside SciPy's estimator."""
    d = design("saltelli", 4096)
    y = ishigami(d.points(0, d.n))
    found = sobol_indices(d, y, np.ones(d.n, bool))
    b, V = 0.1 * np.pi**4, 0.5 + 49 / 8 + 0.1 * np.pi**4 / 5 + 0.01 * np.pi**8 / 18
    first = [0.5 * (1 + b / 5) ** 2 / V, 49 / 8 / V, 0.0]
    both = 8 / 225 * b**2 / V
    total = [first[0] + both, first[1], both]
    for k, name in enumerate(NAMES):
        assert found[name]["first"] == pytest.approx(first[k], abs=0.02)
        assert found[name]["total"] == pytest.approx(total[k], abs=0.02)
    theirs = stats.sobol_indices(func=lambda x: ishigami((x.T / np.pi + 1) / 2).reshape(1, -1), n=4096,
                                 dists=[stats.uniform(-np.pi, 2 * np.pi)] * 3, rng=1)  # fmt: skip
    assert np.allclose(theirs.total_order, [found[n]["total"] for n in NAMES], atol=0.02)
    # the control: samples that are not in the groups of the plan
    mixed = sobol_indices(d, np.random.default_rng(0).permutation(y), np.ones(d.n, bool))
    assert abs(mixed["b"]["first"] - first[1]) > 0.2


def test_groups_with_a_failed_sample_are_left_out():
    d = design("saltelli", 1024)
    y, rows = ishigami(d.points(0, d.n)), np.ones(d.n, bool)
    y[7], rows[5:10] = np.nan, False
    assert sobol_indices(d, y, rows)["b"]["first"] == pytest.approx(0.442, abs=0.05)


def test_elementary_effects():
    """2 a - b, and c with a square of its own: sizes as they are, a deviation only where it bends."""
    d = design("morris", 60)
    x = d.points(0, d.n)
    found = elementary_effects(d, 2 * x[:, 0] - x[:, 1] + 3 * x[:, 2] ** 2, np.ones(d.n, bool))
    assert found["a"]["mean"] == pytest.approx(2.0) and found["b"]["mean"] == pytest.approx(-1.0)
    assert found["b"]["mean_size"] == pytest.approx(1.0) and found["a"]["deviation"] < 1e-9 < found["c"]["deviation"]


FREE = """
criteria = ["speed < 1.5 m/s"]
[mechanism]
name = "separation"
[[mechanism.bodies]]
name = "payload"
mass = 2.0
inertia = [0.1, 0.1, 0.1]
[[mechanism.joints]]
name = "rail"
type = "prismatic"
axis = [1.0, 0.0, 0.0]
parent = "world"
child = "payload"
[initial.rail]
v = [1.0]
[dispersions.spring]
target = "initial.rail.v"
distribution = "normal"
apply = "add"
std = 0.1
[dispersions.shock]
target = "initial.rail.v"
distribution = "uniform"
apply = "add"
low = -0.1
high = 0.1
[simulation]
t_end = 0.01
dt = 5e-3
[study]
seed = 5
[outputs.speed]
type = "joint_velocity"
joint = "rail"
"""


@pytest.fixture
def separation(tmp_path):
    def write(old="", new="", name="separation.toml"):
        assert old in FREE
        path = tmp_path / name
        path.write_text(FREE.replace(old, new) if old else FREE, encoding="utf-8")
        return path

    return write


@pytest.mark.slow
def test_a_separation_in_closed_form(separation, tmp_path):
    """A payload leaves with the sum of two speeds: shares of the variance 0.01 and 0.01/3."""
    plan = read(separation("seed = 5", 'seed = 5\ndesign = "saltelli"', "plan.toml"))
    store = run(plan, 4 * 512, tmp_path / "run", 256)
    found = sensitivity(store.folder)["outputs"]["speed"]["inputs"]
    assert list(found) == ["spring", "shock"]
    for name, share in (("spring", 0.75), ("shock", 0.25)):
        assert found[name]["first"] == pytest.approx(share, abs=0.05)
        assert found[name]["total"] == pytest.approx(share, abs=0.05)
    with pytest.raises(InputError, match="groups of 4 samples; take 8 in place of 9"):
        plan.of_size(9)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two runs with the same draws, one with a slightly stronger spring."""
    folder = tmp_path_factory.mktemp("pair")
    stores = []
    for k, speed in enumerate((1.0, 1.002)):
        (folder / f"{k}.toml").write_text(
            FREE.replace("v = [1.0]", f"v = [{speed}]").replace("1.5 m/s", "1.05 m/s"), encoding="utf-8"
        )
        stores.append(run(read(folder / f"{k}.toml"), 400, folder / f"run{k}", 128))
    return stores


def test_runs_with_the_same_draws_are_compared_in_pairs(pair):
    found = compared(pair[0].folder, pair[1].folder)
    (speed,), (criterion,) = found["outputs"], found["criteria"]
    assert found["paired"] == 400
    assert speed["low"] - 1e-9 <= 0.002 <= speed["high"] + 1e-9 and speed["chance"] < 1e-6
    x, y = (p.dataset()["speed"].values for p in pair)
    assert stats.ks_2samp(x, y).pvalue > 0.5, "the control: unpaired, nothing shows"
    assert criterion["only_a"] == np.count_nonzero((x < 1.05) & (y >= 1.05)) and criterion["only_b"] == 0


def test_tests_of_pairs():
    a, b = np.array([True] * 12 + [False] * 3 + [True] * 50), np.array([False] * 12 + [True] * 3 + [True] * 50)
    assert paired_shares(a, b)["chance"] == pytest.approx(2 * stats.binom.cdf(3, 15, 0.5))
    x = np.random.default_rng(0).normal(size=50)
    assert paired_numbers(x, x)["chance"] == 1.0
    found = paired_numbers(x, x + 0.5 + 0.1 * x[::-1])
    assert found["low"] < 0.5 < found["high"] and found["chance"] < 1e-6


def test_rank_correlations_of_a_run(pair):
    found = sensitivity(pair[0].folder)["outputs"]["speed"]["inputs"]
    data = pair[0].dataset()
    for name in ("spring", "shock"):
        r = stats.spearmanr(data[name], data["speed"]).statistic
        assert found[name]["rank_correlation"] == pytest.approx(r) and found[name]["low"] < r < found[name]["high"]


@pytest.mark.slow
def test_a_rare_failure_of_a_study(separation, command, pair):
    """speed > 1.5 m/s: a normal number and a uniform one, by quadrature; the worst case at three standard deviations."""
    import json

    path = separation()
    done = command("rare", path, "-n", "4000", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    s = np.linspace(-0.1, 0.1, 20001)
    exact = np.trapezoid(stats.norm.sf((0.5 - s) / 0.1), s) / 0.2
    assert exact < 4e-6
    by = {e["method"]: e for e in found["estimates"]}
    sampled = by["importance sampling"]
    assert sampled["low"] < exact < sampled["high"] < 1.5 * sampled["low"] and found["simulations"] < 10_000
    assert by["second order"]["probability"] == pytest.approx(exact, rel=0.3)
    angle = np.linspace(0, 2 * np.pi, 20001)
    worst = np.max(1 + 0.3 * np.cos(angle) + 0.1 * (2 * stats.norm.cdf(3 * np.sin(angle)) - 1))
    assert found["worst"]["margin"] == pytest.approx(1.5 - worst, abs=1e-4)
    assert found["worst"]["replayed"] == pytest.approx(found["worst"]["margin"], abs=1e-9)
    assert done.stderr.startswith(f"reading {path}") and "search for failures: " in done.stderr
    shown = command("rare", path, "-n", "200", "--quiet", "--json")
    assert shown.stderr == "" and json.loads(shown.stdout)["estimates"]
    assert "most probable failure" in command("rare", path, "-n", "200").stdout
    assert command("rare", path, "--of", pair[0].folder).returncode == 1


@pytest.mark.slow
def test_derivatives_of_a_study(separation):
    from jaxmbs.study.statistics.sensitivity import derivatives

    (slopes,) = derivatives(read(separation()), 5).values()
    assert np.allclose(slopes[:, 0], -0.1) and np.all(slopes[:, 1] < 0)
