"""Phases of a run: what is held and off at the start, and what events make of it; bases that move; friction."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from tests.model.joints.joints import arrays, numbers, six


def cart(*events, off=("spring",), end=0.0):
    mech = mbs.Mechanism("cart", off=off)
    mech.add_body("b", mass=2.0)
    mech.add_joint("x", mbs.Prismatic((1, 0, 0)), "world", "b")
    mech.add_force("spring", mbs.TorsionSpring("x", stiffness=8.0, rest_angle=end))
    for event in events:
        mech.add_event(*event)
    return mech.build()


def test_what_is_off_begins_with_its_event():
    """A cart rolls freely until a spring catches it at x = 1: then x - 1 = sin(2 t) / 2."""
    model = cart(("catch", mbs.JointReaches("x", 1.0), mbs.Enable("spring")), end=1.0)
    run = mbs.simulate(model, [0.0], [1.0], 1.5, 0.01)
    free = run.t <= 1.0
    assert np.abs(run.q[free, 0] - run.t[free]).max() < 1e-12
    assert np.abs(run.q[~free, 0] - 1 - np.sin(2 * (run.t[~free] - 1.0)) / 2).max() < 1e-8
    assert run.status == mbs.Status.OK and np.abs(run.energy_error).max() < 1e-8


def test_what_is_off_stays_off_without_events():
    for mode in (None, "lock nothing"):
        model = cart()
        run = mbs.simulate(model, [0.3], [1.0], 0.5, 0.1, mode=mode and model.mode(), save_every=None)
        assert np.allclose(run.q[-1], 0.8) and not run.mode.force.any()


def test_unknown_names_of_what_is_off():
    with pytest.raises(mbs.ModelError, match=r"mechanism 'cart': off: .*sprin.*spring"):
        cart(off="sprin")


@pytest.mark.usually("motion")
@pytest.mark.parametrize("what", ["motion", "derivative"])
def test_what_may_never_be_locked_moves_as_if_it_might(what):
    """Of three joints one is locked and one bounces: the same motion where a mode is given, so that any may be locked."""
    mech = mbs.Mechanism("arm", gravity=(0.0, 0.0, -9.81))
    for k, (name, on) in enumerate(zip("abc", ("world", "a", "b"), strict=True)):
        mech.add_body(name, 1.0 + k, (0.0, 0.1, -0.4), (0.05, 0.06, 0.02))
        mech.add_joint(f"to {name}", mbs.Revolute((1, 0, 0)), on, name, mbs.Pose((0.0, 0.0, -0.5 * bool(k))))
    mech.add_event("stop", mbs.JointReaches("to b", 0.1, direction="down"), mbs.Bounce("to b", 0.5))
    mech.add_event("latch", mbs.JointReaches("to c", 0.2, direction="down"), mbs.Lock("to c"))
    model, v = mech.build(), jnp.array([0.0, 0.0, -0.5])

    def end(model, q, mode=None):
        run = mbs.simulate(model, q, v, 1.0, 0.02, tau=jnp.array([0.1, -0.2, 3.0]), mode=mode, save_every=None)
        return jnp.concatenate([run.q[-1], run.v[-1], run.events.time[:2], run.energy_error[-1:]]), run.status

    q = jnp.array([1.2, 0.5, 0.4])
    if what == "derivative":
        few, all_ = (jax.jacrev(lambda q, mode=mode: end(model, q, mode)[0])(q) for mode in (None, model.mode()))
        assert np.allclose(few, all_, rtol=1e-8, atol=1e-8)
    else:
        (some, status), (every, _) = end(model, q), end(model, q, model.mode())
        assert status == mbs.Status.OK and np.allclose(some, every, rtol=1e-11, atol=1e-11)
        assert abs(some[-1]) < 1e-2 and some[5] == 0


BASE = {"velocity": (0.3, 0.0, -0.2), "acceleration": (2.0, 1.0, 0.0), "axis": (0.6, 0.0, 0.8), "rate": 0.7}
PROFILE = {"times": (-0.1, 0.2, 0.5, 0.6), "values": (0.3, 1.0, -0.5, 0.2)}


def carried(joint=None, gravity=(0.0, 0.0, -9.81)):
    """A pendulum on a base that moves as given."""
    mech = mbs.Mechanism("base", gravity=gravity)
    mech.add_body("base", 2.0, inertia=(0.1, 0.2, 0.3))
    mech.add_body("bob", 1.0, (0.1, 0.2, -0.5), (0.05, 0.06, 0.04))
    mech.add_joint("given", joint or mbs.Carried(**BASE, **PROFILE), "world", "base")
    mech.add_joint("ball", mbs.Spherical(), "base", "bob", mbs.Pose((0.1, 0.0, 0.2)))
    return mech.build()


def way(t, n=20001):
    """Twice integrated profile, by the trapezoidal rule."""
    x = np.linspace(0.0, t, n)
    once = np.concatenate([[0.0], np.cumsum((f := np.interp(x, *PROFILE.values()))[1:] + f[:-1])]) * (x[1] - x[0]) / 2
    return once[-1], np.trapezoid(once, x)


@pytest.mark.parametrize("t", [0.1, 0.35, 0.9])
def test_a_base_goes_where_it_is_said(t):
    """Position from the profile; velocity and bias are its derivatives; the motion of what it carries is that of a moving
    world (Y 3.4)."""
    joint = mbs.Carried(**BASE, **PROFILE)
    p = numbers(joint) | {name: tuple(x) for name, x in PROFILE.items()}
    m = [joint.motion(p, (), (), t + k * 1e-4) for k in (-2, -1, 0, 1, 2)]
    position, R = arrays(m[2].placement)
    np.testing.assert_allclose(
        position, np.array(BASE["velocity"]) * t + np.array(BASE["acceleration"]) * way(t)[1], atol=1e-8
    )

    def rate(x):
        return (x[0] - 8 * x[1] + 8 * x[3] - x[4]) / 12e-4

    dR = rate([arrays(x.placement)[1] for x in m])
    W = R.T @ dR
    velocity = R.T @ rate([arrays(x.placement)[0] for x in m])
    np.testing.assert_allclose(six(m[2].velocity), [W[2, 1], W[0, 2], W[1, 0], *velocity], atol=1e-9)
    np.testing.assert_allclose(six(m[2].bias), rate([six(x.velocity) for x in m]), atol=1e-9)


def test_what_a_base_carries_moves_as_in_a_moving_world():
    uniform = mbs.Carried(BASE["velocity"], BASE["acceleration"], axis=BASE["axis"], rate=BASE["rate"])
    model = carried(uniform)
    still = carried(mbs.Fixed())
    axis = jnp.array(BASE["axis"])

    def rotation(t):
        x, y, z = axis
        K = jnp.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        a = BASE["rate"] * t
        return jnp.eye(3) + jnp.sin(a) * K + (1 - jnp.cos(a)) * K @ K

    def position(t):
        return jnp.array(BASE["velocity"]) * t + jnp.array(BASE["acceleration"]) * t**2 / 2

    q, v = [0.8, 0.2, -0.5, 0.3], [0.4, -0.9, 0.3]
    expected = mbs.textbook.moving_base_dynamics(still, q, v, base=mbs.textbook.MovingBase(position, rotation), t=0.4)
    np.testing.assert_allclose(mbs.forward_dynamics(model, q, v, t=0.4), expected, rtol=1e-10)


def test_the_drive_of_a_base_is_work():
    """The balance of energy counts it, and the profile's corners at points of the grid cost nothing."""
    run = mbs.simulate(carried(), [1.0, 0, 0, 0], [0.0, 0, 0], 1.0, 5e-3)
    assert run.status == mbs.Status.OK and np.abs(run.energy_error).max() < 1e-7


def test_friction_takes_its_moment_times_the_way():
    """A cart at 2 m/s stops after m v² / (2 F), but for the speeds below which friction is less."""
    mech = mbs.Mechanism("cart")
    mech.add_body("b", mass=2.0)
    mech.add_joint("x", mbs.Prismatic((1, 0, 0)), "world", "b")
    mech.add_force("rub", mbs.Friction("x", moment=4.0, speed=1e-3))
    run = mbs.simulate(mech.build(), [0.0], [2.0], 1.2, 1e-4, save_every=1000)
    assert float(run.q[-1, 0]) == pytest.approx(1.0, abs=2e-6) and abs(run.v[-1, 0]) < 1e-6
    assert np.allclose(run.v[:9, 0], 2.0 - 2.0 * run.t[:9], atol=1e-12)
    assert abs(float(run.energy_error[-1])) < 1e-6
