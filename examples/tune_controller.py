"""The gains of a sampled controller, found by gradient over a hundred satellites that differ.

    python examples/tune_controller.py

A satellite turns by half a radian. Its controller samples five times a second, and its reaction wheel obeys a tenth of a
second later; its solar array is flexible. The stiffness of the array, its mass and the delay scatter. Adam improves the
gains: the cost is the mean of error and torque over all satellites, differentiated through every sample of their loops.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax

import jaxmbs as mbs

TURN = 0.5  # [rad]
STEPS = 60


def satellite() -> mbs.Model:
    mech = mbs.Mechanism("satellite", gravity=(0.0, 0.0, 0.0))
    mech.add_body("bus", mass=200.0, inertia=(40.0, 40.0, 30.0))
    mech.add_body("array", mass=20.0, com=(0.0, 2.0, 0.0), inertia=(25.0, 1.0, 25.0))
    mech.add_joint("turn", mbs.Revolute(axis=(0, 0, 1)), "world", "bus")
    mech.add_joint("root", mbs.Revolute(axis=(0, 0, 1)), "bus", "array", parent_pose=mbs.Pose((0.0, 0.5, 0.0)))
    mech.add_force("flexibility", mbs.JointSpring("root", stiffness=60.0, damping=0.5))
    mech.add_force("wheel", mbs.ReactionWheel("bus", axis=(0, 0, 1), inertia=0.02))
    mech.add_sensor("encoder", mbs.Encoder("turn"))
    gains = {"stiffness": 4.0, "damping": 5.0, "target": TURN}
    controller = mbs.Controller(law, 0.2, delay=0.1, reads="encoder", writes="wheel.torque", parameters=gains)
    mech.add_controller("attitude", controller)
    return mech.build()


def law(model, t, q, v, state, readings, parameters):
    """The torque on the wheel, of which the satellite feels the opposite."""
    state, torque = mbs.laws.proportional_derivative(model, t, q, v, state, readings, parameters)
    return state, -torque


def cost(model: mbs.Model, gains: jax.Array) -> jax.Array:
    """Of one satellite: mean square of the error [deg²], and of the torque; gains: logarithms of stiffness and damping."""
    stiffness, damping = jnp.exp(gains)
    model = mbs.set(model, {"attitude.stiffness": stiffness, "attitude.damping": damping})
    run = mbs.simulate(model, jnp.zeros(2), jnp.zeros(2), t_end=40.0, dt=0.1)
    return jnp.mean(jnp.degrees(run.q[:, 0] - TURN) ** 2) + 100 * jnp.mean(run.states["wheel.torque"] ** 2)


def tuned(satellites: int, steps: int) -> tuple[jax.Array, jax.Array]:
    """(gains after all steps, mean cost before each)."""
    model = satellite()
    dice = jax.random.normal(jax.random.key(1), (3, satellites))
    scatter = {
        "flexibility.stiffness": 60.0 * jnp.exp(0.2 * dice[0]),
        "array.mass": 20.0 * jnp.exp(0.05 * dice[1]),
        "attitude.delay": 0.1 + 0.02 * jnp.tanh(dice[2]),
    }
    batch, axes = mbs.vary(model, scatter)
    adam = optax.adam(0.1)

    def mean(gains: jax.Array) -> jax.Array:
        return jnp.mean(jax.vmap(cost, in_axes=(axes, None))(batch, gains))

    @jax.jit
    def improved(gains: jax.Array, state: optax.OptState) -> tuple:
        value, slope = jax.value_and_grad(mean)(gains)
        change, state = adam.update(slope, state)
        return optax.apply_updates(gains, change), state, value

    gains = jnp.log(jnp.array([mbs.get(model, "attitude.stiffness"), mbs.get(model, "attitude.damping")]))
    state, costs = adam.init(gains), []
    for _ in range(steps):
        gains, state, value = improved(gains, state)
        costs.append(value)
    return jnp.exp(gains), jnp.stack(costs)


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    gains, costs = tuned(satellites=100, steps=STEPS)
    print(f"mean cost: {costs[0]:.1f} before, {costs[-1]:.1f} after {STEPS} steps")
    print(f"stiffness {gains[0]:.2f} N m/rad, damping {gains[1]:.2f} N m s/rad")


if __name__ == "__main__":
    main()
