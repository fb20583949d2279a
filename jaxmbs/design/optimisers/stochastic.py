"""Adam, or another optimiser of optax, for many starts in one batch; every step uses fresh configurations and samples."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxmbs.design.problem import Prepared
from jaxmbs.design.status import Status

Array = Any


class Iterate(NamedTuple):
    """One start: x (n,), inner (the optimiser's state), cost and worst (residuals) at the last step, status, steps."""

    x: Array
    inner: Any
    cost: Array
    worst: Array
    status: Array
    steps: Array


def _solver(prepared: Prepared) -> optax.GradientTransformationExtraArgs:
    p = prepared.problem
    if not isinstance(p.method, str):
        return optax.with_extra_args_support(p.method)
    return optax.adam(optax.cosine_decay_schedule(p.learning_rate, p.max_steps, alpha=0.01))


def start(prepared: Prepared, x: np.ndarray) -> Iterate:
    """States before the first step."""
    s = len(x)
    inner = jax.tree.map(np.asarray, jax.vmap(_solver(prepared).init)(x))
    worst = np.full((s, len(prepared.objectives)), np.inf)
    return Iterate(
        x, inner, np.full(s, np.inf), worst, np.full(s, int(Status.RUNNING), np.int32), np.zeros(s, np.int32)
    )


def step(prepared: Prepared, state: Iterate, data: Any) -> Iterate:
    """The state of one start after one more step."""

    def cost_of(x: Array) -> tuple[Array, Array]:
        r, worst = prepared.residuals(x, data)
        return 0.5 * (r @ r), worst

    (cost, worst), slope = jax.value_and_grad(cost_of, has_aux=True)(state.x)
    asked = {"value": cost, "grad": slope, "value_fn": lambda x: cost_of(x)[0]}  # for optimisers with a line search
    change, inner = _solver(prepared).update(slope, state.inner, state.x, **asked)
    x = jnp.clip(state.x + change, prepared.low, prepared.high)
    finite = jnp.isfinite(cost) & jnp.isfinite(slope).all()
    steps = state.steps + 1
    holds = jnp.all(jnp.where(prepared.conditions, worst <= prepared.problem.tolerance, True))
    away = prepared.variables.away(x[: prepared.variables.size]).any()
    status = jnp.select(
        [~finite, away, steps >= prepared.problem.max_steps],
        [int(Status.NOT_FINITE), int(Status.RUNAWAY), jnp.where(holds, int(Status.LEAST), int(Status.STEPS))],
        int(Status.RUNNING),
    ).astype(jnp.int32)
    new = Iterate(jnp.where(finite, x, state.x), inner, cost, worst, status, steps)
    running = state.status == int(Status.RUNNING)
    return jax.tree.map(lambda a, b: jnp.where(running, a, b), new, state)
