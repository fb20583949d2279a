"""Steps that are too long for the modes of a flexible body are noticed before the run."""

import warnings
from typing import Any

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.simulate.fast_modes import too_fast
from jaxmbs.simulate.steppers import METHODS
from tests.flexible.test_flexible_dynamics import slider_crank


def boom(damping=0.005):
    part = mbs.Part.beam(3.0, 4.0, (60.0, 900.0), 40.0, modes=4, elements=6)
    mech = mbs.Mechanism("boom")
    mech.add_body("hub", 50.0, inertia=(8, 8, 8))
    mech.add_joint("base", mbs.Free(), "world", "hub")
    mech.add_flexible_body("boom", part, damping=damping)
    mech.add_joint("root", mbs.Revolute((0, 1, 0)), "hub", "boom", mbs.Pose((0.5, 0, 0)))
    return mech.build()


def test_the_factor_of_a_step_is_that_of_the_method():
    """On the imaginary axis rk4 is stable up to the root of 8; a series of the exponential function up to its order."""
    limit: Any = METHODS["rk4"].amplification(1j * 8**0.5)
    assert abs(limit) == pytest.approx(1.0)
    for name, order in (("rk4", 4), ("dopri5", 5), ("dop853", 8)):
        z = 0.1 * np.exp(0.7j)
        assert abs(METHODS[name].amplification(z) - np.exp(z)) < 2 * 0.1 ** (order + 1) / 60
    assert METHODS["implicit"].amplification(1j) is None and METHODS["symplectic"].amplification(1j) is None


@pytest.mark.slow
@pytest.mark.parametrize("damping", [0.0, 0.02])
def test_the_limit_is_where_runs_begin_to_fail(damping):
    """The step that is said to be stable is, and a quarter more is not."""
    model = boom(damping)
    q = np.array(model.neutral())
    said: Any = too_fast(model, q, METHODS["rk4"], 0.2, 40.0)
    highest = mbs.modes(model, q).frequency.max()
    assert f"'boom' has a mode of {highest:.4g} Hz" in said
    stable = float(said.split("up to about ")[1].split(" s")[0])
    assert too_fast(model, q, METHODS["rk4"], 0.99 * stable, 40.0) is None
    assert too_fast(model, q, METHODS["rk4"], 1.25 * stable, 40.0)
    v = np.zeros(model.nv)
    v[model.v_slice("root")] = 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbs.ModelWarning)
        runs = [mbs.simulate(model, q, v, 40.0, dt=x * stable, save_every=None) for x in (0.99, 1.25)]
    sizes = [np.abs(run.q[-1][model.q_slice("boom")]).max() for run in runs]
    assert sizes[0] < 1.0 and not sizes[1] < 10 * sizes[0]


def test_a_run_says_so_before_it_begins():
    model = boom()
    q, v = model.neutral(), np.zeros(model.nv)
    with pytest.warns(mbs.ModelWarning, match=r"simulate: flexible body 'boom' has .* choose method='implicit'"):
        mbs.simulate(model, q, v, 20.0, dt=0.2, save_every=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error", mbs.ModelWarning)
        mbs.simulate(model, q, v, 20.0, dt=0.2, save_every=None, held=["boom"])
    study = {"model": model, "simulation": {"t_end": 20.0, "dt": 0.2}, "outputs": {}, "dispersions": {}}
    with pytest.warns(mbs.ModelWarning, match=r'study: simulation.dt: .* write method = "implicit" in .simulation.'):
        made = mbs.study.Study(**study)
    assert "steps of 0.2 s are too long" in made.warnings[0]
    study["simulation"] = {"t_end": 20.0, "dt": 0.2, "method": "implicit"}
    assert not mbs.study.Study(**study).warnings


@pytest.mark.slow
def test_loops_slow_modes_down():
    """The highest frequency of a slider-crank with a flexible rod is that of its linearised motion."""
    model = slider_crank()
    guess = np.array(model.neutral())
    guess[model.q_slice("shaft")], guess[model.q_slice("guide")] = 0.6, 1.2
    q = np.asarray(mbs.assemble(model, guess, fixed=["shaft", "rod"])[0])
    said: Any = too_fast(model, q, METHODS["rk4"], 1.0, 100.0)
    highest = mbs.modes(model, q).frequency.max()
    assert float(said.split("mode of ")[1].split(" Hz")[0]) == pytest.approx(float(highest), rel=0.02)
