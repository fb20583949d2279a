"""The order in which joints and multipliers are eliminated, determined when a mechanism is first used.

Links are eliminated from the leaves to the root, as for articulated bodies. The multipliers of a constraint are
eliminated once all joints between its ends have been, which makes their pivots positive wherever the rows are
independent. If several constraints are ready at the same link, the one that is then coupled to the fewest others comes
first. Each step leaves a front: the acceleration of one link, and the multipliers that have occurred but are not yet
eliminated. A chain of windows, a mast of bays or a wing of synchronised panels has fronts of bounded size, so that the
work is linear in the number of windows, bays or panels.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

from jaxmbs.dynamics.state.forest import Strand, strands_of
from jaxmbs.model.constraint_rows import Site, sites
from jaxmbs.model.structure import Structure

LARGEST_UNROLLED = (16, 12)  # coordinates, constraint rows; larger matrices are not written out in components
LARGEST_FRONT = 24  # multipliers; beyond it dense matrices are no slower


@dataclass(frozen=True)
class Elimination:
    """An elimination step of a joint or (joint None) of the rows of a constraint: everything its formulas depend on.

    own: number of eliminated rows; pending: number of rows that remain in the front; hangs: whether the acceleration of
    a link remains; onto: places of the pending rows in the next front; next: number of rows in that front. attached:
    the ends of constraints on one link, (first row in the front, end, number of rows, on_joints) each. In the step of a
    joint these are the ends of all constraints on its link; in the step of a constraint, its own on the remaining link.
    """

    joint: Any
    own: int
    pending: int
    hangs: bool
    onto: tuple[int, ...]
    next: int
    attached: tuple[tuple[int, int, int, bool], ...]


class Plan(NamedTuple):
    """The steps of an elimination. strands: the steps, last to first, their kind an `Elimination`; of_node: the link or
    constraint of every step; ends: for every step, the constraint of each item of `Elimination.attached`; constraints: all
    constraints; size: number of rows in the largest front."""

    strands: tuple[Strand, ...]
    of_node: tuple[int, ...]
    ends: tuple[tuple[int, ...], ...]
    constraints: tuple[Site, ...]
    size: int


@functools.lru_cache(maxsize=256)
def plan_of(s: Structure) -> Plan | None:
    """The plan of a mechanism that is large enough to need one; None if its matrices are written out or dense."""
    return None if not s.constrained or _small(s) or _obstacle(s) else ordered(s, sites(s))


def equations_text(s: Structure) -> str:
    """How the equations of a mechanism with constraints are solved, in words; empty for a tree."""
    if not s.constrained:
        return ""
    if _small(s):
        return "constraints: small matrices, written out in components"
    if why := _obstacle(s):
        return f"constraints: dense matrices, because {why}"
    size = ordered(s, sites(s)).size
    return f"constraints: eliminated joint by joint, at most {size} rows at a time; cost linear in the number of bodies"


def _small(s: Structure) -> bool:
    """Whether the matrices are written out in components."""
    few = any(x.is_function for x in sites(s)) or sum(x.rows for x in sites(s)) <= LARGEST_UNROLLED[1]
    return s.nv <= LARGEST_UNROLLED[0] and few


def _obstacle(s: Structure) -> str:
    """Why a mechanism needs dense matrices; empty if it does not."""
    if s.flexible:
        return "bodies are flexible"
    for x in sites(s):
        if x.is_function:
            return f"{x.name!r} is a function that may act on every joint"
    for x in (*s.links, *s.loops):
        if x.joint.rheonomic or x.joint.rheonomic_rows or not x.joint.formulas:
            return f"joint {x.name!r} has a motion that depends on time, or is defined by functions"
    for e in s.events:
        if e.when.of_reactions:
            return f"event {e.name!r} needs a joint reaction"
    if s.singular:
        return "without the constraints the mass matrix would be singular"
    size = ordered(s, sites(s)).size
    return f"up to {size} constraint rows would have to be carried at a time" if size > LARGEST_FRONT else ""


def ordered(s: Structure, found: tuple[Site, ...]) -> Plan:
    """The plan of a mechanism of any size; found: its constraints."""
    parents = [link.parent for link in s.links]
    closing: dict[int, list[int]] = {}
    for c, x in enumerate(found):
        ends = [parents[i] if x.on_joints else i for i in x.links]
        closing.setdefault(functools.reduce(functools.partial(common, parents), ends), []).append(c)
    met = [{c for c, x in enumerate(found) if i in x.links and (x.on_joints or not _closes(closing, i, c))}
           for i in range(len(parents))]  # fmt: skip
    handed: dict[int, list[frozenset[int]]] = {}  # per link, the pending constraints in the fronts from its children
    steps: list[tuple[str, int, frozenset[int], int]] = []  # kind, link or constraint, pending, remaining link
    for i in (*reversed(range(len(parents))), -1):
        fronts = handed.pop(i, [])
        waiting = closing.get(i, [])
        while waiting:
            touched = {c: frozenset[int]().union(*(f for f in fronts if c in f)) - {c} for c in waiting}
            c = min(waiting, key=lambda c: (len(touched[c]), c))
            fronts = [f for f in fronts if c not in f] + [touched[c]]
            steps.append(("rows", c, touched[c], i))
            waiting = [x for x in waiting if x != c]
        if i >= 0:
            pending = frozenset(met[i]).union(*fronts)
            steps.append(("joint", i, pending, parents[i]))
            handed.setdefault(parents[i], []).append(pending)
    return _plan(s, found, steps)


def _closes(closing: dict[int, list[int]], link: int, c: int) -> bool:
    return c in closing.get(link, [])


def common(parents: list[int], i: int, j: int) -> int:
    """The last common ancestor of two links, which may be one of them, or the world, -1."""
    while i != j:
        i, j = (parents[i], j) if i > j else (i, parents[j])
    return i


def _plan(s: Structure, found: tuple[Site, ...], steps: list[tuple[str, int, frozenset[int], int]]) -> Plan:
    n = len(steps)
    number = {(kind, k): n - 1 - at for at, (kind, k, _, _) in enumerate(steps)}  # parents before children
    fronts: dict[int, list[int]] = {}  # per node, the constraints of its front, its own first
    for kind, k, pending, _ in steps:
        order = sorted(pending, key=lambda c: -number["rows", c])
        fronts[number[kind, k]] = [*([k] if kind == "rows" else []), *order]
    above, of_node = [-1] * n, [-1] * n
    kinds: dict[int, Elimination] = {}
    signs: dict[int, tuple[Elimination, int]] = {}
    ends: dict[int, tuple[int, ...]] = {}
    for kind, k, _, left in steps:
        node = number[kind, k]
        own = found[k].rows if kind == "rows" else 0
        order = [c for c in fronts[node] if kind == "joint" or c != k]
        next_ = [number["rows", c] for c in order] + ([number["joint", left]] if left >= 0 else [])
        parent = max(next_, default=-1)
        places = _places(found, fronts[parent]) if parent >= 0 else {}
        onto = tuple(places[c] + r for c in order for r in range(found[c].rows))
        here, attached, of = _places(found, fronts[node]), [], []
        link = k if kind == "joint" else left
        for c in [k] if kind == "rows" else order:
            for end, i in enumerate(found[c].links):
                if i == link >= 0 and (kind == "joint" or not found[c].on_joints):
                    attached.append((here[c], end, found[c].rows, found[c].on_joints))
                    of.append(c)
        joint = s.links[k].joint if kind == "joint" else None
        size = sum(found[c].rows for c in order)
        width = sum(found[c].rows for c in fronts[parent]) if parent >= 0 else 0
        step = Elimination(joint, own, size, left >= 0, onto, width, tuple(attached))
        alike = joint is None or (joint.formulas and not joint.rheonomic)
        above[node], kinds[node], signs[node] = parent, step, (step, -1 if alike else node)
        of_node[node], ends[node] = k, tuple(of)
    nodes = range(n)
    strands = strands_of(above, [kinds[k] for k in nodes], [signs[k] for k in nodes])
    size = max((k.own + k.pending for k in kinds.values()), default=0)
    return Plan(strands, tuple(of_node), tuple(ends[k] for k in nodes), found, size)


def _places(found: tuple[Site, ...], front: list[int]) -> dict[int, int]:
    """The first row of each constraint in a front: {constraint: row}."""
    out, start = {}, 0
    for c in front:
        out[c] = start
        start += found[c].rows
    return out
