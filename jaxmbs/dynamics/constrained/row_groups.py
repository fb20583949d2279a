"""The constraints of a large mechanism at one state, as one set of arrays per kind; no Jacobian is written out."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.constrained.couplings import followed
from jaxmbs.dynamics.constrained.order import Plan, constraints_of
from jaxmbs.dynamics.state import State
from jaxmbs.dynamics.state.forest import Forest, Strand, rows_of
from jaxmbs.dynamics.state.frames import Frame, frame_on, relative
from jaxmbs.dynamics.state.kinematics import LinkMotion, world_placements
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model.constraints import Coupling
from jaxmbs.model.structure import Structure
from jaxmbs.spatial import IDENTITY, ZERO_FORCE, ZERO_MOTION, Force, Motion, Transform, kernel
from jaxmbs.spatial.components import components
from jaxmbs.spatial.known import ONE, ZERO
from jaxmbs.spatial.scalar import Scalar, total, where

Ends = tuple[tuple[Any, ...], ...]  # per end and row: a Force on the link, or the coefficient of the joint's rate


class Group(NamedTuple):
    """What constraints with the same formulas have in common. grounded: whether each end is on the world.

    Of cut joints: `joint`, and in `kept` the indices of their rows. Of other constraints: `element`, with the names of
    bodies and joints left blank, and in `kept` the number of components of each parameter.
    """

    joint: Any
    kept: tuple[int, ...]
    element: Any
    grounded: tuple[bool, ...]


@components
class Rows:
    """The rows of one group. ends: J as `Ends`, a wrench or coefficient per end and row; drift: acceleration along the
    row at dv/dt = 0; rate: velocity along the row; residual: 0 for a nonholonomic row."""

    ends: Ends
    drift: tuple[Scalar, ...]
    rate: tuple[Scalar, ...]
    residual: tuple[Scalar, ...]


class RowGroups:
    """All rows: J a + drift = 0; rate = J v and residual, which are zero where the constraints hold.

    These are arrays over the rows, in the order of the multipliers. plan: that of their elimination; forest: the
    groups; ends: `Rows.ends` per group; holonomic (m,): bool per row.
    """

    def __init__(self, plan: Plan, forest: Forest, found: Sequence[Rows], holonomic: np.ndarray):
        self.plan, self.forest, self.holonomic = plan, forest, holonomic
        self.ends = [r.ends for r in found]
        self._found = found

    @functools.cached_property
    def drift(self) -> jax.Array:
        return self._flat([r.drift for r in self._found])

    @functools.cached_property
    def rate(self) -> jax.Array:
        return self._flat([r.rate for r in self._found])

    @functools.cached_property
    def residual(self) -> jax.Array:
        return self._flat([r.residual for r in self._found])

    def _flat(self, parts: Sequence[tuple[Scalar, ...]]) -> jax.Array:
        return flat_rows(self.forest, parts)

    def stabilised(self, w: Any) -> jax.Array:
        """The drift with Baumgarte's terms, as in `multipliers`."""
        pull = jnp.where(self.holonomic, 2 * w * self.rate + w * w * self.residual, w * self.rate)
        return self.drift + pull

    def of_positions(self) -> RowGroups:
        """The rows with zeros in place of the nonholonomic ones, which do not restrict positions."""
        if self.holonomic.all():
            return self
        found = []
        for b, r in zip(self.forest.strands, self._found, strict=True):
            on = [bool(self.holonomic[row]) for row in _first_rows(self.forest, b)]

            def kept(x: Any, on: Sequence[bool] = on) -> Any:
                return tuple(
                    jax.tree_util.tree_map(lambda y, k=k: y if k else 0, z) for z, k in zip(x, on, strict=True)
                )

            found.append(Rows(tuple(kept(e) for e in r.ends), kept(r.drift), kept(r.rate), kept(r.residual)))
        return RowGroups(self.plan, self.forest, found, self.holonomic)


def _first_rows(forest: Forest, b: Strand) -> range:
    start = starts_of(forest)[b.nodes[0]]
    return range(start, start + sizes_of(forest)[b.nodes[0]])


