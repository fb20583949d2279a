"""Centres of mass, found by a gradient method, for which the mass matrix of an arm is constant [T 5].

    python examples/balanced_arm.py

The three-link arm of [T 3] with counterweights: the centres of mass of its two outer links are variable, and
everything else is fixed. The expected result: the outermost link is balanced about its hinge, and both outer links
together about the hinge of body 2.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax

import jaxmbs as mbs

STEPS = 60


def variation(model: mbs.Model, centers: jax.Array, configurations: jax.Array) -> jax.Array:
    """Mean square deviation of the mass matrix's entries from their means, relative to the mean diagonal."""
    zero = jnp.zeros_like(centers[:, :1])
    com_2, com_3 = jnp.concatenate([centers, zero], axis=1)
    changed = mbs.set(model, {"body_2.com": com_2, "body_3.com": com_3})
    A = jax.vmap(lambda q: mbs.mass_matrix(changed, q))(configurations)
    mean = A.mean(axis=0, keepdims=True)
    size = jnp.sqrt(jnp.diagonal(mean[0]))
    return jnp.mean(((A - mean) / jnp.outer(size, size)[None]) ** 2)


def balanced(model: mbs.Model, start: jax.Array, seed: int = 0) -> tuple[jax.Array, jax.Array]:
    """(centres of mass (2, 2) of bodies 2 and 3 in the plane [m], the variation at the beginning of every step)."""
    configurations = jax.random.uniform(jax.random.key(seed), (24, model.nq), minval=-jnp.pi, maxval=jnp.pi)
    solver = optax.lbfgs()

    def cost(centers: jax.Array) -> jax.Array:
        return variation(model, centers, configurations)

    def step(carry: tuple, _: None) -> tuple[tuple, jax.Array]:
        centers, state = carry
        value, slope = optax.value_and_grad_from_state(cost)(centers, state=state)
        updates, state = solver.update(slope, state, centers, value=value, grad=slope, value_fn=cost)
        return (optax.apply_updates(centers, updates), state), value

    (centers, _), history = jax.jit(lambda c: jax.lax.scan(step, (c, solver.init(c)), length=STEPS))(start)
    return centers, history


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    model = mbs.library.three_link_arm(gravity=(0.0, 0.0, 0.0)).build()
    start = jnp.stack([mbs.get(model, f"body_{k}.com")[:2] for k in (2, 3)])
    centers, history = balanced(model, start)
    m_2, m_3 = (mbs.get(model, f"body_{k}.mass") for k in (2, 3))
    arm = mbs.get(model, "q_3.parent_pose.position")[:2]
    print(f"variation of the mass matrix: {history[0]:.2e} before, {history[-1]:.2e} after {STEPS} steps")
    print(f"centre of mass of body 3 from its hinge [m]: {centers[1]}")
    print(f"static moment of bodies 2 and 3 about the hinge of 2 [kg m]: {m_2 * centers[0] + m_3 * (arm + centers[1])}")


if __name__ == "__main__":
    main()
