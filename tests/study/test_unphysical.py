"""Dispersions that make numbers no mechanism has: refused where most draws do, else the status of the samples."""

import io

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

import jaxmbs as mbs
from jaxmbs.io import InputError
from jaxmbs.study import read, repeat, run
from jaxmbs.study.reports.terminal import table
from jaxmbs.study.results import store as stores
from jaxmbs.study.results.provenance import provenance
from jaxmbs.study.samples.batch import instances
from jaxmbs.study.statistics.summary import summarize

STIFFNESS = 'distribution = "lognormal"\napply = "multiply"\nsigma = 0.05'
UNPHYSICAL = int(mbs.Status.UNPHYSICAL)


def stiffness(distribution):
    return STIFFNESS, distribution


@pytest.mark.parametrize(
    "distribution",
    [
        'distribution = "normal"\napply = "multiply"\nmean = -15.0\nstd = 0.1',
        'distribution = "uniform"\nlow = -3.0\nhigh = -1.0',
        'distribution = "normal"\nmean = -10.0\nstd = 50.0',
        'distribution = "normal"\napply = "add"\nmean = -60.0\nstd = 1.0',
    ],
)
def test_stiffness_that_is_negative_in_most_draws_is_refused(cart, distribution):
    with pytest.raises(InputError) as error:
        read(cart(*stiffness(distribution)))
    (problem,) = error.value.problems
    assert problem.path == 'dispersions."spring.stiffness"'
    assert "must be zero or more" in problem.message


def test_several_dispersions_of_one_number_are_taken_together(cart):
    """Each alone would be fine, or not; what counts is where they lead."""
    second = '[dispersions.second]\ntarget = "spring.stiffness"\ndistribution = "normal"\napply = "add"\nstd = 1.0\n'
    with pytest.raises(InputError, match=r"dispersions\.second: half of the draws"):
        read(cart("[simulation]", second + "mean = -60.0\n[simulation]"))
    read(cart("[simulation]", second + "mean = -40.0\n[simulation]"))


@pytest.mark.slow
def test_samples_that_are_unphysical_say_so_and_the_others_go_on(cart, tmp_path):
    wide = read(cart(*stiffness('distribution = "normal"\napply = "multiply"\nstd = 0.8')))
    store = run(wide, 128, tmp_path / "run", block_rows=64)
    data = store.dataset().load()
    negative = data["spring.stiffness"].values < 0
    assert 3 < negative.sum() < 40
    assert np.array_equal(data["status"].values == UNPHYSICAL, negative)
    assert np.all(data["status"].values[~negative] == 0)
    summary = summarize(wide, store)
    (message,) = summary.failed
    assert message.startswith("unphysical") and summary.failed[message].count == negative.sum()
    assert summary.failed[message].first == tuple(np.flatnonzero(negative)[:12])
    assert summary.verdicts[0].of == 128 and np.isnan(summary.outputs["reach"][negative]).all()
    index = [int(np.flatnonzero(negative)[0]), int(np.flatnonzero(~negative)[0])]
    assert repeat(wide, index).status.tolist() == [UNPHYSICAL, 0]


def judged(study, draws):
    """Which of the samples with these draws (B, k) are unphysical, as a study asks: in a trace."""
    f = jax.jit(lambda draws: study.dispersions.unphysical(instances(study, draws, np.float64)[0]))
    return f(jnp.asarray(draws)).tolist()


@pytest.mark.parametrize(
    ("target", "apply", "draws", "expected"),
    [
        ("pusher_1.stroke", "replace", [0.1, 0.0, -0.1], [False, True, True]),
        ("pusher_1.stiffness", "replace", [0.0, 1e4, -1e-3], [False, False, True]),
        ("payload.mass", "multiply", [1.0, 0.5, -1.0], [False, False, True]),
        ("payload.inertia", "multiply", [1.0, 1.5, -1.0], [False, False, True]),
        ("residual.thrust", "replace", [1.0, -1.0, 0.0], [False, False, False]),
    ],
)
def test_each_kind_of_number_is_judged_by_its_own_rule(separation, tmp_path, target, apply, draws, expected):
    """Inertias by what some body has, strokes by more than zero; a thrust may have any sign."""
    text = separation.content.decode()
    text = text[: text.index('[dispersions."stage.mass"]')] + text[text.index("# --- what is computed") :]
    path = tmp_path / "one.toml"
    path.write_text(
        f'{text}\n[dispersions."{target}"]\ndistribution = "lognormal"\napply = "{apply}"\nmedian = 1.0\nsigma = 0.1',
        encoding="utf-8",
    )
    study = read(path)
    k = study.dispersions.items[0].k
    assert judged(study, np.repeat(np.array(draws)[:, None], k, axis=1)) == expected


def test_times_of_a_profile_that_cross_are_unphysical(separation, tmp_path):
    text = separation.content.decode()
    text = text[: text.index('[dispersions."stage.mass"]')] + text[text.index("# --- what is computed") :]
    path = tmp_path / "one.toml"
    path.write_text(
        f'{text}\n[dispersions."residual.times"]\ndistribution = "normal"\napply = "add"\nstd = 0.01', encoding="utf-8"
    )
    study = read(path)
    draws = np.zeros((2, 7))
    draws[1, 1] = 0.06
    assert judged(study, draws) == [False, True]


def test_distances_of_events_are_judged_as_those_of_elements(separation, tmp_path):
    """A distance without direction is more than zero: an event at -1 m would never happen, without a word."""
    text = separation.content.decode()
    text = text[: text.index('[dispersions."stage.mass"]')] + text[text.index("# --- what is computed") :]
    when = '{type = "distance", body_a = "stage", body_b = "payload", value = 3.0}'
    path = tmp_path / "one.toml"
    path.write_text(
        f'{text}\n[[mechanism.events]]\nname = "away"\nwhen = {when}\nthen = [{{type = "finish"}}]\n'
        '[dispersions."away.value"]\ndistribution = "uniform"\nlow = 1.0\nhigh = 4.0',
        encoding="utf-8",
    )
    assert judged(read(path), np.array([[2.0], [-1.0], [0.0]])) == [False, True, True]


def test_factors_far_from_1_are_told(cart):
    path = cart(*stiffness('distribution = "normal"\napply = "multiply"\nmean = 10.0\nstd = 0.1'))
    with pytest.warns(mbs.ModelWarning, match=r'"spring.stiffness".*10 times its nominal value') as told:
        study = read(path)
    assert len(told) == len(study.warnings) == 1
    assert read(cart()).warnings == []
    for mean in (0.6, 1.9):
        assert (
            read(cart(*stiffness(f'distribution = "normal"\napply = "multiply"\nmean = {mean}\nstd = 0.1'))).warnings
            == []
        )


def test_the_report_tells_the_warnings_too(cart, tmp_path):
    with pytest.warns(mbs.ModelWarning):
        study = read(cart(*stiffness('distribution = "uniform"\napply = "multiply"\nlow = 2.0\nhigh = 4.0')))
    store = stores.create(study, tmp_path / "run", provenance(study, 1, 64))
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(table(study, store))
    assert "spring.stiffness 3 times its nominal value" in console.export_text()
