"""Controlled variables [Y 3.3.1]: prescribed coordinates and what drives them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.dynamics.formulations.controlled import controlled_dynamics
from tests.cases import relative
from tests.dynamics.formulations.helpers import EXACT, quick, small_arm

pytestmark = pytest.mark.interpreted


def elbow(t):
    return 0.4 * jnp.sin(3 * t)


def bend(t):
    return 0.2 * t**2


MOTIONS = {"elbow": elbow, ("shoulder", 1): bend}


def test_dense_and_recursive_forms_agree_and_satisfy_the_equations():
    """(3.92) by deletion and by locks in the articulated-body algorithm; (3.91) with its sign corrected: with the
    drives added to tau the whole equations hold, and the controlled coordinates accelerate as given."""
    model, t = small_arm(), 0.6
    q, v, tau = np.random.default_rng(3).normal(size=(3, model.nv))
    methods = ["aba", "crba", "configuration", "barycentric"]
    found = quick(
        lambda q, v: [controlled_dynamics(model, q, v, tau, motions=MOTIONS, t=t, method=m) for m in methods]
    )(q, v)
    for other in found[1:]:
        assert all(relative(x, y) < EXACT for x, y in zip(other, found[0], strict=True))
    c = found[0]
    assert relative(c.q, [q[0], 0.2 * 0.36, 0.4 * np.sin(1.8)]) < EXACT
    assert relative(c.v, [v[0], 0.4 * 0.6, 1.2 * np.cos(1.8)]) < EXACT
    assert relative(c.a[1:], [0.4, -3.6 * np.sin(1.8)]) < EXACT and c.drive[0] == 0
    assert relative(mbs.inverse_dynamics(model, c.q, c.v, c.a), tau + c.drive) < EXACT


def test_a_driven_pendulum_in_closed_form():
    """The upper of two point pendulums turns at constant speed W; its drive gives the power that the energy takes."""
    l1, l2, m1, m2, g, W = 0.8, 0.6, 1.5, 0.9, 9.81, 2.0
    model = mbs.library.double_pendulum(l1, l2, m1, m2).build()
    t, q2, v2 = 0.4, 1.1, -0.7
    c = mbs.textbook.controlled_dynamics(
        model, jnp.array([9.0, q2]), jnp.array([9.0, v2]), motions={"shoulder": lambda t: W * t}, t=t
    )
    phi = W * t
    # the lower mass, seen along its swing: pivot acceleration l1 W² towards the upper hinge
    absolute = -g / l2 * np.sin(phi + q2) - l1 / l2 * W**2 * np.sin(q2)
    assert relative(c.a, [0.0, absolute]) < EXACT

    # power of the drive = rate of the energy
    def energy(t, q2, v2):
        return sum(mbs.energy(model, jnp.stack([W * t, q2]), jnp.stack([jnp.full_like(v2, W), v2])))

    _, rate = jax.jvp(
        energy, (jnp.asarray(t), jnp.asarray(q2), jnp.asarray(v2)), (jnp.asarray(1.0), jnp.asarray(v2), c.a[1])
    )
    assert relative(c.drive[0] * W, rate) < EXACT and c.drive[1] == 0


def test_all_coordinates_controlled_is_inverse_dynamics():
    model = mbs.library.double_pendulum().build()
    both = {"shoulder": jnp.sin, "elbow": lambda t: jnp.cos(2 * t)}
    for method in ("aba", "configuration"):
        c = mbs.textbook.controlled_dynamics(model, jnp.zeros(2), jnp.zeros(2), motions=both, t=0.3, method=method)
        want = mbs.inverse_dynamics(model, c.q, c.v, jnp.array([-np.sin(0.3), -4 * np.cos(0.6)]))
        assert relative(c.drive, want) < EXACT


@pytest.mark.parametrize(
    ("motions", "words"),
    [
        ({"knee": elbow}, ["knee", "elbow"]),
        ({("shoulder", 2): elbow}, ["shoulder", "no coordinate 2"]),
        ({"shoulder": elbow}, ["motion of 'shoulder'", "()", "(2,)"]),
        ({"elbow": lambda t: jnp.stack([t, t])}, ["motion of 'elbow'", "(2,)", "(1,)"]),
        ({("shoulder", 1): lambda model, t, q, v: t}, ["('shoulder', 1)", "fn(t)"]),
        ({"elbow": 0.3}, ["'elbow'", "0.3", "fn(t)"]),
    ],
)
def test_errors(motions, words):
    model = small_arm()
    with pytest.raises(mbs.ModelError) as caught:
        mbs.textbook.controlled_dynamics(model, jnp.zeros(3), jnp.zeros(3), motions=motions)
    assert all(w in str(caught.value) for w in words), caught.value


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"position": lambda t: t}, ["MovingBase: position", "()", "(3,)"]),
        ({"rotation": lambda t: jnp.ones(9) * t}, ["MovingBase: rotation", "(9,)", "(3, 3)"]),
        ({"rotation": lambda model, t: jnp.eye(3)}, ["MovingBase: rotation", "fn(t)"]),
        ({"position": (0, 0, 0)}, ["MovingBase: position", "(0, 0, 0)"]),
    ],
)
def test_motions_of_the_base_are_checked(given, words):
    with pytest.raises(mbs.ModelError) as caught:
        mbs.textbook.moving_base_dynamics(
            small_arm(), jnp.zeros(3), jnp.zeros(3), base=mbs.textbook.MovingBase(**given)
        )
    assert all(w in str(caught.value) for w in words), caught.value


def test_joints_in_quaternions_are_refused():
    mech = mbs.Mechanism("ball")
    mech.add_body("b", 1.0, (0, 0, 1), (1, 1, 1))
    mech.add_joint("ball", mbs.Spherical(), "world", "b")
    with pytest.raises(mbs.ModelError, match="prescribed"):
        mbs.textbook.controlled_dynamics(mech.build(), jnp.array([1.0, 0, 0, 0]), jnp.zeros(3), motions={"ball": elbow})
