"""The benchmarks compare equal things, say what is missing, and lose nothing they measured."""

import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import clearances, controller, flexible_arms, generated, limits, page, peers, solvers, suite
from docs import reference


@pytest.mark.slow
@pytest.mark.parametrize("function", [suite.FORWARD, suite.INVERSE, suite.MASS])
def test_peers_agree(function):
    row = suite.measure(suite.Case(function, "arm7", "float64", 3), repeats=7)
    assert row.times["jaxmbs"][0] > 0 and "Pinocchio" in row.errors
    assert ("MuJoCo" in row.errors) == (function == suite.FORWARD)
    assert all(error < 1e-9 for error in row.errors.values())
    assert "brax" in row.absent  # not installed with the tests, or not measured with three instances


def test_what_a_compiled_program_takes():
    case = suite.Case(suite.INVERSE, "arm7", "float64", 5)
    peaks = limits.peaks_of("NVIDIA H100 80GB HBM3")
    row = suite.measure(case, repeats=7, peaks=peaks)
    words = 4 * 7 * 8  # q, v, a in, tau out
    assert row.compiled["memory"] >= words and row.limit["moved"] == words and row.compiled["library calls"] == 0
    assert row.limit["by"] == "memory" and row.limit["ns"] == pytest.approx(words / 3.35e3)
    assert row.limit["reached"] == pytest.approx(row.limit["ns"] / row.times["jaxmbs"][0])
    assert limits.peaks_of("an unknown GPU") is None


def test_operations_are_counted():
    def polynomial(x):  # 3 of a cube by Horner's rule, a sine
        return ((x + 1.0) * x + 2.0) + jnp.sin(x)

    def turns(x):
        return jax.lax.scan(lambda y, _: (y * 1.5 + x, None), x, length=10)[0]

    numbers = jnp.ones(3)
    for fn, operations in ((polynomial, 4 + limits.SERIES["float64"]), (turns, 20)):
        found = limits.needs(fn, (numbers,), 0, "float64")
        assert found == {"operations": operations, "moved": 16}
        assert limits.traced(jax.make_jaxpr(fn)(1.0).jaxpr, "float64") == operations
    product = jax.make_jaxpr(lambda a, b: a @ b)(np.ones((3, 5)), np.ones((5, 7)))
    assert limits.traced(product.jaxpr, "float64") == 2 * 3 * 5 * 7


@pytest.mark.slow
def test_the_limit_is_the_larger_of_two():
    peaks = {"float64": 1e9, "float32": 2e9, "copy": {"1000": 1e10, "1000000": 1e9}}
    assert limits.limit(100, 8, 1, "float64", peaks) == (100.0, "arithmetic")
    assert limits.limit(100, 8, 1, "float32", peaks) == (50.0, "arithmetic")
    assert limits.limit(5, 80, 10, "float64", peaks) == (8.0, "memory")  # in the cache
    assert limits.limit(5, 80, 100_000, "float64", peaks) == (80.0, "memory")
    found = limits.peaks(rounds=1)
    assert found["float32"] > 1e8 and all(rate > 1e7 for rate in found["copy"].values())


@pytest.mark.slow
def test_xla_gives_the_same_without_our_kernels():
    case = suite.Case(suite.INVERSE, "arm7", "float64", 4)
    ours = suite.own(suite.robot("arm7"), case, suite.inputs(suite.robot("arm7"), case))
    there, here = ours.by_xla()(), ours.run()()
    assert np.abs(there - here).max() < 1e-10 and not np.array_equal(there, here)


@pytest.mark.slow
def test_a_free_base_in_pinocchio_and_what_it_cannot_do():
    case = suite.Case(suite.FORWARD, "humanoid30", "float64", 2)
    model = suite.robot("humanoid30")
    arrays = suite.inputs(model, case)
    run, as_ours = peers.Pinocchio(model, 1).task(suite.FORWARD, *arrays)
    expected = as_ours(run())
    ours = np.asarray(suite.own(model, case, arrays).run()())
    assert np.abs(ours - expected).max() < 1e-9 * np.abs(expected).max()
    with pytest.raises(peers.Absent, match="no rollout"):
        peers.Pinocchio(model, 1).task(suite.ROLLOUT, *arrays)
    with pytest.raises(peers.Absent, match="another frame"):
        peers.MuJoCo(model, 1).task(suite.FORWARD, *arrays)


def test_results_are_kept_and_merged(tmp_path):
    path = tmp_path / "machine.json"
    first, second = suite.CASES[0], suite.CASES[1]
    row = suite.Row(first, 1.0, {"jaxmbs": (1.0, 0.5, 2.0), "Pinocchio": (3.0, 2.0, 4.0)}, {"Pinocchio": 1e-14})
    suite.keep(path, suite.machine(), {first: row})
    suite.keep(path, suite.machine(), {second: suite.Row(second, 2.0, {"jaxmbs": (5.0, 5.0, 5.0)}, {})})
    kept = suite.kept(path)
    assert list(kept) == [first, second] and kept[first].ratio("Pinocchio") == 3.0


