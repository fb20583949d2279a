"""Recursions over a forest of nodes, whose compile time grows with the number of kinds of nodes, not of nodes.

Nodes of the same kind that do not depend on one another are computed together, as arrays; a path of nodes whose kinds
repeat is one `lax.scan`. The same step functions serve both, and single nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs.spatial.scalar import is_number, vanishes

SHORTEST_CHAIN = 6  # nodes; a shorter path is not worth a loop
LONGEST_MOTIF = 6  # nodes


@dataclass(frozen=True)
class Strand:
    """Nodes that are computed together, with their parents (-1: none): a single node; several that do not depend on one
    another; or, on a path along which a motif of `period` nodes repeats, the nodes at position `place` of all motifs,
    from the root outwards."""

    nodes: tuple[int, ...]
    parents: tuple[int, ...]
    kind: Any
    place: int = 0
    period: int = 0

    @property
    def rolled(self) -> bool:
        return len(self.nodes) > 1

    @property
    def joint(self) -> Any:
        """The kind of the nodes; for links it is their joint."""
        return self.kind

    @property
    def length(self) -> int:
        return len(self.nodes)


def strands_of(parents: Sequence[int], kinds: Sequence[Any], signs: Sequence[Hashable]) -> tuple[Strand, ...]:
    """Partition of a forest into strands, from the roots outwards; the strands of one path follow one another. Nodes
    must be numbered after their parents, and nodes with equal `signs` must have equal kinds. All nodes of a strand have
    equal signs."""
    n = len(parents)
    height = [0] * n
    heir = [-1] * n  # the child on the longest path, of the same kind if there is a choice
    for i in reversed(range(n)):
        p = parents[i]
        if p >= 0:
            worth = (height[i] + 1, signs[i] == signs[p])
            if heir[p] < 0 or worth > (height[p], signs[heir[p]] == signs[p]):
                heir[p], height[p] = i, height[i] + 1
    chain_of: list[tuple[int, ...] | None] = [None] * n
    period_of: dict[int, int] = {}
    for i in range(n):
        if parents[i] >= 0 and heir[parents[i]] == i:
            continue  # not the start of a path
        path = [i]
        while heir[path[-1]] >= 0:
            path.append(heir[path[-1]])
        for start, stop, period in _repeated([signs[k] for k in path]):
            nodes = tuple(path[start:stop])
            period_of[nodes[0]] = period
            for k in nodes:
                chain_of[k] = nodes
    depth = [0] * n
    for i in range(n):
        nodes = chain_of[i]
        above = parents[i] if nodes is None else parents[nodes[0]]
        depth[i] = 0 if above < 0 else depth[above] + 1
    groups: dict[tuple[int, str, Hashable], list[int]] = {}
    for i in range(n):
        nodes = chain_of[i]
        key = (depth[i], "beside", signs[i]) if nodes is None else (depth[i], "path", nodes[0])
        groups.setdefault(key, []).append(i)
    out: list[Strand] = []
    for (_, form, _), nodes in sorted(groups.items(), key=lambda item: item[0][0]):
        if form == "path":
            p = period_of[nodes[0]]
            columns = (tuple(nodes[k::p]) for k in range(p))
            out += [Strand(c, tuple(parents[k] for k in c), kinds[c[0]], place, p) for place, c in enumerate(columns)]
        else:
            out.append(Strand(tuple(nodes), tuple(parents[k] for k in nodes), kinds[nodes[0]]))
    return tuple(out)


def _repeated(signs: Sequence[Hashable]) -> Iterator[tuple[int, int, int]]:
    """(start, stop, period) of the stretches along which a motif repeats at least three times."""
    start, n = 0, len(signs)
    while start < n:
        best = (0, 0)
        for p in range(1, LONGEST_MOTIF + 1):
            stop = start + p
            while stop < n and signs[stop] == signs[stop - p]:
                stop += 1
            repeats = (stop - start) // p
            if repeats >= 3 and repeats * p >= SHORTEST_CHAIN and repeats * p > best[0]:
                best = (repeats * p, p)
        if best[0]:
            yield start, start + best[0], best[1]
        start += best[0] or 1


class Forest:
    """Strands of nodes, and recursions over data about them, one pytree per strand. Arrays of a rolled strand have its
    nodes on their first axis; numbers, and arrays without axes, apply to all its nodes."""

    def __init__(self, strands: Sequence[Any], dtype: Any):
        self.strands, self.dtype = strands, dtype
        self.at = {node: (k, row) for k, b in enumerate(strands) for row, node in enumerate(b.nodes)}

    def gather(self, results: Sequence[Any], nodes: Sequence[int], root: Any = None) -> Any:
        """The results of the given nodes, as arrays over them, from those of all strands; root: that of the node -1."""
        if len(nodes) == 1:
            return root if nodes[0] < 0 else self.pick(results, nodes[0])
        runs: list[tuple[int, list[int]]] = []  # strand (-1: the root), rows
        for node in nodes:
            k, row = self.at[node] if node >= 0 else (-1, 0)
            if not runs or runs[-1][0] != k:
                runs.append((k, []))
            runs[-1][1].append(row)
        if len(runs) > max(4, len({k for k, _ in runs})):  # many changes of strand: gather by strand, then sort back
            order = sorted(range(len(nodes)), key=lambda i: self.at[nodes[i]][0] if nodes[i] >= 0 else -1)
            sorted_ = self.gather(results, [nodes[i] for i in order], root)
            back = np.argsort(np.asarray(order))
            return jax.tree_util.tree_map(lambda x: x if is_number(x) else x[back], sorted_)
        found = [root if k < 0 else results[k] for k, _ in runs]
        counts = [len(rows) for _, rows in runs]
        whole = [k >= 0 and self.strands[k].rolled for k, _ in runs]

        def joined(*leaves: Any) -> Any:
            if all(is_number(x) and x == leaves[0] for x in leaves):
                return leaves[0]
            parts = [
                rows_of(x, rows) if on and np.ndim(x) else jnp.broadcast_to(jnp.asarray(x, self.dtype), (n,))
                for x, (_, rows), n, on in zip(leaves, runs, counts, whole, strict=True)
            ]
            return parts[0] if len(parts) == 1 else jnp.concatenate(parts)

        return jax.tree_util.tree_map(joined, *found)

    def pick(self, results: Sequence[Any], node: int) -> Any:
        """The result of one node, from those of all strands."""
        if node not in self.at:
            raise IndexError(node)
        k, row = self.at[node]
        return _row(results[k], row) if self.strands[k].rolled else results[k]

    def outward(self, step: Callable[..., Any], data: Sequence[Any], root: Any) -> list[Any]:
        """Results of step(kind, state of the parent node, data) -> (state, result), from the roots outwards."""
        states: list[Any] = []
        results: list[Any] = []
        for k, b in enumerate(self.strands):
            if b.period and b.place:
                continue
            if not b.period:
                state, result = self.whole(b, step(b.kind, self.gather(states, b.parents, root), data[k]))
                states.append(state)
                results.append(result)
                continue
            along = self.strands[k : k + b.period]
            parent = self.gather(states, b.parents[:1], root)
            found = self._scanned(step, along, parent, data[k : k + b.period], None)[1]
            states += [state for state, _ in found]
            results += [result for _, result in found]
        return results

    def inward(self, step: Callable[..., Any], data: Sequence[Any], zero: Any) -> tuple[list[Any], Any]:
        """Results of step(kind, sum over the children, data) -> (contribution to the parent, result), and the sum that
        reaches the root. Contributions are tuples that are added item by item; `zero`, or zero(kind) if it is a
        function, is the sum of a node without children."""
        nothing = zero if callable(zero) else lambda kind: zero
        sums: dict[int, Any] = {}
        results: list[Any] = [None] * len(self.strands)
        for k in reversed(range(len(self.strands))):
            b = self.strands[k]
            if b.period and b.place:
                continue
            if not b.period:
                handed, results[k] = self.whole(b, step(b.kind, sums.pop(k) if k in sums else nothing(b.kind), data[k]))
                self._deposit(sums, handed, b.parents, b.rolled)
                continue
            along = self.strands[k : k + b.period]
            own = [sums.pop(k + j, None) for j in range(b.period)]
            handed, found = self._scanned(step, along, nothing(along[-1].kind), data[k : k + b.period], own)
            results[k : k + b.period] = [result for _, result in found]
            self._deposit(sums, handed, b.parents[:1], False)
        return results, sums.get(-1, None if callable(zero) else zero)

    def whole(self, b: Any, found: Any) -> Any:
        """The results of a strand, as arrays over all its nodes if it is rolled."""
        if not b.rolled:
            return found
        n = b.length
        return jax.tree_util.tree_map(lambda x: x if is_number(x) or x.ndim else jnp.broadcast_to(x, (n,)), found)

    def _deposit(self, sums: dict[int, Any], handed: Any, parents: Sequence[int], rolled: bool) -> None:
        """Add the contributions of nodes to the sums of their parents' strands."""
        to: dict[int, tuple[list[int], list[int]]] = {}
        for row, node in enumerate(parents):
            k, place = self.at[node] if node >= 0 else (-1, 0)
            rows, places = to.setdefault(k, ([], []))
            rows.append(row)
            places.append(place)
        for k, (rows, places) in to.items():
            n = self.strands[k].length if k >= 0 and self.strands[k].rolled else 0

            def moved(x: Any, rows: list[int] = rows, places: list[int] = places, n: int = n) -> Any:
                if vanishes(x):
                    return x
                if is_number(x) or not rolled:
                    x = jnp.broadcast_to(jnp.asarray(x, self.dtype), (len(rows),))
                else:
                    x = rows_of(x, rows)
                if not n:
                    return x.sum(axis=0) if len(rows) > 1 else x[0]
                if sorted(places) == list(range(n)):
                    return rows_of(x, np.argsort(places).tolist())
                return jnp.zeros(n, x.dtype).at[np.asarray(places)].add(x)

            # from a single node to a single node, scalars of any kind are added unchanged
            found = handed if not rolled and not n else jax.tree_util.tree_map(moved, handed)
            sums[k] = found if k not in sums else tuple(x + y for x, y in zip(sums[k], found, strict=True))

    def _scanned(
        self, step: Callable[..., Any], along: Sequence[Any], carry: Any, data: Sequence[Any], sums: Any
    ) -> Any:
        """(final carry, per strand (states or None, results)) of a path; sums: inwards, those from other children."""
        inward = sums is not None
        length = along[0].length
        leaves, treedef = jax.tree_util.tree_flatten((list(data), sums))
        looped = [not is_number(x) for x in leaves]
        order = reversed(range(len(along))) if inward else range(len(along))
        order = list(order)

        def body(carry: Any, xs: list[Any]) -> tuple[Any, Any]:
            rest = iter(xs)
            here, others = treedef.unflatten([next(rest) if on else x for x, on in zip(leaves, looped, strict=True)])
            found: list[Any] = [None] * len(along)
            for j in order:
                if inward and others[j] is not None:
                    carry = tuple(x + y for x, y in zip(carry, others[j], strict=True))
                carry, result = step(along[j].kind, carry, here[j])
                found[j] = (None if inward else carry, result)
            return carry, found

        xs = [jnp.broadcast_to(x, (length,)) if not x.ndim else x for x, on in zip(leaves, looped, strict=True) if on]
        return folding_scan(body, carry, xs, length, inward, self.dtype)


