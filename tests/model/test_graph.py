"""Graphs: the printed matrices of the sources (corrected), identities on random graphs, errors."""

import numpy as np
import pytest

import jaxmbs as mbs
from jaxmbs.model.graph import (
    Graph,
    constraints,
    from_incidence,
    graph_of,
    path_order,
    regular_numbering,
    renumbered,
    reversed_arcs,
    spanning_tree,
)
from tests.cases import case

# [Y table 1.1], graph of fig. 1.3
FIG_1_3 = Graph((1, 6, 4, 6, 4, 6, 7), (6, 2, 3, 4, 5, 7, 0))
# old to new vertices in fig. 1.6, which numbers the same graph regularly
FIG_1_6 = {7: 1, 6: 2, 4: 3, 1: 4, 3: 5, 5: 6, 2: 7}
# [Y table 3.2], graph of fig. 3.22: seven bodies, three cut joints
FIG_3_22 = Graph((5, 6, 0, 1, 1, 3, 0, 4, 0, 5), (0, 4, 2, 2, 7, 2, 4, 3, 7, 6))


def rows(text):
    return np.array([[int(x) for x in line.split()] for line in text.strip().splitlines()])


def random_tree(rng, n):
    """A tree with shuffled labels, arcs in shuffled order and random directions."""
    label = np.concatenate([[0], 1 + rng.permutation(n)])
    pairs = [(label[rng.integers(i)], label[i]) for i in range(1, n + 1)]
    pairs = [pairs[k] for k in rng.permutation(n)]
    pairs = [p if rng.uniform() < 0.5 else p[::-1] for p in pairs]
    return Graph(*(tuple(int(x) for x in side) for side in zip(*pairs, strict=True)))


def test_figure_1_3():
    """The incidence matrix as printed; of the adjacency matrix rows 2 and 3 are misprinted: a 1 in column 4 and in
    columns 3, 5 where the incidence matrix, and symmetry, ask for 6 and 4 (vertices numbered from 0)."""
    assert np.array_equal(FIG_1_3.incidence, rows("""
         0  0  0  0  0  0 -1
        +1  0  0  0  0  0  0
         0 -1  0  0  0  0  0
         0  0 -1  0  0  0  0
         0  0 +1 -1 +1  0  0
         0  0  0  0 -1  0  0
        -1 +1  0 +1  0 +1  0
         0  0  0  0  0 -1 +1"""))  # fmt: skip
    assert np.array_equal(FIG_1_3.adjacency, rows("""
        0 0 0 0 0 0 0 1
        0 0 0 0 0 0 1 0
        0 0 0 0 0 0 1 0
        0 0 0 0 1 0 0 0
        0 0 0 1 0 1 1 0
        0 0 0 0 1 0 0 0
        0 1 1 0 1 0 0 1
        1 0 0 0 0 0 1 0"""))  # fmt: skip
    assert from_incidence(FIG_1_3.incidence).arcs == FIG_1_3.arcs


def test_figure_1_6():
    """T as printed. The printed S is singular: its row 2 is 0 0 1 1 -1 0 1 where T asks for 0 1 1 -1 0 0 1."""
    graph = renumbered(FIG_1_3, FIG_1_6, [7, 6, 4, 1, 3, 5, 2])
    T = rows("""
        1 1  1 1  1  1  1
        0 1  1 1  1  1  1
        0 0 -1 0 -1 -1  0
        0 0  0 1  0  0  0
        0 0  0 0 -1  0  0
        0 0  0 0  0 -1  0
        0 0  0 0  0  0 -1""")
    S = rows("""
        1 -1  0  0  0  0  0
        0  1  1 -1  0  0  1
        0  0 -1  0  1  1  0
        0  0  0  1  0  0  0
        0  0  0  0 -1  0  0
        0  0  0  0  0 -1  0
        0  0  0  0  0  0 -1""")
    printed = S.copy()
    printed[1] = 0, 0, 1, 1, -1, 0, 1
    assert graph.regular and np.array_equal(graph.T, T) and np.array_equal(graph.S, S)
    assert abs(np.linalg.det(printed)) < 1e-12 and np.allclose(np.linalg.inv(S), T, rtol=0, atol=1e-12)
    assert graph.path(5) == [5, 3, 2, 1]


