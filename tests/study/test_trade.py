"""Trade studies: differences of pairs as computed by hand, what is refused, what is kept and continued."""

import gc
import json
import shutil
import weakref
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binomtest, norm, t

import jaxmbs as mbs
from jaxmbs.io import InputError
from jaxmbs.study import Designs, Normal, read, trade
from jaxmbs.study.results import store as stores
from jaxmbs.study.runs import estimate as estimates
from jaxmbs.study.statistics.pairs import interval_of_shares
from jaxmbs.study.statistics.summary import summarize
from jaxmbs.study.trades import differences
from jaxmbs.study.trades import trade as trades
from jaxmbs.study.trades.rows import combinations, rows_of
from jaxmbs.study.trades.terminal import failed_said
from jaxmbs.study.units import unit
from tests.study.conftest import CART

SHORT = CART.replace('"reach > 90 mm", "speed < 0.9 m/s"', '"reach > 90 mm in 50 %", "speed < 0.82 m/s"').replace(
    "t_end = 0.2\ndt = 1e-3", "t_end = 0.2\ndt = 1e-2"
)
DESIGNS = """
study = "cart.toml"
baseline = "now"
[designs.soft]
"spring.stiffness" = 49
[designs.now]
[designs.again]
"spring.stiffness" = 50.0
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A trade study of three designs, the last of which equals the baseline."""
    folder = tmp_path_factory.mktemp("trade")
    (folder / "cart.toml").write_text(SHORT, encoding="utf-8")
    (folder / "designs.toml").write_text(DESIGNS, encoding="utf-8")
    trade(folder / "designs.toml", 128, folder / "out")
    return folder


@pytest.fixture(scope="module")
def found(folder):
    return json.loads((folder / "out" / "trade.json").read_text(encoding="utf-8"))


def rows(entry):
    return {row["design"]: row for row in entry["designs"]}


def test_differences_are_those_of_the_stores(folder, found):
    soft, now = (stores.open_folder(folder / "out" / name) for name in ("soft", "now"))
    for name in ("cart.mass", "spring.stiffness", "initial.rail.v"):
        one, other = (s.read([name])[name] for s in (soft, now))
        assert np.array_equal(one, other), "common random numbers"
    factors = {"reach": 1e-3, "speed": 1.0}
    for entry in found["outputs"]:
        x, y = (s.read([entry["output"]])[entry["output"]] / factors[entry["output"]] for s in (now, soft))
        reach = t.isf(0.025 / 2, 127) * (y - x).std(ddof=1) / np.sqrt(128)
        row = rows(entry)["soft"]
        wanted = [(y - x).mean(), (y - x).mean() - reach, (y - x).mean() + reach]
        got = [row[k] for k in ("difference", "difference_low", "difference_high")]
        assert got == pytest.approx(wanted, rel=1e-9) and row["said"] == "lower"
        assert row["median"] == pytest.approx(float(np.median(y)), rel=1e-12)
    reach = {s.folder.name: s.read(["reach"])["reach"] > 0.09 for s in (now, soft)}
    lost, gained = (int(np.sum(reach[a] & ~reach[b])) for a, b in (("now", "soft"), ("soft", "now")))
    row = rows(found["criteria"][0])["soft"]
    assert lost > 5 and (row["lost"], row["gained"]) == (lost, gained)
    assert row["difference"] == pytest.approx((gained - lost) / 128)
    assert row["chance"] == pytest.approx(binomtest(gained, gained + lost).pvalue)
    share = binomtest(row["met"], 128).proportion_ci(1 - 0.05 / 3, "exact")
    assert (row["low"], row["high"]) == pytest.approx((share.low, share.high), rel=1e-9)
    assert row["met"] == int(reach["soft"].sum())


def test_a_design_equal_to_the_baseline_differs_by_exactly_zero(found):
    for entry in (*found["criteria"], *found["outputs"]):
        row = rows(entry)["again"]
        assert row["said"] == "the same in all samples" and row["difference"] == 0
        assert "said" not in rows(entry)["now"], "the baseline"
    again = rows(found["criteria"][0])["again"]
    assert again["difference_low"] < 0 < again["difference_high"], "128 samples do not show that no sample differs"


