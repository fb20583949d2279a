"""Stability as an output: the share of upright pendulums that their springs hold."""

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.study import read, repeat, run

UPRIGHT = """
criteria = ["growth < 0 1/s"]

[mechanism]
name = "upright"
gravity = [0.0, 0.0, -10.0]
[[mechanism.bodies]]
name = "rod"
mass = 2.0
com = [0.0, 0.0, 0.5]
inertia = [0.1, 0.1, 0.01]
[[mechanism.joints]]
name = "foot"
type = "revolute"
axis = [0.0, 1.0, 0.0]
parent = "world"
child = "rod"
[[mechanism.forces]]
name = "coil"
type = "torsion_spring"
joint = "foot"
stiffness = 10.0
damping = 0.6

[simulation]
t_end = 0.001
dt = 0.001

[dispersions."coil.stiffness"]
distribution = "uniform"
low = 9.0
high = 13.0

[outputs.growth]
type = "largest_real_part"
unit = "1/s"
"""


@pytest.mark.slow
def test_the_share_that_is_stable(tmp_path):
    """I x'' + d x' + (k - m g l) x = 0 grows where k < 10 N m; its larger root in every sample."""
    path = tmp_path / "upright.toml"
    path.write_text(UPRIGHT, encoding="utf-8")
    study = read(path)
    data = run(study, 64, tmp_path / "run", 64).dataset().load()
    draws = next(data[name] for name in data if "stiffness" in str(name)).values
    inertia, damping, k = 0.6, 0.6, draws - 10.0
    root = np.sqrt((damping**2 - 4 * inertia * k).astype(complex))
    np.testing.assert_allclose(data["growth"], ((root - damping) / (2 * inertia)).real, rtol=1e-9, atol=1e-10)
    assert 0.1 < np.mean(data["growth"].values > 0) < 0.4
    np.testing.assert_allclose(repeat(study, [3]).outputs["growth"][0], data["growth"].values[3], rtol=1e-9)


def test_what_has_no_answer(tmp_path):
    """A start that swings is undefined; the rest near it hangs."""
    hanging = UPRIGHT.replace("com = [0.0, 0.0, 0.5]", "com = [0.0, 0.0, -0.5]")
    started = hanging.replace("[simulation]", "[initial.foot]\nq = [0.5]\n\n[simulation]")
    path = tmp_path / "swinging.toml"
    path.write_text(started + '[outputs.rest]\ntype = "largest_real_part"\nrest = true\n', encoding="utf-8")
    found = repeat(read(path)).outputs
    assert np.isnan(found["growth"][0])
    np.testing.assert_allclose(found["rest"][0], -0.5, rtol=1e-9)  # -d / 2 I
    path.write_text(UPRIGHT + 'reduce = "max"\n', encoding="utf-8")
    with pytest.raises(Exception, match="it is computed at the start only"):
        read(path)
    assert mbs.Status.UNSTEADY == 9
