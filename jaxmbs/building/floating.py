"""Warnings about force elements that start with a delay while nothing holds the bodies that they will push."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from jaxmbs.errors import ModelWarning
from jaxmbs.model.forces.base import Force
from jaxmbs.model.model import Model
from jaxmbs.model.structure import WORLD, Structure

SHORT = 0.01  # [s] clamps and cutters that are fired together may act this far apart


def warn_of_floating(model: Model) -> None:
    """Warn (ModelWarning) about force elements with a `delay` longer than SHORT, if nothing else holds their two bodies
    together until then: no lock, no loop or constraint, no element that acts from the start."""
    s, values = model.structure, model.values()

    def delay(name: str, element: Force) -> float:
        return float(values[f"{name}.delay"]) if name in s.delayed or "delay" in element.numbers else 0.0

    late = {f.name: delay(f.name, f.element) for f in s.forces}
    for f in s.forces:
        ends = [getattr(f.element, field) for field in f.element.bodies]
        if late[f.name] <= SHORT or len(ends) != 2:
            continue
        for i in _between(s, *ends):
            link = s.links[i]
            if link.name in s.held or all(link.locked) or _held(s, i, [name for name in late if late[name] <= SHORT]):
                continue
            warnings.warn(
                f"force {f.name!r} has a delay of {late[f.name]:g} s, and until then nothing holds body "
                f"{link.body!r}, which moves freely; hold joint {link.name!r} from the start, and release it at that "
                "time by an event",
                ModelWarning,
                stacklevel=3,
            )
            break


def _between(s: Structure, a: str, b: str) -> Iterator[int]:
    """Indices of the tree joints on the path between two bodies, without joints that have no degree of freedom."""
    of_a, of_b = (set(s.inward(s.body_index[body])) for body in (a, b))
    return (i for i in sorted(of_a ^ of_b) if s.links[i].joint.nv)


def _held(s: Structure, i: int, prompt: list[str]) -> bool:
    """Whether something acts from the start between the bodies that joint i carries and the rest; what is switched off at
    the start does not.

    prompt: names of the force elements without a delay, or with a short one.
    """
    off = {*s.off} - s.delayed
    carried = {link.body for k, link in enumerate(s.links) if i in s.inward(k)}
    pairs = [{loop.body_a, loop.body_b} for loop in s.loops if loop.name not in off]
    for c in (c for c in s.constraints if c.name not in off):
        if not (c.element.bodies or c.element.joints):
            return True
        ends = {getattr(c.element, field) for field in c.element.bodies}
        pairs.append(ends if len(ends) > 1 else ends | {WORLD})
    for f in (f for f in s.forces if f.name in prompt and f.name not in off):
        if f.element.on_whole_state or s.links[i].name in (getattr(f.element, j) for j in f.element.joints):
            return True
        ends = {getattr(f.element, field) for field in f.element.bodies}
        if ends and not f.element.source:
            pairs.append(ends if len(ends) > 1 else ends | {WORLD})
    return any(pair & carried and pair - carried for pair in pairs)
