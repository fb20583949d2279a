"""Proof that no bodies inside their envelopes meet the conditions: a lower bound of the norm of the conditions.

Let the conditions be linear, r(c) = J c + r0, in the coordinates c: the inertias, first moments of mass and masses of
the bodies, called mass moments here. For any unit vector y, |r(c)| >= y.r(c) >= y.r0 + sum over bodies of min
(J'y)_b.c_b. The mass moments of a body of mass m are m times averages over points of its envelope. Each of these minima
is therefore m times the minimum of a quadratic function f over an ellipsoid, and every value of the dual function of f
is a lower bound of that minimum. The y with the best bound points to the point of {r(c)} nearest to zero, which Frank
and Wolfe's method finds; its steps are the minimisers of f.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.batching.compiling import compiled
from jaxmbs.design.mass_distribution import MassDistribution
from jaxmbs.design.problem import Prepared

AFFINE = 1e-9  # relative departure from linearity that counts as rounding
STEPS = 400  # of Frank and Wolfe's method
SURE = 1e-6  # relative to the size of the conditions: a bound above this cannot be due to rounding errors


@dataclass(frozen=True)
class Envelope:
    """An ellipsoid that contains a body. own: the slice of the body's coordinates in c; center (3,): its centre
    relative to the pole [m]; half (3,): its half-axes [m]; mass: bounds of the mass [kg]; free_mass: whether the mass
    is a variable."""

    own: slice
    center: np.ndarray
    half: np.ndarray
    mass: tuple[float, float]
    free_mass: bool


def certificate(prepared: Prepared, x: np.ndarray) -> float | None:
    """A lower bound of the norm of the conditions over all possible bodies inside their envelopes.

    None if nothing is proved: if no body has an envelope, if anything besides mass distributions is variable, if a
    condition is on simulated motions or not linear, or if the bound is not above zero. x (n,): variables at which the
    conditions are linearised.
    """
    problem = prepared.problem
    items = [item for item in problem.free if isinstance(item, MassDistribution)]
    inside = [item.half_axes is not None for item in items]
    if len(items) < len(problem.free) or not any(inside) or len(x) > prepared.variables.size:
        return None
    conditions = [o for o, on in zip(prepared.objectives, prepared.conditions, strict=True) if on]
    if not conditions or any(o.simulates for o in conditions):
        return None
    if len(conditions) < len(prepared.objectives):  # a proof needs the conditions only
        return certificate(Prepared(replace(problem, objectives=conditions, method="least_squares")), x)
    J, r0 = _linear(prepared, x)
    if J is None:
        return None
    bodies, start, outside = [], 0, []
    for item, part, on in zip(items, prepared.variables.parts, inside, strict=True):
        own = slice(start, start + len(part.coordinates))
        start = own.stop
        if on:
            mass = float(prepared.setting.model.values()[f"{item.body}.mass"])
            bounds = item.mass or (mass, mass)
            place = np.asarray(item.center, float) - np.asarray(item.pole, float)
            bodies.append(Envelope(own, place, np.asarray(item.half_axes, float), bounds, item.mass is not None))
        else:
            outside.append(J[:, own])
    if outside:  # residuals that bodies without an envelope can compensate prove nothing
        free = np.concatenate(outside, axis=1)
        U, s, _ = np.linalg.svd(free, full_matrices=True)
        beyond = U[:, int(np.sum(s > 1e-9 * s[0])) :].T
        J, r0 = beyond @ J, beyond @ r0
    size = np.linalg.norm(J @ prepared.variables.coordinates_at(x)) + np.linalg.norm(r0)
    proved = distance(J, r0, bodies)
    return proved if proved > SURE * size else None


def _linear(prepared: Prepared, x: np.ndarray) -> tuple[Any, Any]:
    """(J, r0) of the conditions r(c) = J c + r0, compressed to at most one row more than there are coordinates; (None,
    None) if the conditions are not linear."""
    variables, data = prepared.variables, prepared.data()

    def conditions(c: Any) -> tuple[Any, Any]:
        found = prepared.measured(variables.at(c), jnp.asarray(x), data)
        chosen = zip(prepared.objectives, found, prepared.constants, strict=True)
        r = jnp.concatenate([o.conditions(m, k) for o, m, k in chosen])
        return r, r

    here = variables.coordinates_at(x)
    there = here + 0.1 * (1 + np.abs(here)) * np.random.default_rng(0).standard_normal(len(here))
    local = compiled(jax.vmap(jax.jacfwd(conditions, has_aux=True)))
    (J, other), (r, _) = (np.asarray(a) for a in local(np.stack([here, there])))
    if not np.abs(other - J).max() <= AFFINE * np.abs(J).max():
        return None, None
    R: Any = np.linalg.qr(np.column_stack([J, r - J @ here]), mode="r")
    return R[:, :-1], R[:, -1]


def distance(J: np.ndarray, r0: np.ndarray, bodies: list[Envelope]) -> float:
    """A lower bound of |J c + r0| over the mass moments c of bodies inside their envelopes."""
    from scipy.optimize import nnls

    best, points = -np.inf, []
    y = -r0 if np.any(r0) else np.ones(len(r0))
    for _ in range(STEPS):
        y = y / max(np.linalg.norm(y), 1e-300)
        g, bound, c = y @ J, float(y @ r0), np.zeros(J.shape[1])
        for b in bodies:
            least, moments = _least(g[b.own], b)
            bound += least
            c[b.own] = moments
        best = max(best, bound)
        points.append(J @ c + r0)
        P = np.stack(points, axis=1)  # nnls finds the point of their convex hull nearest to zero
        heavy = 1e3 * np.abs(P).max()
        weights = nnls(np.vstack([P, np.full(P.shape[1], heavy)]), np.append(np.zeros(len(P)), heavy))[0]
        keep = weights > 0
        points = [p for p, k in zip(points, keep, strict=True) if k]
        y = P @ (weights / weights.sum())
        if np.linalg.norm(y) <= best * (1 + 1e-6) or np.linalg.norm(y) < 1e-12 * np.abs(P).max():
            break
    return best


def _least(g: np.ndarray, body: Envelope) -> tuple[float, np.ndarray]:
    """(a lower bound of g.c over the mass moments c of a body, mass moments that come near this bound)."""
    Q = np.diag([g[1] + g[2], g[0] + g[2], g[0] + g[1]])
    Q[[0, 0, 1], [1, 2, 2]] = Q[[1, 2, 2], [0, 0, 1]] = -g[3:6] / 2
    # f(p) = p.Q p + h.p, p = center + D s, |s| <= 1
    D, p0, h = body.half, body.center, g[6:9]
    A, b = D[:, None] * Q * D[None, :], D * (2 * Q @ p0 + h)
    f0 = p0 @ Q @ p0 + h @ p0 + (g[9] if body.free_mass else 0.0)
    value, s = on_a_ball(A, b)
    mass = body.mass[0] if f0 + value > 0 else body.mass[1]
    p = p0 + D * s
    inertia = (p @ p) * np.eye(3) - np.outer(p, p)
    moments = mass * np.array([*np.diagonal(inertia), inertia[0, 1], inertia[0, 2], inertia[1, 2], *p])
    return float(mass * (f0 + value)), np.append(moments, mass) if body.free_mass else moments


def on_a_ball(A: np.ndarray, b: np.ndarray) -> tuple[float, np.ndarray]:
    """(a lower bound of s.A s + b.s over |s| <= 1, namely the maximum of the dual function to rounding; s near the
    minimum)."""
    values, V = np.linalg.eigh(A)
    beta = V.T @ b
    size = max(np.abs(values).max(), np.abs(beta).max(), 1e-300)
    low = max(0.0, -values[0]) + 1e-14 * size
    high = low + np.linalg.norm(beta) / 2 + 1e-14 * size

    def outside(multiplier: float) -> bool:
        return bool(np.sum((beta / (2 * (values + multiplier))) ** 2) > 1)

    for _ in range(200):  # the dual function is concave: its slope is |s|^2 - 1
        middle = (low + high) / 2
        low, high = (middle, high) if outside(middle) else (low, middle)
    dual = -high - float(np.sum(beta**2 / (4 * (values + high))))
    s = -beta / (2 * (values + high))
    if high > 1e-10 * size and np.linalg.norm(s) < 1:  # move along the direction of least curvature to the boundary
        s[0] += np.copysign(np.sqrt(max(1 - s @ s + s[0] ** 2, 0.0)), s[0]) - s[0]
    return dual, V @ (s / max(np.linalg.norm(s), 1.0))
