"""Finite-element models of which everything can be summed over nodes, and mechanisms with flexible bodies."""

import numpy as np

import jaxmbs as mbs
from jaxmbs.model.flexible_bodies.reduction import nodes_of, of_shapes


def lumped(seed=0, nodes=7, modes=3, rotary=False):
    """(part, masses, positions, shapes): point masses at random places, with shapes of unit modal mass that are
    orthogonal to one another, but not to the motions of a rigid body; node 0 is fixed in the frame."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(nodes, 3))
    x[0] = 0
    m = rng.uniform(0.5, 2.0, nodes)
    J = 0.1 * rng.uniform(0.5, 2.0, nodes) if rotary else np.zeros(nodes)
    M = np.diag(np.concatenate([[a] * 3 + [b] * 3 for a, b in zip(m, J, strict=False)]))
    shapes = rng.normal(size=(6 * nodes, modes))
    shapes[:6] = 0
    if not rotary:
        shapes.reshape(nodes, 6, modes)[:-1, 3:] *= 0.3
    L = np.linalg.cholesky(shapes.T @ M @ shapes)
    shapes = np.linalg.solve(L, shapes.T).T
    own, frequency = [nodes - 1, 2], rng.uniform(1.0, 3.0, modes)
    moved = nodes_of(["hand", "elbow"], x[own], list(shapes.reshape(nodes, 6, modes)[own]))
    return mbs.Part(**of_shapes(M, x, shapes, frequency), **moved), m, x, shapes


def arm(order=2, seed=0, damping=0.02, gravity=(0.3, -0.2, -9.81), root=None):
    """A flexible body on a joint, with a rigid body on one node and another flexible body on the other."""
    part, *_ = lumped(seed)
    mech = mbs.Mechanism("flexible arm", gravity=gravity)
    mech.add_flexible_body("arm", part, damping=damping, order=order)
    pose = mbs.Pose((0.1, -0.2, 0.3), (0.9, 0.1, -0.2, 0.3))
    mech.add_joint("root", root or mbs.Universal(), "world", "arm", mbs.Pose((0, 0, 1.0)), pose)
    mech.add_body("load", 0.7, (0.1, 0.2, -0.1), (0.02, 0.03, 0.04))
    mech.add_joint("wrist", mbs.Spherical(), "arm_hand", "load", pose, mbs.Pose((0.05, 0, 0)))
    mech.add_flexible_body("tail", lumped(seed + 1, modes=2)[0], damping=damping, order=order)
    mech.add_joint("hip", mbs.Revolute((0, 1, 0)), "arm_elbow", "tail", child_pose=pose)
    return mech


def state(model, seed=0, size=0.1):
    rng = np.random.default_rng(seed)
    q = np.array(mbs.integrate(model, model.neutral(), size * rng.normal(size=model.nv)))
    return q, rng.normal(size=model.nv), rng.normal(size=model.nv)
