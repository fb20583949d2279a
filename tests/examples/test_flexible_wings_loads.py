"""Loads of wings that latch, beside those of rigid wings."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import jaxmbs as mbs

PATH = Path(__file__).parents[2] / "examples" / "flexible_wings_loads.py"


@pytest.mark.slow
def test_the_impulse_is_the_change_of_momentum_and_the_wing_amplifies_it():
    spec = importlib.util.spec_from_file_location("flexible_wings_loads", PATH)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    flexible, rigid = example.both()
    bending, stiff = (mbs.study.repeat(study, range(4)) for study in (flexible, rigid))
    found, nominal = (example.impulses(rigid, x) for x in (stiff, mbs.study.repeat(rigid)))
    # the nominal wings latch at the same instant, and the momentum of the satellite does not change
    model, hinge, satellite = rigid.model, rigid.model.v_slice("left_hinge").start, rigid.model.v_slice("flight")
    motion = mbs.study.repeat(rigid)
    last = np.searchsorted(motion.t, motion.outputs["latched"][0]) - 1
    A, v = np.asarray(mbs.mass_matrix(model, motion.q[0, last])), motion.v[0, last]
    after = np.linalg.solve(A[satellite, satellite], A[satellite] @ v)
    assert nominal[0] == pytest.approx(abs(A[hinge] @ v - A[hinge, satellite] @ after), rel=2e-3)
    first = 2 * np.pi * mbs.get(flexible.model, "left.frequency")[0]
    assert np.all(bending.outputs["root_moment"] > found * first) and found.min() > 0.5
    assert np.all(stiff.outputs["root_moment"] < 0.2 * bending.outputs["root_moment"])
    assert np.abs(stiff.outputs["latched"] / bending.outputs["latched"] - 1).max() < 1e-2
