"""The algorithms against graphs: with an oracle that never errs they must return what the graph says."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from oscar_causal.discovery.classical.ci_tests import CiConfig
from oscar_causal.discovery.classical.cmb import cmb
from oscar_causal.discovery.classical.found import Found
from oscar_causal.discovery.classical.iamb import iamb
from oscar_causal.discovery.classical.mb_by_mb import mb_by_mb
from oscar_causal.discovery.classical.mi_mcf import MiMcfConfig, mi_mcf
from oscar_causal.discovery.classical.neighbours import hiton_pc, max_min_pc
from oscar_causal.discovery.classical.pcd_by_pcd import pcd_by_pcd
from oscar_causal.discovery.classical.tester import CiTester, OutOfTime
from oscar_causal.errors import UsageError

EVERY_SET = CiConfig(max_given=9)
LOCAL = (cmb, mb_by_mb, pcd_by_pcd)


def asks_of(graphs: Any, nodes: int, edges: int, seed: int) -> tuple[CiTester, Any]:
    graph = graphs.random(nodes, edges, seed)
    return CiTester(graphs.oracle(graph, seed), EVERY_SET), graph


@pytest.mark.parametrize("seed", range(3))
def test_iamb_returns_the_markov_boundary(graphs: Any, seed: int) -> None:
    asks, graph = asks_of(graphs, 12, 18, seed)
    for node in graph:
        found = iamb(asks, node)
        assert found.complete
        assert set(found.members) == graphs.boundary(graph, node)


@pytest.mark.parametrize("search", [hiton_pc, max_min_pc])
@pytest.mark.parametrize("seed", range(3))
def test_neighbour_searches_keep_all_neighbours_and_separate_the_rest(graphs: Any, seed: int, search: Any) -> None:
    asks, graph = asks_of(graphs, 9, 11, seed)
    for node in graph:
        found = search(asks, node)
        truth = graphs.neighbours(graph, node)
        assert truth <= set(found.members)  # descendants may stay until they are asked themselves
        for other in set(graph) - {node, *found.members}:
            assert not asks.related(other, node, found.separator(other))


@pytest.mark.parametrize("method", LOCAL)
@pytest.mark.parametrize("seed", range(4))
def test_local_methods_find_boundaries_and_never_a_wrong_direction(graphs: Any, seed: int, method: Any) -> None:
    asks, graph = asks_of(graphs, 8, 9, seed)
    for node in graph:
        found = method(asks, node)
        assert found.complete
        assert graphs.neighbours(graph, node) <= set(found.members)
        assert set(found.roles) == set(found.members)
        for other, role in found.roles.items():
            if role == "parent":
                assert graph.has_edge(other, node)
            elif role == "child":
                assert graph.has_edge(node, other)


@pytest.mark.parametrize("seed", range(4))
def test_mb_by_mb_and_pcd_by_pcd_leave_undirected_only_what_no_method_could_direct(graphs: Any, seed: int) -> None:
    asks, graph = asks_of(graphs, 8, 9, seed)
    for node in graph:
        compelled = compelled_neighbours(graph, node)
        for method in (mb_by_mb, pcd_by_pcd):
            found = method(asks, node)
            undirected = {x for x, role in found.roles.items() if role == "undirected"}
            assert undirected & graphs.neighbours(graph, node) == graphs.neighbours(graph, node) - compelled
            assert {x for x, role in found.roles.items() if role != "spouse"} == graphs.neighbours(graph, node)


def compelled_neighbours(graph: Any, node: int) -> set[int]:
    """Neighbours whose edge points the same way in every DAG with the same skeleton and the same colliders (tried)."""
    from itertools import combinations, product

    import networkx as nx

    def colliders(g: Any) -> set[tuple[int, int, int]]:
        found = set()
        for middle in g:
            for a, b in combinations(sorted(g.predecessors(middle)), 2):
                if not g.has_edge(a, b) and not g.has_edge(b, a):
                    found.add((a, middle, b))
        return found

    edges, wanted = list(graph.edges), colliders(graph)
    seen: dict[int, set[bool]] = {}
    for flips in product((False, True), repeat=len(edges)):
        other = nx.DiGraph()
        other.add_nodes_from(graph)
        other.add_edges_from((b, a) if flip else (a, b) for (a, b), flip in zip(edges, flips, strict=True))
        if nx.is_directed_acyclic_graph(other) and colliders(other) == wanted:
            for neighbour in set(other.predecessors(node)) | set(other.successors(node)):
                seen.setdefault(neighbour, set()).add(other.has_edge(neighbour, node))
    return {neighbour for neighbour, ways in seen.items() if len(ways) == 1}


@pytest.mark.parametrize("method", LOCAL)
@pytest.mark.parametrize("seed", range(3))
def test_the_boundary_of_an_outcome_are_its_parents(graphs: Any, seed: int, method: Any) -> None:
    asks, graph = asks_of(graphs, 10, 14, seed)
    for node in graph:
        if graph.out_degree(node) == 0:
            found = method(asks, node, outcome=True)
            assert set(found.members) == set(graph.predecessors(node))
            assert set(found.roles.values()) <= {"parent"}


@pytest.mark.parametrize("method", [iamb, *LOCAL])
def test_out_of_time_returns_what_was_found_so_far(graphs: Any, method: Any) -> None:
    graph = graphs.random(8, 10, 1)
    truth = {node: set(method(CiTester(graphs.oracle(graph), EVERY_SET), node).members) for node in graph}
    cut = [0]
    for node in graph:
        for allowed in (0, 2, 5, 20):
            found = method(LimitedTester(graphs.oracle(graph), allowed), node)
            cut.append(len(found.members))
            if allowed == 0:
                assert found == Found((), complete=False, roles=found.roles)
            if found.complete:
                assert set(found.members) == truth[node]
    assert max(cut) > 0


class LimitedTester(CiTester):
    """Time is over after a number of looks at the clock."""

    def __init__(self, table: Any, looks: int) -> None:
        super().__init__(table, EVERY_SET)
        self.looks = looks

    def check_time(self) -> None:
        self.looks -= 1
        if self.looks < 0:
            raise OutOfTime


def test_the_deadline_is_a_time_of_the_monotonic_clock(graphs: Any) -> None:
    oracle = graphs.oracle(graphs.random(6, 7, 0))
    assert iamb(CiTester(oracle, EVERY_SET, deadline=time.monotonic() + 60), 0).complete
    assert not iamb(CiTester(oracle, EVERY_SET, deadline=time.monotonic() - 1), 0).complete


def test_mi_mcf_finds_the_causes_and_drops_their_copies(table_of: Any) -> None:
    rng = np.random.default_rng(3)
    events = (rng.random((4000, 12)) < 0.3).astype(np.int64)
    events[:, 3] = events[:, 0] ^ (rng.random(4000) < 0.15)  # an echo of the first cause
    label = (events[:, 0] | events[:, 1]) ^ (rng.random(4000) < 0.03)
    asks = CiTester(table_of(np.column_stack([events, label]), 12), CiConfig(), allowed=np.arange(13))
    assert set(mi_mcf(asks, 12).members) == {0, 1}


def test_mi_mcf_out_of_time_returns_what_was_found_so_far(table_of: Any) -> None:
    rng = np.random.default_rng(5)
    events = (rng.random((3000, 10)) < 0.3).astype(np.int64)
    label = events[:, 0] | events[:, 1]
    table = table_of(np.column_stack([events, label]), 10)
    sizes = [len(mi_mcf(LimitedTester(table, looks), 10).members) for looks in range(12)]
    assert sizes[0] == 0
    assert sizes[-1] == 2
    assert not mi_mcf(LimitedTester(table, 3), 10).complete
    assert mi_mcf(LimitedTester(table, 50), 10).complete


def test_mi_mcf_brings_back_what_another_label_hid(table_of: Any) -> None:
    rng = np.random.default_rng(4)
    events = (rng.random((6000, 8)) < 0.3).astype(np.int64)
    first = events[:, 0] & events[:, 1]
    second = first ^ (rng.random(6000) < 0.02)
    asks = CiTester(table_of(np.column_stack([events, first, second]), 8), CiConfig(), allowed=np.arange(10))
    with_labels = mi_mcf(asks, 9, labels=frozenset({8}), config=MiMcfConfig(k1=1.0))
    assert set(with_labels.members) == {0, 1}
    hidden = mi_mcf(asks, 9, labels=frozenset({8}), config=MiMcfConfig(k1=0.0))
    assert not set(hidden.members) & {8}


def test_mi_mcf_settings_are_checked() -> None:
    with pytest.raises(UsageError, match="k1: expected a number between 0 and 1, got 7"):
        MiMcfConfig(k1=7)
