"""Constraints that depend on one another, found in plain floats when a mechanism is built."""

from __future__ import annotations

import dataclasses
import itertools
import random
import warnings
from collections.abc import Iterator

import numpy as np

from jaxmbs.model.constraints import FunctionConstraint
from jaxmbs.model.errors import ModelWarning
from jaxmbs.model.float_rows import Coordinates, consistent, moved, near_neutral, owners, rows_at
from jaxmbs.model.model import Model
from jaxmbs.model.structure import Structure


def without_dependent_rows(model: Model) -> Model:
    """The model without those rows of each cut joint that depend on other rows of the same cut joint in every
    configuration and for all numbers.

    Examples are the out-of-plane rows of a revolute joint in a planar loop: the pattern of zeros alone makes them dependent.
    Each loop is examined by itself, because any other may be opened while it holds; locked joints can only add dependences.
    Rows that depend on rows of other loops, or only for particular numbers, stay and are handled during a run.
    """
    s = model.structure
    if not s.loops or not _numeric(s):
        return model
    dice = random.Random(1)
    samples = []
    for _ in range(3):
        factors = np.array([1 + dice.uniform(-0.3, 0.3) for _ in model.numbers])
        varied = dataclasses.replace(model, numbers=model.numbers * factors)
        samples.append(rows_at(varied, near_neutral(s, dice, 1.0))[1])
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


def warn_of_redundancy(model: Model) -> bool:
    """Warn, with names, of constraints that depend on others at consistent configurations, and of a mechanism that cannot
    move.

    Returns whether constraints that can hold together, with joints locked as a run may lock them, depend on one another
    wherever they are satisfied, even if not at nearby configurations, or may do so: function constraints alongside others.
    Does not warn if no consistent configuration is found near the neutral one, or if only single configurations are
    singular (a parallelogram lying flat).
    """
    s = model.structure
    functions = any(isinstance(c.element, FunctionConstraint) for c in s.constraints)
    # function constraints can only be evaluated with a backend; they may repeat other constraints
    unknown = functions and len(s.loops) + len(s.constraints) > 1
    if not owners(s) or not _numeric(s):
        return unknown
    dice = random.Random(2)
    hinges = np.array([held for link in s.links for held in link.locked], bool)  # freedoms locked until a release
    found: list[tuple[Coordinates, np.ndarray]] = []
    for _ in range(2):
        q = consistent(model, near_neutral(s, dice, 0.1))
        if q is None:
            return unknown
        found.append((q, rows_at(model, q)[1]))
    null = [_dependences(np.where(hinges, 0.0, J)) for _, J in found]
    freedom = min(s.nv - int(hinges.sum()) - _rank(np.where(hinges, 0.0, J)) for _, J in found)
    redundant = min(z.shape[1] for z in null) > 0
    if redundant:
        _warn_of(s, min(null, key=lambda z: z.shape[1]))
    if not freedom and not _may_open(s) and not functions:
        warnings.warn(f"mechanism {s.name!r} cannot move: its constraints leave no freedom", ModelWarning, stacklevel=3)
    return unknown or redundant or _redundant_when_locked(model, *found[0], dice)


def _warn_of(s: Structure, z: np.ndarray) -> None:
    owner = owners(s)
    names = {name for name, row in zip(owner, z, strict=True) if np.abs(row).max() > 1e-6}
    warnings.warn(
        f"mechanism {s.name!r}: {z.shape[1]} of {len(owner)} constraint rows depend on the others while all hold, among "
        f"{_joints_of(s, names)}; the motion is unique, whichever of them hold, but not the reactions (the multipliers are "
        "those of least norm); a joint with more freedom, or one constraint less, removes the redundancy",
        ModelWarning,
        stacklevel=4,
    )


def _redundant_when_locked(model: Model, q: Coordinates, J: np.ndarray, dice: random.Random) -> bool:
    """Whether, for some joints that a run may lock, rows depend on one another where the constraints are satisfied but are
    independent at a nearby configuration, such as one after a stage of an integrator."""
    s = model.structure
    step = np.array([dice.uniform(-0.01, 0.01) for _ in range(s.nv)])
    beside = rows_at(model, moved(model, q, step, model.values()))[1]
    return any(_rank(np.where(locked, 0.0, J)) < _rank(np.where(locked, 0.0, beside)) for locked in _locks(s))


_FEW = 6  # up to so many joints, all combinations are tried


def _locks(s: Structure) -> Iterator[np.ndarray]:
    """Masks (nv,) of freedoms that a run may lock together: by events, at the start, in releasable joints."""
    joints: list[np.ndarray] = []
    names = [*s.held, *(getattr(a, "joint", "") for e in s.events for a in e.then if a.locks)]
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
    return any(a.switches is not None or a.releases for e in s.events for a in e.then) or bool(s.off or s.held)


def _numeric(s: Structure) -> bool:
    return all(x.joint.formulas for x in (*s.links, *s.loops))


_NOTHING = 1e-12  # what rounding leaves in a row that is zero


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
    tree = set[str]()
    for loop in s.loops:
        if loop.name in names:
            a, b = (set(_path(s, body)) for body in (loop.body_a, loop.body_b))
            tree |= a ^ b
    every = [link.name for link in s.links if link.name in tree]
    return every + [x.name for x in (*s.loops, *s.constraints) if x.name in names]


def _path(s: Structure, body: str) -> list[str]:
    out, i = [], s.body_index[body]
    while i >= 0:
        out.append(s.links[i].name)
        i = s.links[i].parent
    return out


class _Independent:
    """An orthonormal basis of rows, to which rows are added one after another."""

    def __init__(self, n: int):
        self.basis, self.count, self.largest = np.zeros((n, n)), 0, 1.0

    def rest(self, row: np.ndarray) -> np.ndarray | None:
        """The part of a row that the basis does not span; None if there is none."""
        self.largest = max(self.largest, float(np.abs(row).max(initial=0.0)))
        Q = self.basis[: self.count]
        for _ in range(2):  # twice, to remove what rounding leaves
            row = row - Q.T @ (Q @ row)
        return row if float(np.linalg.norm(row)) > 1e-9 * self.largest else None

    def take(self, rest: np.ndarray | None) -> None:
        if rest is not None:
            self.basis[self.count] = rest / np.linalg.norm(rest)
            self.count += 1
