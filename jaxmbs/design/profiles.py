"""Profile intervals: each end is found by a search under a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.batching.compiling import compiled
from jaxmbs.design.local import Local
from jaxmbs.design.objectives.base import missed
from jaxmbs.design.optimisers.constrained import searched
from jaxmbs.design.optimisers.together import together
from jaxmbs.design.problem import Prepared, residuals_at
from jaxmbs.design.under_conditions import within_reach

if TYPE_CHECKING:
    from jaxmbs.design.synthesize import Design

Array = Any
MOST = 200  # largest number of evaluations for one end
FAR = 0.5  # an end is infinite if a variable without bounds has gone farther than this share of the way to its limit


def ends(design: Design, level: float) -> dict[str, tuple[float, float]]:
    """{coordinate: (low, high)}: the smallest and largest value of each for which the sum of squares is at most its
    minimum times 1 + F / freedom, or, if the noise is known, at most its minimum plus chi². F and chi² are the
    quantiles at `level` of the F distribution with (1, freedom) degrees of freedom and of the chi-square distribution
    with 1; freedom: that of `Uncertainty`."""
    from scipy.stats import chi2, f

    prepared = Prepared(design.problem)
    v, x = prepared.variables, np.asarray(design.x[design.best], float)
    assert design.uncertainty is not None
    data, freedom = prepared.data(), design.uncertainty.freedom
    noisy = all(o.noisy for o in prepared.objectives)

    def both(x: Array) -> tuple[Any, Any]:
        found = prepared.measured(prepared.model(x), x, data)
        taken = zip(prepared.objectives, found, prepared.constants, strict=True)
        # weighted as in the search, in units of the first objective's residuals
        r = [missed(o, m, c) * o.weight / np.sqrt(len(m.reshape(-1))) for o, m, c in taken]
        unit = prepared.objectives[0].weight ** 2 / len(r[0])
        out = v.place(x[: v.size]), sum(jnp.sum(a**2) for a in r) / unit
        return out, out

    count = 2 * len(v.coordinates)
    program = compiled(jax.vmap(jax.jacfwd(both, has_aux=True)))
    (_, _), (here, least) = jax.tree.map(np.asarray, program(np.tile(x, (count, 1))))
    here, least = here[0], float(least[0])
    room = float(chi2.ppf(level, 1)) if noisy else max(least, 1e-300) * float(f.ppf(level, 1, freedom)) / freedom
    low, high = within_reach(prepared, x)
    slopes = np.asarray(compiled(jax.jacfwd(v.place))(jnp.asarray(x[: v.size])))
    slopes = np.concatenate([slopes, np.zeros((len(slopes), len(x) - v.size))], axis=1)
    J = np.concatenate(residuals_at(prepared, x)[1])
    inverse = np.linalg.pinv(J.T @ J, rcond=1e-12, hermitian=True)
    std = np.array([e.std for e in design.uncertainty.estimates])
    size = np.where(np.isfinite(std) & (std > 0), std, np.maximum(np.abs(here), 1.0))

    def evaluate(x: np.ndarray) -> list[Any]:
        padded = x[np.arange(count) % len(x)]
        (moves, gradient), (place, squares) = jax.tree.map(np.asarray, program(padded))
        return list(zip(padded, moves, gradient, place, squares, strict=True))[: len(x)]

    def away(end: np.ndarray) -> np.ndarray:  # the logarithm of a positive parameter may go to -inf: its end is zero
        log = np.zeros(len(x), bool)
        log[: v.size] = v.logarithmic
        far = np.where(log, end - x, np.abs(end - x)) > FAR * (high - x)
        return far & ~np.isfinite(prepared.high)

    def search(k: int, side: float) -> Any:
        def ask_of(ask: Any) -> Any:
            def local(y: np.ndarray) -> Local:
                point, moves, gradient, place, squares = ask(y)
                margin = np.array([1 - (squares - least) / room])
                return Local(point, np.zeros(1), -side * place[k] / size[k], np.zeros(0), margin,
                             -side * moves[k] / size[k], np.zeros((0, len(point))), -gradient[None] / room)  # fmt: skip

            ahead = inverse @ slopes[k]  # direction to the end of the interval, exact for a quadratic sum of squares
            length = np.sqrt(max(float(slopes[k] @ ahead), 0.0))
            start = x + side * np.sqrt(room) * ahead / length if length > 0 else x
            return searched(local, np.clip(start, low, high), low, high, 1e-6, MOST).best

        return ask_of

    tasks = [search(k, side) for k in range(len(v.coordinates)) for side in (-1.0, 1.0)]
    found = together(evaluate, tasks)
    out = {}
    for k, c in enumerate(v.coordinates):
        pair = []
        for side, end in zip((-1.0, 1.0), found[2 * k : 2 * k + 2], strict=True):
            value = here[k] if end is None else -side * float(end.cost) * size[k]
            pair.append(side * np.inf if end is None or np.any(away(end.x)) else value)
        out[c.name] = (float(pair[0]), float(pair[1]))
    return out