def sizes_of(forest: Forest) -> dict[int, int]:
    """{constraint: number of its rows}."""
    return {c: (len(b.kind.kept) if b.kind.joint is not None else b.kind.element.count)
            for b in forest.strands for c in b.nodes}  # fmt: skip


def starts_of(forest: Forest) -> dict[int, int]:
    """{constraint: index of its first row}."""
    sizes, out, start = sizes_of(forest), {}, 0
    for c in sorted(sizes):
        out[c] = start
        start += sizes[c]
    return out


def flat_rows(forest: Forest, parts: Sequence[Sequence[Scalar]]) -> jax.Array:
    """One array over all rows; parts: for every group, one scalar per row."""
    starts, pieces, places = starts_of(forest), [], []
    for b, part in zip(forest.strands, parts, strict=True):
        for r, x in enumerate(part):
            pieces.append(jnp.broadcast_to(jnp.asarray(x, forest.dtype), (b.length,)))
            places += [starts[c] + r for c in b.nodes]
    order = np.argsort(np.asarray(places))
    return rows_of(jnp.concatenate(pieces), order.tolist())


@functools.lru_cache(maxsize=256)
def groups_of(s: Structure) -> tuple[Strand, ...]:
    """The constraints in groups with the same formulas."""
    found: dict[Any, list[int]] = {}
    ends = constraints_of(s)
    for c, loop in enumerate(s.loops):
        grounded = tuple(i < 0 for i in ends[c].links)
        found.setdefault(Group(loop.joint, loop.kept, None, grounded), []).append(c)
    for c, x in enumerate(s.constraints, len(s.loops)):
        e: Any = x.element
        blank = {**{f: "" for f in e.bodies}, **{f: getattr(e, f) and "" for f in e.joints}}
        lengths = tuple(len(s.table[f"{x.name}.{n}"][0].pattern) for n in e.numbers)
        group = Group(None, lengths, dataclasses.replace(e, **blank), tuple(i < 0 for i in ends[c].links))
        found.setdefault(group, []).append(c)
    return tuple(Strand(tuple(nodes), (-1,) * len(nodes), group) for group, nodes in found.items())


def row_groups(state: State, plan: Plan) -> RowGroups:
    """The rows at a state; the rows of a constraint that the mode switches off are zero."""
    tree: Tree = state.tree
    s = tree.structure
    forest = Forest(groups_of(s), tree.dtype)
    seen = _seen(state)
    names = [x.name for x in (*s.loops, *s.constraints)]
    found, holonomic = [], np.zeros(sum(c.rows for c in plan.constraints), bool)
    for b in forest.strands:
        links = [
            [plan.constraints[c].links[end] for c in b.nodes] for end in range(len(plan.constraints[b.nodes[0]].links))
        ]
        rows, on = _evaluated(state, b, [names[c] for c in b.nodes], links, seen)
        if state.holds is not None:
            holds = state.holds[b.nodes[0]] if len(b.nodes) == 1 else state.holds[np.asarray(b.nodes)]
            rows = jax.tree_util.tree_map(lambda x, h=holds: where(h, x, 0.0), rows)
        found.append(forest.whole(b, rows))
        starts = starts_of(forest)
        for c in b.nodes:
            holonomic[starts[c] : starts[c] + len(on)] = on
    return RowGroups(plan, forest, found, holonomic)


class _Seen(NamedTuple):
    """Per block: placements of the links in the world, velocities, accelerations at dv/dt = 0."""

    W: list[Transform]
    V: list[Motion]
    A: list[Motion]


def _seen(state: State) -> _Seen:
    tree = state.tree

    def outward(joint: Any, A: Motion, m: LinkMotion) -> tuple[Motion, Motion]:
        A = m.X.motion_to_child(A) + m.c
        return A, A

    drifts = tree.outward(outward, state.motions, ZERO_MOTION)
    return _Seen(world_placements(tree, state.motions), [m.V for m in state.motions], drifts)


