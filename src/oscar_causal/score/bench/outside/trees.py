"""Fault trees in Open-PSA XML: which sets of basic events bring the top event about?

Gates are `and`, `or`, `atleast`, `not`, `xor` or nothing (one child passed on); the gate nobody refers to is the top.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree  # noqa: S405 holds the tree; `parse_xml` reads it

import numpy as np
import numpy.typing as npt

from oscar_causal.data.importers.safe_xml import parse_xml
from oscar_causal.errors import DataError

Bool = npt.NDArray[np.bool_]
Node = tuple[str, str]
"""("gate" or "basic-event", name)."""
OPERATORS = ("and", "or", "atleast", "not", "xor", "pass")


class TooMany(Exception):
    """More minimal cut sets than were asked for."""


@dataclass(frozen=True)
class Gate:
    """One gate."""

    operator: str
    children: tuple[Node, ...]
    least: int = 1
    """`atleast`: how many of the children."""


@dataclass(frozen=True)
class Tree:
    """One fault tree."""

    name: str
    gates: Mapping[Node, Gate]
    top: Node

    @cached_property
    def basic(self) -> tuple[str, ...]:
        """Basic events that the top event can see, sorted by name."""
        return tuple(sorted(name for kind, name in self.order if kind == "basic-event"))

    @property
    def coherent(self) -> bool:
        """Is more always at least as bad? No gate turns a value round."""
        return all(self.gates[node].operator not in ("not", "xor") for node in self.order if node in self.gates)

    @cached_property
    def order(self) -> tuple[Node, ...]:
        """All nodes below the top, children first."""
        done: dict[Node, None] = {}
        waiting = [(self.top, False)]
        while waiting:
            node, opened = waiting.pop()
            if node in done:
                continue
            if opened or node not in self.gates:
                done[node] = None
            else:
                waiting.append((node, True))
                waiting += [(child, False) for child in self.gates[node].children]
        return tuple(done)

    def values(self, present: Bool) -> dict[Node, Bool]:
        """The value of every node for each row of `present` (n, basic events)."""
        found: dict[Node, Bool] = {("basic-event", name): present[:, k] for k, name in enumerate(self.basic)}
        for node in self.order:
            if node in self.gates:
                gate = self.gates[node]
                found[node] = _gate_value(gate, [found[child] for child in gate.children])
        return found


def _gate_value(gate: Gate, children: list[Bool]) -> Bool:
    match gate.operator:
        case "and":
            return reduce(np.logical_and, children)
        case "or" | "pass":
            return reduce(np.logical_or, children)
        case "not":
            return ~children[0]
        case "xor":
            return reduce(np.logical_xor, children)
    held: Bool = np.sum(children, axis=0) >= gate.least
    return held


def read_tree(path: Path) -> Tree:
    """A tree from an Open-PSA file, plain or .gz."""
    builder = ElementTree.TreeBuilder()
    for _ in parse_xml(path, builder.start, builder.end):
        pass  # the builder takes what is parsed
    root = builder.close()
    gates: dict[Node, Gate] = {}
    for definition in root.iter("define-gate"):
        name = definition.get("name") or ""
        formula = [part for part in definition if part.tag not in ("label", "attributes")]
        if len(formula) != 1:
            raise DataError(f"{path}: gate {name!r}: expected one formula, got {len(formula)}")
        gates["gate", name] = _gate(formula[0], name, gates, path)
    return Tree(path.name.split(".")[0], gates, _top(gates, path))


def _gate(formula: ElementTree.Element, name: str, gates: dict[Node, Gate], path: Path) -> Gate:
    if formula.tag in ("gate", "basic-event"):
        return Gate("pass", (_node(formula),))
    if formula.tag not in OPERATORS or not len(formula):
        raise DataError(f"{path}: gate {name!r}: expected one of {', '.join(OPERATORS[:-1])}, got {formula.tag!r}")
    children = []
    for place, child in enumerate(formula):
        if child.tag in ("gate", "basic-event"):
            children.append(_node(child))
        else:  # a formula inside a formula: a gate without a name of its own
            children.append(("gate", f"{name}/{place}"))
            gates[children[-1]] = _gate(child, f"{name}/{place}", gates, path)
    return Gate(formula.tag, tuple(children), int(formula.get("min", 1)))


def _node(element: ElementTree.Element) -> Node:
    return element.tag, element.get("name") or ""


def _top(gates: Mapping[Node, Gate], path: Path) -> Node:
    used = {child for gate in gates.values() for child in gate.children}
    missing = sorted(name for kind, name in used if kind == "gate" and (kind, name) not in gates)
    tops = [node for node in gates if node not in used]
    if missing or len(tops) != 1:
        raise DataError(f"{path}: expected one top gate and every gate defined, got {len(tops)} tops, {missing[:1]}")
    return tops[0]


def minimal_cut_sets(tree: Tree, held: Mapping[Node, bool], most: int) -> list[frozenset[str]]:
    """The minimal sets of held basic events that bring the top event about, in a coherent tree.

    `held`: the value of every node. More than `most` sets of any gate raise `TooMany`.
    """
    if not held[tree.top]:
        return []
    names = [name for name in tree.basic if held["basic-event", name]]
    bits = {("basic-event", name): 1 << k for k, name in enumerate(names)}
    known: dict[Node, list[int]] = {}
    for node in tree.order:
        if held[node]:
            known[node] = [bits[node]] if node in bits else _cuts(tree.gates[node], known, most)
    return [frozenset(name for k, name in enumerate(names) if cut >> k & 1) for cut in known[tree.top]]


def _cuts(gate: Gate, known: Mapping[Node, list[int]], most: int) -> list[int]:
    """Minimal cut sets of a gate that holds, from those of its children that hold; a set is the bits of an integer."""
    children = [known[child] for child in gate.children if child in known]
    least = {"and": len(gate.children), "atleast": gate.least}.get(gate.operator, 1)
    if least == 1:
        return _minimal([cut for child in children for cut in child], most)
    found: list[int] = []
    for chosen in combinations(children, least):
        product = chosen[0]
        for child in chosen[1:]:
            product = _minimal([one | other for one in product for other in child], most)
        found = _minimal(found + product, most)
    return found


def _minimal(cuts: Iterable[int], most: int) -> list[int]:
    kept: list[int] = []
    for cut in sorted(set(cuts), key=int.bit_count):
        if not any(smaller & cut == smaller for smaller in kept):
            kept.append(cut)
            if len(kept) > most:
                raise TooMany
    return kept
