"""The block factorisation: exact, without fill-in, linear in the number of bodies [Y 2.7]."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.absolute.factors import Factors, vertices
from jaxmbs.absolute.solvers import ldl
from tests.absolute.helpers import all_solvers, quick, solved
from tests.cases import relative


def dense_factors(f, size):
    """L, D as whole matrices, vertex by vertex."""
    m = len(f.D)
    L, D = np.eye(m * size), np.zeros((m * size, m * size))
    for i, up in enumerate(f.parent):
        D[i * size : (i + 1) * size, i * size : (i + 1) * size] = f.D[i]
        if up < m:
            L[up * size : (up + 1) * size, i * size : (i + 1) * size] = f.L[i].T
    return L, D


@pytest.mark.parametrize("name", ["grounded tree", "point masses"])
def test_factors(name):
    """L D L' is H, with blocks of L on the arcs of the tree only; bodies without inertia are merged with their joints."""
    s, _ = solved(name)
    h = vertices(s)
    f = quick(Factors.of)(h)
    m, size = len(h.D), h.D.shape[1]
    assert (m, size) == ((len(s.force), 12) if name == "point masses" else (2 * len(s.force), 6))
    H = np.zeros((m, size, m, size))
    for i, up in enumerate(h.parent):
        H[i, :, i] = h.D[i]
        assert up > i  # a regular numbering
        if up < m:
            H[i, :, up], H[up, :, i] = h.U[i], h.U[i].T
    H = H.reshape(m * size, m * size)
    L, D = dense_factors(f, size)
    assert relative(L @ D @ L.T, H) < 1e-12
    arcs = sum(up < m for up in h.parent)
    roots = sum(parent < 0 for _, parent in s.ends)
    assert arcs == m - roots
    # H is the system's matrix, its rows and columns in another order
    order = np.sort(np.linalg.eigvalsh(H))
    whole = np.block([[s.M, s.Q.T], [s.Q, np.zeros((len(s.b), len(s.b)))]])
    padded = np.concatenate([np.linalg.eigvalsh(whole), -np.ones(m * size - len(whole))])
    np.testing.assert_allclose(order, np.sort(padded), rtol=0, atol=1e-11)


def test_the_root_is_the_constraint_on_the_ground():
    """As a leaf it would be the pivot 0; after all others its pivot is negative definite."""
    s, _ = solved("double pendulum")
    h = vertices(s)
    f = quick(Factors.of)(h)
    count = s.counts[0]
    assert np.all(np.asarray(h.D[-1])[:count, :count] == 0)
    assert np.linalg.eigvalsh(f.D[-1])[-1] < 0


def test_linear_in_the_number_of_bodies():
    """The program has the same operations for every chain; the arrays and the trips of its loops grow with n."""

    def sizes(n):
        model = mbs.library.chain(n).build()
        q = jnp.zeros(n)
        s = jax.eval_shape(lambda q: mbs.absolute.system(model, q, q), q)
        found = {"operations": 0, "largest": 0, "trips": 0}

        def count(jaxpr):
            for e in jaxpr.eqns:
                found["operations"] += 1
                found["largest"] = max([found["largest"], *(x.aval.size for x in e.outvars)])
                found["trips"] += e.params.get("length", 0) if e.primitive.name == "scan" else 0
                for p in jax.tree_util.tree_leaves(e.params, is_leaf=lambda x: hasattr(x, "eqns")):
                    inner = getattr(p, "jaxpr", p)
                    if hasattr(inner, "eqns"):
                        count(inner)

        count(jax.make_jaxpr(ldl)(s).jaxpr)
        return found

    small, large = sizes(8), sizes(16)
    assert small["operations"] == large["operations"]
    assert large["trips"] == 2 * small["trips"] == 3 * 2 * 16
    assert large["largest"] <= 2 * small["largest"]


@pytest.mark.slow
def test_derivatives_and_batches():
    """Both modes, with respect to the state and a mass, in every solver, against central differences; vmap."""
    model = mbs.library.crank_slider().build()
    rng = np.random.default_rng(3)
    x = jnp.asarray(np.concatenate([rng.normal(size=2 * model.nv) * 0.4, [0.5]]))
    d = jnp.asarray(rng.normal(size=x.shape))
    weight = jnp.asarray(rng.normal(size=(3, 3)))

    def f(x):
        varied = mbs.set(model, {"rod.mass": x[-1]})
        q, v = x[: model.nv], x[model.nv : -1]
        out = all_solvers(mbs.absolute.system(varied, q, v, planar=True)).values()
        return jnp.stack([jnp.sum(weight * X) + multipliers.sum() for X, multipliers in out])

    def both(x):
        forward = jax.jvp(f, (x,), (d,))[1]
        return forward, jax.grad(lambda x: f(x) @ jnp.asarray([1.0, 2.0, 3.0]))(x) @ d

    e = 1e-3
    steps = jnp.asarray([-2.0, -1.0, 1.0, 2.0, 0.0])
    value = quick(jax.vmap(f))(x[None] + e * steps[:, None] * d[None])
    forward, backward = quick(both)(x)
    central = (value[0] - 8 * value[1] + 8 * value[2] - value[3]) / (12 * e)
    assert relative(forward, central) < 1e-8
    assert relative(backward, forward @ jnp.asarray([1.0, 2.0, 3.0])) < 1e-11
    assert relative(value, jnp.broadcast_to(value[:, :1], value.shape)) < 1e-11


@pytest.mark.interpreted
@pytest.mark.parametrize("solver", ["dense", "schur", "ldl"])
def test_dependent_loops_have_multipliers_of_least_norm(solver):
    """A bar on two balls: neither says alone what pulls along the line between them."""
    mech = mbs.Mechanism("bar", gravity=(0.5, 0.3, -9.81))
    mech.add_body("bar", mass=2.0, com=(0.1, 0.05, 0.02), inertia=(0.1, 0.5, 0.45))
    mech.add_joint("free", mbs.Free(), "world", "bar")
    for name, x in (("left", -0.7), ("right", 0.6)):
        mech.close_loop(name, mbs.Spherical(), "world", "bar", mbs.Pose((x, 0, 0.1)), mbs.Pose((x, 0, 0.1)))
    with pytest.warns(mbs.ModelWarning, match="1 of 6"):
        model = mech.build()
    q, v = model.neutral(), jnp.zeros(6)
    X, multipliers = mbs.absolute.accelerations(model, q, v, solver=solver)
    a, want, _ = mbs.constrained_dynamics(model, q, v)
    np.testing.assert_allclose(X[0, :3], a[:3], rtol=0, atol=1e-10)
    np.testing.assert_allclose(multipliers, want, rtol=0, atol=1e-9)
