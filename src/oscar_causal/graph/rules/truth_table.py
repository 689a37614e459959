"""The truth table of a label over at most 8 candidates, and the short rule it stands for.

Every subset of the candidates is inserted into every background; the mean P(label) of a line is what the model says of
it. Sequences that show exactly this pattern say something too: the model speaks with the weight of a few sequences, so
that observations, where there are many, decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from oscar_causal.data.rules import And, Event, Not, Or, Rule
from oscar_causal.data.rules.minimise import MAX_VARIABLES, Formula, Minimiser
from oscar_causal.discovery.contexts import Bool, Float64, Int64, Stream
from oscar_causal.graph.rules.backgrounds import ABSENT, Background, cleared, distinct, inserted
from oscar_causal.graph.rules.mining import Mined
from oscar_causal.graph.rules.proposal import Cell

CUT = 0.5
MOST_CANDIDATES = MAX_VARIABLES
MOST_WEIGHT = 16.0
"""The model's word on lines merged into one counts as at most this many sequences: its errors are not independent."""
FREE = 3
"""With so many candidates a rule may be anything; with more, no event raises here and prevents there."""
WITH_RULE, WITHOUT_RULE = 0.9, 0.02
"""Chance of the label where a rule holds and where it does not, when rules are compared: labels get lost and added."""
COST = 5.0
"""Nats a candidate must bring to stay in the table: the log of the 150 or so events it was picked among."""


@dataclass(frozen=True)
class TruthTable:
    """Line m has candidate i present where bit i of m is set."""

    candidates: tuple[str, ...]
    probs: Float64
    """(backgrounds, 2^k) of the model."""
    sequences: Int64
    """(2^k,) labelled sequences with exactly this pattern."""
    positives: Int64
    """(2^k,) those with the label."""
    weight: float
    """The model's word counts as much as this many sequences."""

    @property
    def values(self) -> Float64:
        """Each line's chance of the label, from model and observations: (2^k,)."""
        values: Float64 = (self.weight * self.probs.mean(0) + self.positives) / (self.weight + self.sequences)
        return values

    @property
    def holds(self) -> Bool:
        """The lines in which the label comes: (2^k,).

        With more than three candidates each works in one direction only: a line out of order is noise.
        """
        values = self.values if len(self.candidates) <= FREE else _one_direction(self.values)
        lines: Bool = values > CUT
        return lines

    def without(self, place: int) -> TruthTable:
        """The table that does not look at one candidate: lines are merged, and what they weigh adds up to a limit."""
        lines = np.arange(len(self.sequences))
        absent = lines[lines >> place & 1 == 0]
        present = absent | 1 << place
        return replace(
            self,
            candidates=self.candidates[:place] + self.candidates[place + 1 :],
            probs=(self.probs[:, absent] + self.probs[:, present]) / 2,
            sequences=self.sequences[absent] + self.sequences[present],
            positives=self.positives[absent] + self.positives[present],
            weight=min(2 * self.weight, max(self.weight, MOST_WEIGHT)),
        )

    def reduced(self) -> TruthTable:
        """The table over the candidates that pay for themselves.

        The cheapest to lose is dropped, again and again; of all tables on the way the best is taken.
        """
        way = [self]
        while len(way[-1].candidates) > 1:
            smaller = [way[-1].without(place) for place in range(len(way[-1].candidates))]
            way.append(max(smaller, key=self._score))
        return max(reversed(way), key=self._score)

    def _score(self, smaller: TruthTable) -> float:
        """Log-likelihood (nats) of model and observations if a smaller table told the label, less what it costs."""
        kept = [self.candidates.index(name) for name in smaller.candidates]
        lines = np.arange(len(self.sequences))
        holds = smaller.holds[sum((lines >> place & 1) << bit for bit, place in enumerate(kept))]
        yes = self.positives + self.weight * self.probs.mean(0)
        no = self.sequences + self.weight - yes
        chance = np.where(holds, WITH_RULE, WITHOUT_RULE)
        return float((yes * np.log(chance) + no * np.log1p(-chance)).sum()) - COST * len(kept)

    def rule(self) -> Rule | None:
        """The shortest rule of the table; None when it holds in no line or in all."""
        return rule_of(self.holds, self.candidates)

    def resampled(self, rng: np.random.Generator) -> TruthTable:
        """The table as it might have come out: backgrounds drawn again, observations drawn again."""
        chosen = rng.integers(len(self.probs), size=len(self.probs))
        rate = (self.positives + CUT) / (self.sequences + 1)
        return replace(self, probs=self.probs[chosen], positives=rng.binomial(self.sequences, rate))

    def stability(self, rng: np.random.Generator, redraws: int = 100) -> float:
        """Share of redraws in which the very same lines hold."""
        holds = self.holds
        return float(np.mean([(self.resampled(rng).holds == holds).all() for _ in range(redraws)]))

    def mixed(self) -> bool:
        """Whether insertions of the same events into different backgrounds disagree in a line where the rule holds."""
        yes = (self.probs > CUT).mean(0)[self.holds]
        return bool(((yes > 0.25) & (yes < 0.75)).any())

    def effects(self) -> Float64:
        """Mean change of P(label) by inserting each candidate, over the patterns of the others: (k,)."""
        means, lines = self.probs.mean(0), np.arange(self.probs.shape[1])
        bits = [(lines >> i & 1).astype(bool) for i in range(len(self.candidates))]
        return np.array([means[bit].mean() - means[~bit].mean() for bit in bits])

    def cells(self, holds: Bool) -> tuple[Cell, ...]:
        """The lines for the report."""
        means, sds = self.probs.mean(0), self.probs.std(0)
        return tuple(
            Cell(
                tuple(name for i, name in enumerate(self.candidates) if line >> i & 1),
                float(means[line]),
                float(sds[line]),
                int(self.sequences[line]),
                int(self.positives[line]),
                bool(holds[line]),
            )
            for line in range(len(means))
        )


