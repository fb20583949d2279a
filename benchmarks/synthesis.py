"""Time to solution of the two-arm synthesis: python benchmarks/synthesis.py [--starts 16]

Measured are all starts in one batch; one start alone, as a loop over the starts would run it; and SciPy's `least_squares`
(method "trf", exact derivatives from JAX), one start after another. The first two times include compilation; for SciPy it
is measured separately, in the first call.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
from scipy.optimize import least_squares

import jaxmbs as mbs
from jaxmbs.batching.compiling import compiled
from jaxmbs.design.file import read
from jaxmbs.design.problem import Prepared, Problem
from jaxmbs.design.search import search

EXAMPLE = Path(__file__).parents[1] / "examples" / "two_arm_synthesis.toml"


def in_one_batch(problem: Problem) -> tuple[float, int]:
    """(seconds, starts that met all conditions)."""
    prepared, begin = Prepared(problem), time.perf_counter()
    state, _, _ = search(prepared)
    return time.perf_counter() - begin, int(np.sum(np.asarray(state.status) == int(mbs.design.Status.MET)))


def by_scipy(problem: Problem, starts: int) -> tuple[float, float, int]:
    """(seconds of the first call, seconds of all other calls per start, starts that met all conditions)."""
    prepared = Prepared(problem)
    data = prepared.data()
    residuals = compiled(lambda x: prepared.residuals(x, data)[0])
    jacobian = compiled(jax.jacfwd(lambda x: prepared.residuals(x, data)[0]))
    xs, begin = prepared.starts()[:starts], time.perf_counter()
    residuals(xs[0]), jacobian(xs[0])
    first, met = time.perf_counter() - begin, 0
    begin = time.perf_counter()
    for x in xs:
        found = least_squares(
            lambda x: np.asarray(residuals(x)), x, jac=lambda x: np.asarray(jacobian(x)), xtol=1e-14, ftol=1e-14, gtol=1e-14,
            max_nfev=120,
        )  # fmt: skip
        met += bool(np.sqrt(2 * found.cost) < problem.tolerance)
    return first, (time.perf_counter() - begin) / starts, met


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--starts", type=int, default=16)
    starts = parser.parse_args().starts
    jax.config.update("jax_enable_x64", True)
    problem = replace(read(EXAMPLE).problem, starts=starts, max_steps=60)
    total, met = in_one_batch(problem)
    print(f"{starts} starts in one batch: {total:.1f} s with compilation, {met} met")
    one = replace(problem, starts=1)
    alone, _ = in_one_batch(one)
    print(f"one start alone: {alone:.1f} s with compilation")
    first, each, met = by_scipy(problem, min(starts, 4))
    print(f"SciPy: compilation {first:.1f} s, then {each:.2f} s for each start ({met} of {min(starts, 4)} met)")


if __name__ == "__main__":
    main()
