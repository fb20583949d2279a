"""A model laid out for recursion: links in blocks, each either one link or several of the same kind.

Short mechanisms are unrolled: they take one step per link, and structural zeros are removed. Beyond UNROLLED links,
runs of links with the same joint types become one `lax.scan`, and links of the same kind on different branches become
arrays (`forest`), so that compile time does not grow with the number of links. All cases use the same step functions.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.dynamics.state.forest import Forest, Strand, rows_of, strands_of
from jaxmbs.model import Model, ModelError
from jaxmbs.model.forces.base import Force
from jaxmbs.model.mode import Sides
from jaxmbs.model.structure import Structure, TreeJoint
from jaxmbs.spatial import IDENTITY, RigidInertia, Transform
from jaxmbs.spatial.components import components
from jaxmbs.spatial.inertias import ZERO_INERTIA
from jaxmbs.spatial.known import ZERO, known
from jaxmbs.spatial.scalar import Scalar, is_number, vanishes

UNROLLED = 40  # links; measurements: with more of them a gradient takes too long to compile


@components
class Link:
    """Numbers of one link: its joint's frame in the frame of the parent link, inertia, joint numbers, armature.

    deformation: for an elastic joint at a state, a `Deformation`; the inertia is then that in this state, too; for a node of
    a flexible body its `Subspace`.
    """

    fixed: Transform
    inertia: RigidInertia
    numbers: Any
    armature: Scalar
    deformation: Any = ()


@functools.lru_cache(maxsize=256)
def blocks_of(structure: Structure, unrolled: int) -> tuple[Strand, ...]:
    """Partition of the links into blocks, from the roots outwards."""
    links, n = structure.links, len(structure.links)
    if n <= unrolled:
        return tuple(Strand((i,), (link.parent,), link.joint) for i, link in enumerate(links))
    joints = [link.joint for link in links]
    signs = [(x, -1 if x.formulas and not x.rheonomic else i) for i, x in enumerate(joints)]
    return strands_of([link.parent for link in links], joints, signs)


@functools.lru_cache(maxsize=256)
def check_joints(structure: Structure) -> None:
    """Raise ModelError with the name of a joint whose functions are faulty (found by evaluating them)."""
    for item in (*structure.links, *structure.loops):
        if reason := item.joint.fault():
            raise ModelError(f"joint {item.name!r} ({item.joint.type_name}): {reason}")


class Tree(Forest):
    """The links of a model as components of one dtype (None: Python or SymPy scalars, always unrolled)."""

    def __init__(self, model: Model, dtype: Any = None, unrolled: int = UNROLLED):
        self.model, self.structure = model, model.structure
        # whether a mode may lock each degree of freedom; a run derives this from its events
        self.lockable: tuple[bool, ...] = (True,) * model.nv
        check_joints(model.structure)
        self.values = model.values(dtype)
        n = len(self.structure.links)
        if self.structure.flexible:
            unrolled = n
        self.sides: Sides | None = None  # of the elements' corners, in a run; see `beside`
        # whether the layout is that for loops, even if no block is rolled: blocks in any order, q and v as arrays
        self.rolled = dtype is not None and n > unrolled
        self.blocks = blocks_of(self.structure, unrolled if dtype is not None else n)
        super().__init__(self.blocks, dtype)
        # per block, the body frames in the links' frames (which are the child joint frames)
        frames = [self.values.pose(*(f"{x.name}.child_pose" for x in self._of(b))).inverse() for b in self.blocks]
        self.body_in_link = BodyFrames(self, frames)
        # per block, a Link; in a rolled block its leaves are stacked over the links
        self.links = [self._link(b, B) for b, B in zip(self.blocks, frames, strict=True)]
        self._bare = self.links = self._geared()
        self.links = self._laden()

    def remembering(self, states: Sequence[Sequence[Scalar]]) -> Tree:
        """The tree with other values of the elements' states, in the order of `Structure.states`."""
        if not self.structure.states:
            return self
        own = {p.name: tuple(x) for p, x in zip(self.structure.states, states, strict=True)}
        arrays = {
            p.name: jnp.stack([jnp.asarray(x, self.dtype) for x in own[p.name]]).reshape(p.shape)
            for p in self.structure.states
        }
        other = copy.copy(self)
        other.values = self.values.changed(own)
        other.model = replace(self.model, overrides={**self.model.overrides, **arrays})
        other.links = other._laden()
        return other

    @property
    def states(self) -> tuple[tuple[Scalar, ...], ...]:
        """The values of the elements' states."""
        return tuple(self.values.components(p.name) for p in self.structure.states)

    def carried(self) -> dict[str, RigidInertia]:
        """{body: inertia in its axes, about its origin} of the mass that force elements add."""
        found: dict[str, RigidInertia] = {}
        for k, f in enumerate(self.structure.forces):
            if f.element.carries:
                masses = self._held_masses(k) or f.element.masses(self.values.of(f.name, f.element.numbers))
                for body, own in masses.items():
                    found[body] = found[body] + own if body in found else own
        return found

    def beside(self, sides: Sides | None) -> Tree:
        """The tree with the masses that force elements add on these sides of their corners."""
        if sides is None or sides is self.sides:
            return self
        other = copy.copy(self)
        other.sides = sides
        if all(other._held_masses(k) is None for k in range(len(self.structure.forces))):
            return self
        other.links = other._laden()
        return other

    def _held_masses(self, k: int) -> Mapping[str, RigidInertia] | None:
        """`Force.masses_on` of an element; None if it does not have them."""
        f = self.structure.forces[k]
        if self.sides is None or type(f.element).masses_on is Force.masses_on:
            return None
        return f.element.masses_on(self.values.of(f.name, f.element.numbers), self.sides.of(k))

    def _geared(self) -> list[Link]:
        """The links with the armature that force elements add."""
        added = {
            name: x
            for f in self.structure.forces
            if type(f.element).armatures is not Force.armatures
            for name, x in f.element.armatures(self.values.of(f.name, f.element.numbers)).items()
        }
        if all(map(vanishes, added.values())):
            return self.links
        more = (self.per_block(b, [added.get(x.name, ZERO) for x in self._of(b)]) for b in self.blocks)
        return [replace(link, armature=link.armature + x) for link, x in zip(self.links, more, strict=True)]

    def _laden(self) -> list[Link]:
        """The links with the mass that force elements add."""
        found = self.carried()
        if not found:
            return self._bare
        out = []
        for block, link in zip(self.blocks, self._bare, strict=True):
            names = [x.body for x in self._of(block)]
            if not any(name in found for name in names):
                out.append(link)
                continue
            more = [
                found[x.body].to_parent(self.body_in_link[i]) if x.body in found else ZERO_INERTIA
                for i, x in zip(block.nodes, self._of(block), strict=True)
            ]
            out.append(replace(link, inertia=link.inertia + self.per_block(block, more)))
        return out

    def _of(self, block: Strand) -> Sequence[TreeJoint]:
        return [self.structure.links[i] for i in block.nodes]

    def _link(self, block: Strand, body_in_link: Transform) -> Link:
        links = self._of(block)
        before = self.gather(self.body_in_link.per_block, block.parents, IDENTITY)
        fixed = before @ self.values.pose(*(f"{x.name}.parent_pose" for x in links))
        value = self.values.several
        mass, com, inertia = (value([f"{x.body}.{n}" for x in links]) for n in ("mass", "com", "inertia"))
        numbers = {n: value([f"{x.name}.{n}" for x in links]) for n in block.joint.needed}
        # a node has no degrees of freedom of its own
        armature = ZERO if block.joint.follows else value([f"{x.name}.armature" for x in links])
        return Link(fixed, RigidInertia.at_com(mass, com, inertia).to_parent(body_in_link), numbers, armature)

    def with_armature(self, A: jax.Array) -> jax.Array:
        """The mass matrix (nv, nv), from that of the bodies, A, and the armature, which is added to its diagonal."""
        if all(vanishes(link.armature) for link in self.links):
            return A
        own = self.flat([(link.armature,) * b.joint.nv for b, link in zip(self.blocks, self.links, strict=True)])
        return A + jnp.diag(self.vector(own))

    def per_block(self, block: Strand, items: Sequence[Any]) -> Any:
        """The results of a block's links as one item, stacked if the block is rolled."""
        return self._stacked(items) if block.rolled else items[0]

    def _stacked(self, items: Sequence[Any]) -> Any:
        def stack(*leaves: Scalar) -> Scalar:
            if all(is_number(x) and x == leaves[0] for x in leaves):
                return leaves[0]
            return jnp.stack([jnp.asarray(x, self.dtype) for x in leaves])

        return jax.tree_util.tree_map(stack, *items)

    def split(self, x: Any, slices: Sequence[slice]) -> list[tuple[Scalar, ...]]:
        """A vector over q or v as one tuple of scalars per block (of arrays over the links of a rolled block).

        x None stands for a vector of structural zeros.
        """
        out = []
        for b in self.blocks:
            size = slices[b.nodes[0]].stop - slices[b.nodes[0]].start
            if x is None:
                out.append((ZERO,) * size)
            elif not b.rolled:
                out.append(tuple(known(x[k]) for k in range(slices[b.nodes[0]].start, slices[b.nodes[0]].stop)))
            else:
                starts = [slices[i].start for i in b.nodes]
                out.append(tuple(rows_of(x, [k + c for k in starts]) for c in range(size)))
        return out

    def flat(self, parts: Sequence[Sequence[Scalar]]) -> Any:
        """The inverse of `split`: a list of scalars, or an array for a rolled tree."""
        if not self.rolled:
            return [x for part in parts for x in part]
        pieces: list[Any] = []
        owners: list[int] = []  # the link of every entry
        for b, part in zip(self.blocks, parts, strict=True):
            for x in part:
                pieces.append(jnp.broadcast_to(jnp.asarray(x, self.dtype), (b.length,)))
                owners += b.nodes
        if not pieces:
            return jnp.zeros(0, self.dtype)
        order = np.argsort(np.asarray(owners), kind="stable")
        return rows_of(jnp.concatenate(pieces), order.tolist())

    def vector(self, flat: Any) -> Any:
        """The result of `flat`, or a list of scalars, as one array of the tree's dtype; unchanged without a dtype."""
        if self.dtype is None or isinstance(flat, jax.Array):
            return flat
        return jnp.stack([jnp.asarray(x, self.dtype) for x in flat]) if len(flat) else jnp.zeros(0, self.dtype)

    def owned(self, along: Sequence[tuple[Scalar, ...]]) -> list[tuple[Scalar, ...]]:
        """Forces along the columns of each block's motion, as forces along its own degrees of freedom: those of nodes of
        a flexible body are along the coordinates of the body."""
        out = list(along)
        for i, link in enumerate(self.structure.links if self.structure.flexible else ()):
            if link.joint.follows:
                out[link.parent] = tuple(x + y for x, y in zip(out[link.parent], out[i], strict=True))
                out[i] = ()
        return out

    def per_link(self, results: Sequence[Any]) -> list[Any]:
        """The results of all links."""
        return [self.pick(results, i) for i in range(len(self.structure.links))]


class BodyFrames(Sequence[Transform]):
    """Per link, the body frame in the link's frame; it is picked from its block when it is needed."""

    def __init__(self, tree: Tree, per_block: Sequence[Transform]):
        self.tree, self.per_block = tree, per_block

    def __len__(self) -> int:
        return len(self.tree.structure.links)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        if not 0 <= i < len(self):
            raise IndexError(i)
        return self.tree.pick(self.per_block, i)
