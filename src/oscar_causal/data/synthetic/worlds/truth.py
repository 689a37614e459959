"""The reasons of every label that came in a set of drawn sequences, and what they say about the world."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from oscar_causal.data.synthetic.worlds.mechanism import Mechanism
from oscar_causal.data.synthetic.worlds.occurrences import Bool, Float, Int, Occurrences
from oscar_causal.data.synthetic.worlds.reasons import DELTA, Reason, mattering, reasons, subsets
from oscar_causal.data.synthetic.worlds.world import EVENT_TYPES, Drawn, World

ROWS_AT_ONCE = 100_000


@dataclass(frozen=True)
class Explained:
    """One label that came in one sequence."""

    row: int
    label: int
    present: tuple[int, ...]
    """Event types of the label's mechanism that the sequence holds, by their number in the world."""
    boundary: tuple[int, ...]
    """Those of them that can bring the label about: the perfect boundary, read by presence."""
    reasons: tuple[Reason, ...]
    """`type` and `contingency` are indices into `present`."""
    positions: tuple[tuple[int, ...], ...]
    """For each reason, positions in the sequence of the occurrences that mattered."""

    def of_role(self, role: str) -> set[int]:
        """Event types with this role."""
        return {self.present[reason.type] for reason in self.reasons if reason.role == role}


def explain(world: World, drawn: Drawn, delta: float = DELTA) -> list[Explained]:
    """Reasons for every (sequence, label) of `drawn` in which the label came, in order of label and sequence."""
    explained = []
    for y, mechanism in enumerate(world.mechanisms):
        rows = np.flatnonzero(drawn.labels[:, y])
        chosen = drawn.recorded.rows(rows)
        seen = chosen.occurrences(mechanism.types, EVENT_TYPES)
        place = _positions(chosen.events, chosen.offsets, mechanism)
        on = mechanism.posterior(seen)
        for i, own, probs in _contexts(mechanism, seen, on):
            found = tuple(reasons(probs, len(own), delta))
            positions = tuple(
                tuple(place[i][j] for j in _mattered(mechanism, seen, on, i, own, reason, delta)) for reason in found
            )
            present = tuple(mechanism.types[t] for t in own)
            boundary = tuple(mechanism.types[t] for t in own if t in mechanism.causes)
            explained.append(Explained(int(rows[i]), y, present, boundary, found, positions))
    return explained


def _contexts(mechanism: Mechanism, seen: Occurrences, on: Float) -> Iterator[tuple[int, list[int], Float]]:
    """For each sequence: its present types and P without each set of `subsets`."""
    present = np.stack([seen.present(t) for t in range(len(mechanism.types))], axis=1)  # (n, R)
    for count in np.unique(present.sum(axis=1)):
        rows = np.flatnonzero(present.sum(axis=1) == count)
        masks = np.array(subsets(int(count)))
        removed = (masks[:, None] >> np.arange(count)) & 1 == 1  # (K, count)
        own = np.array([np.flatnonzero(present[i]) for i in rows]).reshape(len(rows), int(count))
        step = max(ROWS_AT_ONCE // len(masks), 1)
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            probs = _probs_without(mechanism, seen.rows(rows[part]), on[rows[part]], own[part], removed)
            for i, types, row in zip(rows[part], own[part], probs, strict=True):
                yield int(i), [int(t) for t in types], row


def _probs_without(mechanism: Mechanism, seen: Occurrences, on: Float, own: Int, removed: Bool) -> Float:
    """(n, K): P of each sequence without the types own[i, removed[k]]."""
    n, k = len(seen), len(removed)
    gone = np.zeros((n, k, len(mechanism.types) + 1), bool)  # the last column is never gone: padding is NONE = -1
    gone[np.arange(n)[:, None, None], np.arange(k)[None, :, None], own[:, None, :]] = removed[None]
    kept = ~np.take_along_axis(
        gone, np.broadcast_to(seen.types[:, None, :] % gone.shape[2], (n, k, seen.types.shape[1])), axis=2
    )
    again = np.repeat(np.arange(n), k)
    many = seen.rows(again).keep(kept.reshape(n * k, -1))
    return mechanism.probs_given(many, on[again]).reshape(n, k)


def _mattered(
    mechanism: Mechanism, seen: Occurrences, on: Float, i: int, own: list[int], reason: Reason, delta: float
) -> list[int]:
    """Columns of `seen` that hold the occurrences of the type which mattered."""
    gone = np.isin(seen.types[i], [own[t] for t in reason.contingency])
    columns = np.flatnonzero(seen.types[i] == own[reason.type])
    sign = 1.0 if reason.fall >= 0 else -1.0

    def prob_of(kept: Bool) -> Float:
        rows = np.full(len(kept), i)
        keep = np.broadcast_to(~gone, (len(kept), len(gone))).copy()
        keep[:, columns] = kept
        return sign * mechanism.probs_given(seen.rows(rows).keep(keep), on[rows])

    return [int(columns[j]) for j in mattering(prob_of, len(columns), delta)]


def _positions(events: Int, offsets: Int, mechanism: Mechanism) -> list[list[int]]:
    """For each sequence the positions of the label's own events, in the order of the columns of `Occurrences`."""
    own = np.isin(events, mechanism.types)
    return [list(np.flatnonzero(own[a:b])) for a, b in zip(offsets[:-1], offsets[1:], strict=True)]


def audit(explained: list[Explained]) -> dict[str, float]:
    """What the truth says: causes a pair, decoys, neutral types, and how far a perfect boundary read by presence gets.

    F1 is that of the mean precision and the mean recall over pairs that have a cause; neutral types do not count.
    """
    counts = {"found": 0, "true": 0}
    precision, decoys, neutral, relevant = [], 0, 0, 0
    for pair in explained:
        true, unsure = pair.of_role("cause"), pair.of_role("neutral")
        relevant += len(pair.present)
        neutral += len(unsure)
        if not true:
            continue
        found = set(pair.boundary) - unsure
        decoys += bool(found - true)
        precision.append(len(found & true) / max(len(found), 1))
        counts["found"] += len(found & true)
        counts["true"] += len(true)
    mean, recall = float(np.mean(precision)), counts["found"] / counts["true"]
    return {
        "pairs": len(explained),
        "pairs_with_cause": len(precision),
        "causes_per_pair": counts["true"] / len(precision),
        "decoy_share": decoys / len(precision),
        "neutral_share": neutral / max(relevant, 1),
        "presence_f1": 2 * mean * recall / (mean + recall),
    }
