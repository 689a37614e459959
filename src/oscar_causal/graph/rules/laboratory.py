"""Everything rule recovery asks of a model, for one dataset: backgrounds, truth tables, blockers, patterns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch

from oscar_causal.data.batches import Encoded, encode
from oscar_causal.data.rules import Rule, evaluate, event_names, negated_names, positive_names
from oscar_causal.data.sequences import Dataset
from oscar_causal.data.vocabulary import SPECIAL_IDS
from oscar_causal.density.model import sequence_contexts
from oscar_causal.discovery.contexts import Bool, Float64, Int64, Stream
from oscar_causal.errors import UsageError
from oscar_causal.graph.judges import judge_of
from oscar_causal.graph.rules import order_and_count as order
from oscar_causal.graph.rules import truth_table
from oscar_causal.graph.rules.backgrounds import Background, Question, answers, ask, choose_backgrounds, open_background
from oscar_causal.graph.rules.mining import Mined
from oscar_causal.graph.rules.removals import Removal, blocking_events, needed_events, remove_each
from oscar_causal.graph.rules.settings import RuleRecoveryConfig
from oscar_causal.graph.rules.truth_table import TruthTable, insertion_rows, observed_lines, subsets

MOST_ROWS = 2048
"""Rows asked for one truth table, unless that leaves fewer than `LEAST_BACKGROUNDS`."""
LEAST_BACKGROUNDS = 8
MOST_BLOCKERS = 2
"""Blockers taken over into a rule."""
MOST_ROUTES = 6
"""Patterns of a label that are arranged."""


def encode_for(model: Any, dataset: Dataset) -> Encoded:
    """A dataset in the model's ids; a channel the model reads and the dataset lacks is missing."""
    channels = getattr(model, "channels", dataset.channels)
    return encode(dataset, model.vocabulary, max_length=model.max_length, channels=channels)


