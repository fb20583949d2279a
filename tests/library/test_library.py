"""The ready mechanisms are what their docstrings say."""

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import scalar
from jaxmbs.library.shapes import box, cylinder


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
    assert where["left_foot"][1] == pytest.approx(-where["right_foot"][1], rel=1e-14) and where["left_foot"][1] > 0
    assert 1.5 < where["head"][2] + 0.19 < 1.7


def test_separation_starts_joined():
    model = mbs.library.stage_separation(pushers=6).build()
    assert model.force_names == (*(f"pusher_{i}" for i in range(1, 7)), "residual")
    assert total_mass(model) == 3500.0
    where = positions(model)
    assert np.array_equal(where["stage"], where["payload"])


def test_inertias_of_solids():
    """Against sums over fine grids of points."""
    x = (np.arange(60) + 0.5) / 60 - 0.5
    points = np.stack(np.meshgrid(x, x, x), axis=-1).reshape(-1, 3)

    def moments(points, mass):
        squares = (points**2).mean(axis=0)
        return mass * (squares.sum() - squares)

    assert box(2.0, 1.0, 2.0, 3.0) == pytest.approx(moments(points * (1, 2, 3), 2.0), rel=1e-3)
    round_ = points[np.hypot(points[:, 0], points[:, 1]) < 0.5]
    for axis in range(3):
        turned = np.roll(round_ * (0.8, 0.8, 3.0), axis - 2, axis=1)
        assert cylinder(2.0, 0.4, 3.0, axis=axis) == pytest.approx(moments(turned, 2.0), rel=1e-2)


def test_energy_of_a_rod_that_turns_about_its_end():
    """(m l²/3) w²/2, of the crank of a four-bar: 1 kg/m."""
    model = mbs.library.four_bar(crank=0.6).build()
    kinetic, _ = scalar.energy(model, [0.3, 0.4, 0.5], [2.0, -2.0, 0.0])  # the coupler does not turn
    assert kinetic == pytest.approx(0.6 * 0.6**2 / 3 * 2.0**2 / 2 + 2.0 * (0.6 * 2.0) ** 2 / 2)


def gap(mechanism, q):
    """Distance between the ends of the only loop."""
    model = mechanism.build()
    poses = dict(zip(model.body_names, scalar.body_poses(model, q), strict=True))
    loop, ends = model.structure.loops[0], []
    for body, pose in ((loop.body_a, "pose_a"), (loop.body_b, "pose_b")):
        position, rotation = poses[body]
        local = np.asarray(mbs.get(model, f"{loop.name}.{pose}.position"))
        ends.append(np.array(position) + np.reshape(rotation, (3, 3)) @ local)
    return float(np.linalg.norm(ends[1] - ends[0]))


def test_loops_close_where_the_docstrings_say():
    assert gap(mbs.library.solar_array_linkage(panel=1.3), [0.0] * 4) < 1e-14
    assert gap(mbs.library.crank_slider(0.1, 0.3), [0.0] * 3) < 1e-14
    # the crank stands upright and the rod comes down to the slider, 0.04 m above the axis
    down = np.arcsin(0.06 / 0.3)
    q = [np.pi / 2, -np.pi / 2 - down, 0.3 * np.cos(down) - 0.4]
    assert gap(mbs.library.crank_slider(0.1, 0.3, offset=0.04), q) < 1e-14


def test_pushers_stand_on_a_circle():
    model = mbs.library.stage_separation(pushers=5, pusher_radius=0.7).build()
    for end in ("point_a", "point_b"):
        seats = np.array([mbs.get(model, f"pusher_{i}.{end}") for i in range(1, 6)])
        assert np.allclose(np.linalg.norm(seats[:, 1:], axis=1), 0.7) and np.allclose(seats.sum(axis=0), 0, atol=1e-14)


def test_springs_of_a_wing_rest_where_its_panels_stand_in_a_line():
    model = mbs.library.synchronised_wing(5).build()
    rest = [mbs.get(model, f"spring_{k}.rest_angle") for k in range(1, 6)]
    folded = np.array([mbs.get(model, f"panel_{k}.com")[1] for k in range(1, 6)])  # up and down in turn
    np.testing.assert_allclose(np.cumsum(rest) + np.sign(folded) * np.pi / 2, 0, atol=1e-15)
    for k in range(2, 6):
        np.testing.assert_allclose(rest[k - 1], mbs.get(model, f"cable_{k}.coefficients") @ [1, rest[k - 2]])
