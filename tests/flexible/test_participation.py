"""A factor on the part that modes take in the motion of their body: against parts whose shapes are larger."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.recursive import scalar
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.spatial.scalar import vanishes
from jaxmbs.study.outputs import ElasticDisplacement
from tests.cases import relative
from tests.flexible.parts import lumped, state

S = 0.8
BEAM = mbs.Part.beam(2.0, 1.5, (40.0, 90.0), 10.0, modes=3, elements=4, foreshortening=True)


def larger(part, s=S):
    """The part with shapes s times as large, of unit modal mass all the same."""
    once = {name: s * getattr(part, name) for name in (
        "momentum", "angular_momentum", "inertia_change", "displacements", "rotations"
    )}  # fmt: skip
    twice = ("coupling", "inertia_curvature", "moment_curvature", "shortening")
    return replace(part, **once, **{name: s * s * getattr(part, name) for name in twice})


def flexible(part, root=None):
    mech = mbs.Mechanism("boom", gravity=(0.3, -0.2, -9.81))
    C = np.array([[2.0, 0.5, 0.1], [0.2, 3.0, -0.3], [0.4, 0.0, 1.0]])
    mech.add_flexible_body("boom", part, damping=0.02, damping_matrix=C, order=2)
    mech.add_joint("root", root or mbs.Universal(), "world", "boom")
    mech.add_body("load", 0.7, (0.1, 0.2, -0.1), (0.02, 0.03, 0.04))
    mech.add_joint("wrist", mbs.Spherical(), f"boom_{part.nodes[0]}", "load", child_pose=mbs.Pose((0.05, 0, 0)))
    return mech.build()


@pytest.mark.interpreted
@pytest.mark.parametrize("part", [lumped()[0], BEAM], ids=["lumped", "beam"])
def test_equals_the_part_with_larger_shapes(part):
    one, other = mbs.set(flexible(part), {"boom.participation": S}), flexible(larger(part))
    rng = np.random.default_rng(0)
    q, (v, tau) = np.array(one.neutral()) + 0.1 * rng.normal(size=one.nq), rng.normal(size=(2, one.nv))
    on_q, on_v = np.ones(one.nq), np.ones(one.nv)
    on_q[one.q_slice("boom")] = on_v[one.v_slice("boom")] = S
    mine, given = (q.tolist(), v.tolist()), ((q / on_q).tolist(), (v / on_v).tolist())
    a = scalar.forward_dynamics(one, *mine, tau.tolist())
    assert relative(a, on_v * scalar.forward_dynamics(other, *given, (tau * on_v).tolist())) < 1e-12
    A = np.array(scalar.mass_matrix(one, mine[0]))
    assert relative(A * on_v * on_v[:, None], scalar.mass_matrix(other, given[0])) < 1e-12
    assert relative(scalar.inverse_dynamics(one, *mine, a), tau) < 1e-9
    for x, y in ((f(one, *mine), f(other, *given)) for f in (scalar.energy, scalar.momentum)):
        assert relative(x, y) < 1e-12
    assert relative(scalar.forward_dynamics(flexible(part), *mine, tau.tolist()), a) > 1e-3, (
        "something else than without"
    )


@pytest.mark.optimised
def test_derivatives_of_both_modes():
    model = flexible(BEAM)
    q, v, tau = state(model)

    def f(s: Any) -> jax.Array:
        given = mbs.set(model, {"boom.participation": s})
        return (
            jnp.sum(mbs.forward_dynamics(given, q, v, tau) * jnp.arange(1.0, model.nv + 1)) + mbs.energy(given, q, v)[0]
        )

    h: Any = 1e-5
    exact = (f(S + h) - f(S - h)) / (2 * h)
    assert jax.jacfwd(f)(S) == pytest.approx(float(exact), rel=1e-7)
    assert jax.jit(jax.grad(f))(S) == pytest.approx(float(exact), rel=1e-7)


def test_one_costs_nothing():
    model = flexible(BEAM)
    parameter, _ = model.structure.table["boom.participation"]
    assert parameter.pattern == (1.0,), "no number of the model, so that no program has it"
    assert all(vanishes(link.armature) for link in Tree(model).links)
    assert mbs.get(mbs.set(model, {"boom.participation": S}), "boom.participation") == S


def test_modes_that_carry_more_than_the_body_are_refused():
    model = flexible(BEAM)
    most: Any = mbs.get(model, "boom.participation_limit")
    assert np.linalg.eigvalsh(larger(BEAM, most * (1 - 1e-12)).mass_matrix)[0] == pytest.approx(0.0, abs=1e-9)
    mbs.set(model, {"boom.participation": most})
    with pytest.raises(mbs.ModelError, match=r"boom.*participation: above participation_limit the modes carry more"):
        mbs.set(model, {"boom.participation": 1.001 * most})


@pytest.mark.optimised
def test_dispersed_in_a_study():
    mech = mbs.Mechanism("boom")
    mech.add_flexible_body("boom", lumped()[0], order=1)
    mech.add_joint("root", mbs.Revolute((0, 1, 0)), "world", "boom")
    model = mech.build()
    q0, v0 = model.neutral(), np.zeros(model.nv)
    v0[model.v_slice("root")] = 1.0
    study = mbs.study.Study(
        model=model, simulation={"t_end": 0.02, "dt": 0.01}, initial=(q0, v0),
        dispersions={"boom.participation": mbs.study.Uniform(apply="multiply", low=0.5, high=0.9)},
        outputs={"bend": ElasticDisplacement("boom_hand", reduce="max")},
    )  # fmt: skip
    history = mbs.study.repeat(study, [0, 1, 2], draws=np.array([[0.5], [0.9], [9.0]]))
    assert history.numbers is not None
    assert [mbs.Status(int(x)).name for x in history.status] == ["OK", "OK", "UNPHYSICAL"]
    for k, s in enumerate(history.numbers.parameters["boom.participation"][:2]):
        run = mbs.simulate(mbs.set(model, {"boom.participation": float(s)}), q0, v0, 0.02, dt=0.01)
        assert relative(history.q[k, -1], run.q[-1]) < 1e-12
    assert relative(history.q[0, -1], history.q[1, -1]) > 1e-6
