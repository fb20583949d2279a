"""Every figure of the page, recomputed from the raw results with other code; what stands above noise."""

import re
from html import unescape

import numpy as np
import pytest
import zarr
from scipy.stats import binomtest

from jaxmbs.study import read, report, run
from jaxmbs.study.problem.contents import contents
from jaxmbs.study.problem.words import marks_in_the_file, said_in_the_file
from jaxmbs.study.reports.page_inputs import marks
from jaxmbs.study.reports.page_style import COLOURS, themed
from jaxmbs.study.results import store as stores
from jaxmbs.study.samples.audit import audit
from jaxmbs.study.statistics.drivers import noise, number_of_slices, ranked
from jaxmbs.study.statistics.summary import first_draws, summarize
from tests.study.conftest import CART, EXAMPLE

STUDY = CART.replace('"speed < 0.9 m/s"]', '"0.5 < speed < 0.9 m/s in 50 %", "|reach| < 1 m"]').replace(
    "std = 0.02", "std = 0.02  # weighed"
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    (folder / "cart.toml").write_text(STUDY, encoding="utf-8")
    return run(read(folder / "cart.toml"), 400, folder / "run", 64)


@pytest.fixture(scope="module")
def text(finished):
    page = report(finished.folder).path.read_text(encoding="utf-8")
    return unescape(re.sub(r"<svg.*?</svg>|<style.*?</style>|<[^>]+>", "\n", page, flags=re.DOTALL)), page


def test_every_figure_is_that_of_the_raw_results(finished, text):
    said, page = text
    raw = {name: x[:] for name, x in zarr.open_group(str(finished.folder / "results.zarr"), mode="r").arrays()}
    reach, speed = raw["reach"], raw["speed"]
    met = [reach > 0.09, (speed > 0.5) & (speed < 0.9), np.abs(reach) < 1]
    for some in (*met, met[0] & met[1] & met[2]):
        k = int(some.sum())
        interval = binomtest(k, 400).proportion_ci(0.95, method="exact")
        assert f"{k / 400:.2%}\n" in said
        assert f"{interval.low:.2%} to {interval.high:.2%}, met by {k} of 400" in said
    assert "1 of 3 criteria not met" in said and "Not met: reach > 90 mm: required in 100 % of " in said
    assert f" the samples, shown in {met[0].mean():.2%} ({int(met[0].sum())} of 400), " in said
    for x, factor in ((reach, 1e-3), (speed, 1.0)):
        for q in (0.01, 0.05, 0.5, 0.95, 0.99):
            assert f"\n{np.quantile(x, q) / factor:.4g}\n" in said
    margins = np.stack([
        (reach - 0.09) / np.subtract(*np.quantile(reach, [0.75, 0.25])),
        np.minimum(speed - 0.5, 0.9 - speed) / np.subtract(*np.quantile(speed, [0.75, 0.25])),
    ])  # fmt: skip
    worst = np.argsort(margins.min(0))[:10]
    assert re.findall(r"--sample (\d+) --of", said)[:10] == [str(i) for i in worst]
    first = int(worst[0])
    unusual = {
        "cart.mass": (raw["cart.mass"][first] - 1) / 0.02,
        "initial.rail.v": raw["initial.rail.v"][first] / (0.2 / np.sqrt(12)),
    }
    for name, z in unusual.items():
        assert f"{name} {z:+.1f}" in said
    mass, stiffness = 2.0 * raw["cart.mass"], 50.0 * raw["spring.stiffness"]
    for x in (mass, stiffness, raw["initial.rail.v"]):
        assert f"\n{x.min():.5g} to {x.max():.5g}\n" in said
    assert "weighed" in said and said.count("100.0%\n") >= 3
    assert f"{np.abs(raw['energy_error']).max():.3g} J" in said
    assert stores.fingerprint([raw["checksum"]]) in said
    for word in ("Convergence", "Credibility", "validation", "NASA-STD-7009", "The ten worst samples", "Events"):
        assert word in said
    linked, heads = (
        re.findall(r'<a href="#(section-\d+)">(.*?)</a>', page),
        re.findall(r'<h2 id="(.*?)">(.*?)</h2>', page),
    )
    assert linked == heads and len(heads) == page.count("<h2") > 8, "a list of contents"
    assert '<span class=moving><a href="#section-' in page, "no link to what is not printed"
    assert "@media print" in page and "prefers-color-scheme:dark" in page and "size:A4" in page


def test_pictures_take_the_colours_of_the_page(text):
    for colour, name in COLOURS.items():
        own = re.sub(r"<style.*?</style>|<iframe.*?</iframe>", "", text[1], flags=re.DOTALL)
        assert colour not in own or name == "dim"
    assert themed('style="fill: #c2513a"') == 'style="fill: var(--bad)"'


def test_a_dispersion_that_changes_nothing_shows(cart, tmp_path):
    path = cart("std = 0.02", "std = 0.0")
    study = read(path)
    store = run(study, 64, tmp_path / "run", 64)
    found = {a.name: a for a in audit(study, first_draws(study, store, summarize(study, store)))}
    assert found["cart.mass"].changed == 0.0 and found["cart.mass"].least == found["cart.mass"].most == [2.0]
    assert found["spring.stiffness"].changed == found["initial.rail.v"].changed == 1.0
    assert found["initial.rail.v"].nominal == [0.05]


def test_comments_of_the_example_are_found():
    said = said_in_the_file(EXAMPLE.read_bytes())
    assert said["payload.mass"] == "[O] weighed to 0.3 %"
    assert said["residual.thrust"].startswith("scales the whole profile") and len(said) > 20


def test_marks_in_comments_are_explained():
    content = EXAMPLE.read_bytes()
    found = marks_in_the_file(content, ["[O] weighed to 0.3 %", "[A]", "[Z] of a lot"])
    assert found == {"O": "order of magnitude for a vehicle of this size", "A": "assumption of this example"}
    assert marks_in_the_file(b"x = 1  # [A] assumed\n# [B] a bound, [C] a guess", ["[A]", "[B]"]) == {}
    assert "[A] assumption of this example" in marks(read(EXAMPLE), {"payload.com": "[A] as built"})


def test_a_report_says_what_its_outputs_are():
    said = said_in_the_file(EXAMPLE.read_bytes(), "outputs")
    assert said["clearance"].startswith("smallest gap between nozzle exit and shell") and "shape_a" not in said
    of = {o["name"]: o["of"] for o in contents(read(EXAMPLE))["outputs"]}
    assert of["clearance"] == "disc on payload, tube on stage, inside, open"
    assert of["separation_velocity"] == "body a stage, body b payload, direction (1, 0, 0)"


def test_draws_are_rated_by_their_distribution():
    components = {d.name: d.components for d in read(EXAMPLE).dispersions.items}
    normal, log = components["payload.mass"], components["residual.thrust"]
    np.testing.assert_allclose(normal.deviations(normal.middle + 2 * normal.spread), 2.0)
    np.testing.assert_allclose(log.deviations(log.middle * np.exp(-3 * log.scale)), -3.0)


LAWS = {
    "normal": lambda r, m: r.normal(size=m),
    "skew": lambda r, m: r.lognormal(0, 1, m),
    "rare": lambda r, m: r.random(m) < 0.02,
}


@pytest.mark.parametrize("law", LAWS)
def test_unrelated_draws_seldom_stand_above_noise(law):
    """46 of them; in one study of twenty one may."""
    rng, shown = np.random.default_rng(3), 0
    for _ in range(25):
        columns = {str(k): rng.normal(size=1000) for k in range(46)}
        y = LAWS[law](rng, 1000).astype(float)
        shown += bool(ranked(columns, y, number_of_slices(1000)).found)
    assert shown <= 5, "one on average"


def test_drivers_stand_above_noise_with_intervals_that_hold():
    rng, inside, seen, trials = np.random.default_rng(4), 0, 0, 25
    for _ in range(trials):
        a, b, c = rng.normal(size=(3, 4000))
        y = 2 * a + b + rng.normal(size=4000)
        found = ranked({"a": a, "b": b, "c": c}, y, number_of_slices(4000))
        assert [d.name for d in found.found][:2] == ["a", "b"]
        seen += len(found.found) > 2
        inside += found.found[0].low <= 4 / 6 <= found.found[0].high
        assert found.rest == pytest.approx(max(0.0, 1 - sum(d.share for d in found.found)))
        assert len(found.found) + found.others == 3
    assert inside >= 0.8 * trials and seen <= 5
    few, many = rng.normal(size=1000), rng.normal(size=10_000)
    assert noise(few, 40, 46) > noise(few, 40, 1) > noise(many, 60, 1) > 0
