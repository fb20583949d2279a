"""Outputs of deformation: displacements of nodes, stresses."""

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.io import InputError
from jaxmbs.study.outputs import ElasticDisplacement, ModalSum

PART = mbs.Part.beam(length=3.0, mass=4.0, bending=(60.0, 90.0), torsion=40.0, modes=3, foreshortening=True)
STRESS = (2.0e5, -4.0e4, 1.0e4)


def boom():
    mech = mbs.Mechanism("boom")
    mech.add_body("hub", mass=50.0, inertia=(8.0, 8.0, 8.0))
    mech.add_joint("base", mbs.Free(), "world", "hub")
    mech.add_flexible_body("boom", PART, damping=0.005, order=2)
    mech.add_joint("root", mbs.Revolute((0, 1, 0)), "hub", "boom", mbs.Pose((0.5, 0, 0)))
    return mech.build()


def study(model, **outputs):
    q0 = np.asarray(model.neutral()).copy()
    q0[model.q_slice("boom")] = (0.02, -0.03, 0.01)
    return mbs.study.Study(
        model=model, simulation={"t_end": 0.2, "dt": 0.01}, outputs=outputs, initial=(q0, None),
        dispersions={"boom.frequency": mbs.study.Normal(apply="multiply", std=0.05)},
        criteria=["stress < 5 kPa in 50 %"] if "stress" in outputs else (),
    )  # fmt: skip


@pytest.mark.optimised
def test_deformation_is_that_of_the_poses():
    model = boom()
    parts = {f"{part[:1]}_{axis}": ElasticDisplacement("boom_tip", part, axis, reduce="max")
             for part in ("displacement", "rotation") for axis in ("total", "x", "y", "z")}  # fmt: skip
    history = mbs.study.repeat(study(model, stress=ModalSum("boom", STRESS, unit="Pa", reduce="max"), **parts))
    frame, tip = (model.body_names.index(name) for name in ("boom", "boom_tip"))
    for k in (0, 7, 20):
        poses = mbs.body_poses(model, history.q[0, k])
        R = np.asarray(poses.rotation[frame])
        u = R.T @ np.asarray(poses.position[tip] - poses.position[frame]) - (3.0, 0, 0)
        turned = R.T @ np.asarray(poses.rotation[tip])
        w = np.array([turned[2, 1] - turned[1, 2], turned[0, 2] - turned[2, 0], turned[1, 0] - turned[0, 1]]) / 2
        found = {name: x[0, k] for name, x in history.values.items()}
        assert np.allclose([found[f"d_{a}"] for a in "xyz"], u, atol=1e-12)
        assert found["d_total"] == pytest.approx(np.linalg.norm(u), abs=1e-12)
        assert np.allclose([found[f"r_{a}"] for a in "xyz"], w, atol=np.linalg.norm(w) ** 3), "of third order"
        q = history.q[0, k, model.q_slice("boom")]
        assert found["stress"] == pytest.approx(float(np.dot(STRESS, q)), rel=1e-12)
    assert np.ptp(history.values["d_total"]) > 1e-3


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (ElasticDisplacement("hub"), "is not a node"),
        (ElasticDisplacement("boom_tp"), 'did you mean "boom_tip"'),
        (ModalSum("hub", STRESS), "is not a flexible body"),
        (ModalSum("boom", STRESS[:2]), "has 3 modes"),
        (ModalSum("boom", STRESS, unit="kPa"), "is not an SI unit"),
    ],
)
def test_outputs_that_do_not_fit(output, said):
    with pytest.raises(InputError, match=said):
        study(boom(), wrong=output)
