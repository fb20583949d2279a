"""Tables of rows given in place of the columns of a profile."""

import numpy as np
import pytest

import jaxmbs as mbs

ROWS = np.array([[0.0, 100.0], [0.5, 900.0], [2.0, 0.0]])


@pytest.mark.parametrize("kind", [mbs.Motor, mbs.Thruster, mbs.Gimbal])
def test_a_thrust_curve(kind):
    more = {} if kind is mbs.Thruster else {"propellant": 5.0}
    assert kind("stage", thrust=ROWS, **more) == kind(
        "stage", thrust=1.0, times=(0.0, 0.5, 2.0), values=(100.0, 900.0, 0.0), **more
    )


def test_a_wind():
    rows = ((0.0, 1.0, 2.0), (1e3, 5.0, -3.0))
    assert mbs.Wind(rows) == mbs.Wind(height=(0.0, 1e3), east=(1.0, 5.0), north=(2.0, -3.0))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: mbs.Motor("stage", thrust=ROWS, values=(1.0, 2.0, 3.0)),
            r"Motor: thrust is a table with rows \(times, values\); leave out values",
        ),
        (
            lambda: mbs.Thruster("stage", thrust=ROWS.T),
            r"Thruster: thrust is a table of shape \(2, 3\); each of its rows must be \(times, values\)",
        ),
        (
            lambda: mbs.Motor("stage", thrust=[[0.0, 100.0], [0.5, 900.0, 1.0]]),
            r"Motor: thrust has rows of different lengths; each of its rows must be \(times, values\)",
        ),
        (lambda: mbs.Wind(ROWS), r"Wind: height is a table of shape \(3, 2\).*\(height, east, north\)"),
    ],
)
def test_what_is_no_table(make, says):
    with pytest.raises(mbs.ModelError, match=says):
        make()
