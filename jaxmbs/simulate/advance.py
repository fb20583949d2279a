"""One step of a run: the method's step or the impact, the projection onto the constraints, and the numbers that a run
checks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from jaxmbs.model import Mode
from jaxmbs.simulate.impacts import Impact, after_impact
from jaxmbs.simulate.locating import chosen
from jaxmbs.simulate.loops import checkpointed
from jaxmbs.simulate.pace import error_norm
from jaxmbs.simulate.projection import projected
from jaxmbs.simulate.steppers import Flow, Stepper
from jaxmbs.simulate.steppers.base import Phase, Trial, arrays


class Advanced(NamedTuple):
    """The result of a step. phase: q and v at its end, projected onto the constraints, and the work until then;
    kinetic: kinetic energy [J] at its start; conditioning (2,): that of the projection (`Metric.conditioning`), None if
    nothing is projected; error: the estimated error divided by the tolerance, None without a tolerance."""

    phase: Phase
    kinetic: Any
    conditioning: Any
    error: Any


def advance(
    flow: Flow, by: Stepper, phase: Phase, t: Any, h: Any, mode: Mode | None, *,
    to: Any = None, impact: Impact | None = None, tolerance: Any = None,
) -> Advanced:  # fmt: skip
    """Compute a step of length h [s] from t, which ends at `to` (None: t + h, which may round differently). Where
    `impact.now` is true, no time passes and velocities jump instead."""
    tree = flow.tree
    new, kinetic, difference = _stepped(flow, by, phase, t, h, mode, impact, tolerance is not None)
    error = None if tolerance is None else error_norm(tree, tolerance, phase, new, difference)
    conditioning = None
    if tree.structure.constrained and flow.baumgarte is None:
        q, v, found = projected(tree.remembering(new.states), new.q, new.v, t + h if to is None else to, mode)
        new, conditioning = new._replace(q=q, v=v), tree.vector(found)
    return Advanced(arrays(new, tree.dtype), kinetic, conditioning, error)


def _stepped(
    flow: Flow, by: Stepper, phase: Phase, t: Any, h: Any, mode: Any, impact: Impact | None, estimate: bool
) -> Trial:
    """The step of the method, or the impact."""
    tree = flow.tree.remembering(phase.states)
    if impact is None:
        return by.step(flow, phase, t, h, mode, estimate)
    if by.impulses(tree):
        struck = replace(flow, impulse=(impact.now, impact.jumps(tree, phase.v, mode), phase.v))
        new, kinetic, error = by.step(struck, phase, t, h, impact.rigid(mode), estimate)
        # exact, whereas v + jump would be rounded
        return Trial(new._replace(v=impact.stopped(tree, new.v, mode)), kinetic, error)
    new, kinetic, error = by.step(flow, phase, t, h, mode, estimate)
    apart = checkpointed(lambda *x: after_impact(tree, *x))  # else reverse mode stores its numbers for all iterations
    jumped = apart(phase.q, phase.v, t, mode, impact)
    return Trial(new._replace(v=chosen(impact.now, jumped, new.v)), kinetic, error)