def test_the_same_command_computes_nothing_again(folder, command, monkeypatch):
    for name in ("run", "resume"):
        monkeypatch.setattr(trades, name, lambda *x, **more: pytest.fail("computes"))
    done = command("trade", "designs.toml", "--out", "out", "-n", 128, cwd=folder)
    assert done.returncode == 0, done.stderr
    for word in (
        "soft",
        "baseline",
        "lower",
        "the same in all samples",
        "Bonferroni",
        "trade.html",
        "not distinguished",
    ):
        assert word in done.stdout
    said = json.loads(command("trade", "designs.toml", "--out", "out", "-n", 128, "--json", cwd=folder).stdout)
    assert said["samples"] == 128 and [d["design"] for d in said["designs"]] == ["soft", "now", "again"]
    page = (folder / "out" / "trade.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 8 and "reach &gt; 90 mm in 50 %" in page and "Content-Security-Policy" in page


def test_what_was_interrupted_is_continued(folder, tmp_path):
    shutil.copytree(folder / "out", tmp_path / "out")
    wanted = stores.open_folder(tmp_path / "out" / "soft").read(["reach"])["reach"]
    stores.open_folder(tmp_path / "out" / "soft").clear(64, 128)
    calls = []
    trade(folder / "designs.toml", 128, tmp_path / "out", progress=lambda *x: calls.append(x))
    assert ("soft", "run", 64, 128) in calls and ("soft", "run", 0, 128) not in calls
    assert {name for name, stage, *_ in calls if stage == "run"} == {"soft"}, "what is complete is kept"
    assert stores.open_folder(tmp_path / "out" / "soft").read(["reach"])["reach"] == pytest.approx(wanted, rel=1e-12)


def test_folders_of_other_runs_are_refused(folder):
    with pytest.raises(InputError, match=r"designs\.soft: .*soft contains a run of 128 samples, not 64; remove it"):
        trade(folder / "designs.toml", 64, folder / "out")
    with pytest.raises(InputError, match=r"blocks of 64 samples, not 128"):
        trade(folder / "designs.toml", 128, folder / "out", block_rows=128)
    study = read(folder / "cart.toml")
    with pytest.raises(InputError, match=r"designs\.soft: .* of another study"):
        trade(Designs(study, {"now": {}, "soft": {"spring.stiffness": 40.0}}), 128, folder / "out")


def test_unfinished_folders_of_other_versions_are_refused_before_anything_is_computed(folder, tmp_path, monkeypatch):
    """The last design's; the first is still to be computed."""
    shutil.copytree(folder / "out", tmp_path / "out")
    shutil.rmtree(tmp_path / "out" / "soft")
    stores.open_folder(tmp_path / "out" / "again").clear(64, 128)
    monkeypatch.setattr("jaxmbs.study.runs.run.differences", lambda then, now: ["jax: then 0.1, now 0.2"])
    monkeypatch.setattr(trades, "run", lambda *x, **more: pytest.fail("computes"))
    with pytest.raises(InputError, match=r"again: .*one kind \(jax: then 0\.1.*resume \S*again --other-versions"):
        trade(folder / "designs.toml", 128, tmp_path / "out")


def test_disk_space_is_that_for_all_designs_together(folder, tmp_path, monkeypatch):
    """Free is what two of three need; where one is complete already, it is enough."""
    study = read(folder / "cart.toml").of_size(128)
    free = 2.5 * estimates.estimate(study, 128).disk
    monkeypatch.setattr(estimates, "free_disk", lambda folder: free)
    for name in ("run", "resume"):
        monkeypatch.setattr(trades, name, lambda *x, **more: pytest.fail("computes"))
    with pytest.raises(InputError, match=r"3 runs with 384 samples need .* kB of disk, and .* kB are free"):
        trade(folder / "designs.toml", 128, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    shutil.copytree(folder / "out", tmp_path / "out")
    stores.open_folder(tmp_path / "out" / "soft").clear(64, 128)
    shutil.rmtree(tmp_path / "out" / "now")
    with pytest.raises(pytest.fail.Exception, match="computes"):
        trade(folder / "designs.toml", 128, tmp_path / "out")
    free = 1.4 * estimates.estimate(study, 128).disk
    with pytest.raises(InputError, match="2 runs with 192 samples"):
        trade(folder / "designs.toml", 128, tmp_path / "out")


def test_no_more_than_two_designs_are_in_memory(folder, monkeypatch):
    seen, alive = [], []

    def summarized(*given):
        gc.collect()
        alive.append(sum(x() is not None for x in seen))
        found = summarize(*given)
        seen.append(weakref.ref(found))
        return found

    monkeypatch.setattr(differences, "summarize", summarized)
    trade(folder / "designs.toml", 128, folder / "out")
    assert alive == [0, 1, 1], "the baseline's numbers alone when the next design is read"


def test_samples_that_failed_are_said():
    """A mean of the others alone would hide them."""
    designs = [
        {"design": "a", "samples": 2000, "failed": 0, "computed_otherwise": [], "folder": "out/a"},
        {
            "design": "b",
            "samples": 2000,
            "failed": 3,
            "computed_otherwise": ["jax: then 0.1, now 0.2"],
            "folder": "out/b",
        },
    ]
    first, second = failed_said({"designs": designs})
    assert first == "b: 3 of 2,000 samples failed and meet no criterion; see `jaxmbs report out/b`"
    assert second == "b: computed otherwise than the baseline (jax: the baseline 0.1, this design 0.2)"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: x, "the same in all samples"),
        (lambda x: x + 1e-12, "differs by rounding only"),
        (lambda x: x + np.where(x > 0, np.nan, 0.0), "not distinguished"),
        (lambda x: x * np.nan, "not known"),
        (lambda x: x[::-1], "not distinguished"),
        (lambda x: x - 1.0 + x**2, "lower"),
        (lambda x: x + 0.1, "higher"),
    ],
)
def test_what_is_said_of_a_difference(change, said):
    x = np.linspace(-1.0, 1.0, 20)
    store = SimpleNamespace(provenance={"precision": "float64"}, n=len(x))
    a, b = (SimpleNamespace(store=store, summary=SimpleNamespace(outputs={"x": y})) for y in (x, change(x)))
    common = differences.Compared({}, {"x": unit("m")}, 2, "")
    found = differences._change_of_output(a, b, "x", 1.0, common)  # pyright: ignore[reportArgumentType]
    assert found["said"] == said