def subsets(count: int) -> Bool:
    """All subsets of `count` candidates, line m = the bits of m: (2^count, count)."""
    return (np.arange(1 << count)[:, None] >> np.arange(count) & 1).astype(bool)


def insertion_rows(
    background: Background, event_ids: Int64, places: Sequence[Float64], chosen: Bool, stream: Stream
) -> Int64:
    """The background with each chosen subset of the candidates inserted and the others taken out: (N, L).

    A candidate stands at one random place for all subsets, drawn from where it stands in the data, so that lines differ
    by presence alone; other backgrounds draw other places, hence other orders.
    """
    length = len(background.event_ids)
    ids = cleared(background, event_ids, stream)
    u = Stream(stream.seed, stream.sequence_id, f"{stream.purpose} places").uniforms(1, len(event_ids))[0]
    at = [int((p[int(v * len(p))] if len(p) else v) * length) for p, v in zip(places, u, strict=True)]
    positions = distinct(np.array([at], np.int64), length)
    events = np.where(chosen, event_ids, ABSENT)  # (N, k)
    return inserted(ids, np.broadcast_to(positions, events.shape), events)


def observed_lines(mined: Mined, label: str, candidates: Sequence[str]) -> tuple[Int64, Int64]:
    """How many sequences show each pattern of the candidates, and how many of them the label: two of (2^k,)."""
    patterns = mined.patterns(candidates)
    size = 1 << len(candidates)
    return (
        np.bincount(patterns, minlength=size),
        np.bincount(patterns[mined.with_label(label)], minlength=size),
    )


def rule_of(holds: Bool, names: Sequence[str]) -> Rule | None:
    """The shortest rule that holds in exactly these lines; None for none or all of them.

    >>> from oscar_causal.data.rules import format_rule
    >>> format_rule(rule_of(np.array([False, True, False, False]), ("A", "B")))
    'A & !B'
    """
    table = sum(1 << int(line) for line in np.flatnonzero(holds))
    if not holds.any() or holds.all():
        return None
    return _as_rule(Minimiser([1] * len(names)).shortest(table), names)


def _as_rule(formula: Formula, names: Sequence[str]) -> Rule:
    if isinstance(formula, int):
        return Event(names[formula]) if formula >= 0 else Not(Event(names[~formula]))
    operator, items = formula
    return (And if operator == "&" else Or)(tuple(_as_rule(item, names) for item in items))


def _one_direction(values: Float64) -> Float64:
    """The values made monotone in every candidate, each in its own direction: (2^k,).

    The mean of the largest value among the weaker lines and the smallest among the stronger ones: a single line that
    is out of order falls back to what its neighbours say.
    """
    count = int(len(values)).bit_length() - 1
    lines = np.arange(len(values))
    low, high = values.copy(), values.copy()
    for i in range(count):
        without = lines[lines >> i & 1 == 0]
        with_it = without | 1 << i
        up = values[with_it].mean() >= values[without].mean()
        weak, strong = (without, with_it) if up else (with_it, without)
        low[strong] = np.maximum(low[strong], low[weak])
        high[weak] = np.minimum(high[weak], high[strong])
    monotone: Float64 = (low + high) / 2
    return monotone
