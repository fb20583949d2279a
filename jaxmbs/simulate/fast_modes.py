"""Whether steps are too long for the modes of flexible bodies, in plain floats, before a run is compiled."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable

import numpy as np

from jaxmbs.building.float_rows import rows_at
from jaxmbs.dynamics.recursive import scalar
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Model
from jaxmbs.model.constraint_rows import sites
from jaxmbs.simulate.steppers.base import Stepper

TOO_MUCH = math.log(10.0)  # growth of a vibration in a run, beyond which its steps are not stable
HALVINGS = 40


def too_fast(
    model: Model, q: np.ndarray, by: Stepper, dt: float, duration: float, held: Iterable[str] = ()
) -> str | None:
    """What is wrong, in words, if steps of dt [s] make modes of flexible bodies grow in a run of this duration [s]; None if
    they do not, or if the method `by` is stable for all steps.

    q (nq,): the configuration; held: joints that are locked. Whatever the modes carry moves with them, and the frames of the
    bodies move as the mechanism lets them, without forces other than those of the modes. The result is also None for
    mechanisms with functions of arrays, which would have to be compiled.
    """
    s = model.structure
    if not s.flexible or by.amplification(0j) is None or not all(link.joint.formulas for link in s.links):
        return None
    if any(site.is_function for site in sites(s)):
        return None
    free = np.ones(model.nv, bool)
    for joint in held:
        free[model.v_slice(joint)] = False
    roots, shares = _vibrations(_Given(model, np.asarray(q, float), free))
    growing = [k for k, root in enumerate(roots) if _grows(by, root, dt, duration)]
    if not growing:
        return None
    worst = max(growing, key=lambda k: abs(roots[k]))
    stable, long = 0.0, dt
    for _ in range(HALVINGS):
        middle = (stable + long) / 2
        stable, long = (stable, middle) if _grows(by, roots[worst], middle, duration) else (middle, long)
    rate = abs(roots[worst].imag) or abs(roots[worst])
    return (
        f"flexible body {[*s.modes_of][int(np.argmax(shares[:, worst]))]!r} has a mode of {rate / (2 * math.pi):.4g} Hz in "
        f"this mechanism; steps of {dt:.3g} s are too long for it, and those up to about {stable:.2g} s are not"
    )


def _grows(by: Stepper, root: complex, dt: float, duration: float) -> bool:
    growth = abs(by.amplification(complex(root) * dt) or 0.0)
    return growth > 1 and math.log(growth) * duration / dt > TOO_MUCH


class _Given:
    """A model at a configuration with some degrees of freedom free, compared by all of its numbers."""

    def __init__(self, model: Model, q: np.ndarray, free: np.ndarray):
        self.model, self.q, self.free = model, q, free
        numbers = [np.asarray(x).tobytes() for x in (model.numbers, q, free)]
        changed = [(name, np.asarray(x).tobytes()) for name, x in sorted(model.overrides.items())]
        self.key = (model.structure, *numbers, *changed)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Given) and self.key == other.key


@functools.lru_cache(maxsize=16)
def _vibrations(given: _Given) -> tuple[np.ndarray, np.ndarray]:
    """(the roots [1/s] of the motions of the modes, and for each the potential energy in each flexible body)."""
    import scipy.linalg  # slow to import

    model, at = given.model, given.free
    s = model.structure
    A = np.array(scalar.mass_matrix(model, given.q.tolist()), float)
    K, C = np.zeros(model.nv), np.zeros((model.nv, model.nv))
    values = model.values()
    for i in s.modes_of.values():
        link, own = s.links[i], s.v_slices[i]
        for f in s.forces:
            if getattr(f.element, "joint", None) == link.name and hasattr(f.element, "damping_matrix"):
                p = {n: np.asarray(x, float) for n, x in values.of(f.name, f.element.numbers).items()}
                w, m = 2 * np.pi * p["frequency"], 1 / p["participation"] ** 2
                K[own] += m * w**2
                C[own, own] += m * np.diag(2 * w * p["damping"])
                if p["damping_matrix"].size > 1:
                    C[own, own] += m * p["damping_matrix"].reshape(len(w), -1)
    allowed = np.eye(model.nv)[:, at]
    if s.constrained:
        rows = rows_at(Tree(model), given.q.tolist())[1]
        allowed = allowed @ scipy.linalg.null_space(rows @ allowed)
    squared, shapes = scipy.linalg.eigh(allowed.T @ (K[:, None] * allowed), allowed.T @ A @ allowed)
    whole = allowed @ shapes  # of unit modal mass
    n, zero = len(squared), np.zeros((len(squared),) * 2)
    companion = np.block([[zero, np.eye(n)], [-np.diag(np.maximum(squared, 0.0)), -whole.T @ C @ whole]])
    roots, moved = np.linalg.eig(companion)
    energies = K[:, None] * np.abs(whole @ moved[:n]) ** 2
    return roots, np.array([energies[s.v_slices[i]].sum(axis=0) for i in s.modes_of.values()])
