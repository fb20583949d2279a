"""Studies by methods of integration of their own."""

import numpy as np
import pytest

from jaxmbs.study import read
from jaxmbs.study.samples.repeat import repeat


@pytest.mark.slow
def test_a_sample_at_steps_of_its_own(cart):
    """The nominal cart, at a tolerance over coarse rows, against the fine grid."""
    fine = repeat(read(cart()))
    found = read(cart("dt = 1e-3", 'dt = 0.02\nmethod = "dopri5"\ntolerance = 1e-10', name="own.toml"))
    assert (found.simulation.method, found.simulation.tolerance) == ("dopri5", 1e-10)
    own = repeat(found)
    assert own.t.shape == (11,) and own.status.tolist() == [0]
    assert np.abs(own.q[0, :, 0] - fine.q[0, ::20, 0]).max() < 1e-9
