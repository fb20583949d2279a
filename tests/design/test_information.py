"""Experiments compared by what they tell: against closed form, and against the deviations of a fit."""

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.design import Free, Function, MeasuredTorques, Problem, information, synthesize


def cart():
    mech = mbs.Mechanism("cart", gravity=(0, 0, 0))
    mech.add_body("cart", mass=2.0, inertia=(1.0, 1.0, 1.0))
    mech.add_joint("rail", mbs.Prismatic(axis=(1, 0, 0)), parent="world", child="cart")
    mech.add_force("damper", mbs.Damper("rail", damping=0.5))
    return mech.build()


def experiment(v, a, noise=0.1, tau=None):
    v, a = (np.asarray(x, float)[:, None] for x in (v, a))
    tau = 0 * v if tau is None else tau
    return MeasuredTorques({"q": 0 * v, "v": v, "a": a, "tau": tau}, noise=noise, goal="least")


FREE = [Free("cart.mass"), Free("damper.damping")]


def test_mass_and_damping_of_a_cart():
    """A force m a + d v tells the sums of a², a v and v² over the noise's square."""
    rng = np.random.default_rng(0)
    v, a = rng.normal(size=(2, 30))
    steady = experiment(np.ones(30), np.zeros(30))
    rich, gone = information(Problem(cart(), FREE, [experiment(v, a), steady]))
    known = np.array([[a @ a, a @ v], [a @ v, v @ v]]) / 0.1**2
    assert rich.matrix == pytest.approx(known, rel=1e-9)
    assert rich.d == pytest.approx(np.log(np.linalg.det(known))) and rich.a == pytest.approx(
        np.trace(np.linalg.inv(known))
    )
    assert gone.d == -np.inf and gone.a == np.inf  # a steady speed tells nothing of the mass
    assert (rich + gone).matrix[1, 1] == pytest.approx(known[1, 1] + 30 / 0.01) and (rich + gone).d > rich.d


@pytest.mark.slow
def test_deviations_are_those_of_a_fit():
    rng = np.random.default_rng(1)
    v, a = rng.normal(size=(2, 40))
    tau = (2.0 * a + 0.5 * v + 0.1 * rng.normal(size=40))[:, None]
    problem = Problem(cart(), FREE, [experiment(v, a, tau=tau)], starts=1)
    (told,) = information(problem)
    fit = synthesize(problem).uncertainty
    assert told.std == pytest.approx([fit["cart.mass"].std, fit["damper.damping"].std], rel=1e-6)


def test_what_is_no_measurement_is_refused():
    wish = Function(lambda model, q: mbs.get(model, "cart.mass"), configurations=1, goal="least")
    with pytest.raises(mbs.ModelError, match="Function is not a measurement"):
        information(Problem(cart(), FREE, [wish]))
