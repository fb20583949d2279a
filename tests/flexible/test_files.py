"""Flexible bodies in files, and in studies from them."""

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.study.results.described import read_study
from jaxmbs.study.results.store import open_folder
from tests.cases import relative
from tests.flexible.parts import lumped, state

TOP = """
[mechanism]
name = "wing"
gravity = [0.0, 0.0, -9.81]

[[mechanism.bodies]]
name = "hub"
mass = 3.0
inertia = [0.1, 0.1, 0.1]

[[mechanism.joints]]
name = "base"
type = "free"
parent = "world"
child = "hub"

[[mechanism.joints]]
name = "hinge"
type = "revolute"
axis = [0.0, 1.0, 0.0]
parent = "hub"
child = "wing"

[[mechanism.flexible_bodies]]
name = "wing"
damping = [0.01, 0.02, 0.03]
"""
BEAM = (
    TOP
    + """
[mechanism.flexible_bodies.beam]
length = 2.0
mass = 1.5
bending = [40.0, 90.0]
torsion = 10.0
modes = 3
"""
)


def built(part):
    mech = mbs.Mechanism("wing", gravity=(0, 0, -9.81))
    mech.add_body("hub", 3.0, inertia=(0.1, 0.1, 0.1))
    mech.add_joint("base", mbs.Free(), "world", "hub")
    mech.add_flexible_body("wing", part, damping=[0.01, 0.02, 0.03])
    mech.add_joint("hinge", mbs.Revolute((0, 1, 0)), "hub", "wing")
    return mech.build()


PLATE = (
    TOP
    + """
[mechanism.flexible_bodies.plate]
length = 2.0
width = 0.8
mass = 1.5
stiffness = 40.0
root = "point"
modes = 3
elements = [4, 2]
attach = {tip = [1.0, 0.5]}
stations = {middle = [0.5, 0.0]}
"""
)


def own_plate():
    return mbs.Part.plate(
        2.0,
        0.8,
        1.5,
        40.0,
        root="point",
        modes=3,
        elements=(4, 2),
        attach={"tip": (1.0, 0.5)},
        stations={"middle": (0.5, 0)},
    )


@pytest.mark.parametrize("kind", ["beam", "plate", "part"])
def test_a_file_gives_the_same_model_and_so_does_what_save_writes(tmp_path, kind):
    beam = mbs.Part.beam(2.0, 1.5, (40.0, 90.0), 10.0, modes=3)
    part, text = {
        "beam": (beam, BEAM), "plate": (own_plate(), PLATE), "part": (lumped()[0], TOP + 'part = "wing.npz"\n')
    }[kind]  # fmt: skip
    part.save(tmp_path / "wing.npz")
    (tmp_path / "wing.toml").write_text(text, encoding="utf-8")
    model, own = mbs.load(tmp_path / "wing.toml"), built(part)
    mbs.save(model, tmp_path / "again.toml")
    q, v, tau = state(own)
    a = mbs.forward_dynamics(own, q, v, tau)
    assert mbs.load(tmp_path / "again.toml") == model
    assert model.structure == own.structure
    for name in own.parameter_names:
        assert relative(mbs.get(model, name), mbs.get(own, name)) < 1e-12, name
    assert relative(mbs.forward_dynamics(model, q, v, tau), a) < 1e-10


