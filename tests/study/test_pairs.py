"""Pairs of samples part by part, and several runs side by side."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from jaxmbs.io import InputError
from jaxmbs.study import read, run
from jaxmbs.study.results.columns import column
from jaxmbs.study.statistics import pairs
from jaxmbs.study.statistics.comparison import compared, paired_shares
from jaxmbs.study.trades import runs as runs_of
from jaxmbs.study.trades.runs import compared_runs
from tests.study.conftest import CART

N = 128


@pytest.mark.parametrize("part", [1, 3, 7, 100])
def test_parts_give_what_the_whole_gives(part, monkeypatch):
    monkeypatch.setattr(pairs, "PART", part)
    rng = np.random.default_rng(5)
    a, b = rng.normal(100.0, 1.0, 40), rng.normal(101.0, 2.0, 40)
    a[[3, 4]], b[[4, 9, 10]] = np.nan, np.nan
    d = (b - a)[np.isfinite(a + b)]
    found = pairs.differences_of(pairs.parts(column(a), b, 40))
    assert (found.count, found.lost, found.largest) == (len(d), 3, np.abs(d).max())
    assert found.size == max(np.nanmax(np.abs(a)), np.nanmax(np.abs(b)))
    assert found.mean == pytest.approx(d.mean(), rel=1e-13)
    wanted = stats.ttest_1samp(d, 0.0).confidence_interval(0.99)
    assert found.interval(0.01) == pytest.approx((wanted.low, wanted.high), rel=1e-12)
    x, y = (lambda z: z > 100.5), (lambda z: z < 101.5)
    numbers = pairs.met_in_one_only(pairs.parts(a, b, 40), (x, y))
    whole = paired_shares(x(a), y(b))
    assert numbers == (whole["only_a"], whole["only_b"]) and sum(numbers) > 5


def test_few_pairs_have_no_interval():
    a = np.arange(5.0)
    found = pairs.differences_of(pairs.parts(a, a + 1.0, 5))
    assert found.mean == 1.0 and np.isnan(found.interval(0.05)).all()
    nothing = pairs.differences_of(pairs.parts(a * np.nan, a, 5))
    assert (nothing.count, nothing.lost) == (0, 5) and np.isnan(nothing.mean)


def test_draws_are_compared_to_the_last_part(monkeypatch):
    monkeypatch.setattr(pairs, "PART", 4)
    study = SimpleNamespace(dispersions=SimpleNamespace(items=[SimpleNamespace(name="mass")]))
    x = np.arange(10.0)
    y = np.where(x == 9, -1.0, x)
    one, other = (
        SimpleNamespace(arrays=lambda z=z: {"d0": z}, labels=lambda study: SimpleNamespace(draws={"mass": "d0"}))
        for z in (x, y)
    )
    assert pairs.same_draws(study, one, study, other, 9) and not pairs.same_draws(study, one, study, other, 10)
    bare = SimpleNamespace(dispersions=SimpleNamespace(items=[]))
    assert not pairs.same_draws(study, one, bare, one, 10), "nothing was drawn in common"


# --- several runs -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs with the same draws of a cart with springs of its own, one of which has fewer samples and one output more, and
    one with another seed."""
    folder = tmp_path_factory.mktemp("runs")
    text = CART.replace("t_end = 0.2\ndt = 1e-3", "t_end = 0.2\ndt = 1e-2")
    for name, n, old, new in (
        ("one", N, "", ""),
        ("soft", N, "stiffness = 50.0", "stiffness = 49.0"),
        ("short", 64, '"speed < 0.9 m/s"', '"speed < 0.8 m/s"'),
        ("seed", 64, "seed = 7", "seed = 8"),
    ):
        assert old in text
        (folder / f"{name}.toml").write_text(text.replace(old, new, 1), encoding="utf-8")
        run(read(folder / f"{name}.toml"), n, folder / name)
    return folder


def test_several_runs_are_compared_with_the_first(folder, command):
    done = command("compare", "one", "soft", "short", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [(r["run"], r["samples"]) for r in found["runs"]] == [("one", N), ("soft", N), ("short", 64)]
    assert found["runs"][0]["file"] == [] and any("49.0" in line for line in found["runs"][1]["file"])
    assert found["left_out"] == ["speed < 0.8 m/s", "speed < 0.9 m/s"] and len(found["criteria"]) == 1
    for k, name in ((1, "soft"), (2, "short")):
        pair = compared(folder / "one", folder / name)
        assert pair["paired"] == found["runs"][k]["samples"]
        for entry, wanted in zip(found["outputs"], pair["outputs"], strict=True):
            row = entry["runs"][k]
            assert row["difference"] == pytest.approx(wanted["difference"], rel=1e-9, abs=1e-15)
            low, high = row["difference_low"], row["difference_high"]
            wide = stats.t.isf(0.0125, row["defined"] - 1) / stats.t.isf(0.025, row["defined"] - 1)
            assert high - low == pytest.approx(wide * (wanted["high"] - wanted["low"]), rel=1e-6, abs=1e-12)
    assert {r["said"] for o in found["outputs"] for r in o["runs"][1:2]} == {"lower"}
    assert {r["said"] for o in found["outputs"] for r in o["runs"][2:]} == {"the same in all samples"}
    shown = command("compare", "one", "soft", "short", cwd=folder)
    for word in ("3 runs, 64 to 128 samples of each", "baseline", "not of every run: speed < 0.8", "all runs at once"):
        assert word in shown.stdout


def test_what_cannot_be_compared_is_refused(folder, command, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises(InputError, match=r'seed: its draws are not those of "one".*two at a time'):
        compared_runs(["one", "soft", "seed"])
    with pytest.raises(InputError, match="one: is named twice"):
        compared_runs(["one", "soft", "one"])
    monkeypatch.setattr(runs_of.stores, "FINISHED", "nothing.json")
    with pytest.raises(InputError, match=r"one: is not finished; `jaxmbs resume one`"):
        compared_runs(["one", "soft", "short"])
    assert "name two or more" in command("compare", "one", cwd=folder).stderr
    three = command("compare", "one", "soft", "short", "--within", "1e-6", cwd=folder)
    assert three.returncode == 1 and "name two runs" in three.stderr
