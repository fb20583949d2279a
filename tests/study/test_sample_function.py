"""A sample as a function of its draws: the outputs of a run, derivatives, a shared library."""

import shutil

import jax
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.batching.mapped_program import chosen_target
from jaxmbs.study import read, run, sample_function
from tests.exporting.test_programs import called
from tests.study.conftest import CART

N = 64


@pytest.fixture(scope="module")
def cart(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample")
    (folder / "cart.toml").write_text(CART, encoding="utf-8")
    store = run(read(folder / "cart.toml"), N, folder / "run", N)
    study = read(folder / "cart.toml")
    draws = store.draws(study)
    return study, np.concatenate([draws[d.name] for d in study.dispersions.items], axis=1), store.outputs(study)


def test_it_gives_the_outputs_of_a_run(cart):
    study, draws, wanted = cart
    found = mbs.jit(sample_function(study), in_axes=0)(draws)
    assert set(found) == {*study.outputs, "status"} and not np.any(found["status"])
    for name, x in wanted.items():
        assert np.allclose(found[name], x, rtol=1e-10, atol=0), name
    impossible = np.array(draws[0])
    impossible[study.dispersions.inputs.index("cart.mass")] = -1.0
    assert int(sample_function(study)(impossible)["status"]) == mbs.Status.UNPHYSICAL


def test_its_derivatives(cart):
    study, draws, _ = cart
    speed = jax.jit(lambda x: sample_function(study)(x)["speed"])
    slopes = jax.jit(jax.grad(speed))(draws[0])
    for k, step in enumerate(1e-6 * np.eye(draws.shape[1])):
        wanted = (speed(draws[0] + step) - speed(draws[0] - step)) / 2e-6
        assert float(slopes[k]) == pytest.approx(float(wanted), rel=1e-6, abs=1e-9)


@pytest.mark.cpu
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.skipif(chosen_target("cpu")[0] is None, reason="kernels are machine code here")
def test_it_is_a_program_without_python(cart, tmp_path):
    study, draws, _ = cart
    sample = sample_function(study)
    library, _ = mbs.export(sample, (draws[0],), tmp_path / "sample.so", kind="shared")
    wanted = jax.tree.leaves(mbs.jit(sample, in_axes=0)(draws))
    for x, y in zip(called(library, "sample", N, (draws,), wanted), wanted, strict=True):
        assert np.array_equal(x, y)
