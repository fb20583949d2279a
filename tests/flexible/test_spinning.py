"""Bodies that spin fast beside their frequencies: what is not included is said where a study is read."""

import warnings

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.model.flexible_bodies.spinning import spins
from jaxmbs.study.outputs import JointVelocity
from tests.cases import relative
from tests.flexible.parts import arm, state


@pytest.mark.interpreted
def test_rates_are_those_of_the_recursions():
    """Of a body on the node of another, which bends; the lowest frequency is the part's."""
    model = arm().build()
    q, v, _ = state(model, 1, 0.3)
    found = spins(model, q, v)
    assert list(found) == ["arm", "tail"]
    for body, (rate, lowest) in found.items():
        angular = mbs.body_velocities(model, q, v)[model.body_names.index(body), :3]
        assert rate == pytest.approx(float(np.linalg.norm(angular)), rel=1e-12)
        assert relative(lowest, 2 * np.pi * np.min(mbs.get(model, f"{body}.frequency"))) < 1e-12


def boom(spin):
    """A study of a boom on a hub whose bearing turns at `spin` times the first frequency of the boom."""
    part = mbs.Part.beam(2.0, 1.5, (40.0, 90.0), 10.0, modes=2)
    mech = mbs.Mechanism("boom")
    mech.add_body("hub", 10.0, inertia=(1, 1, 1))
    mech.add_joint("bearing", mbs.Revolute((0, 0, 1)), "world", "hub")
    mech.add_flexible_body("boom", part)
    mech.add_joint("root", mbs.Fixed(), "hub", "boom", mbs.Pose((0.2, 0, 0)))
    return mbs.study.Study(
        model=mech.build(), initial={"bearing": {"v": [-spin * 2 * np.pi * float(part.frequency[0])]}},
        outputs={"rate": JointVelocity("bearing")},
    )  # fmt: skip


def test_a_study_says_that_a_body_spins_too_fast():
    with pytest.warns(mbs.ModelWarning, match=r"study: flexible body 'boom' spins at 1.93 rad/s, 0.3 of its lowest"):
        fast = boom(0.3)
    assert len(fast.warnings) == 1 and "tension does not stiffen" in fast.warnings[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert boom(0.1).warnings == []
