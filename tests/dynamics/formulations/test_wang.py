"""Configuration matrix: the printed matrices, the double pendulum, and the equivalent decomposition [W]."""

import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from jaxmbs.dynamics.formulations import barycentric, configuration, wittenburg
from jaxmbs.dynamics.formulations.system import system
from jaxmbs.dynamics.trees import _state
from tests.cases import relative
from tests.dynamics.formulations.helpers import EXACT, free_and_rotational, quick, rotational

EIGHT = (0, 1, 1, 1, 2, 4, 4, 7)  # carrying bodies of [W fig. 1]
PETALS, CHAIN = (0, 1, 1, 1, 1), (0, 1, 2, 3, 4)


def tree(parents):
    """A tree of ball joints with stems and centres of mass anywhere."""
    rng = np.random.default_rng(1)
    mech = mbs.Mechanism("tree", gravity=(0, 0, -9.81))
    for i, parent in enumerate(parents, 1):
        mech.add_body(str(i), rng.uniform(0.5, 2), rng.normal(size=3), rng.uniform(1, 1.5, 3))
        mech.add_joint(
            f"h{i}", mbs.Spherical(), str(parent) if parent else "world", str(i), mbs.Pose(rng.normal(size=3))
        )
    return mech.build()


def at(model, f, q, v):
    """f(system) at a state."""
    return quick(lambda q, v: f(wittenburg.hinged(system(_state(model, q, v, 0.0, None)))))(q, v)


def at_state(model, f):
    rng = np.random.default_rng(0)
    q = np.concatenate([np.asarray(link.joint.neutral()) for link in model.structure.links])
    return at(model, f, q + 0.5 * rng.normal(size=model.nq), rng.normal(size=model.nv))


def named(letters):
    """Rows of names such as "c1 b2 b3"; 0 for an empty place."""
    return [row.split() for row in letters.strip().splitlines()]


def check_matrix(parents, printed):
    bc, (b, c) = at_state(tree(parents), lambda s: (configuration.matrix(s), configuration.stems(s)))
    for i, row in enumerate(named(printed)):
        for k, name in enumerate(row):
            want = {"b": b, "c": c}[name[0]][int(name[1:]) - 1] if name != "0" else np.zeros(3)
            assert relative(bc[i, k], want) < 1e-14, (i, k, name)


def test_printed_configuration_matrices():
    """[b^c] of fig. 1, of petals and of a chain, from (2.3)."""
    check_matrix(EIGHT, """
        c1 b2 b3 b4 b2 b4 b4 b4
        0  c2 0  0  b5 0  0  0
        0  0  c3 0  0  0  0  0
        0  0  0  c4 0  b6 b7 b7
        0  0  0  0  c5 0  0  0
        0  0  0  0  0  c6 0  0
        0  0  0  0  0  0  c7 b8
        0  0  0  0  0  0  0  c8""")  # fmt: skip
    check_matrix(PETALS, "c1 b2 b3 b4 b5\n0 c2 0 0 0\n0 0 c3 0 0\n0 0 0 c4 0\n0 0 0 0 c5")
    check_matrix(CHAIN, "c1 b2 b2 b2 b2\n0 c2 b3 b3 b3\n0 0 c3 b4 b4\n0 0 0 c4 b5\n0 0 0 0 c5")


def test_it_is_the_barycentric_form_in_other_letters():
    """[b^c] = -d; [J] = [K] of (3.31), and of (3.66) for free systems; column sums are the centres of mass (2.1)."""

    def compared(s):
        of, bc = barycentric.of_system(s), configuration.matrix(s)
        return bc + of.d, configuration.inertias(s, bc) - barycentric.K(s, of), bc.sum(axis=0) - (s.r - s.base.r[None])

    difference, inertia, sums = at_state(tree(EIGHT), compared)
    hinge = np.asarray(mbs.get(tree(EIGHT), "h1.parent_pose.position"))
    assert np.abs(difference).max() < 1e-14 and np.abs(inertia).max() < 1e-12
    assert np.abs(sums + hinge[None]).max() < 1e-14
    difference, inertia, _ = at_state(free_and_rotational().model, compared)
    assert np.abs(difference).max() < 1e-14 and np.abs(inertia).max() < 1e-12


