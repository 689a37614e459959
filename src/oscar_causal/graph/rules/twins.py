"""Could something else stand in a rule's place? What the data cannot tell apart must not be stated as if they could.

For every part of a rule a stand-in is looked for: another event that comes where the part decides; of an order, the
same events in any order; of a count, one occurrence. Sequences in which rule and changed rule differ tell them apart:
those that agree with the rule speak for it, the others against. Where the two differ nowhere, nothing speaks; where
they differ somewhere, the model's word counts as a few sequences, as it does elsewhere, because it may have learnt from
more of them. And a part may need another event beside it: one that was there every single time the part brought the
label, though it is rare elsewhere, may be needed, for all that the data say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from oscar_causal.data.rules import Event, Rule, all_of, evaluate, event_names, format_rule, parse
from oscar_causal.data.rules.tree import AtLeast, Atom, Then, atom_names
from oscar_causal.data.sequences import ragged_positions
from oscar_causal.discovery.contexts import Bool
from oscar_causal.graph.rules.mining import Mined, pivotal, with_masks

USUAL = 0.8
"""A stand-in is there in at least this share of the sequences where the part holds and decides."""
LEVEL = 0.05
"""Sequences tell rule and changed rule apart when a sign test says so at this level."""
LEAST_BROUGHT = 3
"""Sequences in which a part brought the label, before what else was in all of them is looked at."""
CHANCE = 0.01
"""An event was in all of them by chance, if its frequency among all sequences makes that as probable as this."""
ModelWord = Callable[[str, str], float]
"""(event, stand-in) -> by how many sequences the model speaks for the event, below 0 for the stand-in."""


@dataclass(frozen=True)
class Twin:
    """A part of a rule and what could stand in its place."""

    part: str
    stand_in: str
    for_part: int
    """Sequences in which the two differ and the observed label agrees with the rule."""
    for_stand_in: int
    """Those in which it agrees with the changed rule."""

    def sentence(self) -> str:
        """For `reasons`.

        >>> Twin("A", "B", 0, 0).sentence()
        'A and B cannot be told apart in this data: no sequence tells'
        >>> Twin("A", "B", 1, 14).sentence()
        'B instead of A explains more: 14 sequences against 1'
        """
        if self.for_stand_in > self.for_part:
            counts = f"{self.for_stand_in} sequences against {self.for_part}"
            return f"{self.stand_in} instead of {self.part} explains more: {counts}"
        counts = f"{self.for_part} sequences speak for the first, {self.for_stand_in} for the second"
        known = counts if self.for_part or self.for_stand_in else "no sequence tells"
        return f"{self.part} and {self.stand_in} cannot be told apart in this data: {known}"


def find_twins(rule: Rule, label: str, mined: Mined, model_word: ModelWord) -> list[Twin]:
    """Every part of the rule that something else explains as well; two events of it that always come together too."""
    decisive, has = pivotal(rule, mined.index), mined.with_label(label)
    masks = {atom: evaluate(atom, mined.index) for atom in decisive}
    says = with_masks(rule, masks)
    found = [
        Twin(format_rule(a), format_rule(b), 0, 0)
        for a, b in combinations(masks, 2)
        if isinstance(a, Event) and isinstance(b, Event) and (masks[a] == masks[b]).all()
    ]
    for atom, (held, _) in decisive.items():
        for other in _stand_ins(atom, held, mined, set(event_names(rule))):
            changed = with_masks(rule, {**masks, atom: evaluate(other, mined.index)})
            differ = says != changed
            twin = Twin(
                format_rule(atom),
                format_rule(other),
                int((differ & (says == has)).sum()),
                int((differ & (changed == has)).sum()),
            )
            word = model_word(atom.name, other.name) if isinstance(atom, Event) and isinstance(other, Event) else 0.0
            if not told_apart(twin, word):
                found.append(twin)
    known = {*event_names(rule), *(name for twin in found for name in event_names(parse(twin.stand_in)))}
    return [*found, *_never_missing({atom: held for atom, (held, _) in decisive.items()}, has, mined, known)]


def _never_missing(decides: dict[Atom, Bool], has: Bool, mined: Mined, known: set[str]) -> Iterator[Twin]:
    """For each part the rarest event without which it never brought the label; `known` ones are not told again."""
    told = set(known)
    for atom, held in decides.items():
        brought = held & has
        number, shares = int(brought.sum()), {}
        for event in _held_by(brought, mined, number) if number >= LEAST_BROUGHT else ():
            share = float(evaluate(event, mined.index).mean())
            if event.name not in told and share**number <= CHANCE:
                shares[event] = share
        if shares:
            rarest = min(shares, key=lambda event: shares[event])
            told.add(rarest.name)
            lacking = held & ~has & ~evaluate(rarest, mined.index)
            yield Twin(format_rule(atom), format_rule(all_of([atom, rarest])), 0, int(lacking.sum()))


def _held_by(which: Bool, mined: Mined, least: float) -> list[Event]:
    """The events that at least so many of these sequences hold."""
    data, rows = mined.dataset, np.flatnonzero(which)
    ids = data.events.ids[ragged_positions(data.events.offsets, rows)].astype(np.int64)
    pairs = np.unique(np.repeat(rows, data.lengths[rows]) * len(data.event_names) + ids)
    count = np.bincount(pairs % len(data.event_names), minlength=len(data.event_names))
    return [Event(data.event_names[number]) for number in np.flatnonzero(count >= least).tolist()]


def told_apart(twin: Twin, model_word: float) -> bool:
    """Whether the sequences in which the two differ, and the model's word where there are any, decide for the part.

    >>> [told_apart(Twin("A", "B", *counts), 0) for counts in ((0, 0), (4, 0), (5, 0), (9, 1))]
    [False, False, True, True]
    >>> [told_apart(Twin("A", "B", *counts), 4) for counts in ((0, 0), (1, 0))]
    [False, True]
    """
    if not twin.for_part + twin.for_stand_in:
        return False
    from scipy.stats import binom

    speak = twin.for_part + max(model_word, 0.0), twin.for_stand_in + max(-model_word, 0.0)
    return bool(binom.sf(round(speak[0]) - 1, round(sum(speak)), 0.5) <= LEVEL)


def _stand_ins(atom: Atom, held: Bool, mined: Mined, known: set[str]) -> Iterator[Rule]:
    if isinstance(atom, Then):
        yield all_of(Event(name) for name in dict.fromkeys(atom_names(atom)))
    elif isinstance(atom, AtLeast):
        yield atom.event
    elif held.any():
        yield from (event for event in _held_by(held, mined, USUAL * held.sum()) if event.name not in known)
