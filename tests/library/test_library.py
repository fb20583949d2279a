"""The ready mechanisms are what their docstrings say."""

import numpy as np
import pytest

import jaxmbs as mbs


@pytest.mark.parametrize(
    ("mechanism", "nv", "bodies"),
    [
        (mbs.library.chain(5), 5, 5),
        (mbs.library.double_pendulum(), 2, 2),
        (mbs.library.arm7(), 7, 7),
        (mbs.library.humanoid30(), 30, 25),
        (mbs.library.stage_separation(), 12, 2),
    ],
    ids=lambda x: getattr(x, "name", None),
)
def test_sizes(mechanism, nv, bodies):
    model = mechanism.build()
    assert (model.nv, len(model.body_names)) == (nv, bodies)


def positions(model):
    poses = mbs.body_poses(model, model.neutral())
    return dict(zip(model.body_names, np.asarray(poses.position), strict=True))


def total_mass(model):
    return sum(mbs.get(model, f"{b}.mass") for b in model.body_names)


def test_chain_hangs_down():
    model = mbs.library.chain(4, length=0.25).build()
    assert np.allclose(positions(model)["link_4"], (0, 0, -0.75), atol=1e-14)


def test_arm_stands_upright():
    model = mbs.library.arm7().build()
    assert total_mass(model) == pytest.approx(23.0)
    assert positions(model)["link_7"][2] + 0.07 == pytest.approx(1.33)


def test_humanoid_stands_on_the_floor():
    model = mbs.library.humanoid30().build()
    assert total_mass(model) == pytest.approx(64.9)
    where = positions(model)
    for side in ("left", "right"):
        sole = where[f"{side}_foot"][2] - 0.05 - 0.025
        assert sole == pytest.approx(0.0, abs=0.01)
    assert where["left_foot"][1] == -where["right_foot"][1] > 0
    assert 1.5 < where["head"][2] + 0.19 < 1.7


def test_separation_starts_joined():
    model = mbs.library.stage_separation(pushers=6).build()
    assert model.force_names == (*(f"pusher_{i}" for i in range(1, 7)), "residual")
    assert total_mass(model) == 3500.0
    where = positions(model)
    assert np.array_equal(where["stage"], where["payload"])
