"""Constrained problems with known optima [W. Hock, K. Schittkowski, Test Examples for Nonlinear Programming Codes, 1981],
and random ones, through the same door as any design: the variables are centres of mass of bodies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbs as mbs
from jaxmbs.design import Free, Function, Problem


@dataclass(frozen=True)
class Published:
    """start, low, high (n,); cost, equal and margins of x (n,); least: the known least cost."""

    start: tuple[float, ...]
    cost: Callable[[Any], Any]
    equal: Callable[[Any], Any] | None = None
    margins: Callable[[Any], Any] | None = None
    low: float | tuple[float, ...] | None = None
    high: float | tuple[float, ...] | None = None
    least: float = np.nan


def problem(p: Published, **options: Any) -> Problem:
    """The problem of a design whose free numbers are x."""
    n = len(p.start)
    bodies = -(-n // 3)
    mech = mbs.Mechanism("numbers")
    padded = np.zeros(3 * bodies)
    padded[:n] = p.start
    for k in range(bodies):
        mech.add_body(f"b{k}", mass=1.0, com=padded[3 * k : 3 * k + 3], inertia=(1.0, 1.0, 1.0))
        mech.add_joint(f"j{k}", mbs.Prismatic(axis=(1, 0, 0)), parent="world", child=f"b{k}")

    def numbers(model: mbs.Model) -> Any:
        return jnp.concatenate([jnp.asarray(mbs.get(model, f"b{k}.com")) for k in range(bodies)])[:n]

    def of(fn: Callable[[Any], Any], **kind: Any) -> Function:
        return Function(lambda model, q: jnp.atleast_1d(fn(numbers(model))), configurations=1, **kind)

    def bounds(row: Any, k: int, used: int) -> Any:
        if row is None:
            return None
        return tuple(np.broadcast_to(np.asarray(row, float), (n,))[3 * k : 3 * k + used])

    free = []
    for k in range(bodies):
        used = min(3, n - 3 * k)
        free.append(Free(f"b{k}.com", bounds(p.low, k, used), bounds(p.high, k, used), components=range(used)))
    wanted = [of(p.cost, goal="lowest")]
    wanted += [of(p.equal)] if p.equal else []
    wanted += [of(p.margins, at_least=0.0)] if p.margins else []
    defaults = {"method": "constrained", "starts": 1, "tolerance": 1e-9}
    return Problem(mech.build(), free, wanted, **{**defaults, **options})


def found(design: mbs.design.Design, n: int) -> np.ndarray:
    """x (n,) of a design."""
    return np.concatenate([design.parameters[f"b{k}.com"] for k in range(-(-n // 3))])[:n]


HOCK_SCHITTKOWSKI = {
    6: Published((-1.2, 1), lambda x: (1 - x[0]) ** 2, lambda x: 10 * (x[1] - x[0] ** 2), least=0.0),
    7: Published(
        (2, 2), lambda x: jnp.log(1 + x[0] ** 2) - x[1], lambda x: (1 + x[0] ** 2) ** 2 + x[1] ** 2 - 4,
        least=-np.sqrt(3),
    ),
    10: Published(
        (-10, 10), lambda x: x[0] - x[1], margins=lambda x: -3 * x[0] ** 2 + 2 * x[0] * x[1] - x[1] ** 2 + 1,
        least=-1.0,
    ),
    12: Published(
        (0, 0), lambda x: 0.5 * x[0] ** 2 + x[1] ** 2 - x[0] * x[1] - 7 * x[0] - 7 * x[1],
        margins=lambda x: 25 - 4 * x[0] ** 2 - x[1] ** 2, least=-30.0,
    ),
    14: Published(
        (2, 2), lambda x: (x[0] - 2) ** 2 + (x[1] - 1) ** 2, lambda x: x[0] - 2 * x[1] + 1,
        lambda x: -(x[0] ** 2) / 4 - x[1] ** 2 + 1, least=9 - 2.875 * np.sqrt(7),
    ),
    27: Published(
        (2, 2, 2), lambda x: 0.01 * (x[0] - 1) ** 2 + (x[1] - x[0] ** 2) ** 2, lambda x: x[0] + x[2] ** 2 + 1,
        least=0.04,
    ),
    28: Published(
        (-4, 1, 1), lambda x: (x[0] + x[1]) ** 2 + (x[1] + x[2]) ** 2, lambda x: x[0] + 2 * x[1] + 3 * x[2] - 1,
        least=0.0,
    ),
    35: Published(
        (0.5, 0.5, 0.5),
        lambda x: 9 - 8 * x[0] - 6 * x[1] - 4 * x[2] + 2 * x[0] ** 2 + 2 * x[1] ** 2 + x[2] ** 2 + 2 * x[0] * x[1]
        + 2 * x[0] * x[2],
        margins=lambda x: 3 - x[0] - x[1] - 2 * x[2], low=0.0, least=1 / 9,
    ),
    39: Published(
        (2, 2, 2, 2), lambda x: -x[0],
        lambda x: jnp.stack([x[1] - x[0] ** 3 - x[2] ** 2, x[0] ** 2 - x[1] - x[3] ** 2]), least=-1.0,
    ),
    40: Published(
        (0.8, 0.8, 0.8, 0.8), lambda x: -x[0] * x[1] * x[2] * x[3],
        lambda x: jnp.stack([x[0] ** 3 + x[1] ** 2 - 1, x[0] ** 2 * x[3] - x[2], x[3] ** 2 - x[1]]), least=-0.25,
    ),
    43: Published(
        (0, 0, 0, 0),
        lambda x: x[0] ** 2 + x[1] ** 2 + 2 * x[2] ** 2 + x[3] ** 2 - 5 * x[0] - 5 * x[1] - 21 * x[2] + 7 * x[3],
        margins=lambda x: jnp.stack([
            8 - x @ x - x[0] + x[1] - x[2] + x[3],
            10 - x[0] ** 2 - 2 * x[1] ** 2 - x[2] ** 2 - 2 * x[3] ** 2 + x[0] + x[3],
            5 - 2 * x[0] ** 2 - x[1] ** 2 - x[2] ** 2 - 2 * x[0] + x[1] + x[3],
        ]), least=-44.0,
    ),
    65: Published(
        (-5, 5, 0), lambda x: (x[0] - x[1]) ** 2 + (x[0] + x[1] - 10) ** 2 / 9 + (x[2] - 5) ** 2,
        margins=lambda x: 48 - x @ x, low=(-4.5, -4.5, -5), high=(4.5, 4.5, 5), least=0.9535288567,
    ),
    71: Published(
        (1, 5, 5, 1), lambda x: x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2], lambda x: x @ x - 40,
        lambda x: x[0] * x[1] * x[2] * x[3] - 25, low=1.0, high=5.0, least=17.0140173,
    ),
    77: Published(
        (2, 2, 2, 2, 2),
        lambda x: (x[0] - 1) ** 2 + (x[0] - x[1]) ** 2 + (x[2] - 1) ** 2 + (x[3] - 1) ** 4 + (x[4] - 1) ** 6,
        lambda x: jnp.stack([
            x[0] ** 2 * x[3] + jnp.sin(x[3] - x[4]) - 2 * np.sqrt(2), x[1] + x[2] ** 4 * x[3] ** 2 - 8 - np.sqrt(2),
        ]), least=0.24150513,
    ),
    78: Published(
        (-2, 1.5, 2, -1, -1), jnp.prod,
        lambda x: jnp.stack([x @ x - 10, x[1] * x[2] - 5 * x[3] * x[4], x[0] ** 3 + x[1] ** 3 + 1]),
        least=-2.91970041,
    ),
    100: Published(
        (1, 2, 0, 4, 0, 1, 1),
        lambda x: (x[0] - 10) ** 2 + 5 * (x[1] - 12) ** 2 + x[2] ** 4 + 3 * (x[3] - 11) ** 2 + 10 * x[4] ** 6
        + 7 * x[5] ** 2 + x[6] ** 4 - 4 * x[5] * x[6] - 10 * x[5] - 8 * x[6],
        margins=lambda x: jnp.stack([
            127 - 2 * x[0] ** 2 - 3 * x[1] ** 4 - x[2] - 4 * x[3] ** 2 - 5 * x[4],
            282 - 7 * x[0] - 3 * x[1] - 10 * x[2] ** 2 - x[3] + x[4],
            196 - 23 * x[0] - x[1] ** 2 - 6 * x[5] ** 2 + 8 * x[6],
            -4 * x[0] ** 2 - x[1] ** 2 + 3 * x[0] * x[1] - 2 * x[2] ** 2 - 5 * x[5] + 11 * x[6],
        ]), least=680.6300573,
    ),
}  # fmt: skip


def random_problem(seed: int) -> Published:
    """Wavy quadratics under conditions: more of them than variables (combinations of few), margins by the dozen, bounds,
    starts that meet all and starts that meet none; some that cannot be met."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    A, b, wave = rng.normal(size=(n, n)), rng.normal(size=n), rng.normal(size=n) * rng.choice([0.0, 0.3])
    H = A @ A.T + rng.choice([0.0, 0.01, 1.0]) * np.eye(n)
    independent = int(rng.integers(0, n)) if rng.random() < 0.7 else 0
    J, bend = rng.normal(size=(independent, n)), rng.choice([0.0, 0.2])
    mix = rng.normal(size=(int(rng.choice([independent, 40])), independent)) if independent else np.zeros((0, 0))
    there = rng.normal(size=n)  # meets the conditions, and mostly the margins
    G = rng.normal(size=(int(rng.choice([0, 1, 6, 60])), n))
    room = np.abs(rng.normal(size=len(G))) - (1.5 if rng.random() < 0.1 else 0.0)
    bounded = rng.random() < 0.5
    start = there if rng.random() < 0.3 else rng.normal(size=n)

    def equal(x):
        own = J @ (x - there) + bend * ((J @ x) ** 2 - (J @ there) ** 2)
        return mix @ own

    def margins(x):
        return G @ (x - there) + room - bend * jnp.sum((x - there) ** 2)

    low, high = (
        (tuple(np.minimum(start, there) - 0.3), tuple(np.maximum(start, there) + 0.3)) if bounded else (None, None)
    )
    return Published(
        tuple(start), lambda x: 0.5 * x @ H @ x + b @ x + wave @ jnp.sin(3 * x),
        equal if independent else None, margins if len(G) else None, low, high,
    )  # fmt: skip