def double_pendulum(m, l, g):
    """Uniform rods of length 2 l in the vertical plane; e2 points down, the angles count about e3, phi_2 relative."""
    mech = mbs.Mechanism("double pendulum", gravity=(0, g, 0))
    for name, parent, at in (("OA", "world", 0), ("AB", "OA", 2 * l)):
        mech.add_body(name, m, (0, l, 0), (m * l * l / 3, 0, m * l * l / 3))
        mech.add_joint(name[0], mbs.Revolute((0, 0, 1)), parent, name, mbs.Pose((0, at, 0)))
    return mech.build()


def test_double_pendulum():
    """[W 5(2)]: [J^s], (L^o) and the equations, with F = m g e2 pointing down and J^c ~ e1 e1 + e3 e3.

    Gravity in the first equation: moments about O of m g at l and of m g at 2 l and l beyond, m g l [sin phi1 + 2 sin
    phi1 + sin(phi1 + phi2)]; divided by m l², 3 sin phi1 + sin(phi1 + phi2). The print has the factor 1.
    """
    m, l, g = 1.3, 0.7, 9.81
    model = double_pendulum(m, l, g)
    q, v = np.array([0.4, 1.1]), np.array([1.2, -0.7])

    def parts(s):
        bc = configuration.matrix(s)
        return s.J, configuration.inertias(s, bc), configuration.moments(s, bc), s.F, bc

    Jc, J, moments, F, bc = at(model, parts, q, v)
    angles = np.cumsum(q)
    e2 = np.stack([-np.sin(angles), np.cos(angles), 0 * angles], axis=1)
    E = np.eye(3)
    printed = np.array([
        [5 * (E - np.outer(e2[0], e2[0])), 2 * (np.cos(q[1]) * E - np.outer(e2[1], e2[0]))],
        [2 * (np.cos(q[1]) * E - np.outer(e2[0], e2[1])), E - np.outer(e2[1], e2[1])],
    ])  # fmt: skip
    J_s = np.array(J)
    J_s[[0, 1], [0, 1]] -= Jc
    assert relative(J_s, m * l * l * printed) < 1e-14
    L_o = np.array(moments) - np.cross(bc, F[None]).sum(axis=1)  # no other moments, no motion of the hinge
    want = -2 * m * l * l * np.sin(q[1]) * np.array([-(v.sum() ** 2), v[0] ** 2])
    assert relative(L_o[:, 2], want) < 1e-13
    c2, s2, low = np.cos(q[1]), np.sin(q[1]), np.sin(q.sum())
    A = np.array([[20 / 3 + 4 * c2, 4 / 3 + 2 * c2], [4 / 3 + 2 * c2, 4 / 3]])
    right = [
        (4 * v[0] * v[1] + 2 * v[1] ** 2) * s2 - g / l * (3 * np.sin(q[0]) + low),
        -2 * v[0] ** 2 * s2 - g / l * low,
    ]
    a = quick(lambda q, v: mbs.forward_dynamics(model, q, v, method="wang"))(q, v)
    assert relative(a, np.linalg.solve(A, right)) < EXACT


def test_bodies_taken_alone():
    """Every body balances under its own loads (4.2), and what acts at hinge j is what the joint passes inwards."""
    for c in (rotational(), free_and_rotational()):
        q, v, _, tau = next(c.rows())
        found, reaction = quick(
            lambda q, v, c=c, tau=tau: (
                mbs.textbook.body_loads(c.model, q, v, tau),
                mbs.joint_reactions(c.model, q, v, tau),
            )
        )(q, v)
        (b, com), A = at(c.model, lambda s: (configuration.stems(s), s.A), q, v)
        b, com = np.asarray(b), np.asarray(com)
        moments = np.asarray(found.moment) + np.cross(com, found.at_centre)
        for j, link in enumerate(c.model.structure.links):
            if link.parent >= 0:
                moments[link.parent] += np.cross(b[j], found.at_hinge[j])
        assert relative(moments, found.momentum_rate) < EXACT
        at_joint = -jnp.einsum("ixy,iy->ix", A, reaction[:, 3:])
        for j, link in enumerate(c.model.structure.links):
            if not isinstance(link.joint, mbs.Free):
                assert relative(found.at_hinge[j], at_joint[j]) < EXACT
