"""The two oracles agree with one another before anything is compared with them."""

import numpy as np
import pytest

from tests.cases import relative
from tests.mechanisms import random_mechanism, random_q
from tests.mirrors import MuJoCo, Pinocchio


@pytest.mark.parametrize("seed", range(40))
def test_pinocchio_and_mujoco_agree(seed):
    mechanism = random_mechanism(seed)
    rng = np.random.default_rng(seed)
    q, v, a = random_q(mechanism, rng), rng.normal(size=mechanism.nv), rng.normal(size=mechanism.nv)
    one, other = Pinocchio(mechanism), MuJoCo(mechanism)
    tau = one.inverse_dynamics(q, v, a)
    assert relative(other.mass_matrix(q), one.mass_matrix(q)) < 1e-12
    assert relative(other.inverse_dynamics(q, v, a), tau) < 1e-12
    assert relative(one.forward_dynamics(q, v, tau), a) < 1e-10
    assert relative(other.energy(q, v), one.energy(q, v)) < 1e-12
    if not any(j.motion == "Helical" for j in mechanism.joints):
        assert relative(other.forward_dynamics(q, v, tau), a) < 1e-10
    poses = one.body_poses(q)
    for name, (position, rotation) in other.body_poses(q).items():
        assert relative(position, poses[name][0]) < 1e-12
        assert relative(rotation, poses[name][1]) < 1e-12
