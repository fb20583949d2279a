"""Step size control of an adaptive run: the length of the next trial step follows from the errors of previous ones."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model import Model, ModelError
from jaxmbs.model.parameters import is_traced
from jaxmbs.simulate.grid import MOST_STEPS
from jaxmbs.simulate.steppers.base import Phase

SAFETY, LEAST, MOST = 0.9, 0.2, 5.0  # safety factor; least and greatest ratio of the next step to the previous one
SMALLEST = 64  # shortest step that is tried, in units of the rounding of the time


class Pace(NamedTuple):
    """next [s]: step length that the error allows; taken, refused: numbers of steps; stalled: whether a step would have to
    be shorter than the rounding of the time."""

    next: Any
    taken: Any
    refused: Any
    stalled: Any

    @staticmethod
    def start(first: Any) -> Pace:
        """The pace before the first trial step, which has the length `first` [s]."""
        none = jnp.zeros((), jnp.int32)
        return Pace(first, none, none, jnp.asarray(False))

    def within(self, rest: Any) -> tuple[Any, Any]:
        """(step length, whether the step ends before `rest`). A step that does not reach `rest` goes at most half way,
        so that no very short step remains."""
        ahead = jnp.where(self.next < rest / 2, self.next, rest / 2)
        cut = self.next < rest
        return jnp.where(cut, ahead, rest), cut

    def after(self, h: Any, t: Any, error: Any, order: int, moves: Any, fails: Any) -> Pace:
        """The pace after a step of length h that ends at t [s]. error: that of the step divided by the allowed error;
        order: that of the error estimate; moves, fails: whether the step is accepted, refused."""
        factor = SAFETY * jnp.where(error > 0, error, 1e-10) ** (-1 / (order + 1))
        factor = jnp.where(jnp.isfinite(error), jnp.clip(factor, LEAST, MOST), LEAST)
        allowed = h * factor
        following = jnp.where(
            fails, allowed, jnp.where(moves, jnp.maximum(allowed, jnp.where(h < self.next, self.next, 0)), self.next)
        )
        smallest = SMALLEST * jnp.finfo(h.dtype).eps * jnp.maximum(jnp.abs(t), h)
        return Pace(following, self.taken + moves, self.refused + fails, self.stalled | (fails & (allowed <= smallest)))


def error_norm(tree: Tree, tolerance: Any, before: Any, after: Any, error: Any) -> Any:
    """The largest error of a coordinate or a rate, each divided by tolerance times (1 + its magnitude).

    tolerance: a number, or (nv,). If a joint has more coordinates than rates (quaternions), its coordinates take
    the smallest tolerance of its rates; states of elements take the smallest of all.
    """
    s = tree.structure
    of_rates = jnp.broadcast_to(jnp.asarray(tolerance, tree.dtype), (s.nv,))
    of_coordinates = []
    for link, own in zip(s.links, s.v_slices, strict=True):
        joint, least = link.joint, of_rates[own]
        of_coordinates.append(least if joint.nq == joint.nv else jnp.broadcast_to(least.min(), (joint.nq,)))
    worst = jnp.zeros((), tree.dtype)
    of_states = jnp.min(of_rates) if s.nv else jnp.asarray(tolerance, tree.dtype)
    allowances = (jnp.concatenate(of_coordinates), of_rates, of_states)
    numbers = (
        (x.q, x.v, [c for own in x.states for c in own])
        for x in (before, after, Phase(error[0], error[1], 0.0, error[2]))
    )
    for x, y, e, allowed in zip(*numbers, allowances, strict=True):
        x, y, e = tree.vector(x), tree.vector(y), tree.vector(e)
        if not x.size:
            continue
        size = jnp.maximum(jnp.abs(x), jnp.abs(y))
        worst = jnp.maximum(worst, jnp.max(jnp.abs(e) / (allowed * (1 + size))))
    return worst


def checked_tolerance(model: Model, tolerance: Any, dtype: Any) -> Any:
    """The tolerance as an array, (nv,) or (). Raises ModelError for other shapes and for values below rounding."""
    array = jnp.asarray(tolerance, dtype)
    if array.shape not in ((), (model.nv,)):
        raise ModelError(
            f"simulate: tolerance has shape {array.shape}; pass a number or ({model.nv},), one for each coordinate of v"
        )
    if not is_traced(tolerance):
        least = 10 * float(jnp.finfo(dtype).eps)
        wrong = np.asarray(tolerance, float)
        if not np.all(np.isfinite(wrong)) or np.any(wrong < least):
            raise ModelError(
                f"simulate: tolerance is {tolerance!r}, which rounding in {np.dtype(dtype).name} does not allow; pass "
                f"at least {least:.1g}"
            )
    return array


def checked_steps(max_steps: Any, cells: int, adaptive: bool, more: int) -> int:
    """The largest number of trial steps of an adaptive run: by default 4 for every cell of its grid plus `more`, and at
    least one for every cell.

    Raises ModelError for an invalid number, and for a number given to a run without tolerance."""
    if max_steps is None:
        return 4 * cells + more
    if isinstance(max_steps, bool) or not isinstance(max_steps, (int, np.integer)) or not 1 <= max_steps <= MOST_STEPS:
        raise ModelError(
            f"simulate: max_steps is {max_steps!r}; pass a whole number of trial steps, 1 to {MOST_STEPS:,}, or None"
        )
    if not adaptive:
        raise ModelError(
            "simulate: max_steps limits the steps of a run with a tolerance, but this run has none and takes the "
            f"{cells:,} steps of its grid; leave max_steps out, or pass a tolerance (max_events limits events that "
            "repeat)"
        )
    return max(int(max_steps), math.ceil(cells))
