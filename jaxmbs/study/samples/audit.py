"""Checks that every dispersion was applied: compares the numbers of the samples with the nominal ones.

What computes is imported when there are numbers to compare, so that reports start without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jaxmbs.study.sampling.targets import parts_of

if TYPE_CHECKING:
    from jaxmbs.study.problem.study import Study
    from jaxmbs.study.sampling.targets import Numbers

_SAMPLES = 2000


@dataclass(frozen=True)
class Applied:
    """Result of a dispersion. target; nominal, least, most: for each component its nominal value, and the least and
    largest applied value (for all of the file's dispersions of this target together); changed: share of the samples
    whose number is not the nominal one."""

    name: str
    target: str
    nominal: np.ndarray
    least: np.ndarray
    most: np.ndarray
    changed: float


def audit(study: Study, draws: Mapping[str, np.ndarray]) -> list[Applied]:
    """Result of every dispersion of a study, from the draws (m, k) of the first samples: the numbers with which they
    were simulated."""
    import jax.numpy as jnp

    from jaxmbs.study.samples.batch import numbers_of, precision

    some = np.concatenate([draws[d.name][:_SAMPLES] for d in study.dispersions.items], axis=1)
    if not len(some):
        return []
    dtype = precision()
    numbers = numbers_of(study, jnp.asarray(some, dtype), dtype)
    found = []
    for d in study.dispersions.items:
        values, nominal = _of(study, d.target.name, d.target.nominal, numbers, len(some))
        nominal = np.asarray(nominal, dtype).astype(float)
        changed = float(np.mean(np.any(values != nominal, axis=1)))
        found.append(Applied(d.name, d.target.name, nominal, values.min(0), values.max(0), changed))
    return found


def _of(study: Study, name: str, nominal: np.ndarray, numbers: Numbers, count: int) -> tuple[np.ndarray, np.ndarray]:
    """(samples, k) numbers of a target, and its nominal ones (k,)."""
    if name in numbers.parameters:
        x = np.asarray(numbers.parameters[name], float)
        if x.ndim == 2 and np.ndim(nominal) == 2:  # an inertia that stays diagonal
            nominal = np.diagonal(nominal)
        return x.reshape(count, -1), np.asarray(nominal).reshape(-1)
    joint = next(j for j in study.joints if name.startswith(f"initial.{j}."))
    part = name.removeprefix(f"initial.{joint}.")
    whole, x = (study.model.q_slice(joint), numbers.q) if part[0] == "q" else (study.model.v_slice(joint), numbers.v)
    own = parts_of(study.joints[joint])[part][0]
    return np.asarray(x, float)[:, whole.start + own.start : whole.start + own.stop], np.asarray(nominal)
