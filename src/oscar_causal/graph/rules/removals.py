"""What taking one event type out of a sequence does to a label: causes that are needed, blockers that hold it back.

Needed events are looked for in sequences with the label, blockers in sequences in which the rule found so far holds and
the label was not observed. Each event type is taken out by itself, and P(label) watched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oscar_causal.data.batches import Encoded
from oscar_causal.density.model import sequence_contexts
from oscar_causal.discovery.contexts import Float64, Int64
from oscar_causal.discovery.subject import prepare, respond

CUT = 0.5


@dataclass(frozen=True)
class Removal:
    """One sequence with each of its event types taken out."""

    before: float
    """P(label) as it is."""
    types: Int64
    """(K,) event ids."""
    after: Float64
    """(K,) P(label) without each."""


def remove_each(model: Any, encoded: Encoded, index: int, label: int, *, sequence_id: str, seed: int) -> Removal:
    """Take out each event type of a sequence, one at a time."""
    subject = prepare(model, sequence_contexts(encoded, index), sequence_id=sequence_id, seed=seed, shuffle=False)
    count = len(subject.types)
    masks = np.concatenate([np.zeros((1, count), bool), np.eye(count, dtype=bool)])
    probs = respond(model, subject, masks, np.array([label]), "removal")[:, 0]
    return Removal(float(probs[0]), subject.types, probs[1:])


def needed_events(removals: Iterable[Removal], change: float, *, once: bool = False) -> list[int]:
    """Event ids whose removal takes the label away (P falls by `change` and below one half), the most often first.

    An event must be needed in two sequences and in a tenth of them; in one if `once`, or where fewer than five show
    the label.

    >>> removal = Removal(0.9, np.array([3, 4]), np.array([0.1, 0.8]))
    >>> needed_events([removal, removal], 0.3)
    [3]
    """
    telling = [removal for removal in removals if removal.before > CUT]
    hits: Counter[int] = Counter()
    for removal in telling:
        hits.update(removal.types[(removal.after <= CUT) & (removal.before - removal.after >= change)].tolist())
    least = max(2, 0.1 * len(telling)) if len(telling) > 4 and not once else 1
    return sorted((event for event, n in hits.items() if n >= least), key=lambda event: (-hits[event], event))


def blocking_events(removals: Iterable[Removal], change: float) -> list[int]:
    """Event ids whose removal brings the label (P rises by `change` and above one half), strongest first.

    An event must do so in two sequences, or in the only one that can show it.
    """
    telling = [removal for removal in removals if removal.before <= CUT]  # else nothing is held back
    rises: dict[int, list[float]] = {}
    for removal in telling:
        rise = removal.after - removal.before
        for place in np.flatnonzero((removal.after > CUT) & (rise >= change)):
            rises.setdefault(int(removal.types[place]), []).append(float(rise[place]))
    totals = {event: sum(found) for event, found in rises.items() if len(found) >= min(2, len(telling))}
    return sorted(totals, key=lambda event: (-totals[event], event))
