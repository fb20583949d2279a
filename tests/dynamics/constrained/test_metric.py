"""Accelerations and multipliers next to singular configurations, in plain floats, against arithmetic of 60 digits."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from jaxmbs.dynamics.constrained import metric
from jaxmbs.dynamics.constrained.metric import MatrixMetric

N = 5


def rows(distance, *, scale=1.0):
    """(J, independent rows): the first two at the distance from one another, all exact in floats.

    The third is their difference and so redundant, the fourth independent, the last too in other units.
    """
    a, u, w, x = ([1, 2, 0, -1, 1], [0, 1, 1, 2, -1], [2, 0, 1, 1, 0], [0, 0, 1, 0, 3])
    near = [p + distance * q for p, q in zip(a, u, strict=True)]
    x = [scale * p for p in x]
    return [a, near, u, w, x], [0, 2, 3, 4]


def mass():
    B = np.arange(1.0, N * N + 1).reshape(N, N) % 7
    return (B @ B.T + np.diag([4.0, 2.0, 3.0, 5.0, 1.0])).tolist()


FORCE = [1.0, -2.0, 0.5, 3.0, -1.0]
MOTION = [0.5, -1.0, 0.25, 2.0, 1.5]  # one that the constraints allow


def target(J):
    return [sum(p * q for p, q in zip(row, MOTION, strict=True)) for row in J]


def exact(A, J, independent, force, goal):
    """(a, lambda of least norm) in 60 digits."""
    with mpmath.workdps(60):
        A, full = mpmath.matrix(A), mpmath.matrix(J)
        few = mpmath.matrix([J[k] for k in independent])
        n, m = A.rows, few.rows
        kkt = mpmath.matrix(n + m, n + m)
        kkt[:n, :n], kkt[:n, n:], kkt[n:, :n] = A, -few.T, few
        x = mpmath.lu_solve(kkt, mpmath.matrix([*force, *(goal[k] for k in independent)]))
        pull = few.T * x[n:]
        # the multipliers of least norm lie in the range of J: J w, with few Jᵀ J w = few pull
        z = mpmath.lu_solve((few * full.T) * (full * few.T), few * pull)
        return np.array([float(v) for v in x[:n]]), np.array([float(v) for v in full * (few.T * z)])


def found(A, J, force, goal, dtype=jnp.float64, redundant=False):
    m = MatrixMetric(tuple(map(tuple, A)), tuple(map(tuple, J)), dtype, redundant=redundant)
    a, multipliers = m.closest(force, tuple(goal))
    return np.array(a), np.array(m.least_norm(multipliers)), [float(x) for x in m.conditioning()]


@pytest.fixture(params=["components", "arrays"])
def kind(request, monkeypatch):
    if request.param == "arrays":
        monkeypatch.setattr(metric, "LARGEST_UNROLLED", (0, 0))


@pytest.mark.interpreted
@pytest.mark.parametrize("power", [1, 7, 13])
def test_mechanisms_that_are_redundant_everywhere_near_a_singular_configuration(kind, power):
    """1e-9 at a distance of 1e-4, though rows that all but depend on one another by the integrator's error do not count."""
    J, independent = rows(2.0**-power)
    a, *_ = found(mass(), J, FORCE, target(J), redundant=True)
    want, _ = exact(mass(), J, independent, FORCE, target(J))
    np.testing.assert_allclose(a, want, rtol=0, atol=1e-9)


@pytest.mark.interpreted
@pytest.mark.parametrize("scale", [1.0, 2.0**-10, 2.0**12])
@pytest.mark.parametrize("power", [1, 7, 10, 13, 15, 17, 20])
def test_next_to_a_singular_configuration_with_a_redundant_row(kind, power, scale):
    """1e-9 at a distance of 1e-4 (2^-13) and closer, whatever the units of a row."""
    d = 2.0**-power
    J, independent = rows(d, scale=scale)
    a, multipliers, (_, own) = found(mass(), J, FORCE, target(J))
    want, least = exact(mass(), J, independent, FORCE, target(J))
    np.testing.assert_allclose(a, want, rtol=0, atol=1e-11)
    np.testing.assert_allclose(multipliers, least, rtol=0, atol=1e-10 * np.abs(least).max())
    assert own > 1e-3  # three of the four are well apart: the redundant one does not count


