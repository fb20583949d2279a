"""Constraints that depend on one another, found in plain floats when a mechanism is built."""

from __future__ import annotations

import dataclasses
import itertools
import random
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmbs.building.float_rows import Coordinates, consistent, moved, near_neutral, owners, rows_at
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model.constraints import FunctionConstraint
from jaxmbs.model.errors import ModelWarning
from jaxmbs.model.field_rules import Kind
from jaxmbs.model.parameters import Parameter, is_traced
from jaxmbs.model.structure import Structure

if TYPE_CHECKING:
    from jaxmbs.model.model import Model


def without_dependent_rows(model: Model) -> Model:
    """The model without those rows of each cut joint that depend on other rows of the same cut joint in every
    configuration and for all numbers.

    Examples are the out-of-plane rows of a revolute joint in a planar loop: the pattern of zeros alone makes them dependent.
    Each loop is examined by itself, because any other may be opened while it holds; locked joints can only add dependences.
    Rows that depend on rows of other loops, or only for particular numbers, stay and are handled during a run.
    """
    model = dataclasses.replace(model, structure=model.structure.with_all_rows)
    s = model.structure
    if not s.loops or not _numeric(s):
        return model
    dice = random.Random(1)
    samples = []
    for _ in range(3):
        other, t = _with_other_numbers(model, dice), dice.uniform(0.0, 1.0)
        samples.append(rows_at(Tree(other), near_neutral(s, dice, 1.0), t)[1])
    loops, first = [], 0
    for loop in s.loops:
        chosen, kept = [_Independent(s.nv) for _ in samples], []
        for row in loop.kept:
            rests = [c.rest(J[first + row]) for c, J in zip(chosen, samples, strict=True)]
            if any(rest is not None for rest in rests):
                kept.append(row)
                for c, rest in zip(chosen, rests, strict=True):
                    c.take(rest)
        first += len(loop.kept)
        loops.append(dataclasses.replace(loop, kept=tuple(kept)))
    if tuple(loops) == s.loops:
        return model
    return dataclasses.replace(model, structure=dataclasses.replace(s, loops=tuple(loops)))


def with_rows_for(model: Model, before: Model) -> Model:
    """The model with the rows of its cut joints chosen again, if numbers of joints are no longer pinned to 0 or ±1 as in
    `before`. If these numbers are traced, or a tree joint is rheonomic, all rows are chosen."""
    s, old = model.structure, before.structure
    moving = {x.name for x in (*s.links, *s.loops)}
    given = {n for n, x in model.overrides.items() if x is not before.overrides.get(n) and s.table[n][0].pinned}
    given |= {p.name for p, q in zip(s.parameters, old.parameters, strict=True) if p.pattern != q.pattern}
    if s.with_all_rows is s or not any(name.partition(".")[0] in moving for name in given):
        return model
    unknown = is_traced(model.numbers) or any(is_traced(model.overrides.get(name)) for name in given)
    if unknown or any(x.joint.rheonomic for x in s.links):
        model = dataclasses.replace(model, structure=s.with_all_rows)
    else:
        model = without_dependent_rows(model)
    more = model.structure.loops != s.loops  # rows were added, which may depend on one another
    return dataclasses.replace(model, structure=dataclasses.replace(model.structure, redundant=s.redundant or more))


def _with_other_numbers(model: Model, dice: random.Random) -> Model:
    """The model with random changes of all numbers of joints and constraints that are not pinned, including those of its
    overrides."""
    numbers: list[float] = []
    known, parameters = np.asarray(model.numbers, float).tolist(), []
    s = model.structure
    moving = {x.name for x in (*s.links, *s.loops, *s.constraints)}
    for p, offset in model.structure.table.values():
        pattern, own = _pattern(p, model.overrides), iter(known[offset : offset + p.free_count])
        values = [next(own) if pinned is None else pinned for pinned in p.pattern]
        free = [x for x, pinned in zip(values, pattern, strict=True) if pinned is None]
        if p.name.partition(".")[0] in moving:
            free = [x * (1 + dice.uniform(-0.3, 0.3)) if x else dice.uniform(-0.3, 0.3) for x in free]
        numbers += free
        parameters.append(dataclasses.replace(p, pattern=pattern))
    structure = dataclasses.replace(model.structure, parameters=tuple(parameters))
    return dataclasses.replace(model, numbers=np.array(numbers, float), overrides={}, structure=structure)


