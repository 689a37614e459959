"""From strengths to answers: a rival gives every present type of a pair a signed strength, a `Cut` decides.

Each rival has its default setting and cut, the first of each, and a grid; the tuned row takes what has the best F1 on
`Part.judge`, learnt from `Part.learn`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oscar_causal.data.sequences import Dataset, Ragged
from oscar_causal.score.bench.ladder.interface import Answer, Answers, Explained, Method, Part, Positions
from oscar_causal.score.bench.ladder.scoring import score
from oscar_causal.score.matching import Pair

TUNED = " (tuned)"


@dataclass(frozen=True)
class Scored:
    """What a rival says of some pairs before the cut."""

    scores: Mapping[Pair, Mapping[str, float]]
    """Pair -> present type -> strength; below 0: it speaks against the label."""
    positions: Mapping[Pair, Positions] | None = None


@dataclass(frozen=True)
class Cut:
    """Causes: types with a strength above `least` that have at least this `share` of the pair's largest and are among
    the `top` largest (with ties); inhibitors: those below -least.

    >>> sorted(Cut(share=0.5).causes({"A": 4.0, "B": 2.0, "C": 1.0, "D": -8.0}))
    ['A', 'B']
    """

    least: float = 0.0
    top: int | None = None
    share: float = 0.0

    def causes(self, scores: Mapping[str, float]) -> frozenset[str]:
        """The types that pass."""
        above = sorted((score for score in scores.values() if score > self.least), reverse=True)
        if not above:
            return frozenset()
        last = above[min(self.top or len(above), len(above)) - 1]
        floor = max(last, self.share * above[0])
        return frozenset(event for event, score in scores.items() if score >= floor)

    def inhibitors(self, scores: Mapping[str, float]) -> frozenset[str]:
        """The types that speak against the label as clearly."""
        return frozenset(event for event, score in scores.items() if score < -self.least)


SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
TOPS = (1, 2, 3, 5)
QUANTILES = 24


def grid(answers: Answers) -> Iterator[Cut]:
    """Shares, numbers of causes, and quantiles of the positive strengths, denser towards the largest."""
    yield from (Cut(share=share) for share in SHARES)
    yield from (Cut(top=top) for top in TOPS)
    scores = np.array([score for answer in answers.values() for score in answer.scores.values() if score > 0])
    if len(scores):
        least = np.unique(np.quantile(scores, 1 - np.geomspace(1e-3, 1, QUANTILES)))
        yield from (Cut(least=float(number)) for number in np.nextafter(least, 0.0))


def cut_answers(answers: Answers, cut: Cut) -> dict[Pair, Answer]:
    """The same answers with the causes that pass."""
    return {pair: replace(answer, causes=cut.causes(answer.scores)) for pair, answer in answers.items()}


@dataclass(frozen=True)
class Rival:
    """One method; `scored(train, test, setting)` is to look at the events of the test part, and which labels to ask."""

    name: str
    scored: Callable[[Dataset, Dataset, Any], Scored]
    """Both parts number types and labels alike."""
    settings: tuple[Any, ...] = (None,)
    cuts: tuple[Cut, ...] = (Cut(),)

    def methods(self) -> dict[str, Method]:
        """Its rows: by default, and tuned where there is anything to choose."""
        rows: dict[str, Method] = {self.name: self._at_defaults}
        return {**rows, self.name + TUNED: self._tuned} if len(self.settings) * len(self.cuts) > 1 else rows

    def _at_defaults(self, part: Part) -> Explained:
        return Explained(decide(self.scored(*alike(part.train, part.test), self.settings[0]), self.cuts[0]))

    def _tuned(self, part: Part) -> Explained:
        setting, cut, known = choose(self, part)
        chosen = {"setting": str(setting), "least": cut.least, "top": cut.top, "by_validation": known}
        return Explained(decide(self.scored(*alike(part.train, part.test), setting), cut), chosen=chosen)


def alike(one: Dataset, other: Dataset) -> tuple[Dataset, Dataset]:
    """Both with the same numbers for event types and labels: two folders may hold different ones."""
    events = tuple(sorted({*one.event_names, *other.event_names}))
    labels = tuple(sorted({*one.label_names, *other.label_names}))
    return _numbered(one, events, labels), _numbered(other, events, labels)


def _numbered(data: Dataset, events: tuple[str, ...], labels: tuple[str, ...]) -> Dataset:
    def renumbered(old: tuple[str, ...], new: tuple[str, ...], ids: Ragged) -> Ragged:
        number = {name: k for k, name in enumerate(new)}
        return Ragged(ids.offsets, np.array([number[name] for name in old], np.int32)[ids.ids])

    return replace(
        data,
        event_names=events,
        label_names=labels,
        events=renumbered(data.event_names, events, data.events),
        labels=renumbered(data.label_names, labels, data.labels),
    )


def decide(scored: Scored, cut: Cut) -> dict[Pair, Answer]:
    """Strengths to answers.

    >>> scored = Scored({("1", "y"): {"A": 2.0, "B": 2.0, "C": 1.0, "D": -1.0}})
    >>> sorted(decide(scored, Cut(top=1))["1", "y"].causes)
    ['A', 'B']
    """
    answers = {}
    for pair, scores in scored.scores.items():
        where = {} if scored.positions is None else scored.positions.get(pair, {})
        answers[pair] = Answer(cut.causes(scores), cut.inhibitors(scores), scores, where)
    return answers


def choose(rival: Rival, part: Part) -> tuple[Any, Cut, bool]:
    """Setting and cut with the best F1 on `part.judge`; False: there was nothing to choose by."""
    if not part.known:
        return rival.settings[0], rival.cuts[0], False
    found = []
    for setting in rival.settings:
        scored = rival.scored(*alike(part.learn, part.judge), setting)
        for cut in rival.cuts:
            found.append((score(decide(scored, cut), part.known, part.unit).f1(), setting, cut))
    best = max(figure for figure, *_ in found)
    return *next((setting, cut) for figure, setting, cut in found if figure == best), True