def test_a_beam_in_a_file_has_all_that_one_in_python_has(tmp_path):
    text = BEAM.replace("modes = 3\n", 'modes = 3\nfree = true\nattach = ["root", "tip"]\ngyration = [0.05, 0.04]\n')
    text = text.replace(
        "damping = [", "damping_matrix = [[2.0, 0.1, 0.0], [0.1, 3.0, 0.0], [0.0, 0.0, 4.0]]\ndamping = ["
    )
    (tmp_path / "wing.toml").write_text(text, encoding="utf-8")
    model = mbs.load(tmp_path / "wing.toml")
    part = mbs.Part.beam(
        2.0, 1.5, (40.0, 90.0), 10.0, modes=3, free=True, attach=("root", "tip"), gyration=(0.05, 0.04)
    )
    assert mbs.get(model, "wing.frequency") == pytest.approx(part.frequency, rel=1e-12)
    assert {"wing_root", "wing_tip"} <= {*model.body_names}
    assert mbs.get(model, "wing.damping_matrix") == pytest.approx([2.0, 0.1, 0.0, 0.1, 3.0, 0.0, 0.0, 0.0, 4.0])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (TOP, "give one of part, beam and plate"),
        (
            BEAM.replace("[mechanism.flexible_bodies.beam]", 'part = "wing.npz"\n[mechanism.flexible_bodies.beam]'),
            "give one of",
        ),
        (TOP + 'part = "none.npz"\n', 'part: "none.npz" cannot be read'),
        (TOP + 'part = "../wing.npz"\n', "part: .* without a folder"),
        (TOP + 'part = "text.npz"\n', "pass a file written by Part.save"),
        (TOP + "part = 3\n", "needs the name of a file"),
        (BEAM.replace("length = 2.0", "length = -2.0"), "beam.length"),
        (PLATE.replace('"point"', '"side"'), "root is 'side'; choose from edge, point, free"),
        (PLATE.replace("[1.0, 0.5]", "[1.0, 0.9]"), "'tip' is at .*; pass 0 .root. to 1"),
        (
            BEAM.replace("0.02, 0.03", "0.02"),
            r"damping is \(0.01, 0.02\); pass one number of zero or more, or one for each of 3 modes",
        ),
    ],
)
def test_faults_in_a_file_name_their_key(tmp_path, text, says):
    lumped()[0].save(tmp_path / "wing.npz")
    (tmp_path / "text.npz").write_text("text", encoding="utf-8")
    (tmp_path / "wing.toml").write_text(text, encoding="utf-8")
    with pytest.raises(mbs.ModelError, match=says):
        mbs.load(tmp_path / "wing.toml")


def test_outputs_of_rigid_bodies_refuse_flexible_ones(tmp_path):
    text = (
        BEAM
        + '[simulation]\nt_end = 0.01\ndt = 0.005\n[dispersions."wing.frequency"]\ndistribution = "normal"\nstd = 0.1\n'
    )
    text += '[outputs.swing]\ntype = "momentum"\nbody = "wing"\n'
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    with pytest.raises(mbs.ModelError, match=r'outputs.swing.body: "wing" is flexible'):
        mbs.study.read(tmp_path / "study.toml")


def test_the_mass_of_a_flexible_body_is_not_dispersed(tmp_path):
    text = BEAM + '[simulation]\nt_end = 0.01\n[dispersions."wing.mass"]\ndistribution = "normal"\nstd = 0.1\n'
    text += '[outputs.swing]\ntype = "angular_rate"\nbody = "hub"\n'
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    with pytest.raises(mbs.ModelError, match=r'belong to "wing\.mass"; disperse its frequency or damping'):
        mbs.study.read(tmp_path / "study.toml")


def test_a_study_keeps_its_part_with_the_run(tmp_path):
    """The part's file may be gone when a report is made or a sample is repeated."""
    text = (
        TOP
        + 'part = "wing.npz"\n'
        + """
[dispersions."wing.frequency"]
distribution = "normal"
apply = "multiply"
std = 0.05

[initial.hinge]
v = [0.3]

[simulation]
t_end = 0.05
dt = 0.005

[outputs.swing]
type = "distance"
body_a = "wing"
body_b = "wing_hand"
reduce = "max"
"""
    )
    lumped()[0].save(tmp_path / "wing.npz")
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    study = mbs.study.read(tmp_path / "study.toml")
    store = mbs.study.run(study, 4, tmp_path / "run")
    swing = store.outputs(study)["swing"]
    assert np.isfinite(swing).all() and len(set(swing.tolist())) == 4
    (tmp_path / "wing.npz").unlink()
    again = read_study(open_folder(tmp_path / "run"))
    assert again.model.structure == study.model.structure
