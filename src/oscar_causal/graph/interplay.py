"""Which labels go together, and why: shared causes, other causes, or something that no boundary explains.

Dependence is measured in the observed labels, first as it is, then with the events of both boundaries held (sequences
are compared only with sequences that show the same of them). What remains is not explained by the boundaries: a cause
that is missing from them, order or count where only presence is held, a hidden driver, or one label bringing the other.
Common causes are also taken out of sequences, and both labels' probabilities watched.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from scipy import sparse

from oscar_causal.data.rules import Rule, evaluate, parse
from oscar_causal.data.sequences import Dataset
from oscar_causal.density.model import sequence_contexts
from oscar_causal.discovery.contexts import Bool, Int64, Stream
from oscar_causal.discovery.significance import benjamini_hochberg
from oscar_causal.discovery.subject import prepare, respond
from oscar_causal.errors import UsageError
from oscar_causal.graph.judges import judge_of
from oscar_causal.graph.rules.laboratory import encode_for
from oscar_causal.graph.rules.mining import Mined
from oscar_causal.graph.stratified import Dependence, dependence

Verdict = Literal[
    "independent", "explained by shared causes", "explained by their boundaries", "still dependent", "not resolvable"
]
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class InterplayConfig:
    """Settings of label interplay."""

    alpha: float = 0.01
    """False discovery rate over all pairs of labels, before and after holding."""
    least_together: int = 5
    """Pairs seen (or expected) together in fewer sequences are left out unless they share a cause."""
    probes: int = 8
    """Sequences from which the shared causes of a pair are taken out."""
    change: float = 0.1
    """Mean fall of P(label) that makes the shared causes count as causes of that label."""
    seed: int = 0
    """Decides samples and draws."""

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise UsageError(f"alpha: expected between 0 and 1, got {self.alpha}")
        if self.least_together < 1 or self.probes < 1:
            raise UsageError(f"least_together, probes: expected at least 1, got {self.least_together}, {self.probes}")


@dataclass(frozen=True)
class Interplay:
    """One pair of labels."""

    label_a: str
    label_b: str
    together: int
    """Sequences with both."""
    shared_causes: tuple[str, ...]
    dependence_before: float
    """Correlation of the observed labels."""
    p_before: float
    dependence_after: float
    """Pooled correlation with the events of both boundaries held."""
    p_after: float
    fall_a: float | None
    """Mean fall of P(label_a) when the shared causes are taken out; None without any, or without a model."""
    fall_b: float | None
    verdict: Verdict

    def to_json(self) -> dict[str, Any]:
        """A row of the table."""
        return asdict(self)


def label_interplay(
    model: Any | None,
    dataset: Dataset,
    boundaries: Mapping[str, Sequence[str]],
    config: InterplayConfig | None = None,
    *,
    rules: Mapping[str, str] | None = None,
    on_progress: OnProgress | None = None,
) -> list[Interplay]:
    """Rows for all pairs of labels that share a cause or depend on each other, the most dependent first.

    With `rules` (label -> rule text) their truth is held too, so that order and count are not left over. Without a
    model nothing is taken out and shared causes are believed.
    """
    config = config or InterplayConfig()
    study = _Study(model, Mined(dataset.take(dataset.labelled)), boundaries, rules or {}, config)
    pairs = study.pairs()
    found: list[tuple[tuple[str, str], Dependence, Dependence]] = []
    for done, pair in enumerate(pairs):
        found.append((pair, study.before(pair), study.after(pair)))
        if on_progress is not None:
            on_progress(done + 1, len(pairs))
    q_before, q_after = (
        benjamini_hochberg(np.array([item[k].p_value for item in found])) if found else np.empty(0)  # type: ignore[union-attr]
        for k in (1, 2)
    )
    rows = [
        study.row(*item, bool(before <= config.alpha), bool(after <= config.alpha))
        for item, before, after in zip(found, q_before, q_after, strict=True)
    ]
    kept = [row for row in rows if row.shared_causes or row.verdict != "independent"]
    return sorted(
        kept, key=lambda row: (-abs(row.dependence_after), -abs(row.dependence_before), row.label_a, row.label_b)
    )


def label_graph(rows: Iterable[Interplay]) -> Any:
    """A networkx graph of labels; edges carry everything a row says. Pairs found independent have no edge."""
    import networkx as nx

    graph = nx.Graph()
    for row in rows:
        graph.add_nodes_from([row.label_a, row.label_b])
        if row.verdict != "independent":
            graph.add_edge(
                row.label_a, row.label_b, **{k: v for k, v in row.to_json().items() if not k.startswith("label_")}
            )
    return graph


def _expected_together(totals: Int64, least: int) -> set[tuple[int, int]]:
    """Pairs of labels whose totals multiply to `least` or more; others are not looked at."""
    order = np.argsort(-totals, kind="stable")
    falling = totals[order]
    found: set[tuple[int, int]] = set()
    for place, number in enumerate(order.tolist()):
        end = int(np.searchsorted(-falling, least // -totals[number], side="right"))  # least / total, rounded up
        found.update((min(number, other), max(number, other)) for other in order[place + 1 : end].tolist())
    return found


class _Study:
    """The pairs of one dataset."""

    def __init__(
        self,
        model: Any | None,
        mined: Mined,
        boundaries: Mapping[str, Sequence[str]],
        rules: Mapping[str, str],
        config: InterplayConfig,
    ) -> None:
        self.model, self.mined, self.config = model, mined, config
        self.labels = [label for label in boundaries if mined.with_label(label).any()]
        self.boundaries = {label: tuple(dict.fromkeys(boundaries[label])) for label in self.labels}
        self.rules: dict[str, Rule] = {label: parse(text) for label, text in rules.items() if label in self.boundaries}
        self.columns = {label: mined.with_label(label) for label in self.labels}
        self.encoded = encode_for(model, mined.dataset) if model is not None else None
        self._held: dict[str, Int64] = {}

    def pairs(self) -> list[tuple[str, str]]:
        """Pairs that share a cause, or that are (or should be) together often enough to say anything."""
        if len(self.labels) < 2:
            return []
        rows = [sparse.csr_array(self.columns[label][None], dtype=np.int64) for label in self.labels]
        matrix = sparse.vstack(rows, format="csr")  # (Y, n)
        together = sparse.triu(matrix @ matrix.T, k=1).tocoo()
        often = together.data >= self.config.least_together
        chosen = set(zip(together.row[often].tolist(), together.col[often].tolist(), strict=True))
        chosen |= _expected_together(matrix.sum(axis=1), self.config.least_together * matrix.shape[1])
        of_event: dict[str, list[int]] = defaultdict(list)
        for number, label in enumerate(self.labels):
            for event in self.boundaries[label]:
                of_event[event].append(number)
        chosen.update(pair for numbers in of_event.values() for pair in combinations(numbers, 2))
        return [(self.labels[i], self.labels[j]) for i, j in sorted(chosen)]

    def shared(self, pair: tuple[str, str]) -> tuple[str, ...]:
        """Events in both boundaries."""
        other = set(self.boundaries[pair[1]])
        return tuple(event for event in self.boundaries[pair[0]] if event in other)

    def before(self, pair: tuple[str, str]) -> Dependence:
        return dependence(*self._observed(pair), np.zeros(len(self.mined.dataset), np.int64), self._rng(pair))

    def after(self, pair: tuple[str, str]) -> Dependence:
        """With everything both boundaries (and rules) say held."""
        first, second = self._holding(pair[0]), self._holding(pair[1])
        return dependence(*self._observed(pair), first * (int(second.max()) + 1) + second, self._rng(pair))

    def row(self, pair: tuple[str, str], before: Dependence, after: Dependence, was: bool, still: bool) -> Interplay:
        """The verdict on a pair: did the labels depend, do they still?"""
        shared, (a, b) = self.shared(pair), self._observed(pair)
        falls = self._falls(pair, shared) if shared and self.model is not None else (None, None)
        moved = all(fall is None or fall >= self.config.change for fall in falls)
        if still:
            verdict: Verdict = "still dependent"
        elif not was:
            verdict = "independent"
        elif after.settled < 0.5:
            verdict = "not resolvable"
        else:
            verdict = "explained by shared causes" if shared and moved else "explained by their boundaries"
        together = int((a & b).sum())
        measured = (before.correlation, before.p_value, after.correlation, after.p_value)
        return Interplay(*pair, together, shared, *measured, *falls, verdict)

    def _observed(self, pair: tuple[str, str]) -> tuple[Bool, Bool]:
        return self.columns[pair[0]], self.columns[pair[1]]

    def _holding(self, label: str) -> Int64:
        """A number per sequence: what it shows of a label's boundary and rule."""
        if label not in self._held:
            events = self.boundaries[label]
            columns = [self.mined.patterns(events[k : k + 60]) for k in range(0, len(events), 60)]
            if label in self.rules:
                columns.append(evaluate(self.rules[label], self.mined.index).astype(np.int64))
            stacked = np.stack([*columns, np.zeros(len(self.mined.dataset), np.int64)], axis=1)
            self._held[label] = np.unique(stacked, axis=0, return_inverse=True)[1].reshape(-1)
        return self._held[label]

    def _falls(self, pair: tuple[str, str], shared: tuple[str, ...]) -> tuple[float | None, float | None]:
        """Mean fall of both labels' probabilities when the shared causes are taken out of sequences that have them.

        Each label's mean is over sequences in which the model sees that label.
        """
        assert self.model is not None
        known = self.model.vocabulary
        ids = [known.event_ids[event] for event in shared if event in known.event_ids]
        labels = np.array([known.label_ids.get(label, -1) for label in pair])
        if not ids or (labels < 0).any():
            return None, None
        drops: list[list[float]] = [[], []]
        for index in self._sample(pair, shared):
            kept, without = self._take_out(index, ids, labels)
            for place in (0, 1):
                if kept[place] > 0.5:
                    drops[place].append(float(kept[place] - without[place]))
        return tuple(float(np.mean(found)) if found else None for found in drops)  # type: ignore[return-value]

    def _take_out(self, index: int, ids: list[int], labels: Int64) -> Any:
        assert self.model is not None
        assert self.encoded is not None
        sequence_id = str(self.mined.dataset.sequence_ids[index].as_py())
        sequence = sequence_contexts(self.encoded, index)
        model = judge_of(self.model, self.mined.dataset.subject_ids[index].as_py())
        subject = prepare(model, sequence, sequence_id=sequence_id, seed=self.config.seed, shuffle=False)
        masks = np.stack([np.zeros(len(subject.types), bool), np.isin(subject.types, ids)])
        return respond(model, subject, masks, labels, "interplay")  # (2, 2)

    def _sample(self, pair: tuple[str, str], shared: tuple[str, ...]) -> list[int]:
        """Sequences with a shared cause and one of the labels at least, those with both first."""
        a, b = self._observed(pair)
        present = np.zeros(len(a), bool)
        for event in shared:
            present[self.mined.index.sequence_of[self.mined.index.rows_of(event)]] = True
        usable = np.flatnonzero(present & (a | b))
        u = Stream(self.config.seed, "\0".join(pair), "interplay").uniforms(1, len(usable))[0]
        order = np.lexsort((u, ~(a & b)[usable]))
        return [int(i) for i in usable[order[: self.config.probes]]]

    def _rng(self, pair: tuple[str, str]) -> np.random.Generator:
        return np.random.default_rng([self.config.seed, *(ord(c) for c in "\0".join(pair))])
