"""Solves A a - Jᵀ lambda = force, J a = target by eliminating joints and multipliers in turn, in bounded fronts.

The link that carries a subtree acts on it with the force f. The pending rows, which are not yet eliminated, give one
equation each for their multipliers lambda:

    f = I A + p - K lambda,    0 = Kᵀ A + L lambda + l,

with A the acceleration of that link: these are the articulated bodies of [Y 3.174-3.177] with loads that are not yet
known. Joints are eliminated as there. The rows of a constraint are eliminated by their pivots in L, which are positive
once all joints between its ends have been eliminated, and which are raised as in `saddle`. All formulas are in
components; `Forest` applies them in loops and to arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.constrained import front_steps as steps
from jaxmbs.dynamics.constrained.front_steps import Front, Load, Pivot, Row, empty
from jaxmbs.dynamics.constrained.order import Elimination, Plan
from jaxmbs.dynamics.constrained.rows import entries
from jaxmbs.dynamics.constrained.saddle import raised, smallest
from jaxmbs.dynamics.state.forest import Forest, rows_of
from jaxmbs.dynamics.state.kinematics import LinkMotion
from jaxmbs.dynamics.state.tree import Link, Tree
from jaxmbs.spatial import ZERO_FORCE, ZERO_MOTION, Motion, Transform
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar

_DEPENDENT = 4096.0  # multiples of rounding below which the remainder of a row counts as zero; more than with pivoting


class Factors(NamedTuple):
    """Factors, one item per strand of the plan. rows: the eliminated scalars. In steps of joints, S, X: the motions of
    the joint and the placement of its link. In steps of constraints, pivots: those of the constraint rows."""

    rows: list[tuple[Row, ...]]
    S: list[tuple[Motion, ...]]
    X: list[Transform | None]
    pivots: list[tuple[Pivot, ...]]


def factorized(
    tree: Tree, plan: Plan, motions: Sequence[LinkMotion], links: Sequence[Link], groups: Forest, ends: Any, lock: Any,
    redundant: bool, alike: float | None = None,
) -> Factors:  # fmt: skip
    """The factors of the matrix. groups, ends: the constraints and their J, as in `RowGroups`; lock (nv,): which
    degrees of freedom do not move, or None; redundant: see `saddle.raised`; alike: the fraction of 1 / (mean mass) by
    which all pivots of constraint rows are raised; None to raise each in proportion to its size."""
    forest, slices = Forest(plan.strands, tree.dtype), tree.structure.v_slices
    eps = float(jnp.finfo(tree.dtype).eps)
    same = None if alike is None else alike / _mean_mass(tree, links)
    S: list[tuple[Motion, ...]] = []
    X: list[Transform | None] = []
    data = []
    for b in plan.strands:
        of = [plan.of_node[i] for i in b.nodes]
        attached = []
        for k, (_, end, _, _) in enumerate(b.kind.attached):
            attached.append(groups.gather([_end(e, end) for e in ends], [plan.ends[i][k] for i in b.nodes]))
        if b.kind.joint is None:
            S.append(())
            X.append(None)
            data.append((attached,))
            continue
        m, link = tree.gather(motions, of), tree.gather(links, of)
        held = () if lock is None else _entries(lock, slices, of)
        S.append(m.S)
        X.append(m.X)
        data.append((attached, link, m.S, m.X, held))

    def raises(sizes: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
        return steps.raises(sizes, raised(eps, redundant), smallest(eps)) if same is None else (same,) * len(sizes)

    def step(kind: Elimination, carried: tuple[Front], d: Any) -> tuple[tuple[Front], Any]:
        if kind.joint is None:
            return steps.without_rows(kind, carried[0], d[0], raises)
        return steps.without_joint(kind, carried[0], *d)

    found, _ = forest.inward(step, data, lambda kind: (empty(kind.own + kind.pending),))
    return Factors([rows for rows, _ in found], S, X, [pivots for _, pivots in found])


def _mean_mass(tree: Tree, links: Sequence[Link]) -> Scalar:
    masses = [
        jnp.sum(jnp.broadcast_to(jnp.asarray(x.inertia.mass, tree.dtype), (b.length,)))
        for b, x in zip(tree.blocks, links, strict=True)
    ]
    return sum(masses) / len(tree.structure.links)


def _end(ends: Any, end: int) -> Any:
    return ends[end] if end < len(ends) else ends[0]


def solve(tree: Tree, plan: Plan, factors: Factors, force: Any, target: Any) -> tuple[Any, Any, list[Motion]]:
    """(a (nv,), lambda (m,), accelerations of the links per block of the tree)."""
    forest, slices = Forest(plan.strands, tree.dtype), tree.structure.v_slices
    starts = list(np.cumsum([0] + [c.rows for c in plan.constraints]))
    data = []
    for b, rows, S, X in zip(plan.strands, factors.rows, factors.S, factors.X, strict=True):
        of = [plan.of_node[i] for i in b.nodes]
        if b.kind.joint is None:
            given = tuple(entries(target, [int(starts[c]) + r for c in of]) for r in range(b.kind.own))
        else:
            given = _entries(force, slices, of)
        data.append((rows, S, X, given))

    def inward(kind: Elimination, carried: tuple[Any], d: Any) -> tuple[tuple[Load], Any]:
        return steps.loaded(kind, carried[0], *d)

    loads, _ = forest.inward(inward, data, lambda kind: (Load(ZERO_FORCE, (ZERO,) * (kind.own + kind.pending)),))

    def outward(kind: Elimination, state: Any, d: Any) -> tuple[Any, Any]:
        (rows, S, X, _), own = d
        A, x = state
        x = tuple(x[k] for k in kind.onto)
        A = A if kind.hangs else ZERO_MOTION
        if kind.joint is None:
            found = steps.multipliers(rows, own, A, x)
            return (A, (*found, *x)), found
        A, rates = steps.rates(rows, S, X, own, A, x)
        return (A, x), (A, rates)

    results = forest.outward(outward, list(zip(data, loads, strict=True)), (ZERO_MOTION, ()))
    motions, a, multipliers = [], [], []
    places_a, places_l = [], []
    by_link: list[Any] = []
    for b, found in zip(plan.strands, results, strict=True):
        of = [plan.of_node[i] for i in b.nodes]
        if b.kind.joint is None:
            by_link.append((ZERO_MOTION, ()))
            for r, x in enumerate(found):
                multipliers.append(jnp.broadcast_to(jnp.asarray(x, tree.dtype), (b.length,)))
                places_l += [int(starts[c]) + r for c in of]
            continue
        by_link.append(found)
        for k, x in enumerate(found[1]):
            a.append(jnp.broadcast_to(jnp.asarray(x, tree.dtype), (b.length,)))
            places_a += [slices[i].start + k for i in of]
    node_of = {k: i for i, k in enumerate(plan.of_node) if _is_link(plan, forest, i)}
    motions = [forest.gather([x[0] for x in by_link], [node_of[i] for i in b.nodes]) for b in tree.blocks]
    return _in_order(a, places_a, tree.dtype), _in_order(multipliers, places_l, tree.dtype), motions


def _is_link(plan: Plan, forest: Forest, node: int) -> bool:
    return plan.strands[forest.at[node][0]].kind.joint is not None


def conditioning(factors: Factors, eps: float, redundant: bool) -> tuple[Any, Any]:
    """As `Metric.conditioning`, from the pivots in the order of elimination."""
    nothing = _DEPENDENT * max(eps, raised(eps, redundant) / 64)  # raising earlier pivots leaves a remainder
    largest: Any = 0.0
    for strand in factors.pivots:
        for pivot in strand:
            largest = jnp.maximum(largest, jnp.max(jnp.asarray(pivot.size)))
    largest = jnp.where(largest > 0, largest, 1.0)
    own: Any = 1.0
    whole: Any = 1.0
    for strand in factors.pivots:
        for pivot in strand:
            counts = (pivot.left > nothing) & (pivot.size > smallest(eps) * largest)
            own = jnp.minimum(own, jnp.min(jnp.where(counts, pivot.left, 1.0)))
            whole = jnp.minimum(whole, jnp.min(jnp.where(counts, pivot.left * pivot.size / largest, 1.0)))
    return whole, own


def _in_order(parts: list[Any], places: list[int], dtype: Any) -> Any:
    if not parts:
        return jnp.zeros(0, dtype)
    return rows_of(jnp.concatenate(parts), np.argsort(np.asarray(places)).tolist())


def _entries(x: Any, slices: Any, of: list[int]) -> tuple[Any, ...]:
    size = slices[of[0]].stop - slices[of[0]].start
    return tuple(entries(x, [slices[i].start + k for i in of]) for k in range(size))