def _pattern(p: Parameter, overrides: Mapping[str, Any]) -> tuple[float | None, ...]:
    """The pinned values of the components of a parameter that are structural in every instance, None for the others."""
    if p.name not in overrides:
        return p.pattern
    x = overrides[p.name]
    shape = np.shape(x)
    if is_traced(x) or p.kind is Kind.INERTIA or shape[len(shape) - len(p.shape) :] != p.shape:  # as a quaternion
        return (None,) * len(p.pattern)
    columns = np.asarray(x, float).reshape(-1, len(p.pattern)).T
    return tuple(k if k is not None and (c == k).all() else None for k, c in zip(p.pattern, columns, strict=True))


def warn_of_redundancy(model: Model) -> bool:
    """Warn about constraints that depend on others at consistent configurations, and about mechanisms that cannot move.

    Returns True in three cases: rows depend on others at consistent configurations; they do so while joints are locked
    that a run may lock, although they are independent at nearby configurations that are not consistent; or this is
    unknown, because there are function constraints besides other constraints. Does not warn if no consistent
    configuration is found near the neutral one, or if only single configurations are singular (a parallelogram lying
    flat).
    """
    s = model.structure
    functions = any(isinstance(c.element, FunctionConstraint) for c in s.constraints)
    # function constraints can only be evaluated with a backend; they may repeat other constraints
    unknown = functions and len(s.loops) + len(s.constraints) > 1
    if not owners(s) or not _numeric(s):
        return unknown
    dice, tree = random.Random(2), Tree(model)
    hinges = np.array([held for link in s.links for held in link.locked], bool)  # locked until a release
    found: list[tuple[Coordinates, np.ndarray]] = []
    for _ in range(2):
        q = consistent(tree, near_neutral(s, dice, 0.1))
        if q is None:
            return unknown
        found.append((q, rows_at(tree, q)[1]))
    _warn_of_gaps(model, found[0][0])
    null = [_dependences(np.where(hinges, 0.0, J)) for _, J in found]
    freedom = min(s.nv - int(hinges.sum()) - _rank(np.where(hinges, 0.0, J)) for _, J in found)
    redundant = min(z.shape[1] for z in null) > 0
    if redundant:
        _warn_of(s, min(null, key=lambda z: z.shape[1]))
    if not freedom and not _may_open(s) and not functions:
        warnings.warn(
            f"mechanism {s.name!r} cannot move: its constraints leave no degree of freedom", ModelWarning, stacklevel=3
        )
    return unknown or redundant or _redundant_when_locked(tree, *found[0], dice)


def _warn_of_gaps(model: Model, q: Coordinates) -> None:
    """Warn about loops that stay open in directions in which no joint moves them."""
    whole = dataclasses.replace(model, structure=model.structure.with_all_rows)
    residual, *_ = rows_at(Tree(whole), q)
    open_rows = zip(owners(whole.structure), residual, strict=True)
    gaps = {name: abs(gap) for name, gap in open_rows if abs(gap) > _OPEN}
    if gaps:
        warnings.warn(
            f"mechanism {whole.name!r}: {', '.join(map(repr, gaps))} cannot close: a gap of {max(gaps.values()):.3g} "
            "m or rad remains in a direction in which no joint can move; correct the poses",
            ModelWarning,
            stacklevel=4,
        )


def _warn_of(s: Structure, z: np.ndarray) -> None:
    owner = owners(s)
    names = {name for name, row in zip(owner, z, strict=True) if np.abs(row).max() > 1e-6}
    warnings.warn(
        f"mechanism {s.name!r}: {z.shape[1]} of {len(owner)} constraint rows depend on the others while all are on, among "
        f"{_joints_of(s, names)}; the motion is unique, whichever of them are on, but the reactions are not (the "
        "multipliers of least norm are given); to remove the redundancy, use a joint with more degrees of freedom, "
        "or one constraint fewer",
        ModelWarning,
        stacklevel=4,
    )