REFUSED = [
    ("49", '"49"', r'designs\.soft\."spring\.stiffness": needs a number'),
    ('"spring.stiffness" = 49', '"spring.stifness" = 49', r'"spring\.stifness".*did you mean "spring\.stiffness"'),
    ('"spring.stiffness" = 49', '"initial.rail.v" = 0.1', r'dispersions\."initial\.rail\.v" .*replaces.*"add" or "mul'),
    ('"spring.stiffness" = 49', '"initial.rail.q" = [0.1, 0.2]', r"designs\.soft: .*has 2 numbers; it needs 1"),
    ('"spring.stiffness" = 49', '"cart.mass" = -1', r"designs\.soft: .*cart\.mass"),
    ("[designs.soft]", '[designs."a/b"]', r'designs\."a/b": the name cannot be that of a folder'),
    ("[designs.soft]", "[designs.nul]", r"designs\.nul: the name cannot be"),
    ("[designs.soft]", "[designs.Now]", r'designs\.now: differs from "Now" in case only'),
    ('baseline = "now"', 'baseline = "nwo"', r'baseline: there is no design "nwo"; did you mean "now"'),
    ('study = "cart.toml"', 'study = "../cart.toml"', r"study: .*is not a bare file name"),
    ("[designs.soft]", "[sweep]\n[designs.soft]", None),
    ("[designs.soft]", '[sweep]\n"cart.mass" = [1]\n[designs.soft]', r"write one of .*has designs and sweep"),
    ("baseline =", "base =", r'base: unknown key .*did you mean "baseline"'),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "said"), REFUSED, ids=lambda x: str(x)[:30])
