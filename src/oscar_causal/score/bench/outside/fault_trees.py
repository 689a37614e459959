"""22 industrial fault trees (Aralia): sequences of basic events are simulated, the top events are the labels.

- Sequence: basic events of all trees, each drawn with its tree's rate (set so that the top event comes in 6 to 10 % of
  the sequences), filler types besides, some of them repeated, shuffled, with times. Every constant (share, fillers,
  repeats, gaps) is drawn by the seed; a seed is another draw.
  A tree that needs more than 50 events in the mean sequence is left out (nus9601: 306 of 1,567).
- Label: a tree's top event. Deterministic; order, times and counts do not matter.
- True: the union of the minimal cut sets that are present. A pair with more than 500 of them is not scored. Trees with
  `not` or `xor`: events whose single removal undoes the top event (a pair without any is not scored); the tree's other
  present events are unknown.
- Split: by sequence, a fifth tested. Own figures: recall of necessary reasons (those in every present cut set) and of
  the others; F1 is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from oscar_causal.data.subjects import folds
from oscar_causal.errors import DataError
from oscar_causal.score.bench.ladder.interface import Answers, Reasons, Truth
from oscar_causal.score.bench.ladder.scoring import NOTHING
from oscar_causal.score.bench.outside.outside_set import FOLDS, OutsideSet, Published
from oscar_causal.score.bench.outside.trees import Bool, TooMany, Tree, minimal_cut_sets, read_tree
from oscar_causal.score.matching import Pair

FOLDER = "fault_trees"
FILES = ("*.xml.gz",)
MOST_CUT_SETS = 500
RATES = tuple(2.0**-k for k in range(14, -1, -1))
LONGEST = 50.0
"""A tree that would put more events into the mean sequence is left out: it would bury all others."""
PILOT = 4000
"""Sequences on which a tree's rate is chosen."""
REMARK = "beside the data: 15 trees, another draw, of commit c1cbf5b"
PUBLISHED = tuple(
    Published(method, "F1", value, REMARK)
    for method, value in (
        ("perfect boundary, where present", 0.946),
        ("iamb", 0.842),
        ("intervention", 0.777),
        ("prefix", 0.633),
    )
)


@dataclass(frozen=True)
class Constants:
    """What the seed decides beside the events themselves."""

    shares: tuple[float, ...]
    """How often each tree's top event is to come."""
    fillers: int
    filler_mean: float
    filler_exponent: float
    """Rates of filler types fall with their rank to this power."""
    repeat: float
    """Mean number of further occurrences of a basic event."""
    gap: float
    """Mean seconds between events."""


def load(folder: Path, seed: int, sequences: int) -> OutsideSet:
    """Simulate the set from the trees."""
    rng = np.random.default_rng(seed)
    trees = [read_tree(path) for path in sorted(folder.glob(FILES[0]))]
    constants = draw_constants(len(trees), rng)
    ids = [f"sequence {number:06d}" for number in range(sequences)]
    fold = folds(pa.array(ids), FOLDS, seed=seed)
    events: list[list[str]] = [[] for _ in ids]
    labels: list[list[str]] = [[] for _ in ids]
    truth: dict[Pair, Reasons] = {}
    necessary: dict[Pair, frozenset[str]] = {}
    capped = 0
    left_out = list[str]()
    for tree, share in zip(trees, constants.shares, strict=True):
        drawn = simulate(tree, share, sequences, rng)
        if drawn.present.sum() > LONGEST * sequences:
            left_out.append(tree.name)
            continue
        for row in range(sequences):
            events[row] += [f"{tree.name} {tree.basic[k]}" for k in np.flatnonzero(drawn.present[row])]
        for row in np.flatnonzero(drawn.top).tolist():
            labels[row].append(tree.name)
            found = drawn.reasons(row)
            capped += found is None
            if found is not None:
                truth[ids[row], tree.name], necessary[ids[row], tree.name] = found
    table = table_of(ids, events, labels, constants, rng)
    return OutsideSet(
        "fault trees",
        table,
        np.where(fold == 0, 0, -1),
        truth,
        lambda answers, truth: own_figures(answers, truth, necessary),
        PUBLISHED,
        remarks=(
            f"left out for more than {LONGEST:g} events in the mean sequence: {', '.join(left_out) or 'no tree'}",
            f"{capped} pairs are not scored: over {MOST_CUT_SETS} minimal cut sets, or (with `not`) no single reason",
        ),
    )


