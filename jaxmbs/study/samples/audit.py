"""Checks that every dispersion was applied: compares the numbers of the samples with the nominal ones.

The modules that compute samples are imported only when there are numbers to compare, so that reports start quickly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from jaxmbs.study.sampling.targets import parts_of

if TYPE_CHECKING:
    from jaxmbs.study.problem.study import Study
    from jaxmbs.study.sampling.targets import Numbers

_SAMPLES = 2000


@dataclass(frozen=True)
class Applied:
    """Result of the dispersion `name`. target: name of its target; nominal, least, most (k,): for each component its
    nominal value, and the smallest and largest value after all dispersions of this target have acted; changed: share
    of the samples in which the value is not the nominal one."""

    name: str
    target: str
    nominal: np.ndarray
    least: np.ndarray
    most: np.ndarray
    changed: float


def audit(study: Study, draws: Mapping[str, np.ndarray]) -> list[Applied]:
    """Result of every dispersion of a study. draws: those of the first m samples, (m, k) by dispersion. The numbers of
    the first 2000 of these samples (of all if m is less) are computed again from their draws."""
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
    """(samples, k) values of a target, and its nominal value (k,)."""
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
