"""Wrenches in the joints."""

import jax
import numpy as np
import pytest

import jaxmbs as mbs
from tests.cases import FEW, case, relative

pytestmark = pytest.mark.interpreted


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "n"), FEW)
def test_against_pinocchio(seed, n):
    c = case(seed, n)
    wrenches = jax.jit(jax.vmap(mbs.joint_reactions, in_axes=(None, 0, 0, 0)))(c.model, c.q, c.v, c.tau)
    assert wrenches.shape == (4, n, 6)
    for row, (q, v, a, _) in zip(np.asarray(wrenches), c.rows(), strict=True):
        for name, want in c.pinocchio.joint_reactions(q, v, a).items():
            assert relative(row[c.model.joint_names.index(name)], want) < 1e-10


def test_drive_torque_is_the_part_along_the_axis():
    c = case(12, 4, kinds=("Revolute",), massless=0.0)
    q, v, _, tau = next(c.rows())
    wrenches = np.asarray(mbs.joint_reactions(c.model, q, v, tau))
    along = [wrench[:3] @ j.axes[0] for wrench, j in zip(wrenches, c.mechanism.joints, strict=True)]
    assert relative(along, tau) < 1e-11


def test_clamped_body_carries_its_weight():
    """(moment, force) on the child at the child joint frame, in its axes."""
    mech = mbs.Mechanism("bracket", gravity=(0, 0, -10))
    mech.add_body("b", mass=2.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    half_turn = mbs.Pose(rotation=(0, 1, 0, 0))  # the joint frame's z points down
    mech.add_joint("clamp", mbs.Fixed(), "world", "b", half_turn, half_turn)
    (wrench,) = np.asarray(mbs.joint_reactions(mech.build(), np.zeros(0), np.zeros(0)))
    # upward force 20 N at a distance of 0.5 m; its moment about the joint is -10 N m about y before the half turn
    assert relative(wrench, [0, 10, 0, 0, 0, -20]) < 1e-14


def test_spring_torque_is_part_of_the_wrench():
    mech = mbs.Mechanism("held")
    mech.add_body("b", mass=2.0, inertia=(0.1, 0.1, 0.1))
    mech.add_joint("hinge", mbs.Revolute((0, 0, 1)), "world", "b")
    mech.add_force("coil", mbs.TorsionSpring("hinge", stiffness=3.0))
    (wrench,) = np.asarray(mbs.joint_reactions(mech.build(), np.array([0.5]), np.zeros(1)))
    assert relative(wrench, [0, 0, -1.5, 0, 0, 0]) < 1e-14