def draw_constants(trees: int, rng: np.random.Generator) -> Constants:
    """From wide ranges."""
    return Constants(
        shares=tuple(rng.uniform(0.06, 0.10, trees).tolist()),
        fillers=int(rng.integers(100, 401)),
        filler_mean=float(rng.uniform(5, 30)),
        filler_exponent=float(rng.uniform(0.5, 1.2)),
        repeat=float(rng.uniform(0, 0.5)),
        gap=float(np.exp(rng.uniform(np.log(1), np.log(3600)))),
    )


@dataclass(frozen=True)
class Drawn:
    """The sequences of one tree."""

    tree: Tree
    present: Bool
    """(sequences, basic events)"""
    values: Mapping[tuple[str, str], Bool]

    @property
    def top(self) -> Bool:
        """In which sequences the top event comes."""
        return self.values[self.tree.top]

    def reasons(self, row: int) -> tuple[Reasons, frozenset[str]] | None:
        """The truth of a sequence with the top event, and its necessary part; None: not known."""
        prefix = f"{self.tree.name} "
        if not self.tree.coherent:
            needed = frozenset(prefix + name for name in self._undoing(row))
            there = frozenset(prefix + self.tree.basic[k] for k in np.flatnonzero(self.present[row]))
            return (Reasons(needed, there - needed), needed) if needed else None
        try:
            held = {node: bool(value[row]) for node, value in self.values.items()}
            cuts = minimal_cut_sets(self.tree, held, MOST_CUT_SETS)
        except TooMany:
            return None
        named = [frozenset(prefix + name for name in cut) for cut in cuts]
        return Reasons(frozenset().union(*named)), frozenset.intersection(*named)

    def _undoing(self, row: int) -> list[str]:
        """Events whose removal alone undoes the top event."""
        there = np.flatnonzero(self.present[row])
        without = np.repeat(self.present[row][None], len(there), axis=0)  # (events there, basic events)
        without[np.arange(len(there)), there] = False
        still = self.tree.values(without)[self.tree.top]
        return [self.tree.basic[k] for k, held in zip(there.tolist(), still.tolist(), strict=True) if not held]


def simulate(tree: Tree, share: float, sequences: int, rng: np.random.Generator) -> Drawn:
    """Basic events with one rate, at which the top event comes in about `share` of the sequences."""
    present = rng.random((sequences, len(tree.basic))) < rate_for(tree, share, rng)
    return Drawn(tree, present, tree.values(present))


def rate_for(tree: Tree, share: float, rng: np.random.Generator) -> float:
    """The smallest rate found at which the top event comes so often (with `not`, more events may bring it less)."""
    pilot = rng.random((PILOT, len(tree.basic)))

    def often(rate: float) -> bool:
        return bool(tree.values(pilot < rate)[tree.top].mean() >= share)

    high = next((rate for rate in RATES if often(rate)), None)
    if high is None:
        raise DataError(
            f"fault tree {tree.name}: expected a rate at which the top event comes in {share:.0%}, found none"
        )
    low = high / 2
    for _ in range(12):
        rate = (low + high) / 2
        low, high = (low, rate) if often(rate) else (rate, high)
    return high


def table_of(
    ids: list[str],
    events: list[list[str]],
    labels: list[list[str]],
    constants: Constants,
    rng: np.random.Generator,
) -> pa.Table:
    """Repeat, add fillers, shuffle, give times."""
    weights = np.arange(1, constants.fillers + 1) ** -constants.filler_exponent
    rows = []
    for name, basic, tops in zip(ids, events, labels, strict=True):
        again = 1 + rng.poisson(constants.repeat, len(basic))
        fillers = rng.choice(constants.fillers, 1 + rng.poisson(constants.filler_mean), p=weights / weights.sum())
        everything = [*np.repeat(np.array(basic, object), again), *(f"filler {k:03d}" for k in fillers)]
        order = rng.permutation(len(everything))
        times: npt.NDArray[np.float64] = np.cumsum(rng.exponential(constants.gap, len(everything)))
        rows.append(
            {
                "sequence_id": name,
                "events": [everything[k] for k in order],
                "times": (times - times[0]).tolist(),
                "labels": tops,
            }
        )
    return pa.Table.from_pylist(rows)


def own_figures(answers: Answers, truth: Truth, necessary: Mapping[Pair, frozenset[str]]) -> dict[str, float]:
    """Share of the necessary reasons of all pairs that are named, and of the others."""
    named, asked = np.zeros(2), np.zeros(2)
    for pair, reasons in truth.items():
        causes = answers.get(pair, NOTHING).causes
        for k, some in enumerate((necessary[pair], reasons.causes - necessary[pair])):
            named[k] += len(some & causes)
            asked[k] += len(some)
    shares = named / np.maximum(asked, 1)
    return {"recall, necessary": float(shares[0]), "recall, others": float(shares[1])}