def test_what_became_slower_is_told():
    def rows(median, low, high):
        return {suite.CASES[0]: suite.Row(suite.CASES[0], 1.0, {"jaxmbs": (median, low, high)}, {})}

    kept = rows(100.0, 90.0, 120.0)
    assert not suite.regressions(rows(119.0, 110.0, 130.0), kept), "within the spreads"
    assert not suite.regressions(rows(60.0, 50.0, 70.0), kept) and not suite.regressions(kept, {})
    (told,) = suite.regressions(rows(150.0, 125.0, 160.0), kept)
    assert "100 -> 150 ns" in told


def test_absent_peers_name_the_remedy(monkeypatch):
    monkeypatch.delenv(generated.VARIABLE, raising=False)
    with pytest.raises(peers.Absent, match=r"CASADI_PYTHON does not name a Python with cmeel-casadi-kin-dyn"):
        generated.Generated(suite.robot("arm7"), 1)
    monkeypatch.setenv(generated.VARIABLE, sys.executable)  # which has no such package
    with pytest.raises(peers.Absent, match=r"writes no C: ModuleNotFoundError"):
        generated.Generated(suite.robot("arm7"), 1)
    with pytest.raises(peers.Absent, match=r"no_such_library is not installed \(pip install 'jaxmbs\[bench\]'\)"):
        peers.imported("no_such_library")


def test_tables_of_the_manual_are_those_of_the_saved_results():
    """`python -m benchmarks.page` writes them; every row of the table of speeds is one of the saved ones."""
    for path, text in page.pages().items():
        assert path.read_text(encoding="utf-8") == text
    lines = text.splitlines()
    rows = json.loads(solvers.RESULTS.read_text(encoding="utf-8"))["problems"]
    assert all(f"| {' | '.join(line)} |" in lines for line in solvers.summary(rows))
    other = page.rewritten("| a | b | 1 |\n| a | c | 1 |\n", [["a", "c", "2"], ["d", "b", "3"]], 2)
    assert other == "| a | b | 1 |\n| a | c | 2 |\n"


def test_a_solver_that_claims_an_optimum_wrongly_is_called_so():
    assert [solvers.ended({"found": f, "says": s}) for f, s in ((True, True), (False, True), (True, False))] == [
        "yes", "wrongly", "no",
    ]  # fmt: skip


@pytest.mark.slow
def test_arms_with_flexible_links_move_as_in_exudyn():
    """One arm whose links are as stiff as each other, two others in a batch; a run in which motions differ ends."""
    pytest.importorskip("exudyn", reason="needs pip install 'jaxmbs[bench]'")
    found = flexible_arms.arms_beside_exudyn(batches=(2,), alone=1)
    own, *theirs = found["rows"]
    assert own["arms"] == 2 and len(theirs) == len(flexible_arms.RADII)
    assert all(row["error"] < flexible_arms.ERROR and row["steps"] <= flexible_arms.MOST for row in found["rows"])
    modes = [{"what": "20 rigid links", "ns": 1000.0, "beside_links": 1.0}]
    page = "".join(reference._flexible_arms({"arms": found, "modes": modes}))
    assert "in turn | 1 |" in page and "| 1,000 |" in page


@pytest.mark.slow
def test_the_controller_that_samples_is_that_of_a_loop_over_samples():
    found = controller.measured(rows=4, dt=0.01, rounds=1)
    assert found["error"] < 1e-14 and found["ratio"] == pytest.approx(found["sampled_ns"] / found["without_ns"])
    text = "".join(reference._controller({"motions": [found]}))
    assert f"| 4 | 10 | {found['sampled_ns']:.0f} |" in text


@pytest.mark.slow
def test_distances_are_those_of_coal_and_least_gaps_no_more_than_at_the_steps(monkeypatch):
    monkeypatch.setattr(clearances, "SAMPLES", 8)
    monkeypatch.setattr(clearances, "PLACEMENTS", 256)
    apart, rows = clearances.distances(rounds=1), clearances.studies(rounds=1)
    assert apart["error"] < 1e-12 and len(rows) == 3
    assert all(row["excess"] < 1e-12 for row in rows)
    text = "".join(reference._clearances({"distances": apart, "studies": rows}))
    assert f"| two shapes part | {rows[0]['motion_ms']:.2f} |" in text


@pytest.mark.slow
def test_bodies_with_many_modes_beside_rigid_links():
    found = flexible_arms.modes_beside_links(rows=4)
    assert found[0]["beside_links"] == 1 and len(found) == 5
    assert all(row["error"] < 1e-8 and row["ns"] > 0 for row in found)
