"""A controller whose function is a small neural network of two layers, with its weights as parameters of the model."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs

HIDDEN, PERIOD, SAMPLES = 4, 0.1, 12
draws = np.random.default_rng(7)
WEIGHTS = {
    "first": draws.normal(size=2 * HIDDEN),
    "offsets": draws.normal(size=HIDDEN),
    "second": draws.normal(size=HIDDEN),
    "level": 0.3,
}


def network(x, weights, tanh=np.tanh):
    hidden = tanh(weights["first"].reshape(HIDDEN, 2) @ x + weights["offsets"])
    return weights["second"] @ hidden + weights["level"]


def law(model, t, q, v, state, readings, parameters):
    return state, network(readings["encoder"], parameters, jnp.tanh)


def cart(fn, **given):
    """A mass of 2 kg on a rail, pushed by what the network commands."""
    mech = mbs.Mechanism("cart", gravity=(0.0, 0.0, 0.0))
    mech.add_body("cart", mass=2.0)
    mech.add_joint("rail", mbs.Prismatic(axis=(1, 0, 0)), "world", "cart")
    mech.add_force("push", mbs.Thruster("cart", direction=(1, 0, 0), thrust=0.0))
    mech.add_sensor("encoder", mbs.Encoder("rail"))
    mech.add_controller("law", mbs.Controller(fn, PERIOD, reads="encoder", writes="push.thrust", **given))
    return mech.build()


def held(weights):
    """(position, speed) after the samples, exactly: the command is constant between them."""
    x, v = 0.5, -0.2
    for _ in range(SAMPLES):
        a = network(np.array([x, v]), weights) / 2.0
        x, v = x + v * PERIOD + 0.5 * a * PERIOD**2, v + a * PERIOD
    return x, v


def end(model):
    run = mbs.simulate(model, jnp.array([0.5]), jnp.array([-0.2]), t_end=SAMPLES * PERIOD, dt=0.05)
    return run.q[-1, 0], run.v[-1, 0]


def test_the_motion():
    """With the weights as parameters, and as numbers that the function keeps."""
    closed = cart(lambda model, t, q, v, state, readings: (state, network(readings["encoder"], WEIGHTS, jnp.tanh)))
    for model in (cart(law, parameters=WEIGHTS), closed):
        np.testing.assert_allclose(end(model), held(WEIGHTS), rtol=1e-12)


def test_the_gradient_with_respect_to_the_weights():
    """Of a miss, of every weight at once: backwards, along each of them, and from differences of the exact motion."""
    model = cart(law, parameters=WEIGHTS)

    def miss(weights):
        x, v = end(mbs.set(model, {f"law.{name}": value for name, value in weights.items()}))
        return x**2 + 0.5 * v**2

    def wanted(weights):
        x, v = held(weights)
        return x**2 + 0.5 * v**2

    weights = jax.tree.map(jnp.asarray, WEIGHTS)
    backward, forward = jax.jit(jax.grad(miss))(weights), jax.jit(jax.jacfwd(miss))(weights)
    for name, value in WEIGHTS.items():
        for k in range(np.size(value)):
            step = 1e-5 * np.eye(np.size(value))[k].reshape(np.shape(value))
            above, below = ({**WEIGHTS, name: value + sign * step} for sign in (1, -1))
            difference = (wanted(above) - wanted(below)) / 2e-5
            for found in (backward, forward):
                np.testing.assert_allclose(np.ravel(found[name])[k], difference, rtol=1e-6, atol=1e-9)
