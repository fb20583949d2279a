"""Forward dynamics: articulated bodies."""

import jax
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import aba
from tests.cases import DOZEN, case, relative


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "n"), DOZEN)
@pytest.mark.usually("10[0-6]*", "109*")
def test_compiled_against_pinocchio_and_mujoco(seed, n):
    c = case(seed, n)
    a = jax.jit(jax.vmap(mbs.forward_dynamics, in_axes=(None, 0, 0, 0)))(c.model, c.q, c.v, c.tau)
    assert relative(a, c.a) < 1e-10  # tau came from Pinocchio's inverse dynamics of c.a
    assert relative(a, [c.pinocchio.forward_dynamics(q, v, tau) for q, v, _, tau in c.rows()]) < 1e-10
    if not c.has_screws:
        assert relative(a, [c.mujoco.forward_dynamics(q, v, tau) for q, v, _, tau in c.rows()]) < 1e-10


@pytest.mark.parametrize(("seed", "n"), DOZEN[1:9:2])
def test_crba_method_agrees(seed, n):
    c = case(seed, n)
    f = jax.vmap(lambda q, v, tau: mbs.forward_dynamics(c.model, q, v, tau, method="crba"))
    assert relative(f(c.q, c.v, c.tau), c.a) < 1e-10


def test_without_tau_nothing_drives():
    c = case(*DOZEN[4])
    q, v = c.q[0], c.v[0]
    zero = np.zeros(c.model.nv)
    assert relative(mbs.forward_dynamics(c.model, q, v), mbs.forward_dynamics(c.model, q, v, zero)) < 1e-14
    assert relative(mbs.forward_dynamics(c.model, q, v), c.pinocchio.forward_dynamics(q, v, zero)) < 1e-10


@pytest.mark.parametrize("ratio", [1e-6, 1e6])
def test_double_pendulum_in_closed_form(ratio):
    """Point masses at the ends of massless rods, the second `ratio` times the first."""
    l1, l2, m1, m2, g = 1.1, 0.6, 1.3, 1.3 * ratio, 9.81
    model = mbs.library.double_pendulum(l1, l2, m1, m2).build()
    q, v, tau = np.array([0.7, -1.9]), np.array([1.2, 2.3]), np.array([0.3, -0.4])
    c2, s2 = np.cos(q[1]), np.sin(q[1])
    lower = m2 * l2 * l2
    cross = m2 * l1 * l2
    A = np.array([[(m1 + m2) * l1 * l1 + lower + 2 * cross * c2, lower + cross * c2], [lower + cross * c2, lower]])
    bias = cross * s2 * np.array([-(2 * v[0] + v[1]) * v[1], v[0] ** 2])
    low = m2 * g * l2 * np.sin(q.sum())
    bias += np.array([(m1 + m2) * g * l1 * np.sin(q[0]) + low, low])
    assert relative(mbs.forward_dynamics(model, q, v, tau), np.linalg.solve(A, tau - bias)) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "n", "locked"), [(*DOZEN[4], True), pytest.param(*DOZEN[5], False, marks=pytest.mark.slow)]
)
def test_implicit_derivatives_equal_those_of_the_recursion(seed, n, locked, monkeypatch):
    """First and second derivatives, by the state, a mass and prescribed accelerations, in both modes."""
    c = case(seed, n)
    q, v, tau = c.q[0], c.v[0], c.tau[0]
    mass = f"{c.model.body_names[-1]}.mass"
    joint = next(j for j in c.model.joint_names if c.model.v_slice(j).start != c.model.v_slice(j).stop)
    mode = c.model.mode(lock=[joint]) if locked else None

    def f(q, v, tau, m, prescribed):
        model = mbs.set(c.model, {mass: m})
        return mbs.forward_dynamics(model, q, v, tau, mode=mode, prescribed=prescribed if locked else None)

    x = (q, v, tau, np.float64(1.7), 0.3 * v)

    weights = np.random.default_rng(0).normal(size=c.model.nv)

    def derivatives():
        """Forward along x; of a combination of the accelerations, reverse and once more along x."""
        with jax.disable_jit():
            return jax.tree.leaves((jax.jvp(f, x, x), jax.jvp(jax.grad(lambda *z: f(*z) @ weights, range(5)), x, x)))

    got = derivatives()
    monkeypatch.setattr(aba, "implicit", lambda value, residual, matrix, data, dtype: value(data))
    for a, b in zip(got, derivatives(), strict=True):
        assert relative(a, b) < 1e-10


@pytest.mark.interpreted
def test_derivatives_couple_locked_freedoms_to_the_free_ones():
    """a_f = A_ff⁻¹ (tau_f - bias_f - A_fl p): the derivatives by what is prescribed and by tau, in closed form."""
    model = mbs.library.chain(3).build()
    q, v, free, locked = np.array([0.4, -0.9, 1.3]), np.array([0.5, 0.2, -1.0]), [1, 2], [0]
    A = np.asarray(mbs.mass_matrix(model, q))
    assert np.abs(A[free][:, locked]).max() > 0.1

    def f(tau, prescribed):
        return mbs.forward_dynamics(model, q, v, tau, mode=model.mode(lock="hinge_1"), prescribed=prescribed)

    by_tau, by_prescribed = jax.jacfwd(f, (0, 1))(np.ones(3), np.ones(3))
    inverse, want = np.linalg.inv(A[np.ix_(free, free)]), np.zeros((2, 3, 3))
    want[0][np.ix_(free, free)] = inverse
    want[1][np.ix_(free, locked)] = -inverse @ A[np.ix_(free, locked)]
    want[1][0, 0] = 1
    assert relative([by_tau, by_prescribed], want) < 1e-12


@pytest.mark.parametrize("joint", [mbs.Spherical(), mbs.Free()])
def test_point_mass_that_is_free_to_turn_has_no_answer_and_is_refused(joint):
    """It has no inertia about itself, so that no torque gives a finite acceleration; with inertia there is an answer."""
    mech = mbs.Mechanism("point")
    mech.add_body("bob", mass=1.0)
    mech.add_joint("ball", joint, "world", "bob")
    with pytest.raises(mbs.ModelError, match=r"'ball'.*no mass.*'bob'"):
        mech.build()
    sound = mbs.Mechanism("body")
    sound.add_body("bob", mass=1.0, inertia=(1, 1, 1))
    sound.add_joint("ball", joint, "world", "bob")
    assert sound.build().nv == joint.nv