def untrue(p: Published, x: np.ndarray, status: str, tolerance: float) -> str:
    """What is not true of a status, by an independent test of the first-order conditions; "" where it holds."""
    from scipy.optimize import lsq_linear

    n = len(x)
    both = {"=": p.equal, ">": p.margins}
    value = {k: np.zeros(0) if fn is None else np.atleast_1d(fn(x)) for k, fn in both.items()}
    slope = {k: np.zeros((0, n)) if fn is None else np.reshape(jax.jacrev(fn)(x), (-1, n)) for k, fn in both.items()}
    given = ((-np.inf, p.low), (np.inf, p.high))
    low, high = (np.broadcast_to(np.asarray(d if b is None else b, float), (n,)) for d, b in given)
    if np.any(x < low - 1e-9) or np.any(x > high + 1e-9):
        return "outside the bounds"
    worst = max(np.abs(value["="]).max(initial=0.0), -value[">"].min(initial=0.0))
    started = np.asarray(p.start, float)
    at_start = {k: np.zeros(0) if fn is None else np.atleast_1d(fn(started)) for k, fn in both.items()}
    feasible_start = np.all(np.abs(at_start["="]) <= 1e-12) and np.all(at_start[">"] >= 0)
    g = np.asarray(jax.grad(p.cost)(x))
    at_low, at_high = x <= low + 1e-7, x >= high - 1e-7
    sides = [np.eye(n)[at_low], -np.eye(n)[at_high]]
    if status in ("LEAST", "UNDETERMINED"):
        if worst > 10 * tolerance:
            return f"conditions missed by {worst:.1e}"
        if feasible_start and p.cost(x) > p.cost(started) + 1e-9 * abs(p.cost(started)):
            return "worse than the start"
        used = slope[">"][value[">"] <= 1e-5]
        columns = np.concatenate([slope["="], used, *sides]).T
        signs = np.concatenate([np.full(len(slope["="]), -np.inf), np.zeros(columns.shape[1] - len(slope["="]))])
        rest = g if columns.shape[1] == 0 else g - columns @ lsq_linear(columns, g, (signs, np.inf), tol=1e-14).x
        size = 1 + np.abs(np.asarray(jax.hessian(p.cost)(x))).max() + np.linalg.norm(g)
        return "" if np.abs(rest).max() <= 2e-4 * size else f"slope {np.abs(rest).max():.1e} remains"
    if status == "INFEASIBLE":
        if worst <= tolerance:
            return "it is met"
        if feasible_start:
            return "the start meets it"
        r = np.concatenate([value["="], np.minimum(value[">"], 0)])
        down = np.concatenate([slope["="], slope[">"]]).T @ r
        down = np.where(at_low, np.minimum(down, 0), np.where(at_high, np.maximum(down, 0), down))
        return "" if np.abs(down).max() <= 1e-2 * np.linalg.norm(r) else "the violation has a slope"
    return "" if status != "MET" else "nothing is least"