def folding_scan(
    body: Callable[..., Any], carry: Any, xs: Any, length: int, reverse: bool, dtype: Any
) -> tuple[Any, Any]:
    """`lax.scan` of a body that uses scalars; structural numbers in its carry and results stay plain numbers."""
    leaves, treedef = jax.tree_util.tree_flatten(carry)
    kept = [is_number(x) for x in leaves]
    shapes = [np.shape(x) for x in leaves]
    row = jax.tree_util.tree_map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), xs)
    seen: dict[str, Any] = {}

    def whole(arrays: Sequence[Any]) -> Any:
        rest = iter(arrays)
        return treedef.unflatten([x if k else next(rest) for x, k in zip(leaves, kept, strict=True)])

    def iteration(arrays: Sequence[Any], x: Any) -> tuple[Any, Any]:
        after, found = body(whole(arrays), x)
        after, results = jax.tree_util.tree_leaves(after), jax.tree_util.tree_leaves(found)
        seen.update(after=after, results=results, treedef=jax.tree_util.tree_structure(found))
        arrays = [jnp.asarray(x, dtype) for x, k in zip(after, kept, strict=True) if not k]
        return arrays, [x for x in results if not is_number(x)]

    while True:
        start = [
            jnp.broadcast_to(jnp.asarray(x, dtype), n) for x, k, n in zip(leaves, kept, shapes, strict=True) if not k
        ]
        jax.eval_shape(iteration, start, row)
        still = [k and is_number(y) and y == x for k, x, y in zip(kept, leaves, seen["after"], strict=True)]
        if still == kept:
            break
        kept, shapes = still, [np.shape(x) if k else n for x, k, n in zip(seen["after"], kept, shapes, strict=True)]
    end, found = jax.lax.scan(iteration, start, xs, length=length, reverse=reverse)
    rest = iter(found)
    results = [x if is_number(x) else next(rest) for x in seen["results"]]
    return whole(end), seen["treedef"].unflatten(results)


def _row(tree: Any, k: int) -> Any:
    return jax.tree_util.tree_map(lambda x: x if is_number(x) or not x.ndim else x[k], tree)


def rows_of(x: Any, rows: Sequence[int]) -> Any:
    """Some rows of an array, as a slice if they are consecutive."""
    if list(rows) == list(range(x.shape[0])):
        return x
    first, last = rows[0], rows[-1]
    if list(rows) == list(range(first, last + 1)):
        return x[first : last + 1]
    return x[np.asarray(rows)]
