"""MI-MCF: causal features of one label among many, by mutual information.

Ma, Hu, Li, Ding and Gao, "MI-MCF: a mutual information-based multilabel causal feature selection", IEEE Transactions
on Neural Networks and Learning Systems, 2025. Association is symmetrical uncertainty, 2 I(x; t) / (H(x) + H(t)).

1. Neighbours of the label, other labels among them: relevant variables, strongest first, each dropped when a stronger
   one knows it better than the label does; then weak ones are taken in when a neighbour lifts their information.
2. A neighbouring label may have hidden features: the strongest candidates come back unless they are independent of the
   label with and without that neighbour. Neighbouring labels then leave.
3. The weakest features must have the label among their own neighbours.

Without other labels among the candidates, the second phase has nothing to do. Beyond the publication, relevance also
needs a significant test: with thousands of candidates the threshold on uncertainty alone lets chance in.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import ceil

import numpy as np

from oscar_causal.discovery.classical.found import Found
from oscar_causal.discovery.classical.tester import CiTester, OutOfTime
from oscar_causal.errors import UsageError


@dataclass(frozen=True)
class MiMcfConfig:
    """The method's own parameters; alpha and the correction are those of the tests."""

    relevance: float = 0.05
    """Smallest symmetrical uncertainty of a relevant variable."""
    lift: float = 0.13
    """How much better a neighbour must know a weak variable than the label does before its lift is looked at."""
    k1: float = 0.7
    """Share of the candidates that may come back in phase 2, strongest first (rounded up)."""
    k2: float = 0.1
    """Share of the features that are checked from the other side in phase 3, weakest first (rounded down)."""

    def __post_init__(self) -> None:
        for name in ("relevance", "lift", "k1", "k2"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"{name}: expected a number between 0 and 1, got {getattr(self, name)}")


def mi_mcf(
    tester: CiTester, target: int, *, labels: frozenset[int] = frozenset(), config: MiMcfConfig | None = None
) -> Found:
    """The features of `target`. `labels` are the other labels' columns; they never stay in the answer."""
    config = config or MiMcfConfig()
    members: list[int] = []
    try:
        members += _neighbours(tester, target, config)
        others = [member for member in members if member in labels]
        for other in others:
            _restore_hidden(tester, target, members, other, labels, config)
            members.remove(other)
        _check_symmetry(tester, target, members, config)
    except OutOfTime:
        return Found(tuple(x for x in members if x not in labels), complete=False)
    return Found(tuple(members), complete=True)


def _neighbours(tester: CiTester, target: int, config: MiMcfConfig) -> list[int]:
    """Phase 1: relevant and not redundant, then weak ones lifted by a neighbour."""
    significant = tester.dependent(tester.scan(target))
    known = _uncertainties(tester, target, significant)
    ranked = sorted(significant, key=lambda x: -known[x])
    kept: list[int] = []
    waiting = [x for x in ranked if known[x] > config.relevance]
    while waiting:
        kept.append(waiting.pop(0))
        among = _uncertainties(tester, kept[-1], waiting)
        waiting = [x for x in waiting if among[x] <= known[x]]
    weak = [x for x in ranked if known[x] <= config.relevance]
    return kept + _lifted(tester, target, kept, weak, known, config)


def _lifted(
    tester: CiTester, target: int, kept: list[int], weak: list[int], known: dict[int, float], config: MiMcfConfig
) -> list[int]:
    found: list[int] = []
    for neighbour in kept:
        among = _uncertainties(tester, neighbour, weak)
        near = [x for x in weak if x not in found and among[x] > known[x] + config.lift]
        alone, given = _information(tester, target, (), near), _information(tester, target, (neighbour,), near)
        found += [x for x in near if given[x] > alone[x]]
    return found


def _restore_hidden(
    tester: CiTester, target: int, members: list[int], other: int, labels: frozenset[int], config: MiMcfConfig
) -> None:
    """Phase 2: bring back the features that only the neighbouring label `other` made look independent."""
    outside = [x for x in tester.dependent(tester.scan(target)) if x not in members and x not in labels]
    strength = _information(tester, target, (), [*outside, *members])
    floor = min((strength[member] for member in members if member not in labels), default=0.0)
    ranked = sorted((x for x in outside if strength[x] >= floor), key=lambda x: -strength[x])
    sets = [given for size in range(3) for given in combinations([m for m in members if m != other], size)]
    back = [x for x in ranked[: ceil(len(ranked) * config.k1)] if not _independent(tester, target, x, other, sets)]
    members += back


def _independent(tester: CiTester, target: int, x: int, other: int, sets: list[tuple[int, ...]]) -> bool:
    return any(
        bool(tester.separated(target, (*given, other), [x])) and bool(tester.separated(target, given, [x]))
        for given in sets
    )


def _check_symmetry(tester: CiTester, target: int, members: list[int], config: MiMcfConfig) -> None:
    """Phase 3: weakest first, drop features that do not have the target among their neighbours, until one has."""
    strength = _information(tester, target, (), members)
    for x in sorted(members, key=lambda x: strength[x])[: int(len(members) * config.k2)]:
        if target in _neighbours(tester, x, config):
            return
        members.remove(x)


def _information(tester: CiTester, target: int, given: tuple[int, ...], columns: list[int]) -> dict[int, float]:
    """(Conditional) mutual information with the target in nats: G² / 2n."""
    tester.check_time()
    found = tester.table.associations(target, given, np.array(columns, np.int64), "g2")
    values = found.statistic / (2.0 * tester.table.n_rows)
    return dict(zip(columns, values.tolist(), strict=True))


def _uncertainties(tester: CiTester, target: int, columns: list[int]) -> dict[int, float]:
    """Symmetrical uncertainty of each column with the target, between 0 and 1."""
    shared = _information(tester, target, (), columns)
    entropy = tester.table.entropies(np.array([target, *columns], np.int64))
    return {
        x: 2.0 * shared[x] / total if (total := float(entropy[0] + own)) > 0 else 0.0
        for x, own in zip(columns, entropy[1:], strict=True)
    }
