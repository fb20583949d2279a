"""Stresses and section loads that a part recovers from its modal coordinates."""

from dataclasses import replace

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.io import InputError
from jaxmbs.model.flexible_bodies.beams import assembled
from jaxmbs.study.outputs import ModalRecovery
from tests.cases import relative
from tests.flexible.parts import boom_text

L, MASS, EI, GJ = 2.0, 1.5, (40.0, 90.0), 10.0


def beam(modes=100, **given):
    return mbs.Part.beam(L, MASS, EI, GJ, modes=modes, elements=6, sections={"root": 0.0, "middle": 0.5}, **given)


def under_tip_load(part, force, moment=(0.0, 0.0, 0.0)):
    """The modal coordinates at rest: the work of the load over the stiffness."""
    return (force @ part.displacements[0] + moment @ part.rotations[0]) / (2 * np.pi * part.frequency) ** 2


@pytest.mark.interpreted
def test_section_loads_of_a_beam_are_those_of_statics():
    force, moment = np.array([0.0, 3.0, -2.0]), np.array([0.7, 0.3, -0.4])
    part = beam()
    q = under_tip_load(part, force, moment)
    for name, place in (("root", 0.0), ("middle", 0.5)):
        exact = np.cross([L * (1 - place), 0, 0], force) + moment
        found = [(part.recovery[f"{name}_{x}"][0] @ q)[0] for x in ("torque", "moment_y", "moment_z")]
        assert relative(found, exact) < 1e-9
        assert part.recovery[f"{name}_torque"][1] == "N m"


@pytest.mark.interpreted
def test_rows_for_displacements_of_nodes():
    """The stress at the root of a round beam of radius c, from its curvature there: that of Euler and Bernoulli."""
    n, c, E = 6, 0.03, 70e9
    M, K = assembled(n, L / n, MASS / L, EI, GJ, 1e5, 1e-4)
    x = np.zeros((n + 1, 3))
    x[:, 0] = np.linspace(0, L, n + 1)
    h, curvature = L / n, np.zeros((2, 6 * (n + 1)))  # w'' at the root of a cubic, at rest at its root
    curvature[0, [6 + 2, 6 + 4]] = 6 / h**2, 2 / h
    curvature[1] = -curvature[0]
    part = mbs.Part.from_matrices(
        M, K, x, attachments={"tip": n}, frame=0, modes=40, recovery={"stress": (E * c * curvature, "Pa")}
    )
    q = under_tip_load(part, np.array([0.0, 0.0, 5.0]))
    exact = E * c * 5.0 * L / EI[0]
    assert relative(part.recovery["stress"][0] @ q / exact, [1.0, -1.0]) < 1e-8


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("recovery", "says"),
    [
        ({"stress": (np.ones((2, 5)), "Pa")}, r"'stress' has shape \(2, 5\); its rows need 4 modes"),
        ({"stress": (np.full(4, np.nan), "Pa")}, "'stress' has numbers that are not finite"),
        ({"stress": np.ones(4)}, "'stress' is .*; pass .rows, unit."),
        ({"root stress": (np.ones(4), "Pa")}, "'root stress' is no name"),
        ({"stress": ("a", "Pa")}, "recovery 'stress': 'a' is not a number"),
        ({"frequency": (np.ones(4), "Pa")}, "parameter 'boom.frequency' exists already"),
        ([1.0], "recovery is .*; pass {name: .rows, unit.}"),
    ],
)
def test_recovery_that_does_not_fit(recovery, says):
    part = beam(4)
    with pytest.raises(mbs.ModelError, match=f"(?s){says}"):
        mbs.Mechanism("boom").add_flexible_body("boom", replace(part, recovery=recovery))
    with pytest.raises(mbs.ModelError, match=r"section 'tip' is at 1\.0"):
        mbs.Part.beam(L, MASS, EI, GJ, sections={"tip": 1.0})


