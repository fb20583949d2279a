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


def truss(n=5, stiff=1.0):
    """(mass, stiffness, positions) of bars between the corners of n cubes in a row, with 3 displacements for each node;
    stiff: factor on the bars of the first and of the last face."""
    x = np.array([(k, i, j) for k in range(n + 1) for i in (0, 1) for j in (0, 1)], float)
    K = np.zeros((3 * len(x), 3 * len(x)))
    for a in range(len(x)):
        for b in range(a):
            d = x[a] - x[b]
            if np.abs(d).max() == 1:
                k = 1e3 / (d @ d) * np.outer(d, d) / (d @ d)
                k = k * (stiff if x[a, 0] == x[b, 0] and x[a, 0] in (0, n) else 1.0)
                for i, j, sign in ((a, a, 1), (b, b, 1), (a, b, -1), (b, a, -1)):
                    K[3 * i : 3 * i + 3, 3 * j : 3 * j + 3] += sign * k
    return np.kron(np.diag(1 + 0.1 * np.arange(len(x))), np.eye(3)), K, x


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


def boom_text(rest, gravity, modes, elements, sections, order=1):
    """A study's file: a beam of 2 m, "boom", on a hinge about y at its root, "root", and the rest of the file."""
    return f"""
[mechanism]
name = "boom"
gravity = {gravity}

[[mechanism.joints]]
name = "root"
type = "revolute"
axis = [0.0, 1.0, 0.0]
parent = "world"
child = "boom"

[[mechanism.flexible_bodies]]
name = "boom"
order = {order}

[mechanism.flexible_bodies.beam]
length = 2.0
mass = 1.5
bending = [40.0, 90.0]
torsion = 10.0
modes = {modes}
elements = {elements}
sections = {sections}

{rest}"""