def _evaluated(
    state: State, b: Strand, names: list[str], links: list[list[int]], seen: _Seen
) -> tuple[Rows, list[bool]]:
    """(the rows of a group, which of them are holonomic)."""
    tree, group = state.tree, b.kind

    def numbers(fields: Any) -> dict[str, Any]:
        return {f: _stacked(tree, [f"{n}.{f}" for n in names]) for f in fields}

    if isinstance(group.element, Coupling):
        return _coupled(state, group.element, numbers(group.element.numbers), links), [True]
    if group.joint is not None:
        ends = [_pose(tree, [f"{n}.{pose}" for n in names]) for pose in ("pose_a", "pose_b")]
        p = numbers(group.joint.numbers)
    else:
        ends, p = [IDENTITY, IDENTITY], numbers(group.element.numbers)
    frames = []
    for i, pose in zip(links, ends, strict=True):
        if i[0] < 0:
            frames.append((Frame(pose, pose, ZERO_MOTION), ZERO_MOTION))
            continue
        in_link = tree.gather(tree.body_in_link.per_block, i) @ pose
        W, V, A = (tree.gather(x, i) for x in seen)
        frames.append(_framed(in_link, W, V, A))
    (a, A_a), (o, A_o) = frames
    X, V, drift = _relative(a, A_a, o, A_o)
    if group.joint is not None:
        rows = _cut_rows(group.joint, p, X, V, state.t)
        rows = tuple(rows[k] for k in group.kept)
    else:
        rows = _element_rows(group.element, p, X, V)
    made = [_row(row, X, V, drift, a.in_link, o.in_link) for row in rows]
    grounded = group.grounded
    ends_ = tuple(tuple(() if grounded[e] else r[e] for r in made) for e in range(2))
    out = Rows(ends_, tuple(r[2] for r in made), tuple(r[3] for r in made), tuple(r[4] for r in made))
    return out, [row.residual is not None for row in rows]


def _stacked(tree: Tree, names: list[str]) -> Any:
    return tree.values[names[0]] if len(names) == 1 else tree.values.stacked(names)


def _pose(tree: Tree, names: list[str]) -> Transform:
    return Transform(_stacked(tree, [f"{n}.rotation" for n in names]), _stacked(tree, [f"{n}.position" for n in names]))


def _coupled(state: State, e: Coupling, p: Any, links: list[list[int]]) -> Rows:
    s = state.tree.structure
    own, *driver = (
        [_entries(x, [part[i].start for i in links[end]]) for x, part in ((state.q, s.q_slices), (state.v, s.v_slices))]
        for end in range(len(links))
    )
    if not driver:
        return Rows(((ONE,),), (ZERO,), (own[1],), (own[0] - p["coefficients"][0],))
    ((q, v),) = driver
    residual, slope, drift = followed(e, p, own[0], q, v)
    return Rows(((ONE,), (slope,)), (drift,), (own[1] + slope * v,), (residual,))


def _entries(x: Any, places: list[int]) -> Any:
    return x[places[0]] if len(places) == 1 else rows_of(x, places)


@kernel
def _framed(in_link: Transform, W: Transform, V: Motion, A: Motion) -> tuple[Frame, Motion]:
    return frame_on(in_link, W, V), in_link.motion_to_child(A)


@kernel
def _relative(a: Frame, A_a: Motion, b: Frame, A_b: Motion) -> tuple[Transform, Motion, Motion]:
    """Placement, velocity and acceleration at dv/dt = 0 of b relative to a, in axes of b."""
    X, V, carried = relative(a, b)
    return X, V, A_b + X.motion_to_child(A_a) * -1 + V.cross(carried)


@kernel
def _cut_rows(joint: Any, numbers: Any, X: Transform, V: Motion, t: Scalar) -> Any:
    return joint.rows(numbers, X, V, t)


@kernel
def _element_rows(element: Any, numbers: Any, X: Transform, V: Motion) -> Any:
    return element.rows(numbers, X, V)


