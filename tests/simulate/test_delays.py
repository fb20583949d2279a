"""Force elements that act from a time on (`add_force(..., delay=...)`)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.elements import Force, Kind, element, field
from tests.cases import relative

DELAY, SPEED, REST = 0.237, 1.5, 0.6  # [s], [m/s], [m]


def cart(delay: float | None = DELAY, **more):
    """A mass on a rail; the frequency of its spring is 2 rad/s."""
    mech = mbs.Mechanism("cart", **more)
    mech.add_body("b", mass=2.0)
    mech.add_joint("x", mbs.Prismatic((1, 0, 0)), "world", "b")
    mech.add_force("spring", mbs.JointSpring("x", stiffness=8.0, rest_coordinate=REST), delay=delay)
    return mech


@pytest.fixture(scope="module")
def model():
    return cart().build()


def run(model):
    return mbs.simulate(model, [0.0], [SPEED], t_end=1.0, dt=2e-3)


def closed(t, delay):
    """Its place: free until the delay is over."""
    late = np.maximum(t - delay, 0.0)
    swinging = REST + (SPEED * delay - REST) * np.cos(2 * late) + SPEED / 2 * np.sin(2 * late)
    return np.where(t < delay, SPEED * t, swinging)


def test_a_spring_that_begins_late(model):
    """Also if the delay is set, or over before the run begins."""
    for delay in (DELAY, 0.5001):
        found = run(mbs.set(model, {"spring.delay": delay}))
        np.testing.assert_allclose(found.q[:, 0], closed(np.asarray(found.t), delay), rtol=0, atol=1e-10)
        np.testing.assert_allclose(found.events.time[0], delay, rtol=1e-14)
        assert np.abs(found.energy_error).max() < 1e-10
    assert model.event_names == ("spring",) and model.structure.off == ("spring",)
    late = mbs.simulate(model, [0.0], [SPEED], t_end=2.0, dt=2e-3, t0=1.0)
    np.testing.assert_allclose(late.q[:, 0], closed(np.asarray(late.t) - 1.0, 0.0), rtol=0, atol=1e-10)


def test_without_delay_nothing_changes(model):
    always = cart(delay=None).build()
    assert always.event_names == () and "spring.delay" not in always.parameter_names
    at_once = run(cart(delay=0.0).build())
    assert relative(at_once.q, run(always).q) < 1e-14
    np.testing.assert_allclose(mbs.bias_forces(model, [0.1], [0.0]), mbs.bias_forces(always, [0.1], [0.0]))


def test_the_derivative_by_the_delay(model):
    def end(delay):
        return mbs.simulate(mbs.set(model, {"spring.delay": delay}), jnp.zeros(1), jnp.array([SPEED]), 1.0, 2e-3).q[
            -1, 0
        ]

    slope = (closed(1.0, DELAY + 1e-5) - closed(1.0, DELAY - 1e-5)) / 2e-5
    assert float(jax.jit(jax.grad(end))(DELAY)) == pytest.approx(slope, rel=1e-7)
    assert float(jax.jit(jax.jacfwd(end))(DELAY)) == pytest.approx(slope, rel=1e-7)


def test_a_batch_of_delays(model):
    delays = np.array([0.0, 0.1234, DELAY, 2.0])
    batch, axes = mbs.vary(model, {"spring.delay": delays})
    last = mbs.jit(lambda m: mbs.simulate(m, jnp.zeros(1), jnp.array([SPEED]), 1.0, 2e-3).q[-1, 0], in_axes=(axes,))
    np.testing.assert_allclose(last(batch), [closed(1.0, d) for d in delays], rtol=0, atol=1e-10)
    with pytest.raises(mbs.ModelError, match=r"'spring\.delay': instance 1: -0\.1 is negative"):
        mbs.vary(model, {"spring.delay": [0.1, -0.1]})


def test_the_events_of_the_user_come_first():
    """Those of delays are for others to wait for, too."""
    mech = cart()
    mech.add_force("push", mbs.Thruster("b", direction=(1, 0, 0), thrust=4.0), delay=0.1)
    mech.add_event("off", when=mbs.Time(0.05), then=mbs.Disable("push"), after="push")
    made = mech.build()
    assert made.event_names == ("off", "spring", "push")
    found = mbs.simulate(made, [0.0], [0.0], t_end=0.2, dt=0.01)
    np.testing.assert_allclose(found.events.time[:2], 0.1, rtol=1e-14)
    np.testing.assert_allclose(found.v[-1], 0.0, atol=1e-14)


@element
class Kick(Force):
    """A force with a delay of its own."""

    joint: str = field(Kind.JOINT, "", "joint on which it acts")
    delay: float = field(Kind.NUMBER, "s", "its own", default=0.0)

    def apply(self, p, scene, loads):
        loads.joint(self.joint, (p["delay"],))


def test_an_element_with_a_delay_of_its_own_keeps_it():
    mech = cart()
    mech.add_force("kick", Kick("x"), delay=0.3)
    made = mech.build()
    assert mbs.get(made, "kick.delay") == 0.3 and made.event_names == ("spring",)
    with pytest.raises(
        mbs.ModelError, match=r"force 'both': Kick has a delay of its own, 0\.1; leave out the one of add_"
    ):
        mech.add_force("both", Kick("x", 0.1), delay=0.3)


def test_what_is_refused():
    with pytest.raises(mbs.ModelError, match=r"force 'spring': delay: -0\.1 is negative; it must be zero or more"):
        cart(delay=-0.1)
    with pytest.raises(
        mbs.ModelError, match="event 'spring': the delay of force 'spring' is an event of this name; choose"
    ):
        cart().add_event("spring", when=mbs.Time(1.0), then=mbs.Finish())
    mech = cart()
    mech.add_event("jet", when=mbs.Time(1.0), then=mbs.Finish())
    with pytest.raises(
        mbs.ModelError, match="force 'jet': its delay is an event of the same name, which exists; rename"
    ):
        mech.add_force("jet", mbs.Thruster("b", thrust=1.0), delay=0.1)
    with pytest.raises(mbs.ModelError, match=r"force 'wind': .*cannot be switched off"):
        cart().add_force("wind", mbs.Wind(), delay=0.1)


def test_files_have_delays(tmp_path):
    mech = cart(off=("jet",))
    mech.add_force("jet", mbs.Thruster("b", direction=(1, 0, 0), thrust=1.0))
    mech.add_event("go", when=mbs.Time(0.5), then=mbs.Enable("jet"))
    made = mech.build()
    mbs.save(made, tmp_path / "cart.toml")
    text = (tmp_path / "cart.toml").read_text(encoding="utf-8")
    assert text.count("delay = 0.237") == 1 and 'off = ["jet"]' in text and text.count("[[mechanism.events]]") == 1
    back = mbs.load(tmp_path / "cart.toml")
    s, t = made.structure, back.structure
    assert (s.forces, s.events, set(s.off)) == (t.forces, t.events, set(t.off))
    assert mbs.get(back, "spring.delay") == DELAY
    (tmp_path / "late.toml").write_text(text.replace("0.237", "-1.0"), encoding="utf-8")
    with pytest.raises(mbs.ModelError, match="delay"):
        mbs.load(tmp_path / "late.toml")
