"""The page with sliders: what they say is where the bodies are; without a browser."""

import numpy as np
import pytest

import jaxmbs as mbs

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:websockets", "ignore::DeprecationWarning:viser")


@pytest.fixture
def show():
    """Function (as mbs.view) -> viewer, its sliders by name; stopped afterwards."""
    pytest.importorskip("viser")
    made = []

    def run(*args, **options):
        viewer = mbs.view(*args, port=18080, **options)
        made.append(viewer)
        return viewer, {h.label: h for h in viewer._handles}

    yield run
    for viewer in made:
        viewer.stop()


def at(viewer, body):
    """Where the page has a body, and where it should be."""
    frame = viewer._frames[viewer.model.body_names.index(body)]
    poses = mbs.body_poses(viewer.model, viewer.q)
    return np.array(frame.position), np.asarray(poses.position)[viewer.model.body_names.index(body)]


def test_joints_and_parameters(show, capsys):
    model = mbs.library.double_pendulum().build()
    motion = mbs.simulate(model, [0.4, 0.2], [0.0, 0.0], t_end=0.2, dt=0.01)
    viewer, sliders = show(
        model,
        [0.1, 0.0],
        parameters={"elbow.parent_pose.position": (-3.0, 3.0), "lower.mass": (-1.0, 3.0)},
        motion=motion,
    )
    assert "localhost:" in capsys.readouterr().out
    assert sliders["shoulder.angle"].value == pytest.approx(0.1)
    sliders["shoulder.angle"].value = np.pi / 2
    np.testing.assert_allclose(viewer.q, [np.pi / 2, 0.0])
    np.testing.assert_allclose(at(viewer, "lower")[0], [1.0, 0.0, 0.0], atol=1e-6)
    sliders["elbow.parent_pose.position[2]"].value = -2.0
    np.testing.assert_allclose(at(viewer, "lower")[0], [2.0, 0.0, 0.0], atol=1e-6)
    sliders["lower.mass"].value = -0.5  # no body has it: said, and not taken
    assert mbs.get(viewer.model, "lower.mass") == 1.0 and "mass" in viewer._said.content
    sliders["t [s]"].value = 0.1
    np.testing.assert_allclose(viewer.q, motion.q[10])
    assert sliders["shoulder.angle"].value == pytest.approx(float(motion.q[10, 0]))


def test_bodies_that_float_turn_from_where_they_are(show):
    mech = mbs.Mechanism("free")
    mech.add_body("a", 1.0, inertia=(1, 1, 1))
    mech.add_joint("f", mbs.Free(), "world", "a")
    half = np.sqrt(0.5)
    viewer, sliders = show(mech.build(), [1.0, 2, 3, half, 0, 0, half])
    sliders["f.vx"].value = 0.5
    np.testing.assert_allclose(viewer.q, [1, 2.5, 3, half, 0, 0, half], atol=1e-6)
    np.testing.assert_allclose(*at(viewer, "a"), atol=1e-6)
    sliders["f.wz"].value = np.pi / 2
    assert abs(viewer.q[6]) == pytest.approx(1, abs=1e-3)


def test_deformations_are_enlarged(show):
    """In the picture alone: sliders and the state have them as they are."""
    part = mbs.Part.beam(2.0, 1.5, (40.0, 90.0), 10.0, modes=2, elements=4)
    mech = mbs.Mechanism("boom")
    mech.add_flexible_body("boom", part)
    mech.add_joint("root", mbs.Revolute((0, 1, 0)), "world", "boom")
    viewer, sliders = show(mech.build(), deformation_scale=20)
    assert viewer._said.content == "boom, deformation \u00d7 20"
    sliders["boom.mode[0]"].value = 0.02
    np.testing.assert_allclose(viewer.q, [0.0, 0.02, 0.0])
    np.testing.assert_allclose(
        at(viewer, "boom_tip")[0], part.positions[0] + 20 * 0.02 * part.displacements[0, :, 0], atol=1e-6
    )
    sliders["root.angle"].value = np.pi / 2
    assert at(viewer, "boom_tip")[0][0] == pytest.approx(20 * 0.02 * part.displacements[0, 2, 0], abs=1e-3)
    assert np.abs(part.displacements[0, 2, 0]) > 0.1


@pytest.mark.slow
def test_loops_stay_closed(show):
    model = mbs.library.crank_slider().build()
    viewer, sliders = show(model)
    sliders["bearing.angle"].value = 1.0
    assert viewer.q[0] == pytest.approx(1.0)
    *_, residual = mbs.constrained_dynamics(model, viewer.q, np.zeros(3))
    assert np.abs(residual).max() < 1e-10
    others = [h.value for h in viewer._handles[1:3]]
    np.testing.assert_allclose(others, viewer.q[1:], atol=1e-6)
    assert "completed" in viewer._said.content


def test_what_cannot_be_shown_is_said():
    model = mbs.library.double_pendulum().build()
    with pytest.raises(mbs.ModelError, match=r"view: q has shape \(3,\); needs \(2,\)"):
        mbs.view(model, [0.0, 0.0, 0.0])
    with pytest.raises(mbs.ModelError, match="view: deformation_scale is nan; pass a number of zero or more"):
        mbs.view(model, deformation_scale=float("nan"))
    batch = mbs.Solution(np.zeros((3, 2)), np.zeros((3, 2, 2)), *[None] * 10)
    with pytest.raises(mbs.ModelError, match="one instance"):
        mbs.view(model, motion=batch)
