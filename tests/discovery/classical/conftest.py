"""Tables whose every answer is known: a d-separation oracle, dense counting, and published networks."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import networkx as nx
import numpy as np
import pytest

from oscar_causal.discovery.classical.ci_tests import Associations
from oscar_causal.discovery.classical.sparse import SparseTable, sparse_table

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"


@pytest.fixture(scope="session")
def networks() -> ModuleType:
    """The reader and sampler of Bayesian networks that the benchmark uses."""
    name = "bayesian_networks"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


class SeparationTable:
    """A table that never errs: two variables are dependent exactly when the graph does not separate them."""

    def __init__(self, graph: nx.DiGraph, seed: int = 0) -> None:
        self.graph = graph
        self.names = tuple(str(node) for node in graph)
        self.n_rows = 1_000_000
        self._rng = np.random.default_rng(seed)
        self.asked = 0

    @property
    def n_columns(self) -> int:
        return len(self.names)

    def associations(self, target: int, given: Sequence[int], candidates: np.ndarray, statistic: str) -> Associations:
        self.asked += len(candidates)
        apart = [nx.is_d_separator(self.graph, {target}, {int(x)}, set(given)) for x in candidates]
        strength = np.where(apart, 0.0, self._rng.uniform(500, 5000, len(candidates)))  # in no helpful order
        ones = np.ones(len(candidates), np.int64)
        return Associations(candidates, strength, ones, ones * self.n_rows)

    def entropies(self, columns: np.ndarray) -> np.ndarray:
        return np.ones(len(columns))


@dataclass(frozen=True)
class Graphs:
    """Random DAGs and what is true in them."""

    oracle: type[SeparationTable] = SeparationTable

    def random(self, nodes: int, edges: int, seed: int) -> nx.DiGraph:
        return random_graph(nodes, edges, seed)

    def boundary(self, graph: nx.DiGraph, node: int) -> set[int]:
        """Parents, children, spouses."""
        children = set(graph.successors(node))
        spouses = {parent for child in children for parent in graph.predecessors(child)}
        return (set(graph.predecessors(node)) | children | spouses) - {node}

    def neighbours(self, graph: nx.DiGraph, node: int) -> set[int]:
        """Parents and children."""
        return set(graph.predecessors(node)) | set(graph.successors(node))


@pytest.fixture(scope="session")
def graphs() -> Graphs:
    return Graphs()


def random_graph(nodes: int, edges: int, seed: int) -> nx.DiGraph:
    """A random DAG whose numbering says nothing about its order."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(nodes)
    pairs = [(int(a), int(b)) for i, a in enumerate(order) for b in order[i + 1 :]]
    graph = nx.DiGraph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(pairs[i] for i in rng.choice(len(pairs), edges, replace=False))
    return graph


@pytest.fixture(scope="session")
def table_of() -> Callable[..., SparseTable]:
    """Makes a sparse table from a dense 0/1 matrix."""

    def make(dense: np.ndarray, n_events: int | None = None) -> SparseTable:
        rows, columns = np.nonzero(dense)
        names = [f"c{number}" for number in range(dense.shape[1])]
        return sparse_table(rows, columns, dense.shape, names, dense.shape[1] if n_events is None else n_events)

    return make