def test_files_keep_it(tmp_path):
    part = beam(4).keep(3)
    part.save(tmp_path / "boom.npz")
    again = mbs.Part.load(tmp_path / "boom.npz")
    assert [*again.recovery] == [*part.recovery] and again.recovery["root_torque"][1] == "N m"
    assert all(
        np.array_equal(again.recovery[k][0], rows) and rows.shape == (1, 3) for k, (rows, _) in part.recovery.items()
    )
    with np.load(tmp_path / "boom.npz") as file:
        older = {k: x for k, x in file.items() if not k.startswith("recovery")}
    np.savez(tmp_path / "older.npz", **older)
    assert not mbs.Part.load(tmp_path / "older.npz").recovery


STUDY = """
[initial.root]
v = [1.0]

[simulation]
t_end = 0.04
dt = 0.01

[dispersions."boom.damping"]
distribution = "normal"
apply = "multiply"
std = 0.1

[outputs.root]
type = "modal_recovery"
body = "boom"
name = "root_moment_y"
reduce = "max"
"""


def two_rows():
    part = beam(4)
    rows, unit = part.recovery["root_moment_y"]
    return replace(part, recovery={**part.recovery, "both": (np.concatenate([rows, -2 * rows]), unit)})


def boom(part):
    mech = mbs.Mechanism("boom", gravity=(0, 0, -9.81))
    mech.add_flexible_body("boom", part)
    mech.add_joint("root", mbs.Revolute((0, 1, 0)), "world", "boom")
    return mech.build()


@pytest.mark.optimised
def test_outputs_in_studies_and_files(tmp_path):
    text = boom_text(STUDY, [0.0, 0.0, -9.81], modes=4, elements=6, sections="{root = 0.0, middle = 0.5}")
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    read = mbs.study.read(tmp_path / "study.toml")
    assert read.outputs["root"].quantity({x.name: x.joint for x in read.model.structure.links}) == "moment"
    mbs.save(boom(two_rows()), tmp_path / "again.toml")
    model = mbs.load(tmp_path / "again.toml")
    outputs = {x: ModalRecovery("boom", "both", x, reduce="max") for x in ("largest", "least", "magnitude")}
    study = mbs.study.Study(
        model=model, simulation={"t_end": 0.04, "dt": 0.01}, initial=(read.q0, read.v0),
        outputs={"root": ModalRecovery("boom", "root_moment_y", reduce="max"), **outputs},
    )  # fmt: skip
    history = mbs.study.repeat(study)
    moment = history.q[0, :, model.q_slice("boom")] @ mbs.get(model, "boom.root_moment_y")
    assert np.ptp(moment) > 1e-3
    exact = {"root": moment, "largest": np.maximum(moment, -2 * moment), "least": np.minimum(moment, -2 * moment),
             "magnitude": 2 * abs(moment)}  # fmt: skip
    for name, x in exact.items():
        assert relative(history.values[name][0], x) < 1e-12
    alone = mbs.study.repeat(read)
    assert relative(alone.values["root"][0], moment) < 1e-10


@pytest.mark.parametrize(
    ("output", "says"),
    [
        (ModalRecovery("world", "both"), 'body: "world" is not a flexible body'),
        (ModalRecovery("boom", "root_moment_x"), 'recovers no "root_moment_x"; did you mean "root_moment_z"'),
        (ModalRecovery("boom", "both"), 'over_rows: "both" has 2 rows; write largest, least or magnitude'),
        (ModalRecovery("boom", "strange"), 'gives "strange" in "kPa", which is not an SI unit'),
    ],
)
def test_outputs_that_do_not_fit(output, says):
    part = two_rows()
    part = replace(part, recovery={**part.recovery, "strange": (np.ones(4), "kPa")})
    with pytest.raises(InputError, match=says):
        mbs.study.Study(model=boom(part), simulation={"t_end": 0.2, "dt": 0.01}, outputs={"wrong": output})
