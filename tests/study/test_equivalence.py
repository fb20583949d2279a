"""Two runs that agree to rounding, or as well as somebody asks."""

import json

import numpy as np
import pytest

from jaxmbs.io.errors import InputError
from jaxmbs.study import read, run
from jaxmbs.study.statistics.comparison import compared, table
from jaxmbs.study.statistics.equivalence import Within, means_apart, tolerances, verdict
from jaxmbs.study.units import unit
from tests.study.conftest import CART
from tests.study.test_said import printed

SHOWN = {"reach": unit("mm"), "speed": unit("m/s"), "share": unit("%")}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A study, with half its step, and with a spring that is stronger by a ten-thousandth."""
    folder = tmp_path_factory.mktemp("equivalence")
    edits = {"one": ("", ""), "fine": ("dt = 1e-3", "dt = 5e-4"), "strong": ("stiffness = 50.0", "stiffness = 50.005")}
    for name, edit in edits.items():
        (folder / f"{name}.toml").write_text(CART.replace(*edit), encoding="utf-8")
        run(read(folder / f"{name}.toml"), 128, folder / name, 128)
    return folder


def outputs(found):
    return {row["output"]: row for row in found["outputs"]}


def test_shifts_that_are_rounding_are_no_differences(runs):
    """The step shifts every sample to the same side, by 1e-12: surely, and of no account."""
    found = outputs(compared(runs / "one", runs / "fine"))
    assert found["speed"]["chance"] < 1e-3 and 0 < found["speed"]["largest"] < 1e-9
    assert found["speed"]["verdict"] == found["reach"]["verdict"] == "rounding"
    assert "differs" not in printed(table(compared(runs / "one", runs / "fine")))
    assert outputs(compared(runs / "one", runs / "strong"))["speed"]["verdict"] == "differs", "the control"
    assert outputs(compared(runs / "one", runs / "one"))["speed"]["verdict"] == "the same"


def test_a_tolerance_decides(runs, command):
    done = command("compare", "one", "strong", "--within", "1e-6", "--within", "reach = 1 mm", "--json", cwd=runs)
    found = outputs(json.loads(done.stdout))
    assert (found["reach"]["verdict"], found["reach"]["within"]) == ("every sample within", 1.0)
    assert (found["speed"]["verdict"], found["speed"]["within"]) == ("differs", 1e-6)
    shift = abs(found["speed"]["difference"])
    assert shift < found["speed"]["largest"]
    between = f"speed = {(shift + 3 * found['speed']['largest']) / 4:.9g}"
    assert outputs(compared(runs / "one", runs / "strong", within=[between]))["speed"]["verdict"] == "mean within"
    said = command("compare", "one", "strong", "--within", "1 %", cwd=runs).stdout
    assert "every sample within" in said and "differs" not in said
    refused = command("compare", "one", "strong", "--within", "reech = 1 mm", cwd=runs)
    assert refused.returncode == 1 and 'did you mean "reach"' in refused.stderr


def test_tolerances_in_words():
    assert tolerances(["1e-6"], SHOWN) == dict.fromkeys(SHOWN, Within(1e-6))
    found = tolerances(["reach = 2e-5 m", "0.5 %"], SHOWN)
    assert found["reach"].of(np.ones(3)) == pytest.approx(0.02)
    assert found["speed"].of(np.array([-4.0, 2.0, 6.0])) == pytest.approx(0.02)
    assert found["share"] == Within(0.5), "of what is a share itself: points"
    for text, why in (
        ("reech = 1", 'did you mean "reach"'), ("reach = 1 kg", "measures mass, not length"), ("1 mm", "not all outputs"),
        ("-1", "is not a tolerance"), ("reach = little", "is not a tolerance"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=why):
            tolerances([text], SHOWN)


@pytest.mark.parametrize(
    ("row", "within", "interval", "said"),
    [
        ({"chance": 1e-9, "largest": 1e-12}, None, (1e-13, 2e-13), "rounding"),
        ({"chance": 1e-9, "largest": 1e-12, "lost": 1}, None, (1e-13, 2e-13), "differs"),
        ({"chance": 1e-9, "largest": 0.3}, None, (0.1, 0.2), "differs"),
        ({"chance": 0.7, "largest": 0.3}, None, (-0.1, 0.2), ""),
        ({"chance": 1e-9, "largest": 0.3}, 0.5, (0.1, 0.2), "every sample within"),
        ({"chance": 1e-9, "largest": 0.3}, 0.25, (0.1, 0.2), "mean within"),
        ({"chance": 1e-9, "largest": 0.3, "lost": 2}, 0.5, (0.1, 0.2), "differs"),
        ({"chance": 1e-9, "largest": 0.3}, 0.15, (0.1, 0.2), "undecided"),
        ({"chance": 1e-9, "largest": 0.3}, 0.15, (-0.2, 0.1), "undecided"),
        ({"chance": 1e-9, "largest": 0.3}, 0.05, (0.1, 0.2), "differs"),
        ({"chance": None}, 0.05, (np.nan, np.nan), "undecided"),
    ],
)
def test_verdicts(row, within, interval, said):
    assert verdict(row, within, 1e-9, 0.01, *interval) == said


@pytest.mark.slow
def test_intervals_of_means_hold_as_often_as_they_say():
    rng = np.random.default_rng(2)
    found = [means_apart(rng.normal(0, 1, 40), rng.normal(0.3, 3, 25), 0.1) for _ in range(1000)]
    assert 870 < sum(low <= 0.3 <= high for low, high in found) < 930
