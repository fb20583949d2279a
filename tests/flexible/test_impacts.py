"""Velocity jumps of a flexible body on a hinge, against the mass matrix of all its masses and rows written out by hand."""

import numpy as np
import pytest

import jaxmbs as mbs
from tests.cases import relative
from tests.flexible.parts import lumped

LOAD = 0.7  # [kg], a point mass on the node elbow
Q, V = np.array([0.6, 0.05, -0.08, 0.03]), np.array([1.5, -0.4, 0.3, 0.8])  # the angle of the hinge, three modes
FREEDOMS = {"root": [0], "arm": [1, 2, 3]}


@pytest.fixture(scope="module")
def model():
    mech = mbs.Mechanism("arm")
    mech.add_flexible_body("arm", lumped()[0], order=2)
    mech.add_joint("root", mbs.Revolute((0, 0, 1)), "world", "arm")
    mech.add_body("load", LOAD)
    mech.add_joint("mount", mbs.Fixed(), "arm_elbow", "load")
    mech.close_loop("catch", mbs.Spherical(), "world", "arm_hand")
    return mech.build()


def turned(g):
    """The rotation (3, 3) of a Rodrigues vector."""
    G = np.cross(np.eye(3), g)
    return np.eye(3) + 2 / (1 + g @ g) * (G + G @ G)


@pytest.fixture(scope="module")
def by_hand():
    """(masses (8,), derivatives of their positions in the world (8, 3, 4) by the angle and the modes, rotations of the arm
    and of its hand); the hand is the last node of the part, the elbow is its node 2, and the load there the last mass."""
    _, m, x, shapes = lumped()
    phi, psi = np.split(shapes.reshape(len(x), 6, -1), 2, axis=1)
    R = turned(np.array([0, 0, np.tan(Q[0] / 2)]))
    across = np.cross([0, 0, 1], (x + phi @ Q[1:]) @ R.T)
    J = np.concatenate([across[:, :, None], R @ phi], axis=2)
    return np.append(m, LOAD), np.concatenate([J, J[2:3]]), R, R @ turned(psi[-1] @ Q[1:] / 2)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("caught", "locked", "keywords", "after"),
    [
        (True, [], {"restitution": 0.4}, -0.4),
        (False, ["root"], {}, 0.0),  # a latch shocks the modes
        (False, ["root"], {"target": {"root": 0.2}}, 0.2 / V[0]),
        (False, ["arm"], {}, 0.0),  # from now on the body is rigid
    ],
)
def test_elastic_coordinates_jump_with_the_rest(model, by_hand, caught, locked, keywords, after):
    """A (v_plus - v) = rows' impulses with rows v_plus = `after` times rows v; all momentum comes through the joints."""
    m, J, R, R_hand = by_hand
    A = np.einsum("i,iak,ial->kl", m, J, J)
    rows = np.concatenate([J[-2] if caught else np.zeros((0, 4)), *(np.eye(4)[FREEDOMS[name]] for name in locked)])
    zero = np.zeros((len(rows), len(rows)))
    exact = np.linalg.solve(np.block([[A, -rows.T], [rows, zero]]), np.concatenate([A @ V, after * rows @ V]))
    v, impulses = mbs.impact(model, Q, V, mode=model.mode(lock=locked, off=[] if caught else ["catch"]), **keywords)
    assert relative(v, exact[:4]) < 1e-11
    assert np.abs(v - V)[1:].min() > 0.05
    transmitted = np.asarray(mbs.joint_impulses(model, Q, V, v, impulses))[:, 3:]
    on_root, on_hand = R @ transmitted[model.joint_names.index("root")], R_hand @ transmitted[-1]
    assert np.abs(on_hand - (exact[4:] if caught else 0.0)).max() < 1e-10
    assert relative(on_root + on_hand, np.einsum("i,iak,k->a", m, J, v - V)) < 1e-10
