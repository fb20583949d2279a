"""Forces and gaps that the page of a motion shows, and what is allowed in its plots."""

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.study.outputs import Ball, Clearance
from jaxmbs.study.reports.closest import nearest
from jaxmbs.view.segments import gaps, of_forces
from tests.view.test_animate import glb_of, read_glb


@pytest.fixture(scope="module")
def pulled():
    """A body on a slider that a spring pulls to the side of the world; a thruster is switched off on the way."""
    mech = mbs.Mechanism("pulled")
    mech.add_body("sled", 1.0, inertia=(0.1, 0.1, 0.1))
    mech.add_joint("guide", mbs.Prismatic((1, 0, 0)), "world", "sled")
    spring = mbs.LinearSpring("sled", "world", point_a=(0.1, 0.2, 0), point_b=(1, 1, 0.5), stiffness=2.0)
    mech.add_force("spring", spring)
    mech.add_force("thruster", mbs.Thruster("sled", point=(0, 0.3, 0), direction=(1, 0, 0), thrust=4.0))
    mech.add_event("cut", when=mbs.Time(0.105), then=mbs.Disable("thruster"))
    model = mech.build()
    return model, mbs.simulate(model, [0.0], [0.0], t_end=0.2, dt=0.01)


def test_arrows_stand_on_their_lines_of_action(pulled):
    model, run = pulled
    found = {s.label: s for s in of_forces(model, "motion", run)}
    assert set(found) == {"spring on sled", "thruster on sled"}
    x = np.asarray(run.q)[:, :1]
    hook = x * [1, 0, 0] + [0.1, 0.2, 0]
    spring = found["spring on sled"]
    np.testing.assert_allclose(spring.along, 2.0 * (np.array([1, 1, 0.5]) - hook), atol=1e-12)
    np.testing.assert_allclose(np.cross(hook - spring.start, spring.along), 0, atol=1e-12)
    thruster = found["thruster on sled"]
    on = np.asarray(run.t) < 0.105
    np.testing.assert_allclose(thruster.along, np.where(on[:, None], [4.0, 0, 0], 0.0))
    np.testing.assert_allclose(thruster.start[on], x[on] * [1, 0, 0] + [0, 0.3, 0], atol=1e-12)


def test_the_page_has_arrows_and_limits(pulled, tmp_path):
    model, run = pulled
    plots = {"x [m]": np.asarray(run.q)[:, 0]}
    given = {"plots": plots, "limits": {"x [m]": [0.5]}, "forces": True, "frames": 5}
    page = mbs.animate(model, run, tmp_path / "motion.html", **given).read_text(encoding="utf-8")
    tree, arrays = read_glb(glb_of(page))
    said = tree["scenes"][0]["extras"]
    assert said["plots"]["series"][0]["limits"] == [0.5]
    (spring,) = [s for s in said["segments"] if s["label"] == "spring on sled"]
    assert (spring["kind"], spring["sample"]) == ("force", 0) and len(arrays[spring["along"]]) == 5
    np.testing.assert_allclose(arrays[spring["along"]][0], [1.8, 1.6, 1.0], rtol=1e-6)


def test_a_gap_is_as_long_as_the_clearance():
    mech = mbs.Mechanism("two")
    for name in ("a", "b"):
        mech.add_point_mass(name, 1.0)
    model = mech.build()
    output = Clearance(Ball("a", radius=0.2), Ball("b", radius=0.3))
    q = np.random.default_rng(0).normal(size=(4, 6)) * 3
    line = gaps(*nearest(output, model, q, np.zeros(4)), "gap", "motion")
    apart = q[:, 3:] - q[:, :3]
    exact = np.linalg.norm(apart, axis=1) - 0.5
    np.testing.assert_allclose(np.linalg.norm(line.along, axis=1), np.abs(exact), atol=1e-6)
    np.testing.assert_allclose(np.cross(line.along, apart), 0, atol=1e-5)
    unknown = gaps(np.full((1, 3), np.nan), np.zeros((1, 3)), "gap", "motion")
    assert not unknown.along.any()
