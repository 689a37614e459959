"""What a ground gives and what a method says of it: the same for worlds and for sets that come from elsewhere.

A ground (a world, an outside set) is explained in parts; a method sees one part, learns from its training sequences and
answers for every label that came in its test sequences. `scoring` compares answers with the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from oscar_causal.data.sequences import Dataset
from oscar_causal.data.synthetic.worlds import SqlWorld, World
from oscar_causal.discovery.boundary import Boundary
from oscar_causal.score.matching import Pair

Positions = Mapping[str, frozenset[int]]
"""Event type -> 0-based positions in the sequence."""


@dataclass(frozen=True)
class Reasons:
    """What is true of one pair: event types that are there and caused the label; every other type did not."""

    causes: frozenset[str]
    unknown: frozenset[str] = frozenset()
    """Types of which nothing is said (neutral ones of a world): naming them is neither right nor wrong."""
    positions: Positions | None = None
    """Which occurrences of the causes mattered, where the source tells."""


Truth = Mapping[Pair, Reasons]


@dataclass(frozen=True)
class Answer:
    """What a method says of one pair."""

    causes: frozenset[str] = frozenset()
    inhibitors: frozenset[str] = frozenset()
    scores: Mapping[str, float] = field(default_factory=dict)
    """Type -> strength as a cause, of every type the method ranks, named or not."""
    positions: Positions = field(default_factory=dict)
    """Which occurrences of a cause the method means; a cause that is not in here: all."""


Answers = Mapping[Pair, Answer]


def same(event: str) -> str:
    """The event type itself is what is named."""
    return event


@dataclass(frozen=True)
class Part:
    """What a method learns from and what it explains."""

    train: Dataset
    test: Dataset
    """Asked: every label of every sequence. A method looks at nothing else of it."""
    learn: Dataset
    judge: Dataset
    """Settings are chosen by learning from `learn` and comparing with `known` on `judge`; never on `test`."""
    known: Truth
    """Reasons of the sequences of `judge`; empty: nothing to choose by."""
    work: Path
    """Models trained on `train` are kept here."""
    seed: int = 0
    unit: Callable[[str], str] = same
    """What is scored instead of an event type, e.g. the variable of `variable=value`."""
    world: World | SqlWorld | None = None
    """The world that made the sequences; its probabilities are for the rows that say so."""
    boundaries: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Label -> every unit that ever causes it: for the row that reads a perfect boundary."""


@dataclass(frozen=True)
class Explained:
    """What a method says of the test sequences of a part, and what that took."""

    answers: Answers
    passes: float | None = None
    """Forward passes of the label model for a sequence; None: it asks none."""
    chosen: Mapping[str, Any] = field(default_factory=dict)
    """Settings chosen on `judge`."""
    extra: Mapping[str, float] = field(default_factory=dict)
    """Further figures of the row, e.g. agreement between training seeds."""


Method = Callable[[Part], Explained]


class Ground(Protocol):
    """A world or an outside set; it is sent to other processes, so it holds settings alone and reads when asked."""

    @property
    def name(self) -> str:
        """`decay/1`: what it is, and its seed."""
        ...

    def make(self) -> str:
        """Write its sequences, unless they are there; what was done, in a line."""
        ...

    @property
    def digest(self) -> str:
        """Of its sequences and of those that are scored: rows with the same one can be compared."""
        ...

    def parts(self) -> Iterator[Part]:
        """What is learnt from and what is explained, fold by fold."""
        ...

    @property
    def scored(self) -> Truth:
        """The truth of the test sequences of all parts."""
        ...

    def own(self, answers: Answers) -> Mapping[str, float]:
        """Figures of its own field."""
        ...

    def facts(self) -> Mapping[str, Any]:
        """What a page tells of it."""
        ...


def answers_of(boundaries: Iterable[Boundary]) -> dict[Pair, Answer]:
    """The verdicts of any method of this package as answers; ranked by its score, else by its effect."""
    answers = {}
    for found in boundaries:
        named: dict[str, set[str]] = {"cause": set(), "inhibitor": set()}
        for item in found.evidence:
            named.get(item.verdict, set()).add(item.event)
        ranked = [item for item in found.evidence if item.verdict != "inhibitor"]
        answers[found.sequence_id, found.label] = Answer(
            frozenset(named["cause"]),
            frozenset(named["inhibitor"]),
            {item.event: item.effect if item.score is None else item.score for item in ranked},
            {item.event: frozenset(item.mattered or item.positions) for item in found.evidence},
        )
    return answers
