"""The robot of [T 5]: its conditions (17)-(22) are found, and what they promise holds."""

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

import jaxmbs as mbs
from jaxmbs.batching.compiling import compiled
from jaxmbs.design.comparison import variation
from jaxmbs.design.file import read
from jaxmbs.design.problem import Prepared

EXAMPLE = Path(__file__).parents[2] / "examples" / "two_arm_synthesis.toml"
L_4, M_4, M_7 = 0.3, 1.5, 1.5


@pytest.fixture(scope="module")
def design():
    return mbs.design.synthesize(replace(read(EXAMPLE).problem, starts=16, max_steps=40))


def about_pole(model, k):
    """(I^x, I^y, I^z, I^xy, I^xz, I^yz) about O_k with [T]'s signs, and its static moment, of what it carries too."""
    m, c, I = (np.asarray(mbs.get(model, f"body_{k}.{f}")) for f in ("mass", "com", "inertia"))
    I = I + m * (c @ c * np.eye(3) - np.outer(c, c))
    d = m * c + {3: (0, M_4 * L_4, 0), 6: (0, M_7 * L_4, 0)}.get(k, (0, 0, 0))
    return I[0, 0], I[1, 1], I[2, 2], -I[0, 1], -I[0, 2], -I[1, 2], *d


def conditions(model):
    """Left sides of [T (17)-(22)], with the copy of (22) for the other arm."""
    names = ("x", "y", "z", "xy", "xz", "yz", "dx", "dy", "dz")
    b = {k: dict(zip(names, about_pole(model, k), strict=True)) for k in range(2, 8)}
    found = []
    for shoulder, upper, fore, m in ((2, 3, 4, M_4), (5, 6, 7, M_7)):
        found += [b[fore]["dx"], b[fore]["dy"]]  # (17), (19)
        found += [b[upper]["y"] - b[upper]["x"] - m * L_4**2, b[fore]["y"] - b[fore]["x"]]  # (18), (19)
        found += [b[upper]["xy"], b[fore]["xy"]]
        found += [b[shoulder]["dz"] + b[upper]["dz"] + b[fore]["dz"]]  # (20)
        found += [b[upper]["dx"], b[upper]["dy"], b[shoulder]["dx"]]
        found += [b[fore]["xz"], b[fore]["yz"]]  # (21)
        found += [b[upper]["yz"] + L_4 * b[fore]["dz"], b[upper]["xz"]]  # (22)
    return np.array(found)


def test_the_28_conditions_are_found(design):
    assert design.status is mbs.design.Status.MET
    assert np.sum(design.statuses == 0) > 8
    nominal = conditions(design.problem.model)
    assert nominal.shape == (28,) and np.abs(nominal).max() > 0.01
    assert np.abs(conditions(design.model)).max() < 1e-8


def test_every_start_that_met_them_found_the_same_conditions(design):
    v = Prepared(design.problem).variables
    for x in design.x[design.statuses == 0][:12]:
        model = mbs.set(v.model, {n: np.asarray(y) for n, y in v.values(v.coordinates_at(x)).items()})
        assert np.abs(conditions(model)).max() < 1e-8


def test_what_was_found_in_words(design):
    """Each relation stands in the source; none of its numbers was given."""
    found, said = design.findings, [r.text for r in design.relations]
    assert found.rank == 28 and found.linear and len(found.indifferent) == 27 and found.free.shape == (35, 63)
    assert all(r.exact and r.residual < 1e-12 for r in design.relations)
    for arm, (upper, fore) in {2: (3, 4), 5: (6, 7)}.items():
        length = f"q_{fore}.parent_pose.position.y"
        assert f"body_{upper}.I_yy - body_{upper}.I_xx = body_{fore}.mass {length}²" in said
        assert f"body_{upper}.I_yz - {length} body_{fore}.h_z = 0" in said
        assert f"body_{arm}.h_z + body_{upper}.h_z + body_{fore}.h_z = 0" in said
        assert f"body_{upper}.h_y = -body_{fore}.mass {length}" in said


def test_the_free_combinations_change_nothing(design):
    """Along the null space all conditions keep holding."""
    v = Prepared(design.problem).variables
    here = v.coordinates_at(design.x[design.best])
    moved = here + 1e-7 * np.random.default_rng(0).standard_normal(35) @ design.findings.free
    model = mbs.set(v.model, {n: np.asarray(x) for n, x in v.values(moved).items() if not n.endswith("inertia")} | {
        n: np.asarray((x + x.T) / 2) for n, x in v.values(moved).items() if n.endswith("inertia")})  # fmt: skip
    assert np.abs(conditions(model)).max() < 1e-12 and np.abs(moved - here).max() > 1e-9


@pytest.mark.slow
def test_the_mass_matrix_is_constant(design):
    """Over 1e5 configurations that the search did not see."""
    assert variation(design.model, 100_000, seed=5).max() < 1e-9
    assert variation(design.problem.model, 1000).max() > 0.1


@pytest.mark.slow
def test_the_motion_is_that_of_a_linear_system(design):
    """With springs and dampers, under gravity: the matrix exponential, over large angles."""
    mech = mbs.library.spatial_two_arm_robot()
    k, c = np.array([2.0, 0.5, 1.0, 0.4, 0.6, 1.2, 0.3]), np.array([0.3, 0.05, 0.1, 0.02, 0.04, 0.1, 0.02])
    for i in range(7):
        mech.add_force(f"spring_{i}", mbs.TorsionSpring(f"q_{i + 1}", stiffness=k[i], damping=c[i]))
    model = mbs.set(mech.build(), design.parameters)
    q0, v0 = np.array([0.8, -1.2, 0.9, 1.5, -0.7, 1.1, -1.4]), np.array([0.5, 1.0, -0.5, 0.3, -1.0, 0.6, 0.2])
    run = mbs.simulate(model, q0, v0, t_end=2.0, dt=1e-3, save_every=None)
    A = np.asarray(mbs.mass_matrix(model, jnp.zeros(7)))
    M = np.block([[np.zeros((7, 7)), np.eye(7)], [-np.linalg.solve(A, np.diag(k)), -np.linalg.solve(A, np.diag(c))]])
    exact = expm(2.0 * M) @ np.concatenate([q0, v0])
    assert np.abs(np.concatenate([run.q[-1], run.v[-1]]) - exact).max() < 1e-9
    assert np.abs(exact[:7] - q0).max() > 0.5


@pytest.mark.slow
def test_gradient_of_the_objective(design):
    """Central differences of the residuals."""
    prepared = Prepared(
        replace(design.problem, starts=2, objectives=[mbs.design.ConfigurationIndependence(configurations=3)])
    )
    x, data = prepared.starts()[1], prepared.data()
    along = np.random.default_rng(1).standard_normal(len(x))

    def r(x):
        return prepared.residuals(x, data)[0]

    value = compiled(lambda x: jax.jvp(r, (x,), (along,)))
    h = 1e-5
    difference = (np.asarray(value(x + h * along)[0]) - np.asarray(value(x - h * along)[0])) / (2 * h)
    assert np.allclose(value(x)[1], difference, rtol=1e-6, atol=1e-8)