class Laboratory:
    """A model, a labelled dataset and backgrounds drawn from it. All randomness is a function of the seed.

    The model may be a `ModelSet`: each sequence is then put to the fold that has not seen its subject.
    """

    def __init__(self, model: Any, dataset: Dataset, config: RuleRecoveryConfig) -> None:
        self.model, self.config, self.mined = model, config, Mined(dataset)
        self.encoded = encode_for(model, dataset)

    @cached_property
    def backgrounds(self) -> list[Background]:
        """The sampled sequences into which candidates are put."""
        shortest = max(self.model.min_context, truth_table.MOST_CANDIDATES)
        longest = int(self.encoded.events.lengths.max())
        chosen = choose_backgrounds(self.encoded, self.config.backgrounds, min(shortest, longest), self.config.seed)
        return [self._opened(int(i)) for i in chosen]

    def event_ids(self, names: Sequence[str]) -> Int64:
        """Model ids of events the model knows."""
        return np.array([self.model.vocabulary.event_ids[name] for name in names], np.int64)

    def label_id(self, label: str) -> int:
        """Model id of a label; an unknown one is a UsageError."""
        known = self.model.vocabulary.label_ids
        if label not in known:
            raise UsageError(f"rule recovery: the model does not know the label {label!r}")
        return int(known[label])

    def fits(self, count: int) -> bool:
        """Whether enough backgrounds have room for so many candidates."""
        return sum(len(b.event_ids) >= count for b in self.backgrounds) >= min(LEAST_BACKGROUNDS, len(self.backgrounds))

    def tables(self, candidates: dict[str, tuple[str, ...]], purpose: str = "table") -> dict[str, TruthTable]:
        """Truth tables of several labels (at most 8 candidates each, which fit), asked for together."""
        questions = [
            self._insertions(
                label, names, subsets(len(names)), purpose, most=max(LEAST_BACKGROUNDS, MOST_ROWS >> len(names))
            )
            for label, names in candidates.items()
        ]
        found = {}
        replies = answers(self.backgrounds, questions)
        for (label, names), probs in zip(candidates.items(), replies, strict=True):
            asked = np.stack([part for part in probs if len(part)])  # (backgrounds, 2^k)
            lines = observed_lines(self.mined, label, names)
            found[label] = TruthTable(names, asked, *lines, self.config.model_weight)
        return found

    def insertion_means(self, label: str, names: tuple[str, ...], chosen: Bool) -> Float64:
        """Mean P(label) over the backgrounds that have room, with each chosen subset inserted: (N, k) -> (N,)."""
        question = self._insertions(label, names, chosen, "stepwise", most=len(self.backgrounds))
        probs = answers(self.backgrounds, [question])[0]
        means: Float64 = np.mean([part for part in probs if len(part)], axis=0)
        return means

    def preference(self, label: str, rule: Rule, event: str, stand_in: str) -> float:
        """The model's word on an event of a rule and a stand-in: `model_weight` for the event, minus that against it.

        All that the rule asks for is inserted, once with the event and once with the stand-in; 0 = the model makes no
        difference between the two, does not know one of them, or there is no room.
        """
        names = (*dict.fromkeys((*positive_names(rule), event)), stand_in)
        if any(name not in self.model.vocabulary.event_ids for name in names) or not self.fits(len(names)):
            return 0.0
        chosen = np.array([[name != out for name in names] for out in (stand_in, event)])
        with_event, with_stand_in = self.insertion_means(label, names, chosen).tolist()
        sign = -1 if event in negated_names(rule) else 1
        if (with_event > order.CUT) == (with_stand_in > order.CUT):
            return 0.0
        return sign * self.config.model_weight * (1 if with_event > with_stand_in else -1)

    def candidates(
        self, label: str, given: Sequence[str], *, among: Int64 | None = None, once: bool = False
    ) -> tuple[str, ...]:
        """The given events and those the model needs in sequences with the label (or `among` some of them).

        `once`: it is enough that one sequence needs an event.
        """
        probed = np.flatnonzero(self.mined.with_label(label)) if among is None else among
        needed = needed_events(self._removals(probed, label, "again" if once else ""), self.config.change, once=once)
        names = [self.model.vocabulary.name(event) for event in needed if event >= SPECIAL_IDS]
        return tuple(dict.fromkeys([*given, *names]))

    def blockers(self, label: str, rule: Rule) -> list[str]:
        """Events that block the label where the rule holds, strongest first; none where too few sequences lack it."""
        holds, has = evaluate(rule, self.mined.index), self.mined.with_label(label)
        lacking = np.flatnonzero(holds & ~has)
        if len(lacking) < 2 or len(lacking) < self.config.blocked_share * holds.sum():
            return []
        found = blocking_events(self._removals(lacking, label), self.config.change)
        names = [self.model.vocabulary.name(event) for event in found if event >= SPECIAL_IDS]
        return [name for name in names if name not in event_names(rule)][:MOST_BLOCKERS]

    def _removals(self, indices: Int64, label: str, purpose: str = "") -> list[Removal]:
        chosen, column, seed = self._sample(indices, label, purpose), self.label_id(label), self.config.seed
        return [
            remove_each(self._judge(i), self.encoded, i, column, sequence_id=self._id(i), seed=seed) for i in chosen
        ]

    def routes(self, label: str, names: tuple[str, ...], among: Int64 | None = None) -> tuple[list[order.Route], float]:
        """Routes with order, window and count, and the share of the probed sequences that any of them explains.

        Sequences `among` those with the label are probed besides a sample of all.
        """
        ids, label_id = self.event_ids(names), self.label_id(label)
        found = []
        half = (self.config.probes + 1) // 2  # a sequence costs up to 2^8 rows here
        probed = self._sample(np.flatnonzero(self.mined.with_label(label)), label)[
            : half if among is not None else None
        ]
        more = [] if among is None else self._sample(among, label)[:half]
        for index in dict.fromkeys([*probed, *more]):
            background = self._opened(index)
            stream = Stream(self.config.seed, background.sequence_id, f"patterns {label}")
            found.append(order.minimal_patterns(background, label_id, ids, stream))
        routes = []
        for pattern, support in order.frequent_patterns(found, share=0.1, most=MOST_ROUTES):
            route = self._arrange(label, ids, pattern, support)
            if route is not None:
                routes.append(route)
        accepted = {route.pattern for route in routes}
        return routes, float(np.mean([bool(patterns & accepted) for patterns in found])) if found else 0.0

    def predict(self, encoded: Encoded, index: int, subject_id: str) -> Float64:
        """P of all labels of one sequence of this subject: (Y,)."""
        sequence = sequence_contexts(encoded, index)
        every = torch.arange(len(self.model.vocabulary.labels))
        probs: Float64 = ask(judge_of(self.model, subject_id), sequence, sequence.event_ids.numpy(), every)[0]
        return probs

    def _arrange(self, label: str, ids: Int64, pattern: order.Pattern, support: int) -> order.Route | None:
        rows, placed, used = [], [], []
        for background in self.backgrounds:
            if len(background.event_ids) >= len(pattern):
                stream = Stream(self.config.seed, background.sequence_id, f"arrange {label} {pattern}")
                made = order.arrangement_rows(background, ids, pattern, self.config.arrangements, stream)
                rows.append(made[0])
                placed.append(made[1:])
                used.append(background)
        probs = np.concatenate(answers(used, [Question(self.label_id(label), rows)])[0])
        names = {self.model.vocabulary.name(event): event for event in pattern}
        return order.route_of(pattern, support, order.arrangement_index(used, placed, names), probs)

    def _insertions(self, label: str, names: tuple[str, ...], chosen: Bool, purpose: str, *, most: int) -> Question:
        """Rows for the first `most` backgrounds that have room, none for the others."""
        ids = self.event_ids(names)
        places = [self.mined.places(name, label) for name in names]
        rows: list[Int64] = []
        for background in self.backgrounds:
            length = len(background.event_ids)
            if most and length >= len(names):
                stream = Stream(self.config.seed, background.sequence_id, f"{purpose} {label}")
                rows.append(insertion_rows(background, ids, places, chosen, stream))
                most -= 1
            else:
                rows.append(np.empty((0, length), np.int64))
        return Question(self.label_id(label), rows)

    def _sample(self, indices: Int64, label: str, purpose: str = "") -> list[int]:
        """At most `probes` of the sequences, chosen by a hash of label, purpose and sequence id alone."""
        key = f"probe {label} {purpose}"
        marks = [Stream(self.config.seed, self._id(int(i)), key).uniforms(1, 1)[0, 0] for i in indices]
        return [int(i) for i in indices[np.argsort(marks, kind="stable")[: self.config.probes]]]

    def _opened(self, index: int) -> Background:
        return open_background(self._judge(index), self.encoded, index, self._id(index))

    def _judge(self, index: int) -> Any:
        return judge_of(self.model, self.mined.dataset.subject_ids[index].as_py())

    def _id(self, index: int) -> str:
        return str(self.mined.dataset.sequence_ids[index].as_py())
