"""Force elements that sample: states that take new values at instants, and are held in between."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.elements import Kind, SampledForce, element, field, state
from tests.simulate.test_controllers import held


@element
class Valve(SampledForce):
    """Pushes a joint by a force that it chooses at each sample."""

    joint: str = field(Kind.JOINT, "", "joint that it pushes")
    gain: Any = field(Kind.NUMBER, "N/m", "force per displacement", default=3.0)
    push: Any = state("N", "force until the next sample")
    impulse: Any = state("N s", "given up to now")

    def sampled(self, p, scene):
        return {"push": -p["gain"] * scene.coordinates(self.joint)[0]}

    def rates(self, p, scene):
        return {"impulse": p["push"]}

    def apply(self, p, scene, loads):
        loads.joint(self.joint, (p["push"],))

    def power(self, p, scene):
        return p["push"] * scene.rates(self.joint)[0]


def cart(valve, controller=None):
    mech = mbs.Mechanism("cart", gravity=(0.0, 0.0, 0.0))
    mech.add_body("cart", mass=2.0)
    mech.add_joint("rail", mbs.Prismatic((1, 0, 0)), "world", "cart")
    mech.add_force("valve", valve)
    if controller:
        mech.add_controller("law", controller)
    return mech.build()


def end(model, x, v, **options):
    run = mbs.simulate(model, x, v, t_end=1.0, **{"dt": 0.02, "save_every": None} | options)
    return jnp.stack([run.q[-1, 0], run.v[-1, 0], run.states["valve.impulse"][-1]]), run


def exact(x, v, gain, offset=0.0):
    states = held(x + v * offset, v, 0.1, 9, command=lambda x, v: -gain * x)
    rest = 1.0 - offset - 0.9
    x, v = states[-1]
    last = -gain * x
    impulse = -gain * (0.1 * states[:-1, 0].sum() + rest * x)
    return np.array([x + v * rest + last / 4 * rest**2, v + last / 2 * rest, impulse])


@pytest.mark.parametrize("options", [{}, {"dt": 0.03}, {"method": "dop853", "tolerance": 1e-10, "dt": 1.0}])
def test_held_states_are_those_of_a_double_integrator(options):
    found, run = end(cart(Valve("rail", period=0.1, offset=0.05)), [1.0], [0.2], **options)
    assert np.allclose(found, exact(1.0, 0.2, 3.0, 0.05), rtol=0, atol=1e-12)
    assert int(run.status) == 0 and abs(run.energy_error[-1]) < 1e-12


def test_a_batch_and_its_derivatives():
    """Dispersed by name, with instants of their own; both modes against the closed form."""
    model = cart(Valve("rail", period=0.1, offset=0.05))
    gains, offsets = np.array([1.0, 3.0, 8.0]), np.array([0.0, 0.05, 0.07])
    batch, axes = mbs.vary(model, {"valve.gain": gains, "valve.offset": offsets})
    found = jax.jit(jax.vmap(lambda m: end(m, [1.0], [0.2])[0], in_axes=(axes,)))(batch)
    wanted = np.array([exact(1.0, 0.2, k, t) for k, t in zip(gains, offsets, strict=True)])
    assert np.allclose(found, wanted, rtol=0, atol=1e-12)

    def f(gain):
        return end(mbs.set(model, {"valve.gain": gain}), [1.0], [0.2])[0]

    h = 1e-4
    slope = (exact(1.0, 0.2, 3.0 + h, 0.05) - exact(1.0, 0.2, 3.0 - h, 0.05)) / (2 * h)
    for mode in (jax.jacfwd, jax.jacrev):
        assert np.allclose(jax.jit(mode(f))(3.0), slope, rtol=0, atol=1e-8)


def test_an_element_that_is_switched_off_does_not_sample():
    _, run = end(model := cart(Valve("rail", period=0.1)), [1.0], [0.0], mode=None, save_every=1)
    assert run.states["valve.push"][0] == -3.0
    _, run = end(model, [1.0], [0.0], mode=model.mode(off="valve"), save_every=1)
    assert not np.any(run.states["valve.push"])


def wrong(**methods):
    return element(type("Wrong", (Valve,), {"__doc__": "Wrong.", "__annotations__": {}, **methods}))


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: Valve("rail", period=0.0), "Valve: period is 0.0; pass a positive number of seconds"),
        (
            lambda: wrong(rates=lambda self, p, scene: {})("rail", period=0.1),
            r"force 'valve': Wrong.sampled: the state 'valve.impulse' has neither a rate nor a value at the samples",
        ),
        (
            lambda: wrong(rates=lambda self, p, scene: {"impulse": 0.0, "push": 1.0})("rail", period=0.1),
            "the state 'valve.push' has a rate and a value at the samples; give one of them",
        ),
        (
            lambda: wrong(sampled=lambda self, p, scene: {"pull": 0.0})("rail", period=0.1),
            r"gives a value of 'valve.pull', which is no state; its states are \['valve.impulse', 'valve.push'\]",
        ),
        (
            lambda: wrong(sampled=lambda self, p, scene: {"push": (0.0, 1.0)})("rail", period=0.1),
            "gives 2 numbers for 'valve.push', which has 1",
        ),
    ],
)
def test_what_cannot_be_sampled(made, says):
    with pytest.raises(mbs.ModelError, match=says):
        end(cart(made()), [1.0], [0.0])


def test_in_a_file(tmp_path):
    """A class from outside the package, with its period and its offset."""
    (tmp_path / "valves.py").write_text(
        '''"""A valve."""

from typing import Any

from jaxmbs.elements import Kind, SampledForce, element, field, state


@element
class Valve(SampledForce):
    """Pushes a joint by a force that it chooses at each sample."""

    joint: str = field(Kind.JOINT, "", "joint that it pushes")
    push: Any = state("N", "force until the next sample")

    def sampled(self, p, scene):
        return {"push": -3.0 * scene.coordinates(self.joint)[0]}

    def apply(self, p, scene, loads):
        loads.joint(self.joint, (p["push"],))
''',
        encoding="utf-8",
    )
    (tmp_path / "cart.toml").write_text(
        """
modules = ["valves.py"]
[mechanism]
bodies = [{ name = "cart", mass = 2.0 }]
joints = [{ name = "rail", type = "prismatic", axis = [1, 0, 0], parent = "world", child = "cart" }]
forces = [{ name = "valve", type = "valve", joint = "rail", period = 0.1, offset = 0.05 }]
""",
        encoding="utf-8",
    )
    model = mbs.load(tmp_path / "cart.toml", trust=True)
    run = mbs.simulate(model, [1.0], [0.2], t_end=1.0, dt=0.02)
    assert np.allclose([run.q[-1, 0], run.v[-1, 0]], exact(1.0, 0.2, 3.0, 0.05)[:2], rtol=0, atol=1e-12)
