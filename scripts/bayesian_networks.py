"""Published Bayesian networks with known Markov boundaries: read from the BIF files in pgmpy's wheel, sampled by numpy.

pgmpy itself is not imported: its newer loaders download, the files in its wheel do not.
"""

from __future__ import annotations

import gzip
import itertools
import re
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import networkx as nx
import numpy as np

_VARIABLE = re.compile(r"variable\s+(\S+)\s*\{\s*type\s+discrete\s*\[\s*\d+\s*\]\s*\{([^}]*)\}")
_TABLE = re.compile(r"probability\s*\(\s*([^|)]+?)\s*(?:\|([^)]*))?\)\s*\{(.*?)\}", re.DOTALL)
_ROW = re.compile(r"(?:\(([^)]*)\)|table)\s*([^;]*);")


@dataclass(frozen=True)
class Network:
    """A discrete Bayesian network; `tables[v]` is (parent values ..., values of v)."""

    names: tuple[str, ...]
    parents: tuple[tuple[int, ...], ...]
    tables: tuple[np.ndarray, ...]

    def graph(self) -> nx.DiGraph:
        """The DAG over column numbers."""
        graph = nx.DiGraph()
        graph.add_nodes_from(range(len(self.names)))
        graph.add_edges_from((parent, child) for child, found in enumerate(self.parents) for parent in found)
        return graph

    def boundary(self, target: int) -> set[int]:
        """Parents, children and the children's other parents."""
        graph = self.graph()
        children = set(graph.successors(target))
        spouses = {parent for child in children for parent in graph.predecessors(child)}
        return (set(graph.predecessors(target)) | children | spouses) - {target}

    def sample(self, rows: int, rng: np.random.Generator) -> np.ndarray:
        """Codes (rows, variables), drawn from parents to children."""
        codes = np.zeros((rows, len(self.names)), np.int64)
        for column in nx.topological_sort(self.graph()):
            probs = self.tables[column][tuple(codes[:, parent] for parent in self.parents[column])]
            probs = np.broadcast_to(probs, (rows, probs.shape[-1]))
            codes[:, column] = (rng.random((rows, 1)) > np.cumsum(probs, axis=1)[:, :-1]).sum(axis=1)
        return codes


def load_network(name: str) -> Network:
    """One of the networks in pgmpy's wheel, e.g. alarm, child, insurance."""
    path = Path(str(distribution("pgmpy").locate_file(f"pgmpy/utils/example_models/{name}.bif.gz")))
    return parse_bif(gzip.decompress(path.read_bytes()).decode())


def parse_bif(text: str) -> Network:
    """Read the BIF text format (discrete variables, one table each)."""
    values = {name: [value.strip() for value in found.split(",")] for name, found in _VARIABLE.findall(text)}
    names = tuple(values)
    parents: dict[str, tuple[str, ...]] = {}
    tables: dict[str, np.ndarray] = {}
    for name, given, body in _TABLE.findall(text):
        parents[name] = tuple(part.strip() for part in given.split(",")) if given else ()
        shape = [len(values[parent]) for parent in parents[name]]
        table = np.full((*shape, len(values[name])), np.nan)
        for key, numbers in _ROW.findall(body):
            at = tuple(values[p].index(v.strip()) for p, v in zip(parents[name], key.split(","), strict=False) if key)
            table[at] = np.array([float(number) for number in numbers.split(",")])
        if not np.allclose(table.sum(-1), 1.0, atol=1e-3):
            raise ValueError(f"{name}: expected probabilities that sum to 1")
        tables[name] = table / table.sum(-1, keepdims=True)
    index = {name: column for column, name in enumerate(names)}
    return Network(
        names, tuple(tuple(index[p] for p in parents[name]) for name in names), tuple(tables[name] for name in names)
    )


def random_network(variables: int, rng: np.random.Generator, *, values: int = 2, most_parents: int = 2) -> Network:
    """A network for tests that need no file: each variable follows the sum of its parents 85 times in 100."""
    parents, tables = [], []
    for column in range(variables):
        size = min(column, int(rng.integers(most_parents + 1)))
        found = tuple(sorted(rng.choice(column, size, replace=False).tolist())) if size else ()
        table = np.full((values,) * (len(found) + 1), 0.15 / (values - 1))
        for key in itertools.product(range(values), repeat=len(found)):
            table[(*key, (sum(key) + column) % values)] = 0.85
        parents.append(found)
        tables.append(table)
    return Network(tuple(f"v{column}" for column in range(variables)), tuple(parents), tuple(tables))


def boundary_scores(found: set[int], truth: set[int]) -> tuple[float, float, float]:
    """Precision, recall, F1 of one boundary; both empty counts as right (the convention of the published packages)."""
    if not truth or not found:
        right = float(not truth and not found)
        return right, right, right
    precision, recall = len(found & truth) / len(found), len(found & truth) / len(truth)
    return precision, recall, 2 * precision * recall / (precision + recall) if precision + recall else 0.0
