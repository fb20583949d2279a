"""What reports and commands say of a run."""

import io
from dataclasses import replace

from rich.console import Console

from jaxmbs.study import read, report, run
from jaxmbs.study.comparison import compared
from jaxmbs.study.comparison import table as compared_table
from jaxmbs.study.report import notes
from jaxmbs.study.statistics import summarize, verdict


def printed(table):
    with Console(width=300, record=True, file=io.StringIO()) as console:
        console.print(table)
    return console.export_text()


def test_a_study_without_criteria_has_its_numbers(cart, tmp_path):
    store = run(read(cart('criteria = ["reach > 90 mm", "speed < 0.9 m/s"]', "")), 64, tmp_path / "run", 64)
    written = report(store.folder)
    said = printed(written.table)
    assert "quantiles" in said and "criteria" not in said and written.document["criteria"] == []
    assert written.passed and "Outputs" in written.path.read_text(encoding="utf-8")
    assert "the same bits" in printed(compared_table(compared(store.folder, store.folder)))


def test_a_share_that_no_number_of_samples_shows_ends_no_report(cart, tmp_path):
    study = read(cart('"speed < 0.9 m/s"', '"speed < 0.9 m/s in 95 %"'))
    summary = summarize(study, run(study, 64, tmp_path / "run", 64))
    close = verdict("speed < 0.9 m/s in 95 %", 95 * 10**7 + 1, 10**9, 0.95)
    said = notes(study, replace(summary, verdicts=(close,)))
    assert any("more than a trillion samples would show it" in line for line in said)
