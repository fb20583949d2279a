"""Derivatives of a study's outputs with respect to its inputs, one standard normal number per input.

They are computed in reverse mode. `mbs.jit` compiles the whole motion, forwards and backwards, into one kernel over a
batch of samples. The output to differentiate is an argument, so that one program serves all outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.scipy.special import erf

import jaxmbs as mbs
from jaxmbs.study.outputs.folding import folded, results_of
from jaxmbs.study.samples.batch import nominal_noise, precision, simulated
from jaxmbs.study.samples.blocks import in_blocks

if TYPE_CHECKING:
    from jaxmbs.study.problem.study import Study

Array = Any
_ROWS = 16  # number of samples that are computed at once


def slopes_of(study: Study) -> Callable[[np.ndarray, str], tuple[np.ndarray, np.ndarray]]:
    """Function (u (m, d), output) -> ((m,) values [SI], (m, d) derivatives); values of failed samples are NaN."""
    dtype, start_fold = precision(), folded(study.outputs, precision())
    key = nominal_noise(study)

    def one(u: Array) -> tuple[dict[str, Array], Array]:
        draws = study.dispersions.of_uniform(erf(u / np.sqrt(2).astype(dtype)), dtype)
        numbers = study.dispersions.apply(draws, dtype)
        model = mbs.set(study.model, numbers.parameters)
        run = simulated(
            study.simulation, model, numbers.q, numbers.v, key=key, save_every=None, fold=start_fold, checkpoint=True
        )
        return results_of(study.outputs, run.folded, run.events, model, numbers.q, numbers.v), run.status

    def of_one(u: Array, weights: dict[str, Array]) -> tuple[dict[str, Array], Array, Array]:
        values, back, status = jax.vjp(one, u, has_aux=True)
        return values, back(weights)[0], status

    of_all = mbs.jit(of_one, in_axes=(0, None))

    def slopes(u: np.ndarray, output: str) -> tuple[np.ndarray, np.ndarray]:
        weights = {name: np.asarray(float(name == output), dtype) for name in study.outputs}
        values, found, status = in_blocks(lambda block: of_all(block, weights), u.astype(dtype), _ROWS)
        return np.where(status == int(mbs.Status.OK), values[output], np.nan), found

    return slopes
