"""Graph of a mechanism: bodies are vertices, joints are arcs [Y 1.1, 3.6; W 2]. Plain integer arrays.

Vertex 0 is the body whose motion is given; arcs are numbered from 1. Arc a leaves the vertex i+(a) and enters i-(a).
The first n arcs form the tree of a graph of n + 1 vertices, the others are cut joints [Y 3.6].
"""

from __future__ import annotations

import functools
import itertools
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jaxmbs.model.errors import ModelError
from jaxmbs.model.model import Model
from jaxmbs.model.structure import WORLD, Structure

SPATIAL = 6  # degrees of freedom of a body in space; a joint with f of them imposes 6 - f constraints


@dataclass(frozen=True)
class Graph:
    """A directed graph given by i+ and i-, one entry per arc [Y table 1.1].

    i_plus, i_minus: vertices that the arcs leave and enter; freedoms: weight of each arc, the degrees of freedom of the
    joint [Y 1.1.1]; bodies, joints: names, for messages and pictures. The first `n` arcs must form the tree, otherwise
    a ModelError names the vertices that they do not reach; `spanning_tree` puts the arcs into such an order.

    >>> graph = mbs.textbook.Graph(i_plus=(0, 1, 1), i_minus=(1, 2, 3))
    >>> print(graph.T)
    [[-1 -1 -1]
     [ 0 -1  0]
     [ 0  0 -1]]
    """

    i_plus: tuple[int, ...]
    i_minus: tuple[int, ...]
    freedoms: tuple[int, ...] = ()
    bodies: tuple[str, ...] = ()
    joints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_codes(self.i_plus, self.i_minus)
        n = max((*self.i_plus, *self.i_minus), default=0)
        defaults = {
            "freedoms": (1,) * len(self.i_plus),
            "bodies": (WORLD, *(f"s{i}" for i in range(1, n + 1))),
            "joints": tuple(f"u{a}" for a in range(1, len(self.i_plus) + 1)),
        }
        for field, default in defaults.items():
            value = tuple(getattr(self, field)) or default
            if len(value) < len(default):
                raise ModelError(f"graph: {len(value)} {field} given, {len(default)} needed")
            object.__setattr__(self, field, value)
        for field in ("i_plus", "i_minus"):
            object.__setattr__(self, field, tuple(int(i) for i in getattr(self, field)))
        missing = sorted(set(range(len(self.bodies))) - set(self._reached(range(len(self.i_plus)))))
        if missing:
            said = self._said(missing)
            raise ModelError(f"graph: {said} cannot be reached from vertex 0; add the joints that connect them")

    def _said(self, vertices: Sequence[int]) -> str:
        names = ", ".join(f"{i} ({self.bodies[i]!r})" for i in vertices[:12])
        return ("vertex " if len(vertices) == 1 else "vertices ") + names + (", ..." if len(vertices) > 12 else "")

    @property
    def n(self) -> int:
        """Number of bodies without body 0, and of arcs in the tree."""
        return len(self.bodies) - 1

    @property
    def arcs(self) -> tuple[tuple[int, int], ...]:
        """(i+, i-) of every arc."""
        return tuple(zip(self.i_plus, self.i_minus, strict=True))

    def _reached(self, arcs: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Vertices reached from vertex 0 over the given arcs: {vertex: (preceding arc, preceding vertex)}."""
        found = {0: (-1, -1)}
        at: dict[int, list[int]] = {}
        for a in arcs:
            at.setdefault(self.i_plus[a], []).append(a)
            at.setdefault(self.i_minus[a], []).append(a)
        queue = deque([0])
        while queue:
            i = queue.popleft()
            for a in at.get(i, []):
                j = self.i_plus[a] + self.i_minus[a] - i
                if j not in found:
                    found[j] = (a, i)
                    queue.append(j)
        return found

    @cached_property
    def adjacency(self) -> np.ndarray:
        """(n + 1, n + 1): number of arcs between two vertices, whatever their direction [Y 1.1.2]."""
        M = np.zeros((self.n + 1, self.n + 1), int)
        for i, j in self.arcs:
            M[i, j] += 1
            M[j, i] += 1
        return M

    @cached_property
    def incidence(self) -> np.ndarray:
        """(n + 1, arcs): +1 where the arc leaves the vertex, -1 where it enters it [Y 1.1]."""
        full = np.zeros((self.n + 1, len(self.i_plus)), int)
        full[self.i_plus, np.arange(full.shape[1])] = 1
        full[self.i_minus, np.arange(full.shape[1])] = -1
        return full

    @property
    def S0(self) -> np.ndarray:
        """(n,): row of vertex 0 in the incidence matrix of the tree [Y 1.2]."""
        return self.incidence[0, : self.n]

    @property
    def S(self) -> np.ndarray:
        """(n, n): incidence of the tree without vertex 0 [Y 1.3]; [I] of [W 2] when all arcs point outwards."""
        return self.incidence[1:, : self.n]

    @property
    def S_cut(self) -> np.ndarray:
        """(n + 1, cut joints): S0* and S* of the cut joints, one above the other [Y 3.180]."""
        return self.incidence[:, self.n :]

    @property
    def S_plus(self) -> np.ndarray:
        """(n + 1, arcs): S0+ above S+, of the tree and of the cut joints: only the +1 of `incidence` [Y 3.132]."""
        return np.maximum(self.incidence, 0)

    @cached_property
    def preceding(self) -> tuple[tuple[int, int], ...]:
        """For vertices 1 to n, the preceding arc (0-based) and vertex on the path from vertex 0 [Y 1.1.1]."""
        found = self._reached(range(min(self.n, len(self.i_plus))))
        missing = sorted(set(range(self.n + 1)) - set(found))
        if missing:
            raise ModelError(
                f"graph: the first {self.n} arcs do not form a tree, because {self._said(missing)} cannot be reached "
                "along them; choose the tree with spanning_tree"
            )
        return tuple(found[i] for i in range(1, self.n + 1))

    @cached_property
    def T(self) -> np.ndarray:
        """(n, n): T[a, i] = +1 (-1) if arc a lies on the path from vertex 0 to i and points to vertex 0 (to i) [Y 1.1].

        The inverse of S [Y 1.5]; [H] of [W 2] when all arcs point outwards.
        """
        T = np.zeros((self.n, self.n), int)
        for i in range(1, self.n + 1):
            j = i
            while j:
                a, before = self.preceding[j - 1]
                T[a, i - 1] = 1 if self.i_plus[a] == j else -1
                j = before
        return T

    @property
    def outward(self) -> bool:
        """Whether every tree arc points away from vertex 0."""
        return bool((self.T <= 0).all())

    @property
    def wang_I(self) -> np.ndarray:
        """(n, n): [I] of [W 2], S with all arcs directed outwards."""
        return -self.S * self.T.sum(axis=1).clip(-1, 1)

    @property
    def wang_H(self) -> np.ndarray:
        """(n, n): [H] of [W 2], the inverse of [I]: T with all arcs directed outwards."""
        return -np.abs(self.T)

    @cached_property
    def regular(self) -> bool:
        """Whether arc i precedes vertex i, the vertex before it has a lower number, and the numbers in each subtree of
        vertex 0 are contiguous [Y 3.6]."""
        if any(a != i or before > i for i, (a, before) in enumerate(self.preceding)):
            return False
        roots = self.subtree
        return sum(x != y for x, y in itertools.pairwise(roots)) == len(set(roots)) - 1

    @cached_property
    def subtree(self) -> tuple[int, ...]:
        """For vertices 1 to n, the arc (0-based) by which their subtree hangs on vertex 0, a(i) of [Y 3.186]."""
        out = []
        for i in range(1, self.n + 1):
            a, before = self.preceding[i - 1]
            while before:
                a, before = self.preceding[before - 1]
            out.append(a)
        return tuple(out)

    @cached_property
    def carries(self) -> np.ndarray:
        """(n, n) bool: for vertices i, j from 1, whether i lies on the path from vertex 0 to j or is j (s_i <= s_j)."""
        arcs = [a for a, _ in self.preceding]
        return self.T[arcs] != 0

    def path(self, vertex: int) -> list[int]:
        """Arcs (numbered from 1) from `vertex` to vertex 0, in this order."""
        return path_order(self.S, self.T, vertex)


def path_order(S: np.ndarray, T: np.ndarray, vertex: int) -> list[int]:
    """Arcs (numbered from 1) along the path from `vertex` to vertex 0, read from the two matrices alone [Y 1.1.2].

    The arc that precedes s_k is the only one with S[k, a] and T[a, k] both nonzero; the vertex before it is the other
    nonzero row of column a of S, and vertex 0 if there is none.
    """
    order, k = [], vertex
    while k:
        a = int(np.flatnonzero((S[k - 1] != 0) & (T[:, k - 1] != 0))[0])
        order.append(a + 1)
        others = [int(i) + 1 for i in np.flatnonzero(S[:, a]) if i != k - 1]
        k = others[0] if others else 0
    return order


def from_incidence(incidence: np.ndarray | Sequence[Sequence[int]]) -> Graph:
    """The graph of an incidence matrix (n + 1, arcs), with one +1 and one -1 in every column [Y 1.1].

    incidence: a row for each vertex, vertex 0 first; +1 where an arc leaves, -1 where it enters. Raises ModelError for a
    column that is not that of an arc.

    >>> mbs.textbook.from_incidence([[1, 0], [-1, 1], [0, -1]]).arcs
    ((0, 1), (1, 2))
    """
    full = np.asarray(incidence)
    for a, column in enumerate(full.T, 1):
        if sorted(column[column != 0].tolist()) != [-1, 1]:
            at = {int(i): int(column[i]) for i in np.flatnonzero(column)}
            raise ModelError(
                f"incidence matrix: column {a} has the entries {at} (vertex: entry); an arc has one +1 and one -1"
            )
    plus, minus = full.argmax(axis=0), full.argmin(axis=0)
    return Graph(tuple(plus.tolist()), tuple(minus.tolist()), bodies=_vertex_names(full.shape[0] - 1))


def _vertex_names(n: int) -> tuple[str, ...]:
    return (WORLD, *(f"s{i}" for i in range(1, n + 1)))


def _check_codes(i_plus: Sequence[int], i_minus: Sequence[int]) -> None:
    if len(i_plus) != len(i_minus):
        raise ModelError(f"graph: i+ has {len(i_plus)} entries, i- has {len(i_minus)}; give both for every arc")
    for a, (i, j) in enumerate(zip(i_plus, i_minus, strict=True), 1):
        for code in (i, j):
            if int(code) != code or code < 0:
                raise ModelError(f"graph: arc {a} names vertex {code!r}; vertices are 0, 1, 2, ...")
        if i == j:
            raise ModelError(f"graph: arc {a} leaves and enters vertex {i}; a joint connects two bodies")


def reversed_arcs(graph: Graph, arcs: Sequence[int]) -> Graph:
    """The graph with the direction of the given arcs (numbered from 1) reversed."""
    turned = set(arcs)
    pairs = [(j, i) if a in turned else (i, j) for a, (i, j) in enumerate(graph.arcs, 1)]
    plus, minus = zip(*pairs, strict=True) if pairs else ((), ())
    return Graph(plus, minus, graph.freedoms, graph.bodies, graph.joints)


def renumbered(graph: Graph, vertices: Mapping[int, int], arcs: Sequence[int]) -> Graph:
    """The renumbered graph: `vertices` maps old to new numbers, arc k of the result is arc arcs[k - 1] (from 1)."""
    new = {0: 0, **vertices}
    if sorted(new.values()) != list(range(graph.n + 1)):
        raise ModelError(f"renumbered: {dict(vertices)} is not a renumbering of the vertices 1 to {graph.n}")
    bodies = [""] * (graph.n + 1)
    for old, i in new.items():
        bodies[i] = graph.bodies[old]
    take = [a - 1 for a in arcs]
    return Graph(
        tuple(new[graph.i_plus[a]] for a in take),
        tuple(new[graph.i_minus[a]] for a in take),
        tuple(graph.freedoms[a] for a in take),
        tuple(bodies),
        tuple(graph.joints[a] for a in take),
    )


def spanning_tree(graph: Graph) -> Graph:
    """The same graph with its arcs in another order: tree arcs first, cut joints last.

    The cut joints impose the fewest constraints possible, the sum of 6 - f over them [Y 3.6]: arcs with the fewest
    degrees of freedom f enter the tree first (a greedy choice is optimal for trees), arcs of equal weight in the given
    order.

    >>> graph = mbs.textbook.Graph(i_plus=(0, 0, 1), i_minus=(1, 1, 2))  # two arcs from vertex 0 to vertex 1
    >>> mbs.textbook.spanning_tree(graph).arcs
    ((0, 1), (1, 2), (0, 1))
    """
    group = list(range(graph.n + 1))

    def find(i: int) -> int:
        while group[i] != i:
            i = group[i]
        return i

    tree: list[int] = []
    cut: list[int] = []
    for a in sorted(range(len(graph.i_plus)), key=lambda a: graph.freedoms[a]):
        x, y = find(graph.i_plus[a]), find(graph.i_minus[a])
        (cut if x == y else tree).append(a + 1)
        group[x] = y
    return renumbered(graph, {i: i for i in range(1, graph.n + 1)}, sorted(tree) + sorted(cut))


def constraints(graph: Graph) -> int:
    """Number of constraints that the cut joints impose: the sum of 6 - f."""
    return sum(SPATIAL - f for f in graph.freedoms[graph.n :])


def regular_numbering(graph: Graph) -> tuple[Graph, dict[int, int]]:
    """A regular numbering of the tree: (graph, {old vertex: new}).

    In every subtree of vertex 0 the leaves get the highest numbers that are not yet used and are then removed, and so
    on inwards; the arcs get the numbers of the vertices that they precede [Y 1.1.2]. Numbers are contiguous in each
    subtree [Y 3.6]. Cut joints keep their order.

    >>> graph, new = mbs.textbook.regular_numbering(mbs.textbook.Graph(i_plus=(0, 2), i_minus=(2, 1)))
    >>> print(graph.arcs, new)
    ((0, 1), (1, 2)) {1: 2, 2: 1}
    """
    new: dict[int, int] = {}
    top = graph.n
    for root in sorted(set(graph.subtree), reverse=True):
        left = {i for i in range(1, graph.n + 1) if graph.subtree[i - 1] == root}
        while left:
            inner = {graph.preceding[i - 1][1] for i in left}
            for i in sorted(left - inner, reverse=True):
                new[i] = top
                top -= 1
            left &= inner
    by_new = sorted(new, key=new.__getitem__)
    arcs = [graph.preceding[i - 1][0] + 1 for i in by_new]
    return renumbered(graph, new, arcs + list(range(graph.n + 1, len(graph.i_plus) + 1))), new


def graph_of(model: Model) -> Graph:
    """Graph of a model: body i + 1 is body_names[i], arc a the inward joint of body a, from parent to child; the joints
    that close loops follow as cut joints.

    >>> mbs.textbook.graph_of(mbs.library.crank_slider().build()).arcs
    ((0, 1), (1, 2), (0, 3), (2, 3))
    """
    return graph_of_structure(model.structure)


@functools.lru_cache(maxsize=256)
def graph_of_structure(structure: Structure) -> Graph:
    """Graph of a model, from its static part."""
    links, loops, index = structure.links, structure.loops, structure.body_index
    return Graph(
        tuple(link.parent + 1 for link in links) + tuple(index[x.body_a] + 1 for x in loops),
        tuple(range(1, len(links) + 1)) + tuple(index[x.body_b] + 1 for x in loops),
        tuple(x.joint.nv for x in (*links, *loops)),
        (WORLD, *(link.body for link in links)),
        tuple(x.name for x in (*links, *loops)),
    )
