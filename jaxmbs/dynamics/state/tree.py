"""A model laid out for recursion: links in blocks, each either one link or a run of like links.

Short mechanisms are unrolled: one step per link, every structural zero folded. Beyond UNROLLED links, runs of
consecutive links with the same joint type become one `lax.scan`, so that compile time does not grow with the length.
The same step functions serve both.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from jaxmbs.model import Model, ModelError
from jaxmbs.model.joints import Joint
from jaxmbs.model.structure import Structure, TreeJoint
from jaxmbs.spatial import IDENTITY, RigidInertia, Transform
from jaxmbs.spatial.components import components
from jaxmbs.spatial.scalar import Scalar, is_number

UNROLLED = 40  # links; measured: beyond it a gradient takes too long to compile
SHORTEST_RUN = 6  # links; a shorter run is not worth a loop


@components
class Link:
    """Numbers of one link: its joint's frame in the frame of the link that carries it, inertia, joint numbers, armature."""

    fixed: Transform
    inertia: RigidInertia
    numbers: Any
    armature: Scalar


@dataclass(frozen=True)
class Block:
    """Links first..last in the regular numbering; `rolled` if they are one loop."""

    first: int
    last: int
    parent: int
    joint: Joint
    rolled: bool

    @property
    def length(self) -> int:
        return self.last - self.first + 1


@functools.lru_cache(maxsize=256)
def blocks_of(structure: Structure, unrolled: int) -> tuple[Block, ...]:
    """Partition of the links into blocks."""
    links, n = structure.links, len(structure.links)
    out, i = [], 0
    while i < n:
        j = i
        if n > unrolled and links[i].joint.formulas and not links[i].joint.rheonomic:
            while (
                j + 1 < n
                and links[j + 1].parent == j
                and links[j + 1].joint == links[i].joint
                and structure.children[j] == (j + 1,)
            ):
                j += 1
        if j - i + 1 < SHORTEST_RUN:
            j = i
        out.append(Block(i, j, links[i].parent, links[i].joint, j > i))
        i = j + 1
    return tuple(out)


@functools.lru_cache(maxsize=256)
def check_joints(structure: Structure) -> None:
    """Raise ModelError with the name of a joint whose functions are faulty (found by evaluating them)."""
    for item in (*structure.links, *structure.loops):
        if reason := item.joint.fault():
            raise ModelError(f"joint {item.name!r} ({item.joint.type_name}): {reason}")


def vanishes(x: Scalar) -> bool:
    """Whether a number is zero by structure."""
    return is_number(x) and x == 0