def _redundant_when_locked(tree: Tree, q: Coordinates, J: np.ndarray, dice: random.Random) -> bool:
    """Whether, for some joints that a run may lock, rows depend on one another where the constraints are satisfied but are
    independent at a nearby configuration, such as one after a stage of an integrator."""
    s = tree.structure
    step = np.array([dice.uniform(-0.01, 0.01) for _ in range(s.nv)])
    beside = rows_at(tree, moved(tree, q, step))[1]
    return any(_rank(np.where(locked, 0.0, J)) < _rank(np.where(locked, 0.0, beside)) for locked in _locks(s))


_FEW = 6  # if at most this many joints may be locked, all combinations are tried


def _locks(s: Structure) -> Iterator[np.ndarray]:
    """Masks (nv,) of degrees of freedom that a run may lock together: by events, at the start, in releasable joints."""
    joints: list[np.ndarray] = []
    names = [*s.held, *(getattr(a, "joint", "") for e in s.events for a in e.then if a.lock())]
    for i, link in enumerate(s.links):
        held = np.zeros(s.nv, bool)
        if link.name in names or any(link.locked):
            held[s.v_slices[i]] = True if link.name in names else link.locked
            joints.append(held)
    sizes = range(1, len(joints) + 1) if len(joints) <= _FEW else (1, len(joints))
    for size in sizes:
        for chosen in itertools.combinations(joints, size):
            yield np.logical_or.reduce(chosen)


def _may_open(s: Structure) -> bool:
    """Whether some constraint may be off, or some joint held, during only a part of a run."""
    return any(a.switch() is not None or a.lock() is False for e in s.events for a in e.then) or bool(s.off or s.held)


def _numeric(s: Structure) -> bool:
    return all(x.joint.formulas for x in (*s.links, *s.loops))


_OPEN = 1e-6  # [m or rad] gap between the ends of a loop that the rounded digits of a file may leave
_NOTHING = 1e-12  # rounding error of a row that is zero


def _rank(J: np.ndarray) -> int:
    sizes = np.linalg.svd(J, compute_uv=False)
    return int(np.sum(sizes > max(1e-7 * sizes[0], _NOTHING))) if len(sizes) else 0


def _dependences(J: np.ndarray) -> np.ndarray:
    """Combinations of rows that vanish, as columns. Rows that are zero by themselves constrain nothing and do not count."""
    some = np.abs(J).max(axis=1, initial=0.0) > _NOTHING
    rank = _rank(J[some])
    out = np.zeros((len(J), int(some.sum()) - rank))
    out[some] = np.linalg.svd(J[some])[0][:, rank:]
    return out


def _joints_of(s: Structure, names: set[str]) -> list[str]:
    """The tree joints in the loops that these constraints close, then the constraints."""
    tree = set[int]()
    for loop in s.loops:
        if loop.name in names:
            a, b = (set(s.inward(s.body_index[body])) for body in (loop.body_a, loop.body_b))
            tree |= a ^ b
    every = [link.name for i, link in enumerate(s.links) if i in tree]
    return every + [x.name for x in (*s.loops, *s.constraints) if x.name in names]


class _Independent:
    """An orthonormal basis of rows, to which rows are added one after another."""

    def __init__(self, n: int):
        self.basis, self.count, self.largest = np.zeros((n, n)), 0, 1.0

    def rest(self, row: np.ndarray) -> np.ndarray | None:
        """The part of a row that the basis does not span; None if the basis spans the row."""
        self.largest = max(self.largest, float(np.abs(row).max(initial=0.0)))
        Q = self.basis[: self.count]
        for _ in range(2):  # twice, to remove the rounding error of the first pass
            row = row - Q.T @ (Q @ row)
        return row if float(np.linalg.norm(row)) > 1e-9 * self.largest else None

    def take(self, rest: np.ndarray | None) -> None:
        if rest is not None:
            self.basis[self.count] = rest / np.linalg.norm(rest)
            self.count += 1