def test_figure_3_22():
    """(3.180)-(3.183) as printed: S0 and S, the columns of the cut joints, S0+, S+, S0*+ and S*+."""
    assert np.array_equal(FIG_3_22.incidence, rows("""
        -1  0 +1  0  0  0 +1  0 +1  0
         0  0  0 +1 +1  0  0  0  0  0
         0  0 -1 -1  0 -1  0  0  0  0
         0  0  0  0  0 +1  0 -1  0  0
         0 -1  0  0  0  0 -1 +1  0  0
        +1  0  0  0  0  0  0  0  0 +1
         0 +1  0  0  0  0  0  0  0 -1
         0  0  0  0 -1  0  0  0 -1  0"""))  # fmt: skip
    assert np.array_equal(FIG_3_22.S_plus[0], [0, 0, 1, 0, 0, 0, 1, 0, 1, 0])
    assert np.array_equal(FIG_3_22.S_plus[1:, :7], rows("""
        0 0 0 1 1 0 0
        0 0 0 0 0 0 0
        0 0 0 0 0 1 0
        0 0 0 0 0 0 0
        1 0 0 0 0 0 0
        0 1 0 0 0 0 0
        0 0 0 0 0 0 0"""))  # fmt: skip
    assert np.array_equal(FIG_3_22.S_plus[1:, 7:].T, [[0, 0, 0, 1, 0, 0, 0], [0] * 7, [0, 0, 0, 0, 1, 0, 0]])
    assert np.array_equal(FIG_3_22.S_cut, FIG_3_22.incidence[:, 7:])
    assert FIG_3_22.subtree == (2, 2, 2, 6, 0, 6, 2)
    check_identities(FIG_3_22)


def test_wang_figure_1_petals_and_chain():
    """[I] and [H] of eight bodies [W fig. 1]; [I] of petals and of a chain [W 5(1)]."""
    eight = Graph((0, 1, 1, 1, 2, 4, 4, 7), tuple(range(1, 9)))
    assert np.array_equal(eight.wang_I, rows("""
        -1  1  1  1  0  0  0  0
         0 -1  0  0  1  0  0  0
         0  0 -1  0  0  0  0  0
         0  0  0 -1  0  1  1  0
         0  0  0  0 -1  0  0  0
         0  0  0  0  0 -1  0  0
         0  0  0  0  0  0 -1  1
         0  0  0  0  0  0  0 -1"""))  # fmt: skip
    assert np.array_equal(eight.wang_H, -rows("""
        1 1 1 1 1 1 1 1
        0 1 0 0 1 0 0 0
        0 0 1 0 0 0 0 0
        0 0 0 1 0 1 1 1
        0 0 0 0 1 0 0 0
        0 0 0 0 0 1 0 0
        0 0 0 0 0 0 1 1
        0 0 0 0 0 0 0 1"""))  # fmt: skip
    assert np.array_equal(eight.wang_I, eight.S) and np.array_equal(eight.wang_H, eight.T)
    turned = reversed_arcs(eight, [1, 4, 7])
    assert np.array_equal(turned.wang_I, eight.S) and np.array_equal(turned.wang_H, eight.T)
    petals, chain = Graph((0, 1, 1, 1, 1), (1, 2, 3, 4, 5)), Graph((0, 1, 2, 3, 4), (1, 2, 3, 4, 5))
    assert np.array_equal(petals.wang_I, np.vstack([[-1, 1, 1, 1, 1], -np.eye(5)[1:]]))
    assert np.array_equal(chain.wang_I, -np.eye(5) + np.eye(5, k=1))


def check_identities(graph):
    E = np.eye(graph.n)
    assert np.array_equal(graph.T @ graph.S, E) and np.array_equal(graph.S @ graph.T, E)
    assert np.array_equal(graph.T.T @ graph.S0, -np.ones(graph.n))
    assert np.array_equal(graph.wang_I @ graph.wang_H, E)
    assert np.array_equal(graph.incidence.sum(axis=0), np.zeros(len(graph.arcs)))
    assert np.array_equal(graph.adjacency, np.diag(np.diag(full := graph.incidence @ graph.incidence.T)) - full)


