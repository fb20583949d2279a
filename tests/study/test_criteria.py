"""Sentences like "clearance > 0.02 m"."""

import numpy as np
import pytest

from jaxmbs.study import read
from jaxmbs.study.problem.criteria import parse
from jaxmbs.study.units import UNITS, si, unit, units_of

QUANTITIES = {"clearance": "length", "tip_off_rate": "angular rate", "ratio": "number"}


@pytest.mark.parametrize(
    ("text", "output", "sign", "bound"),
    [
        ("clearance > 0.02 m", "clearance", ">", 0.02),
        ("clearance>=20mm", "clearance", ">=", 0.02),
        ("  clearance  <  +2e1   cm ", "clearance", "<", 0.2),
        ("tip-off rate < 2 deg/s", "tip_off_rate", "<", np.deg2rad(2)),
        ("tip_off_rate <= .5 rpm", "tip_off_rate", "<=", np.pi / 60),
        ("ratio > -3", "ratio", ">", -3.0),
        ("ratio < 5 %", "ratio", "<", 0.05),
    ],
)
def test_parsed(text, output, sign, bound):
    c = parse(text, QUANTITIES)
    assert (c.output, c.sign) == (output, sign)
    assert c.bound == pytest.approx(bound, rel=1e-14)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("clearance is large", "write NAME < NUMBER UNIT"),
        ("clearance > much m", "write NAME < NUMBER UNIT"),
        ("clearance = 2 m", "write NAME < NUMBER UNIT"),
        ("clearence > 1 m", 'did you mean "clearance"?'),
        ("clearance > 1 meter", "is not a unit"),
        ("clearance > 1 kg", "measures mass, not length"),
        ("clearance > 1", "the unit is missing (length)"),
        ("tip_off_rate < 2 deg", "measures angle, not angular rate"),
    ],
)
def test_refused_with_a_remedy(text, hint):
    with pytest.raises(ValueError) as error:
        parse(text, QUANTITIES)
    assert hint in str(error.value)
    assert text in str(error.value)


def test_met_by_value_and_never_by_a_value_that_is_no_number():
    values = np.array([0.01, 0.02, 0.03, np.nan])
    assert parse("clearance > 0.02 m", QUANTITIES).met(values).tolist() == [False, False, True, False]
    assert parse("clearance >= 0.02 m", QUANTITIES).met(values).tolist() == [False, True, True, False]
    assert parse("clearance <= 0.02 m", QUANTITIES).met(values).tolist() == [True, True, False, False]
    assert parse("clearance < 0.02 m", QUANTITIES).met(values).tolist() == [True, False, False, False]


def test_every_quantity_has_an_si_unit_and_units_are_found_in_other_spellings():
    assert all(si(u.quantity).factor == 1.0 for u in UNITS.values())
    assert unit("N*m") == unit("N m")
    assert unit("kg m^2") == unit("kg m2")


@pytest.mark.parametrize("text", ["a < 2 m", "a >= 0.5 m", "-1 m < a < 2 m", "|a| < 1.5 m"])
def test_slopes_of_margins(text):
    """Beside differences, where another bound is the nearest too."""
    c = parse(text, {"a": "length"})
    u = np.linspace(-3.03, 3.0, 50)[:, None] * [1.0, 2.0]
    margins, slopes = c.margin_slopes(u @ [0.5, 0.25], np.tile([0.5, 0.25], (50, 1)))
    assert np.array_equal(margins, c.margin(u @ [0.5, 0.25]))
    for k, e in enumerate(1e-6 * np.eye(2)):
        differences = (c.margin((u + e) @ [0.5, 0.25]) - c.margin((u - e) @ [0.5, 0.25])) / 2e-6
        assert np.allclose(slopes[:, k], differences, atol=1e-9)


def test_units_of_the_columns_of_a_history(cart):
    """Of an output that is reduced to a time, the history is a length all the same."""
    timed = read(cart('reduce = "max"', 'reduce = "time_of_max"', "reach > 90 mm", "reach > 9 ms"))
    found = [{name: u.name for name, u in units_of(study).items()} for study in (read(cart()), timed)]
    of_all = {"t": "s", "rail.q[0]": "m", "rail.v[0]": "m/s", "speed": "m/s"}
    assert found == [of_all | {"reach": "mm"}, of_all | {"reach": "m"}]