@kernel
def _row(row: Any, X: Transform, V: Motion, drift: Motion, a: Transform, b: Transform) -> tuple[Any, ...]:
    """(wrench on the link of a, on that of b, acceleration at dv/dt = 0, velocity, residual)."""
    on_a = a.force_to_parent(X.force_to_parent(-row.wrench))
    left = drift @ row.wrench + V @ row.turning + row.rate_change
    residual = ZERO if row.residual is None else row.residual
    return on_a, b.force_to_parent(row.wrench), left, V @ row.wrench + row.rate, residual


# J and its transpose


def rates_of(groups: Forest, ends: Sequence[Ends], plan: Plan, tree: Tree, A: Sequence[Motion], a: Any) -> jax.Array:
    """J a, from a and A, the accelerations of the links that follow from a."""
    s, parts = tree.structure, []
    for b, own in zip(groups.strands, ends, strict=True):
        rows: list[Scalar] = [ZERO] * len(own[0])
        for end, forces in enumerate(own):
            links = [plan.constraints[c].links[end] for c in b.nodes]
            if plan.constraints[b.nodes[0]].on_rates:
                rate = _entries(a, [s.v_slices[i].start for i in links])
                rows = [x + f * rate for x, f in zip(rows, forces, strict=True)]
            elif links[0] >= 0:
                rows = list(_sums(tuple(rows), forces, tree.gather(A, links)))
        parts.append(tuple(rows))
    return flat_rows(groups, parts)


@kernel
def _sums(rows: tuple[Scalar, ...], forces: tuple[Force, ...], A: Motion) -> tuple[Scalar, ...]:
    return tuple(x + A @ f for x, f in zip(rows, forces, strict=True))


def forces_of(
    groups: Forest, ends: Sequence[Ends], plan: Plan, tree: Tree, multipliers: jax.Array
) -> tuple[list[Force], jax.Array]:
    """Jᵀ multipliers: (per block, the wrenches on its links; generalized forces (nv,) of constraints on rates)."""
    s, starts = tree.structure, starts_of(groups)
    along = jnp.zeros(s.nv, tree.dtype)
    wrenches = [jnp.zeros((6, b.length), tree.dtype) for b in tree.blocks]
    touched = [False] * len(tree.blocks)
    for b, own in zip(groups.strands, ends, strict=True):
        count = len(own[0])
        x = tuple(_entries(multipliers, [starts[c] + r for c in b.nodes]) for r in range(count))
        for end, forces in enumerate(own):
            links = [plan.constraints[c].links[end] for c in b.nodes]
            if plan.constraints[b.nodes[0]].on_rates:
                places = np.asarray([s.v_slices[i].start for i in links])
                given = total(*(f * m for f, m in zip(forces, x, strict=True)))
                along = along.at[places].add(jnp.broadcast_to(given, places.shape))
                continue
            if links[0] < 0 or not forces:
                continue
            F = _acting(forces, x).scalars()
            table = jnp.stack([jnp.broadcast_to(jnp.asarray(f, tree.dtype), (len(links),)) for f in F])
            for k, rows in _by_block(tree, links).items():
                places = np.asarray([tree.at[links[r]][1] for r in rows])
                touched[k] = True
                wrenches[k] = wrenches[k].at[:, places].add(table[:, np.asarray(rows)])
    out = []
    for b, W, on in zip(tree.blocks, wrenches, touched, strict=True):
        scalars: Any = [ZERO] * 6 if not on else [w if b.rolled else w[0] for w in W]
        out.append(jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(ZERO_FORCE), scalars))
    return out, along


def _by_block(tree: Tree, links: list[int]) -> dict[int, list[int]]:
    out: dict[int, list[int]] = {}
    for r, i in enumerate(links):
        out.setdefault(tree.at[i][0], []).append(r)
    return out


@kernel
def _acting(forces: tuple[Force, ...], x: tuple[Scalar, ...]) -> Force:
    out = forces[0] * x[0]
    for f, m in zip(forces[1:], x[1:], strict=True):
        out = out + f * m
    return out