@pytest.mark.interpreted
@pytest.mark.parametrize(("power", "error"), [(1, 1e-13), (7, 1e-12), (10, 1e-11), (13, 1e-10), (15, 1e-9), (17, 1e-6)])
def test_next_to_a_singular_configuration(kind, power, error):
    """Rows nearly parallel, none redundant, but for one that is twice another; the conditioning is the distance squared."""
    d = 2.0**-power
    J, _ = rows(d)
    J = [J[0], J[1], J[3], [2 * x for x in J[3]]]
    a, multipliers, (size, own) = found(mass(), J, FORCE, target(J))
    want, least = exact(mass(), J, [0, 1, 2], FORCE, target(J))
    np.testing.assert_allclose(a, want, rtol=0, atol=error * np.abs(want).max())
    np.testing.assert_allclose(multipliers, least, rtol=0, atol=1e4 * error * np.abs(least).max())
    assert 0.01 * d**2 < size <= own < 10 * d**2


@pytest.mark.interpreted
def test_locked_rows_and_rows_of_nothing(kind):
    """A locked coordinate takes what is prescribed; a row that is switched off has no multiplier."""
    J, _ = rows(2.0**-10)
    J = [*J[:2], [0.0] * N, J[3]]
    lock = (np.True_, np.False_, np.False_, np.False_, np.False_)
    m = MatrixMetric(
        tuple(map(tuple, mass())), tuple(map(tuple, J)), jnp.float64, lock=lock, prescribed=[0.5, 9.0, 9.0, 9.0, 9.0]
    )
    a, multipliers = m.closest(FORCE, tuple(target(J)))
    multipliers = np.array(m.least_norm(multipliers))
    free = [k for k in range(N) if not lock[k]]
    A, few = np.array(mass())[np.ix_(free, free)], [0, 1, 3]
    carried = np.array(mass())[free, 0] * 0.5
    goal = [t - row[0] * 0.5 for t, row in zip(target(J), J, strict=True)]
    force = np.array(FORCE)[free] - carried
    reduced = [[row[k] for k in free] for row in J]
    want, least = exact(A.tolist(), [reduced[k] for k in few], [0, 1, 2], force.tolist(), [goal[k] for k in few])
    np.testing.assert_allclose(np.array(a)[free], want, rtol=0, atol=1e-10)
    least = np.insert(least, 2, 0.0)
    assert float(a[0]) == pytest.approx(0.5, abs=1e-13)
    np.testing.assert_allclose(multipliers, least, rtol=0, atol=1e-7)


@pytest.mark.slow
@pytest.mark.interpreted
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.usually("arrays-2")
def test_derivatives_at_constant_rank(kind, order):
    """Of accelerations and multipliers with a redundant row, in both modes and twice, against arithmetic of 60 digits."""
    A, J0 = np.array(mass()), np.array(rows(0.25)[0])
    turn = 0.1 * np.arange(N * N).reshape(N, N)  # moves all rows alike, so that they stay dependent

    def setting(s):
        J = J0 @ (np.eye(N) + s * turn)
        return A + s * np.diag([1.0, 2, 3, 4, 5]), J, [f * (1 + s) for f in FORCE], J @ np.array(MOTION) * (1 + s * s)

    def f(s):
        A, J, force, goal = (jnp.asarray(x) for x in setting(s))
        m = MatrixMetric(_scalars(A), _scalars(J), jnp.float64)
        a, multipliers = m.closest(tuple(force), tuple(goal))
        return jnp.stack([*a, *m.least_norm(multipliers)])

    def reference(s):
        A, J, force, goal = (np.asarray(x).tolist() for x in setting(s))
        return np.concatenate(exact(A, J, [0, 2, 3, 4], force, goal))

    e = 1e-4
    if order == 1:
        want = (8 * (reference(e) - reference(-e)) - reference(2 * e) + reference(-2 * e)) / (12 * e)
        got = [jax.jacfwd(f)(0.0), jax.jacrev(f)(0.0)]
    else:
        want = (reference(e) - 2 * reference(0.0) + reference(-e)) / e**2
        got = [jax.jacfwd(jax.jacfwd(f))(0.0)]
    for slope in got:
        np.testing.assert_allclose(slope, want, rtol=0, atol=(1e-9 if order == 1 else 1e-4) * np.abs(want).max())


def _scalars(x):
    return tuple(tuple(row) for row in x)