@pytest.mark.parametrize("seed", range(20))
def test_random_labelled_trees(seed):
    rng = np.random.default_rng(seed)
    graph = random_tree(rng, int(rng.integers(1, 30)))
    check_identities(graph)
    regular, new = regular_numbering(graph)
    check_identities(regular)
    assert regular.regular
    assert np.array_equal(np.tril(regular.T, -1), 0 * regular.T) and np.array_equal(
        np.tril(regular.S, -1), 0 * regular.S
    )
    for i in range(1, graph.n + 1):
        path = graph.path(i)
        assert set(path) == {a + 1 for a in np.flatnonzero(graph.T[:, i - 1])}
        j = i  # the path read from S and T is a walk to vertex 0
        for a in path:
            j = sum(graph.arcs[a - 1]) - j
        assert j == 0
        assert regular.path(new[i]) == sorted(regular.path(new[i]), reverse=True)
        assert graph.bodies[i] == regular.bodies[new[i]]
        assert [graph.joints[a - 1] for a in path] == [regular.joints[a - 1] for a in regular.path(new[i])]
    outward = reversed_arcs(graph, [a + 1 for a in range(graph.n) if graph.T[a].max() > 0])
    assert outward.outward and np.array_equal(outward.T, graph.wang_H)


def test_cuts_put_the_fewest_constraints():
    """Against all spanning trees of small random graphs."""
    import itertools

    for seed in range(30):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, 4)
        extra = [tuple(int(x) for x in rng.choice(5, 2, replace=False)) for _ in range(3)]
        plus, minus = zip(*(tree.arcs + tuple(extra)), strict=True)
        freedoms = tuple(int(f) for f in rng.integers(1, 6, 7))
        graph = Graph(plus, minus, freedoms)
        best = np.inf
        for cut in itertools.combinations(range(7), 3):
            kept = [a for a in range(7) if a not in cut]
            if len(graph._reached(kept)) == 5:
                best = min(best, sum(6 - freedoms[a] for a in cut))
        chosen = spanning_tree(graph)
        assert constraints(chosen) == best
        check_identities(chosen)
        assert sorted(chosen.joints) == sorted(graph.joints)


def test_slider_crank_is_cut_at_its_loosest_joint():
    """Crank, rod, slider: revolute, revolute, spherical and prismatic joints; the spherical one has most freedoms."""
    graph = Graph(
        (0, 1, 2, 0), (1, 2, 3, 3), (1, 1, 3, 1), ("frame", "crank", "rod", "slider"), ("A", "B", "C", "guide")
    )
    cut = spanning_tree(graph)
    assert cut.joints == ("A", "B", "guide", "C") and constraints(cut) == 3


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Graph((0, 3), (1, 4)), ["vertices", "3 ('s3')", "4 ('s4')", "cannot be reached"]),
        (lambda: Graph((0,), (1,), bodies=("base", "arm", "hand")), ["vertex 2 ('hand')"]),
        (lambda: Graph((0, 1), (1, 1)), ["arc 2", "vertex 1"]),
        (lambda: Graph((0, -2), (1, 2)), ["arc 2", "-2"]),
        (lambda: Graph((0, 1), (1,)), ["2 entries", "1"]),
        (lambda: from_incidence([[1, 0], [-1, 1], [0, 1]]), ["column 2"]),
        (lambda: Graph((0, 0, 1), (1, 1, 2)).T, ["vertex 2 ('s2')", "spanning_tree"]),
        (lambda: renumbered(FIG_1_3, {1: 2, 2: 2}, range(1, 8)), ["not a renumbering"]),
    ],
)
def test_errors_name_the_vertices(build, words):
    with pytest.raises(mbs.ModelError) as caught:
        build()
    assert all(word in str(caught.value) for word in words), caught.value


def test_graph_of_a_model():
    model = case(7, 12).model
    graph = graph_of(model)
    assert graph.bodies == ("world", *model.body_names) and graph.joints == model.joint_names
    assert graph.outward and sum(graph.freedoms) == model.nv
    assert [link.parent + 1 for link in model.structure.links] == list(graph.i_plus)
    check_identities(graph)
    assert path_order(graph.S, graph.T, 0) == []
