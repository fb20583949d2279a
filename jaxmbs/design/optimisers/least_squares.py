"""Levenberg-Marquardt for many starts in one batch, bounds by projection.

One step of every start is one program without branches, so that starts that are done or stuck do not delay the others,
a state consists of a few arrays, and a search continues from a saved state with bitwise identical results. The damping
is Nielsen's [K. Madsen, H. B. Nielsen, O. Tingleff, Methods for non-linear least squares problems, 2004]; a variable at
a bound that descent would push outwards is left out of the step [C. Kanzow, N. Yamashita, M. Fukushima, J. Comput.
Appl. Math. 172, 2004]. The normal equations are accurate enough: the next step corrects the rounding errors of the last
one, and the equations are usually singular here anyway, because some parameters are not determined.

Why not optimistix.LevenbergMarquardt under jax.vmap: for 16 starts of the robot of [T 5] (busy machine, compilation
included) that one took 131 s and met the conditions from 7 of them; this one took 15 s and met them from 13. In each
trial, optimistix solves by QR of a matrix with a row for every residual, and its loop cannot be inspected, saved and
continued.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.design.problem import Prepared
from jaxmbs.design.status import Status

Array = Any
PASSES = 2  # number of passes that fix variables which a step would take across their bounds
LONGEST = 2.0  # largest change of a variable in a step: variables are logarithms or in units of their usual size


class Iterate(NamedTuple):
    """One start. x (n,): its best point, with the cost, gradient (n,), normal matrix (n, n) and, in worst, the largest
    residual of each objective there; trial (n,): the next point to evaluate; predicted: the expected reduction of the
    cost there; damping; growth: the factor on the damping if the trial is not better; status; steps: their number."""

    x: Array
    cost: Array
    gradient: Array
    normal: Array
    worst: Array
    trial: Array
    predicted: Array
    damping: Array
    growth: Array
    status: Array
    steps: Array


def start(prepared: Prepared, x: np.ndarray) -> Iterate:
    """States before the first step, all with the starts on the first axis."""
    s, n = x.shape
    inf, zero = np.full(s, np.inf), np.zeros(s)
    worst = np.full((s, len(prepared.objectives)), np.inf)
    status, steps = np.full(s, int(Status.RUNNING), np.int32), np.zeros(s, np.int32)
    return Iterate(x, inf, np.zeros((s, n)), np.zeros((s, n, n)), worst, x, zero, zero, zero + 2.0, status, steps)


def _solved(normal: Array, gradient: Array, damping: Array, fixed: Array, given: Array) -> Array:
    """The damped step (n,), in which the `fixed` variables move by the given amounts."""
    either: Any = fixed[:, None] | fixed[None, :]
    inner = jnp.where(either, 0.0, normal)
    matrix = inner + jnp.diag(damping + jnp.where(fixed, jnp.max(jnp.diagonal(normal)) + 1e-300, 0.0))
    shift = normal @ jnp.where(fixed, given, 0.0)
    rest = -jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(matrix), jnp.where(fixed, 0.0, gradient + shift))
    return jnp.where(fixed, given, rest)


def step(prepared: Prepared, state: Iterate, data: Any) -> Iterate:
    """The state of one start after one more step."""
    problem, low, high = prepared.problem, prepared.low, prepared.high

    def both(x: Array) -> tuple[Array, tuple[Array, Array]]:
        r, worst = prepared.residuals(x, data)
        return r, (r, worst)

    J, (r, worst) = jax.jacfwd(both, has_aux=True)(state.trial)
    cost = 0.5 * (r @ r)
    first = jnp.isinf(state.cost)
    finite = jnp.isfinite(cost) & jnp.isfinite(J).all()
    better = finite & (cost < state.cost)

    def accepted(new: Array, old: Array) -> Array:
        return jnp.where(better, new, old)

    x, worst = accepted(state.trial, state.x), jnp.where(first, worst, accepted(worst, state.worst))
    normal, gradient = accepted(J.T @ J, state.normal), accepted(J.T @ r, state.gradient)
    gain = (state.cost - cost) / jnp.maximum(state.predicted, 1e-300)
    gain = jnp.where(first | ~finite, 0.0, jnp.clip(gain, -1.0, 2.0))
    cost = accepted(cost, state.cost)
    size = jnp.max(jnp.diagonal(normal)) + 1e-300
    damping = jnp.where(
        better, state.damping * jnp.maximum(1 / 3, 1 - (2 * gain - 1) ** 3), state.damping * state.growth
    )
    damping = jnp.clip(jnp.where(first, 1e-3 * size, damping), 1e-13 * size, 1e16 * size)
    growth = jnp.where(better, 2.0, 2 * state.growth)

    held = ((x <= low) & (gradient > 0)) | ((x >= high) & (gradient < 0))
    slope = jnp.where(held, 0.0, gradient)
    d = _solved(normal, gradient, damping, held, jnp.zeros_like(x))
    for _ in range(PASSES if np.isfinite(low).any() or np.isfinite(high).any() else 0):
        # variables that would cross a bound move just to it, and the others are solved for again
        crossing = held | (x + d < low) | (x + d > high)
        d = _solved(normal, gradient, damping, crossing, jnp.where(held, 0.0, jnp.clip(x + d, low, high) - x))
    d = d * jnp.minimum(1.0, LONGEST / jnp.maximum(jnp.max(jnp.abs(d)), 1e-300))
    trial = jnp.clip(x + d, low, high)
    bent = jnp.any(trial != x + d)
    d = trial - x
    predicted = -(gradient @ d) - 0.5 * (d @ (normal @ d))

    # the largest cosine between the residuals and a column of their derivative: a dimensionless gradient
    lengths = jnp.sqrt(jnp.diagonal(normal)) + 1e-300
    cosine = jnp.max(jnp.abs(slope) / lengths) / (jnp.sqrt(2 * cost) + 1e-300)
    holds = jnp.all(jnp.where(prepared.conditions, worst <= problem.tolerance, True))
    exact = jnp.all(worst <= 1e-4 * problem.tolerance)
    least = not prepared.conditions.all()
    ended = (
        (~(bent & (predicted <= 0)) & (predicted <= (1e-9 if least else 1e-13) * cost))
        | (jnp.max(jnp.abs(d)) <= 1e-14 * (1 + jnp.max(jnp.abs(x))))
        | exact
    )
    flat = cosine < (1e-3 if least else 1e-5)
    done = jnp.where(holds, int(Status.LEAST if least else Status.MET), int(Status.INFEASIBLE))
    done = jnp.where(flat | (holds & (not least)), done, int(Status.STALLED))
    last = jnp.where(holds & (not least), int(Status.MET), int(Status.STEPS))
    away = prepared.variables.away(x[: prepared.variables.size]).any()
    steps = state.steps + 1
    status = jnp.select(
        [~finite & first, away, ended, steps >= problem.max_steps],
        [int(Status.NOT_FINITE), int(Status.RUNAWAY), done, last],
        int(Status.RUNNING),
    ).astype(jnp.int32)
    new = Iterate(x, cost, gradient, normal, worst, trial, predicted, damping, growth, status, steps)
    running = state.status == int(Status.RUNNING)
    return Iterate(*(jnp.where(running, a, b) for a, b in zip(new, state, strict=True)))