class Tree:
    """The links of a model as components of one dtype (None: Python or SymPy scalars, always unrolled)."""

    def __init__(self, model: Model, dtype: Any = None, unrolled: int = UNROLLED):
        self.model, self.dtype = model, dtype
        self.structure = model.structure
        check_joints(model.structure)
        self.values = model.values(dtype)
        self.blocks = blocks_of(self.structure, unrolled if dtype is not None else len(self.structure.links))
        # per block, the body frames in the links' frames (which are the child joint frames)
        frames = [self._pose([f"{x.name}.child_pose" for x in self._of(b)]).inverse() for b in self.blocks]
        self.body_in_link = BodyFrames(self, frames)
        # per block a Link, its leaves stacked over the links of a rolled block
        self.links = [self._link(b, B) for b, B in zip(self.blocks, frames, strict=True)]

    def _of(self, block: Block) -> Sequence[TreeJoint]:
        return self.structure.links[block.first : block.last + 1]

    def _value(self, names: Sequence[str]) -> Any:
        """Of one parameter, or of those of a run of links, stacked."""
        return self.values[names[0]] if len(names) == 1 else self.values.stacked(names)

    def _pose(self, names: Sequence[str]) -> Transform:
        return Transform(self._value([f"{n}.rotation" for n in names]), self._value([f"{n}.position" for n in names]))

    def _link(self, block: Block, body_in_link: Transform) -> Link:
        links = self._of(block)
        before = self.body_in_link[block.parent] if block.parent >= 0 else IDENTITY
        if block.rolled:  # each link of a run is carried by the one before it
            before = jax.tree_util.tree_map(functools.partial(self._moved_on, block.length), before, body_in_link)
        fixed = before @ self._pose([f"{x.name}.parent_pose" for x in links])
        mass, com, inertia = (self._value([f"{x.body}.{n}" for x in links]) for n in ("mass", "com", "inertia"))
        numbers = {n: self._value([f"{x.name}.{n}" for x in links]) for n in block.joint.numbers}
        armature = self._value([f"{x.name}.armature" for x in links])
        return Link(fixed, RigidInertia.at_com(mass, com, inertia).to_parent(body_in_link), numbers, armature)

    def with_armature(self, A: jax.Array) -> jax.Array:
        """The mass matrix (nv, nv) of the bodies with what rotors add to its diagonal."""
        if all(vanishes(link.armature) for link in self.links):
            return A
        own = self.flat([(link.armature,) * b.joint.nv for b, link in zip(self.blocks, self.links, strict=True)])
        return A + jnp.diag(self.vector(own))

    def _moved_on(self, length: int, first: Scalar, run: Scalar) -> Scalar:
        """first, run[0], run[1] ... without the last."""
        if is_number(first) and is_number(run) and first == run:
            return first
        first, run = jnp.asarray(first, self.dtype), jnp.broadcast_to(jnp.asarray(run, self.dtype), (length,))
        return jnp.concatenate([first[None], run[:-1]])

    def per_block(self, block: Block, items: Sequence[Any]) -> Any:
        """Results of the links of a block as that of the block."""
        return self._stacked(items) if block.rolled else items[0]

    def _stacked(self, items: Sequence[Any]) -> Any:
        def stack(*leaves: Scalar) -> Scalar:
            if all(is_number(x) and x == leaves[0] for x in leaves):
                return leaves[0]
            return jnp.stack([jnp.asarray(x, self.dtype) for x in leaves])

        return jax.tree_util.tree_map(stack, *items)

    def split(self, x: Any, slices: Sequence[slice]) -> list[tuple[Scalar, ...]]:
        """A vector over q or v as one tuple of scalars per block (of arrays over the links of a rolled block).

        None is the structural zero vector.
        """
        if x is None:
            return [(0,) * (slices[b.first].stop - slices[b.first].start) for b in self.blocks]
        out = []
        for b in self.blocks:
            part = slices[b.first]
            if not b.rolled:
                out.append(tuple(x[k] for k in range(part.start, part.stop)))
            else:
                rows = x[part.start : slices[b.last].stop].reshape(b.length, -1)
                out.append(tuple(rows[:, k] for k in range(rows.shape[1])))
        return out

    def flat(self, parts: Sequence[Sequence[Scalar]]) -> Any:
        """The inverse of `split`: a list of scalars, or an array where there are rolled blocks."""
        if not self.rolled:
            return [x for part in parts for x in part]
        pieces: list[Any] = []
        for b, part in zip(self.blocks, parts, strict=True):
            columns = [jnp.broadcast_to(jnp.asarray(x, self.dtype), (b.length,)) for x in part]
            pieces += [jnp.stack(columns, axis=1).reshape(-1)] if columns else []
        return jnp.concatenate(pieces)

    def vector(self, flat: Any) -> Any:
        """What `flat` returns, or a list of scalars, as one array of the tree's dtype (as it is without a dtype)."""
        if self.dtype is None or isinstance(flat, jax.Array):
            return flat
        return jnp.stack([jnp.asarray(x, self.dtype) for x in flat]) if len(flat) else jnp.zeros(0, self.dtype)

    @property
    def rolled(self) -> bool:
        """Whether any block is a loop; then vectors over q and v must be arrays."""
        return any(b.rolled for b in self.blocks)

    def pick(self, results: Sequence[Any], link: int) -> Any:
        """The result of one link out of those of all blocks."""
        for b, result in zip(self.blocks, results, strict=True):
            if b.first <= link <= b.last:
                return _row(result, link - b.first) if b.rolled else result
        raise IndexError(link)

    def per_link(self, results: Sequence[Any]) -> list[Any]:
        """The results of all links."""
        return [
            _row(result, k) if b.rolled else result
            for b, result in zip(self.blocks, results, strict=True)
            for k in range(b.length)
        ]

    def outward(self, step: Callable[..., Any], data: Sequence[Any], root: Any) -> list[Any]:
        """Results of step(joint, state of the carrying link, data) -> (state, result), from the world outwards."""
        states, results = {-1: root}, []
        for b, d in zip(self.blocks, data, strict=True):
            states[b.last], result = self._run(step, b, states[b.parent], d, reverse=False)
            results.append(result)
        return results

    def inward(self, step: Callable[..., Any], data: Sequence[Any], zero: Any) -> tuple[list[Any], Any]:
        """Results of step(joint, sum from the carried links, data) -> (handed inwards, result), and what reaches the
        world. `zero` and what is handed inwards are tuples whose items add."""
        sums: dict[int, Any] = {}
        results = []
        for b, d in zip(reversed(self.blocks), reversed(data), strict=True):
            handed, result = self._run(step, b, sums.pop(b.last, zero), d, reverse=True)
            results.append(result)
            before = sums.get(b.parent)
            sums[b.parent] = handed if before is None else tuple(x + y for x, y in zip(before, handed, strict=True))
        return results[::-1], sums.get(-1, zero)

    def _run(self, step: Callable[..., Any], b: Block, carry: Any, data: Any, reverse: bool) -> tuple[Any, Any]:
        if not b.rolled:
            return step(b.joint, carry, data)
        leaves, treedef = jax.tree_util.tree_flatten(data)
        looped = [not is_number(x) for x in leaves]

        def body(carry: Any, xs: list[Any]) -> tuple[Any, Any]:
            rest = iter(xs)
            here = treedef.unflatten([next(rest) if on else x for x, on in zip(leaves, looped, strict=True)])
            carry, result = step(b.joint, carry, here)
            return self._arrays(carry), self._arrays(result)

        xs = [x for x, on in zip(leaves, looped, strict=True) if on]
        return jax.lax.scan(body, self._arrays(carry), xs, length=b.length, reverse=reverse)

    def _arrays(self, tree: Any) -> Any:
        """Structural numbers turned into arrays, which the carry of a loop needs."""
        return jax.tree_util.tree_map(lambda x: jnp.asarray(x, self.dtype) if is_number(x) else x, tree)


class BodyFrames(Sequence[Transform]):
    """Per link, the body frame in the link's frame; taken out of a run of links when asked for."""

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


def _row(tree: Any, k: int) -> Any:
    return jax.tree_util.tree_map(lambda x: x if is_number(x) else x[k], tree)
