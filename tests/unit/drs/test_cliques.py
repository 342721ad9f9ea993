"""Covering the edges of a graph by cliques."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from underhost.agents.drs.cliques import bits, clique_cover, split


def adjacency_of(size, edges):
    rows = [0] * size
    for a, b in edges:
        rows[a] |= 1 << b
        rows[b] |= 1 << a
    return rows


def members(cliques):
    return [list(bits(clique)) for clique in cliques]


def pairs(cliques):
    return {pair for clique in cliques for pair in itertools.combinations(bits(clique), 2)}


K4 = list(itertools.combinations(range(4), 2))


@pytest.mark.parametrize(
    ("size", "edges", "expected"),
    [
        pytest.param(3, [], [], id="no edge needs no clique"),
        pytest.param(2, [(0, 1)], [[0, 1]], id="an edge is a clique of two"),
        pytest.param(4, K4, [[0, 1, 2, 3]], id="four that are all apart are one clique"),
        pytest.param(3, [(0, 1), (1, 2)], [[0, 1], [1, 2]], id="a path is never closed to a triangle"),
        pytest.param(4, [(0, 1), (2, 3)], [[0, 1], [2, 3]], id="two couples stay two cliques"),
        pytest.param(
            5,
            [(0, 1), (0, 2), (1, 2), (2, 3), (2, 4), (3, 4)],
            [[0, 1, 2], [2, 3, 4]],
            id="two triangles that share a member",
        ),
        pytest.param(
            4, [(0, 1), (1, 2), (2, 3), (0, 3)], [[0, 1], [0, 3], [1, 2], [2, 3]], id="a ring of four has no diagonal"
        ),
        pytest.param(
            4, [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)], [[0, 1, 2], [1, 2, 3]], id="all but one edge of four"
        ),
    ],
)
def test_the_cliques_cover_exactly_the_edges(size, edges, expected):
    cover = clique_cover(adjacency_of(size, edges))
    assert pairs(cover) == {tuple(sorted(edge)) for edge in edges}
    assert members(cover) == expected


def test_every_graph_of_up_to_five_is_covered_exactly():
    for size in range(2, 6):
        every = list(itertools.combinations(range(size), 2))
        for chosen in range(1 << len(every)):
            edges = {edge for position, edge in enumerate(every) if chosen >> position & 1}
            assert pairs(clique_cover(adjacency_of(size, edges))) == edges


@given(st.integers(0, 2**32), st.integers(6, 12), st.floats(0.1, 0.95))
@settings(max_examples=150)
def test_random_graphs_are_covered_exactly_with_any_seeds(seed, size, density):
    rng = random.Random(seed)
    edges = {pair for pair in itertools.combinations(range(size), 2) if rng.random() < density}
    seeds = [rng.getrandbits(size) for _ in range(5)] + [1 << a | 1 << b for a, b in sorted(edges)[:5]]
    cover = clique_cover(adjacency_of(size, edges), seeds)
    assert pairs(cover) == edges
    assert all(clique.bit_count() > 1 for clique in cover)


def test_a_clique_covered_by_others_is_left_out():
    triangles = [0b00111, 0b11100]
    assert members(clique_cover(adjacency_of(5, pairs(triangles)), [0b00011, 0b00110, *triangles])) == [
        [0, 1, 2],
        [2, 3, 4],
    ]


@pytest.mark.parametrize(
    ("size", "most", "expected"),
    [
        pytest.param(5, 4, [[0, 1, 2, 3]], id="the one left over is alone"),
        pytest.param(8, 4, [[0, 1, 2, 3], [4, 5, 6, 7]], id="two full parts"),
        pytest.param(3, 2, [[0, 1]], id="two hosts hold two apart"),
        pytest.param(3, 1, [], id="one host holds nothing apart"),
        pytest.param(3, 0, [], id="no host holds nothing apart"),
        pytest.param(3, 3, [[0, 1, 2]], id="what fits stays whole"),
    ],
)
def test_a_clique_is_split_into_disjoint_parts(size, most, expected):
    assert members(split((1 << size) - 1, most)) == expected


@pytest.mark.parametrize(
    ("weights", "places", "expected"),
    [
        pytest.param([1, 2, 2], "abc", [[1, 2]], id="those with most to be apart for"),
        pytest.param([1, 1, 1], "aab", [[0, 2]], id="those that are apart already"),
        pytest.param([1, 2, 2], "abb", [[1, 2]], id="what weighs most, though it must move"),
        pytest.param([1, 1, 1, 1], "aabb", [[0, 2], [1, 3]], id="two parts that are apart already"),
    ],
)
def test_where_hosts_are_few_a_clique_is_split_so_that_least_is_broken_and_moved(weights, places, expected):
    parts = split((1 << len(weights)) - 1, 2, weights.__getitem__, places.__getitem__)
    assert members(parts) == expected
