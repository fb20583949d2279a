"""Gradients of long motions of flexible bodies, with the ways of storing them; a study that is interrupted."""

import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.study.results.store import NOT_RUN, Store, open_folder
from tests.flexible.parts import boom_text

STEPS = 1200


@pytest.mark.slow
def test_gradients_of_a_long_motion_do_not_depend_on_what_is_stored():
    """With respect to frequencies, participation and the state at the start, against central differences."""
    part = mbs.Part.beam(2.0, 1.5, (40.0, 90.0), 10.0, modes=2, elements=4)
    mech = mbs.Mechanism("boom", gravity=(0, 2.0, -9.81))
    mech.add_flexible_body("boom", part, damping=0.01, order=2)
    mech.add_joint("root", mbs.Revolute((0, 1, 0)), "world", "boom")
    model = mech.build()
    v = np.zeros(model.nv)
    v[model.v_slice("root")] = 0.5
    f0 = jnp.asarray(mbs.get(model, "boom.frequency"))

    def end(x, checkpoint):
        given = mbs.set(model, {"boom.frequency": f0 * (1 + x[:2]), "boom.participation": 0.9 + x[2]})
        q0 = jnp.asarray(model.neutral()).at[model.q_slice("boom").start].set(0.02 + x[3])
        run = mbs.simulate(given, q0, v, 0.002 * STEPS, dt=0.002, save_every=None, checkpoint=checkpoint)
        return run.q[-1] @ jnp.arange(1.0, model.nq + 1)

    x, found, kept = jnp.zeros(4), {}, {}
    for checkpoint in (True, False, 2):
        gradient = jax.jit(jax.grad(lambda x, c=checkpoint: end(x, c)))
        found[checkpoint] = gradient(x)
        kept[checkpoint] = sum(program.bytes_kept for program in mbs.explain(gradient, x).programs)
    value = jax.jit(lambda x: end(x, False))
    h = 1e-5
    exact = np.array([(value(x + h * d) - value(x - h * d)) / (2 * h) for d in np.eye(4)])
    assert np.abs(exact).min() > 1e-3
    for gradient in found.values():
        np.testing.assert_allclose(gradient, exact, rtol=1e-6, atol=1e-6 * np.abs(exact).max())
        np.testing.assert_allclose(gradient, found[False], rtol=1e-9)
    assert 0 < kept[2] < kept[True] / 5 < kept[False] / 5


STUDY = """
[dispersions."boom.frequency"]
distribution = "normal"
apply = "multiply"
std = 0.05

[dispersions."boom.participation"]
distribution = "uniform"
low = 0.8
high = 0.95

[simulation]
t_end = 0.1
dt = 0.002

[outputs.load]
type = "modal_recovery"
body = "boom"
name = "root_moment_y"
over_rows = "magnitude"
reduce = "max"
"""


@pytest.mark.slow
def test_an_interrupted_study_goes_on_to_the_same_bits(tmp_path):
    text = boom_text(STUDY, [0.0, 2.0, -9.81], modes=2, elements=4, sections="{root = 0.0}", order=2)
    (tmp_path / "boom.toml").write_text(text, encoding="utf-8")
    study = mbs.study.read(tmp_path / "boom.toml")
    whole, folder = tmp_path / "whole", tmp_path / "run"
    exact = mbs.study.run(study, 100, whole).outputs(study)["load"]
    assert np.isfinite(exact).all() and np.ptp(exact) > 1e-3
    shutil.copytree(whole, folder)
    arrays = Store(folder, json.loads((folder / "provenance.json").read_text(encoding="utf-8"))).arrays()
    arrays["status"][64:100] = NOT_RUN
    arrays["load"][64:100] = -1.0
    mbs.study.resume(folder)
    assert np.array_equal(open_folder(folder).outputs(study)["load"], exact)