def test_what_is_wrong_is_said_before_anything_is_computed(tmp_path, old, new, said):
    (tmp_path / "cart.toml").write_text(SHORT, encoding="utf-8")
    (tmp_path / "designs.toml").write_text(DESIGNS.replace(old, new, 1), encoding="utf-8")
    if said is None:
        assert len(Designs.read(tmp_path / "designs.toml").values) == 3, "an empty table is none"
        return
    with pytest.raises(InputError, match=said):
        trade(tmp_path / "designs.toml", 64, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_keys_of_a_file_of_designs(command):
    done = command("keys", "trade")
    for word in ("baseline", "[sweep]", "designs.NAME", "beside this one"):
        assert word in done.stdout


def test_one_design_is_none(cart):
    with pytest.raises(InputError, match="1 designs; a trade study compares two or more"):
        Designs(read(cart()), {"alone": {}})


def test_sweeps_and_tables(cart, tmp_path):
    study = read(cart())
    swept = Designs.sweep(study, {"spring.stiffness": [40.0, 60.0, 50.0]}, baseline="stiffness_50")
    assert swept.axis == ("spring.stiffness", [40.0, 60.0, 50.0])
    assert mbs.get(swept.studies["stiffness_60"].model, "spring.stiffness") == 60.0
    both = combinations({"a.stiffness": [1.0, 2.0], "b.stiffness": [3.0], "c.com": [[0.0, 1.0, 2.0]]})
    assert list(both) == ["a.stiffness_1-b.stiffness_3-com_1", "a.stiffness_2-b.stiffness_3-com_1"]
    assert both["a.stiffness_2-b.stiffness_3-com_1"] == {
        "a.stiffness": 2.0,
        "b.stiffness": 3.0,
        "c.com": [0.0, 1.0, 2.0],
    }
    with pytest.raises(InputError, match=r"1,100 combinations.*1,000 designs at most"):
        combinations({"a.b": [0.0] * 100, "c.d": [0.0] * 11})
    with pytest.raises(InputError, match="occurs twice: b_1"):
        combinations({"a.b": [1.0, 1]})
    text = "design,cart.com[0],cart.com[1],cart.com[2],initial.rail.q\na,0,0.1,0,0.01\n\nb,0,0.2,0,0.02\n"
    (tmp_path / "designs.csv").write_text(text, encoding="utf-8")
    (tmp_path / "designs.toml").write_text('study = "cart.toml"\nfile = "designs.csv"\n', encoding="utf-8")
    made = Designs.read(tmp_path / "designs.toml")
    assert made.baseline == "a" and made.axis is None and made.studies["b"].q0.tolist() == [0.02]
    assert np.array_equal(mbs.get(made.studies["b"].model, "cart.com"), [0.0, 0.2, 0.0])
    for old, new, said in (("\nb,", "\na,", 'line 4: there is a design "a"'), ("0.2", "x", 'line 4: "x" in the column'),
                           ("com[1]", "com[2]", "no column twice"), ("design,", "name,", "needs one column `design`"),
                           ("0.02", "0.02,1", "has 6 cells, not 5"), ("com[1]", "com[3]", "is expected")):  # fmt: skip
        with pytest.raises(InputError, match=said):
            rows_of(text.replace(old, new).encode(), "designs.csv")


def test_a_dispersion_that_adds_follows_the_design(cart):
    study = replace(read(cart()), dispersions={"initial.rail.v": Normal(apply="add", std=0.1)})
    designs = Designs(study, {"slow": {"initial.rail.v": 0.0}, "fast": {"initial.rail.v": [1.0]}})
    assert [s.dispersions.items[0].target.nominal.tolist() for s in designs.studies.values()] == [[0.0], [1.0]]


@pytest.mark.slow
def test_plans_have_no_intervals(folder, tmp_path):
    (tmp_path / "cart.toml").write_text(SHORT.replace("seed = 7", 'seed = 7\ndesign = "sobol"'), encoding="utf-8")
    (tmp_path / "designs.toml").write_text(
        'study = "cart.toml"\n[sweep]\n"spring.stiffness" = [49, 50]\n', encoding="utf-8"
    )
    found = trade(tmp_path / "designs.toml", 64, tmp_path / "out")
    row = rows(found.document["outputs"][0])["stiffness_50"]
    assert row["difference"] > 0 and np.isnan(row["difference_low"]) and row["said"] == "not known"
    assert rows(found.document["criteria"][0])["stiffness_50"]["chance"] is None
    assert "no intervals" in found.document["notes"][0]
    assert "over spring.stiffness" in found.path.read_text(encoding="utf-8"), "a curve"


@pytest.mark.slow
def test_intervals_of_shares_hold_as_often_as_they_say():
    """Of pairs whose difference is 3 points."""
    rng = np.random.default_rng(3)
    drawn = rng.multinomial(400, [0.05, 0.08, 0.87], size=2000)
    ends = np.array([interval_of_shares(a, b, 400, 0.05) for a, b, _ in drawn])
    assert 0.94 < np.mean((ends[:, 0] < 0.03) & (ends[:, 1] > 0.03)) < 0.97
    assert interval_of_shares(0, 0, 62, 2 * float(norm.sf(1.0))) == pytest.approx((-np.sqrt(2) / 64, np.sqrt(2) / 64))
