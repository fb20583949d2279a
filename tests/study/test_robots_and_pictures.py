"""info and simulate on files of other programs, and what `simulate --animate` draws."""

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.io import InputError
from jaxmbs.study import read
from jaxmbs.study.reports.motion import motion
from jaxmbs.study.samples.repeat import repeat
from tests.study.conftest import CART
from tests.view.test_animate import glb_of, played, read_glb

ROBOT = """<robot name="arm"><link name="world"/><link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="2"/>
<inertia ixx="0.2" iyy="0.2" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial><collision/></link>
<joint name="pin" type="continuous"><parent link="world"/><child link="rod"/><axis xyz="0 1 0"/></joint></robot>"""


def test_info_of_a_robot(command, tmp_path):
    (tmp_path / "arm.urdf").write_text(ROBOT, encoding="utf-8")
    done = command("info", tmp_path / "arm.urdf")
    assert done.returncode == 0, done.stderr
    assert "1 body, 1 degree of freedom" in done.stdout and "collision shapes (1)" in done.stderr
    refused = command("study", tmp_path / "arm.urdf", "-n", 2, "--out", tmp_path / "run")
    assert refused.returncode == 1 and "mbs.save" in refused.stderr


def test_a_robot_is_a_mechanism_at_rest(tmp_path):
    (tmp_path / "arm.urdf").write_text(ROBOT, encoding="utf-8")
    with pytest.warns(mbs.ModelWarning, match="collision"):
        study = read(tmp_path / "arm.urdf", need="simulation")
    assert study.q0.tolist() == [0] and study.v0.tolist() == [0] and study.simulation.t_end == 1
    with pytest.warns(mbs.ModelWarning), pytest.raises(InputError, match="dispersions and outputs"):
        read(tmp_path / "arm.urdf")


@pytest.mark.slow
def test_the_picture_of_a_sample_is_that_of_its_history(tmp_path):
    """The page that `--animate` writes, read back, against the history that `--out` writes."""
    (tmp_path / "cart.toml").write_text(CART, encoding="utf-8")
    study = read(tmp_path / "cart.toml")
    model, run = motion(study, 19)
    history = repeat(study, [19])
    np.testing.assert_allclose(run.q, history.q[0], rtol=1e-12, atol=1e-15)
    assert mbs.get(model, "cart.mass") != mbs.get(study.model, "cart.mass")
    tree, arrays = read_glb(glb_of(mbs.animate(model, run, tmp_path / "cart.html").read_text(encoding="utf-8")))
    p, _ = played(tree, arrays, "cart", tree["nodes"][0]["children"][0], np.asarray(run.t))
    np.testing.assert_allclose(p[:, 0], history.q[0, :, 0], atol=1e-7)
    assert np.ptp(motion(study)[1].q) > 0


@pytest.mark.slow
def test_simulate_draws(command, tmp_path):
    (tmp_path / "cart.toml").write_text(CART, encoding="utf-8")
    done = command("simulate", "cart.toml", "--sample", 3, "--animate", "cart.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "picture: cart.html" in done.stdout and "<canvas" in (tmp_path / "cart.html").read_text(encoding="utf-8")
    done = command("simulate", "cart.toml", "--animate", "cart.mov", cwd=tmp_path)
    assert done.returncode == 1 and ".html" in done.stderr


def test_the_nominal_motion_among_samples(tmp_path):
    """The sample None, with the draws that change nothing."""
    (tmp_path / "cart.toml").write_text(CART, encoding="utf-8")
    study = read(tmp_path / "cart.toml")
    both, alone = repeat(study, [19, None], 50, forces=True), repeat(study, None, 50)
    np.testing.assert_allclose(both.q[1], alone.q[0], rtol=1e-12, atol=1e-14)
    assert np.abs(both.q[0] - both.q[1]).max() > 1e-6
    assert set(both.forces) == set(study.model.force_names) and both.forces
    for name, x in both.forces.items():
        exact = mbs.element_forces(study.model, alone.q[0, 3], alone.v[0, 3], t=alone.t[3])[name].wrenches
        np.testing.assert_allclose(x[1, 3], exact, rtol=1e-9, atol=1e-9)
