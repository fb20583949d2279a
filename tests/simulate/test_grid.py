"""The times of a run, as numbers."""

import numpy as np
import pytest

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
