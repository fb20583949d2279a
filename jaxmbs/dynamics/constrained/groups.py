"""Constraints in groups with the same formulas: their order, and the products of J and of its transpose with vectors."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.constrained.order import Plan
from jaxmbs.dynamics.constrained.rows import entries
from jaxmbs.dynamics.state.forest import Forest, Strand, rows_of
from jaxmbs.dynamics.state.tree import Tree
from jaxmbs.model.constraint_rows import sites
from jaxmbs.model.structure import Structure
from jaxmbs.spatial import ZERO_FORCE, Force, Motion, kernel
from jaxmbs.spatial.known import ZERO
from jaxmbs.spatial.scalar import Scalar, total

Ends = tuple[tuple[Any, ...], ...]  # `Rows.ends`


class Group(NamedTuple):
    """What constraints with the same formulas have in common: `Site.formulas` and `Site.kept`, the numbers of components
    of their parameters, and whether each end is on the world (none for an element between joints)."""

    formulas: Any
    kept: tuple[int, ...]
    lengths: tuple[int, ...]
    grounded: tuple[bool, ...]


def sizes_of(forest: Forest) -> dict[int, int]:
    """{constraint: number of its rows}."""
    return {c: len(b.kind.kept) for b in forest.strands for c in b.nodes}


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
    for c, x in enumerate(sites(s)):
        lengths = tuple(len(s.table[f"{x.name}.{n}"][0].pattern) for n in x.formulas.numbers)
        grounded = () if x.on_joints else tuple(i < 0 for i in x.links)
        found.setdefault(Group(x.formulas, x.kept, lengths, grounded), []).append(c)
    return tuple(Strand(tuple(nodes), (-1,) * len(nodes), group) for group, nodes in found.items())


def rates_of(groups: Forest, ends: Sequence[Ends], plan: Plan, tree: Tree, A: Sequence[Motion], a: Any) -> jax.Array:
    """J a, from a and A, the accelerations of the links that follow from a."""
    s, parts = tree.structure, []
    for b, own in zip(groups.strands, ends, strict=True):
        rows: list[Scalar] = [ZERO] * len(b.kind.kept)
        for end, forces in enumerate(own):
            links = [plan.constraints[c].links[end] for c in b.nodes]
            if plan.constraints[b.nodes[0]].on_joints:
                rate = entries(a, [s.v_slices[i].start for i in links])
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
    """Jᵀ multipliers: (per block, the wrenches on its links; generalized forces (nv,) of constraints between joints)."""
    s, starts = tree.structure, starts_of(groups)
    along = jnp.zeros(s.nv, tree.dtype)
    wrenches = [jnp.zeros((6, b.length), tree.dtype) for b in tree.blocks]
    touched = [False] * len(tree.blocks)
    for b, own in zip(groups.strands, ends, strict=True):
        count = len(b.kind.kept)
        x = tuple(entries(multipliers, [starts[c] + r for c in b.nodes]) for r in range(count))
        for end, forces in enumerate(own):
            links = [plan.constraints[c].links[end] for c in b.nodes]
            if plan.constraints[b.nodes[0]].on_joints:
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
