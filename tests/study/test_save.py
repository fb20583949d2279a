"""A study written from Python objects is the study, to the last bit."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.io import InputError
from jaxmbs.study import outputs, read, run, save
from tests.study.conftest import CART

EXAMPLES = Path(__file__).parents[2] / "examples"


def parts(study):
    return {
        "simulation": study.simulation, "dispersions": {d.name: d.table for d in study.dispersions.items},
        "outputs": study.outputs, "criteria": [c.text for c in study.criteria], "q0": study.q0, "v0": study.v0,
        "study": study.plan,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["magnets", "stage_separation", "satellite_release", "solar_array_deployment"])
def test_the_examples_come_back(tmp_path, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbs.ModelWarning)
        study = read(EXAMPLES / f"{name}.toml", trust=True)
        back = save(study.model, tmp_path / "study.toml", **parts(study))
    for field in ("model", "outputs", "criteria", "simulation", "plan", "quantities", "hashes"):
        assert getattr(back, field) == getattr(study, field), field
    assert parts(back)["dispersions"] == parts(study)["dispersions"]
    assert np.array_equal(back.q0, study.q0) and np.array_equal(back.v0, study.v0)


@pytest.mark.slow
def test_the_results_are_the_same_bits(tmp_path):
    (tmp_path / "cart.toml").write_text(CART, encoding="utf-8")
    study = read(tmp_path / "cart.toml")
    tables = {
        "cart.mass": {"distribution": "normal", "apply": "multiply", "std": np.float64(0.02)},
        "spring.stiffness": {"distribution": "lognormal", "apply": "multiply", "sigma": 0.05},
        "initial.rail.v": {"distribution": "uniform", "low": -0.1, "high": 0.1},
    }
    given = parts(study) | {"dispersions": tables, "q0": None}
    stores = [
        run(s, 64, tmp_path / n, 64) for n, s in (("a", study), ("b", save(study.model, tmp_path / "b.toml", **given)))
    ]
    one, other = (store.arrays() for store in stores)
    for name in ("reach", "speed", "cart.mass", "energy_error"):
        assert np.asarray(one[name][:]).tobytes() == np.asarray(other[name][:]).tobytes(), name


def test_what_is_wrong_is_said_with_its_key_and_nothing_is_written(tmp_path):
    model = mbs.library.double_pendulum().build()
    given = {
        "simulation": {"t_end": 1.0}, "outputs": {"speed": outputs.JointVelocity("elbo")},
        "dispersions": {"lower.mass": {"distribution": "normal", "apply": "multiply", "std": 0.1}},
    }  # fmt: skip
    with pytest.raises(InputError, match=r'outputs\.speed\.joint: there is no joint "elbo"; did you mean "elbow"'):
        save(model, tmp_path / "x.toml", **given)
    with pytest.raises(mbs.ModelError, match=r"q0 has shape \(3,\); pass \(2,\)"):
        save(model, tmp_path / "x.toml", q0=[0, 0, 0], **given)
    measured = {"lower.mass": {"distribution": "empirical", "file": str(tmp_path / "no.csv"), "columns": ["m"]}}
    with pytest.raises(InputError, match=r'dispersions\."lower\.mass"\.file: "no\.csv" cannot be read'):
        save(model, tmp_path / "x.toml", **given | {"dispersions": measured})
    assert not list(tmp_path.iterdir())
