"""The times of a run, as numbers."""

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.model import ModelError
from jaxmbs.simulate.grid import Grid


@pytest.mark.parametrize(
    ("t0", "t_end", "dt", "lengths"),
    [
        (0.0, 0.5, 0.1, [0.1] * 5),
        (0.0, 0.7, 0.1, [0.1] * 7),  # 0.7 / 0.1 is a little less than 7
        (0.0, 0.25, 0.1, [0.1, 0.1, 0.05]),
        (2.0, 2.3, 0.2, [0.2, 0.1]),
        (-1.0, 0.0, 5.0, [1.0]),
    ],
)
@pytest.mark.parametrize("save_every", [1, 2, 7])
def test_steps_follow_one_another_from_the_start_to_the_end(t0, t_end, dt, lengths, save_every):
    """Groups of save_every steps; what fills up the last group is no step."""
    start, length, end, active = Grid.of(t0, t_end, dt).table(save_every, np.float64)
    assert start.shape == (-(-len(lengths) // save_every), save_every)
    assert active.sum() == len(lengths) and active.ravel()[: len(lengths)].all()
    start, length, end = (x.ravel()[: len(lengths)] for x in (start, length, end))
    assert np.allclose(length, lengths, rtol=0, atol=1e-12)
    assert start[0] == t0 and end[-1] == t_end and np.array_equal(start[1:], end[:-1])
    assert np.allclose(start + length, end, rtol=0, atol=1e-12)


def test_steps_through_given_times():
    """Of equal length from one to the next, none longer than dt, and exactly at the times."""
    times = [0.1, 0.15, 0.4, 1.0]
    grid, rows = Grid.through(times, 0.1)
    start, length, end, active = (x.ravel() for x in grid.table(1, np.float64))
    assert rows.tolist() == [0, 1, 4, 10] and active.all()
    assert np.append(start[rows[:-1]], end[-1]).tolist() == times
    np.testing.assert_allclose(length, [0.05] + [0.25 / 3] * 3 + [0.1] * 6, rtol=0, atol=1e-12)
    np.testing.assert_allclose(start + length, end, rtol=0, atol=1e-15)
    cells = [grid.cell(np.int32(i), np.float64) for i in range(grid.steps)]
    np.testing.assert_array_equal(np.array(cells), np.stack([start, length, end], 1))
    for wrong in ([0.0], [0.0, 0.0], [0.0, np.nan], [[0.0, 1.0]]):
        with pytest.raises(ModelError, match="each later than the one before"):
            Grid.through(wrong, 0.1)


def test_absurd_grids_are_refused_before_anything_is_computed():
    for dt, said in ((1e-300, "makes 1e+300 steps"), (1e-9, "at most 100,000,000"), (5e-324, "inf steps")):
        with pytest.raises(ModelError, match=said.replace("+", r"\+")):
            Grid.of(0.0, 1.0, dt)
        with pytest.raises(ModelError, match=said.replace("+", r"\+")):
            Grid.through([0.0, 1.0], dt)
    with pytest.raises(ModelError, match="below the rounding error of times up to 1e\\+09 s"):
        Grid.of(1e9, 1e9 + 1e-6, 1e-8)
    assert Grid.of(1e9, 1e9 + 1e-2, 1e-3).steps == 10
    assert Grid.of(0.0, 1e-300, 1.0).steps == 1


def test_more_steps_between_rows_than_there_are_take_no_room():
    model = mbs.library.double_pendulum().build()
    run = mbs.simulate(model, [0.5, 0.0], [0.0, 0.0], 0.1, 0.05, save_every=10**15)
    assert run.t.tolist() == [0.0, 0.1]
    with pytest.raises(ModelError, match="max_steps"):
        mbs.simulate(model, [0.5, 0.0], [0.0, 0.0], 0.1, 0.05, method="dopri5", tolerance=1e-6, max_steps=10**30)
