"""Reports: what they count, what they say of unfinished runs and failed samples; the page needs nothing else."""

import html
import io
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console

from jaxmbs.study import read, report, run
from jaxmbs.study.problem.criteria import parse
from jaxmbs.study.reports import repeated as repeats
from jaxmbs.study.reports.plots import histogram
from jaxmbs.study.reports.terminal import table
from jaxmbs.study.results import store as stores
from jaxmbs.study.statistics.drivers import explained
from jaxmbs.study.statistics.summary import document, extremes, summarize, verdict
from jaxmbs.study.units import unit
from tests.study.conftest import CART


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    (folder / "cart.toml").write_text(CART, encoding="utf-8")
    return run(read(folder / "cart.toml"), 256, folder / "run", 64)


def shown(table) -> str:
    console = Console(file=io.StringIO(), width=160)
    console.print(table)
    return console.file.getvalue()


class Page(HTMLParser):
    """Text of a page, and every address in it that would be fetched."""

    def __init__(self, text):
        super().__init__()
        self.text, self.addresses = "", []
        self.feed(text)

    def handle_data(self, data):
        self.text += data + " "

    def handle_starttag(self, tag, attrs):
        self.addresses += [
            v for k, v in attrs if k in ("src", "href", "xlink:href") and not v.startswith(("#", "data:"))
        ]


def test_interval_of_a_probability():
    half = verdict("x", 50, 100)
    assert (half.met, half.of, half.probability) == (50, 100, 0.5)
    assert (half.low, half.high) == pytest.approx((0.398321, 0.601679), abs=1e-6)  # Clopper and Pearson
    all_of_them = verdict("x", 100, 100)
    assert (all_of_them.low, all_of_them.high) == pytest.approx((0.025 ** (1 / 100), 1.0))
    nothing = verdict("x", 0, 0)
    assert (nothing.low, nothing.high) == (0.0, 1.0)


@pytest.mark.slow
def test_table_and_page(finished):
    study = read(finished.folder / "study.toml")
    summary = summarize(study, finished)
    data = finished.dataset()
    assert summary.verdicts[0].met == int((data["reach"] > 0.09).sum())
    assert 0 < summary.verdicts[0].met < 256, "otherwise this test says little"
    assert summary.together.met == int(((data["reach"] > 0.09) & (data["speed"] < 0.9)).sum())
    written = report(finished.folder)
    path = written.path
    terminal, page = shown(written.table), Page(path.read_text(encoding="utf-8"))
    for v in summary.verdicts:
        for text in (terminal, page.text):
            assert v.text in text and f"{v.probability:.2%}" in text
            assert f"{v.low:.2%}" in text and f"{v.high:.2%}" in text
    median = f"{1e3 * float(np.median(data['reach'])):.4g}"
    assert median in terminal and median in page.text, "in millimetres, as the criterion"
    assert not page.addresses, "self-contained"
    assert path.read_text(encoding="utf-8").count("<svg") >= 6
    for word in ("worst (sample", "cart.mass", "lognormal, sigma 0.05", finished.provenance["file_sha256"], "None."):
        assert word in page.text
    assert "not finished" not in terminal + page.text


def test_what_notebooks_show(finished, tmp_path):
    """Of a run the table and a histogram of each output, of a report the table; of a damaged run only that it is."""
    page = Page(finished._repr_html_())
    assert "/256" in page.text and "reach" in page.text and "%" in page.text
    assert finished._repr_html_().count("<svg") == 2 and not page.addresses
    assert "/256" in Page(report(finished.folder)._repr_html_()).text
    copy = tmp_path / "run"
    shutil.copytree(finished.folder, copy)
    arrays = stores.open_folder(copy).arrays()
    arrays["reach"][3] = 0.5
    said = stores.open_folder(copy)._repr_html_()
    assert "damaged" in said and "svg" not in said


def test_worst_median_and_best(finished):
    study = read(finished.folder / "study.toml")
    summary, reach = summarize(study, finished), finished.dataset()["reach"].values
    worst, median, best = extremes(study, summary, study.criteria[0])
    assert (worst, best) == (reach.argmin(), reach.argmax())
    assert np.sort(reach)[128] == reach[median]
    below = parse("reach < 90 mm", {"reach": "length"})
    assert extremes(study, summary, below)[::2] == (best, worst)


