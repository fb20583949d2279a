"""Solar panels: table 3.1, the two MATLAB routines, and the equations (3.40) of a chain of panels."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.formulations.barycentric import vectors
from jaxmbs.model.graph import Graph
from tests.cases import relative
from tests.dynamics.formulations.helpers import EXACT, quick

# two panels [Y fig. 3.7]: masses, hinge positions from the centres of mass
m1, m2, s10, h10, s12, h12, s21, h21 = 3.0, 2.0, 0.5, 0.03, 0.6, 0.05, 0.45, 0.02
M = m1 + m2
INWARD, OUTWARD = Graph((1, 2), (0, 1)), Graph((0, 1), (1, 2))


def panels():
    """Hinge vectors c_11 = (-s10, h10), c_12 = (s12, -h12), c_22 = (-s21, -h21); gravity in the plane."""
    mech = mbs.Mechanism("panels", gravity=(0.3, -1.2, 0))
    mech.add_body("inner", m1, inertia=(1.0, 0.3, 1.2))
    mech.add_body("outer", m2, inertia=(0.8, 0.2, 0.9))
    mech.add_joint("root", mbs.Revolute((0, 0, 1)), "world", "inner", child_pose=mbs.Pose((-s10, h10, 0)))
    mech.add_joint(
        "fold", mbs.Revolute((0, 0, 1)), "inner", "outer", mbs.Pose((s12, -h12, 0)), mbs.Pose((-s21, -h21, 0))
    )
    return mech.build()


def test_table_3_1():
    """Magnitudes and angles; beta_1 and beta_2 are misprinted as 0. They are the angles of b_10 and b_20:

    b_10 = (m1 d_11 + m2 d_12)/M = (-(s10 + m2 s12/M), h10 + m2 h12/M), b_20 = m2 d_22/M = m2 (-s21, -h21)/M.
    """
    p = mbs.textbook.planar_parameters(panels())
    hyp, atan, pi = np.hypot, np.arctan, np.pi
    assert relative(p.d, [[hyp(s10, h10), hyp(s10 + s12, h10 + h12)], [0, hyp(s21, h21)]]) < 1e-14
    alpha = [[pi - atan(h10 / s10), pi - atan((h10 + h12) / (s10 + s12))], [0, pi + atan(h21 / s21)]]
    assert relative(np.mod(p.alpha, 2 * pi), alpha) < 1e-14
    beta = [pi - atan((h10 + m2 * h12 / M) / (s10 + m2 * s12 / M)), pi + atan(h21 / s21)]
    assert relative(np.mod(p.beta, 2 * pi), beta) < 1e-14
    b10 = hyp(m2 * s12 / M + s10, -m2 * h12 / M - h10)
    b20 = hyp(-m1 * s21 / M + s21, -m1 * h21 / M + h21)
    assert relative(p.b, [b10, b20]) < 1e-14
    of = mbs.textbook.augmented_bodies(panels())
    b = np.linalg.norm(of.b, axis=2)
    assert relative(b[0, 0], m2 / M * hyp(s12, h12)) < 1e-14 and relative(b[1, 1], m1 / M * hyp(s21, h21)) < 1e-14
    assert relative(b[0, 1], hyp(m2 * s12 / M - s12, -m2 * h12 / M + h12)) < 1e-14
    assert relative(b[1, 0], b20) < 1e-14 and relative(np.linalg.norm(of.b0, axis=1), [b10, b20]) < 1e-14


def get_barycenter_vectors(S, T, C, m):
    """The routine of [Y 3.2.1], line by line; it returns -b_ii (the text says -b_i0)."""
    n = len(S)
    Bp, ma = np.zeros((n, 3)), np.abs(T @ m)
    for i in range(n):
        for a in range(i + 1, n):
            Bp[i] += C[i, a] * ma[a] * abs(S[i, a])
        Bp[i] += C[i, i] * (m.sum() - ma[i])
    return Bp / m.sum()


def get_b(S, T, B, C, sign=np.abs):
    """The routine of [Y 3.2.1]; `sign` is what it lacks, the absolute value of T in the index of the arc."""
    n = len(C)
    res = np.zeros((n, n, 3))
    for i in range(n):
        for j in range(n):
            if i == j:
                res[i, j] = -B[i]
            elif j < i:
                res[i, j] = -B[i] + C[i, i]
            else:
                a = np.abs(S[i, i + 1 :]) * sign(T[i + 1 :, j]) @ np.arange(1, n - i) + i
                if a < i:
                    raise IndexError(f"b_{i + 1}{j + 1}: arc {a + 1}")  # in MATLAB, index 0 or that of another body
                res[i, j] = -B[i] + C[i, int(a)]
    return res


@pytest.mark.parametrize("graph", [Graph((1, 2, 2, 3, 5), (0, 1, 3, 4, 1)), Graph((0, 1, 3, 3, 1), (1, 2, 2, 4, 5))])
def test_matlab_routines(graph):
    """-b_ii and b_ij of a regularly numbered tree, one hinge on body 0, arcs in any direction."""
    rng = np.random.default_rng(4)
    C = rng.normal(size=(5, 5, 3)) * (graph.S != 0)[:, :, None]
    m = rng.uniform(1, 2, 5)
    B = get_barycenter_vectors(graph.S, graph.T, C, m)
    of = vectors(graph.S[:, :, None] * C, graph.T, m, graph)
    assert relative(-np.einsum("iix->ix", of.b), B) < 1e-14
    assert relative(of.b, get_b(graph.S, graph.T, B, C)) < 1e-14
    assert relative(np.einsum("ijx,j->ix", of.b, m), np.zeros((5, 3))) < 1e-14  # [Y 3.17]
    assert relative(of.d, of.b0[:, None] - of.b) < 1e-14  # [Y 3.18]


def test_get_b_needs_the_absolute_value_of_T():
    """As printed, T = -1 of an outward arc gives an index below i: the routine works for inward arcs only."""
    C, m = np.zeros((2, 2, 3)), np.array([m1, m2])
    C[0, 0], C[0, 1], C[1, 1] = (-s10, h10, 0), (s12, -h12, 0), (-s21, -h21, 0)
    for graph in (INWARD, OUTWARD):
        B = get_barycenter_vectors(graph.S, graph.T, C, m)
        of = vectors(graph.S[:, :, None] * C, graph.T, m, graph)
        if graph is INWARD:
            assert relative(get_b(graph.S, graph.T, B, C, sign=lambda T: T), of.b) < 1e-14
        else:
            with pytest.raises(IndexError, match="b_12: arc 0"):
                get_b(graph.S, graph.T, B, C, sign=lambda T: T)
        assert relative(of.b[0, 0], np.array([-m2 * s12, m2 * h12, 0]) / M) < 1e-14  # b_11 as printed
        assert relative(of.b[1, 1], np.array([m1 * s21, m1 * h21, 0]) / M) < 1e-14


def test_equations_3_40_of_the_panels():
    """A_ij, B_ij and R_i with the printed parameters and the corrected arguments, in absolute angles."""
    model, p = panels(), mbs.textbook.planar_parameters(panels())
    q, v = np.array([0.7, -1.9]), np.array([1.3, -0.4])
    phi, rate = np.cumsum(q), np.cumsum(v)
    d, alpha, b, beta = (np.asarray(x) for x in p)
    argument = phi[0] - phi[1] + alpha[0, 1] - beta[1]
    A = np.diag([1.2 + m1 * d[0, 0] ** 2 + m2 * d[0, 1] ** 2, 0.9 + m2 * d[1, 1] ** 2])
    A[0, 1] = A[1, 0] = M * d[0, 1] * b[1] * np.cos(argument)
    back = phi[1] - phi[0] - alpha[0, 1] + beta[1]
    B = M * d[0, 1] * b[1] * np.array([[0, np.sin(argument)], [np.sin(back), 0]])  # skew: the text says symmetric
    F = np.outer([m1, m2], [0.3, -1.2])
    R = np.array([
        sum(d[i, j] * (F[j, 0] * np.sin(phi[i] + alpha[i, j]) - F[j, 1] * np.cos(phi[i] + alpha[i, j])) for j in (0, 1))
        for i in (0, 1)
    ])  # fmt: skip
    P = np.array([[1, 0], [1, 1]])
    assert relative(mbs.mass_matrix(model, q), P.T @ A @ P) < 1e-13
    assert relative(mbs.bias_forces(model, q, v), P.T @ (B @ rate**2 - R)) < 1e-13
    f = quick(lambda q, v: mbs.forward_dynamics(model, q, v, method="planar"))
    assert relative(f(q, v), np.linalg.solve(P.T @ A @ P, P.T @ (R - B @ rate**2))) < EXACT


def test_a_zero_vector_has_derivatives():
    """The centre of mass of the outer panel on its hinge: d_22 = 0, b_20 = 0."""
    model = mbs.set(panels(), {"fold.child_pose.position": (0.0, 0.0, 0.0)})

    def f(com, method):
        return mbs.mass_matrix(mbs.set(model, {"outer.com": com}), jnp.array([0.3, 0.8]), method=method)

    import jax

    got, want = quick(lambda c: (jax.jacfwd(f)(c, "planar"), jax.jacfwd(f)(c, "crba")))(jnp.zeros(3))
    assert relative(got, want) < EXACT and np.abs(want).max() > 0.1