@pytest.mark.slow
def test_unfinished_and_failed(finished, tmp_path):
    """Samples 64 ... 127 not run, 3 and 200 failed: counted apart, and met by no criterion."""
    import shutil

    folder = tmp_path / "run"
    shutil.copytree(finished.folder, folder)
    store = stores.open_folder(folder)
    store.clear(64, 128)
    numbers = {name: x[:] for name, x in store.arrays().items() if name != "checksum"}
    for i in (3, 200):
        numbers["status"][i] = 1
        numbers["reach"][i] = np.nan
    store.write(store.arrays(), 0, numbers)
    study = read(folder / "study.toml")
    summary = summarize(study, store)
    assert summary.done == 192
    assert [(f.count, f.first) for f in summary.failed.values()] == [(2, (3, 200))]
    reach = finished.dataset()["reach"].values
    left = [i for i in range(256) if not 64 <= i < 128 and i not in (3, 200)]
    assert (summary.verdicts[0].met, summary.verdicts[0].of) == (np.count_nonzero(reach[left] > 0.09), 192)
    written = report(folder)
    terminal, page = shown(written.table), Page(written.path.read_text(encoding="utf-8")).text
    assert "not finished: 192 of 256" in terminal and "This run is not finished: 192 of 256" in page
    assert "2 samples failed: the state is no longer finite" in terminal
    assert f"--sample 3 --of {folder}" in page and "3, 200" in page


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        (1, 0.25, "none, because no sample succeeded"),
        (0, np.inf, "not finite"),
        (0, np.nan, "not finite"),
        (0, -0.25, "0.25 J"),
    ],
)
def test_the_largest_error_is_said_where_there_is_none_and_where_it_is_not_finite(
    finished, tmp_path, status, error, said
):
    folder = tmp_path / "run"
    shutil.copytree(finished.folder, folder)
    store = stores.open_folder(folder)
    numbers = {name: x[:] for name, x in store.arrays().items() if name != "checksum"}
    numbers["status"][:] = status
    numbers["energy_error"][7] = error
    store.write(store.arrays(), 0, numbers)
    study = read(folder / "study.toml")
    summary = summarize(study, store)
    assert f"largest error of the energy balance: {said}" in shown(table(study, store, summary))
    known = document(study, store, summary)["energy_error"]
    assert known == (0.25 if said == "0.25 J" else None)


def test_nothing_run_yet(finished, tmp_path):
    import shutil

    folder = tmp_path / "run"
    shutil.copytree(finished.folder, folder, ignore=shutil.ignore_patterns("results.zarr", "finished.json"))
    written = report(folder)
    assert "0 of 256" in shown(written.table) and "0 of 256" in Page(written.path.read_text(encoding="utf-8")).text


def test_histogram_marks_what_misses_the_criterion():
    criterion = parse("reach > 90 mm", {"reach": "length"})
    svg = histogram(np.linspace(0.08, 0.1, 200), "reach", unit("mm"), [criterion])
    assert svg.startswith("<svg") and "&gt; 90" in svg and "#c2513a" in svg
    svg = histogram(np.linspace(0.091, 0.1, 200), "reach", unit("mm"), [criterion])
    assert "#c2513a" not in svg
    assert "<svg" in histogram(np.full(5, np.nan), "reach", unit("mm"), [])
    assert "<svg" in histogram(np.full(5, 0.3), "reach", unit("mm"), [])
    assert not re.search(r"<(image|link|script)", svg)


def test_share_of_variance_sees_symmetric_relations():
    rng = np.random.default_rng(1)
    a, b, noise = rng.normal(size=(3, 20_000))
    y = a**2 + b
    assert explained(a, y, 60) == pytest.approx(2 / 3, abs=0.06)
    assert explained(b, y, 60) == pytest.approx(1 / 3, abs=0.03)
    assert abs(explained(noise, y, 60)) < 0.004


def test_share_of_variance_is_none_on_average_without_a_relation():
    rng = np.random.default_rng(2)
    shares = [explained(*rng.normal(size=(2, 1500)), 60) for _ in range(60)]
    assert abs(np.mean(shares)) < 0.004


def test_what_a_report_repeats(finished, tmp_path, monkeypatch):
    """The band is that of the stored samples; kept for the next report, of the same page; damage is mended."""
    folder = tmp_path / "run"
    shutil.copytree(finished.folder, folder)
    first, kept = report(folder).path.read_bytes(), folder / repeats.FILE
    text = first.decode()
    assert "<iframe" in text and "worst (sample" in html.unescape(text) and "the first 100 samples" in text
    whole, computed = kept.read_bytes(), []
    arrays = np.load(io.BytesIO(whole))
    assert arrays["bands/reach"][3].max() == pytest.approx(finished.dataset()["reach"].values[:100].max(), rel=1e-9)
    assert np.all(np.diff(arrays["bands/reach"], axis=0) >= 0) and len(arrays["t"]) == arrays["bands/reach"].shape[1]
    make = repeats._made
    monkeypatch.setattr(repeats, "_made", lambda *given: computed.append(given) or make(*given))
    assert report(folder).path.read_bytes() == first and not computed
    kept.write_bytes(whole[:2000] + bytes([whole[2000] ^ 1]) + whole[2001:])
    assert report(folder).path.read_bytes() == first and len(computed) == 1
    assert np.array_equal(np.load(kept)["wanted"], arrays["wanted"])
