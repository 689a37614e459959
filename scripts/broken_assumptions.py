"""What the test of Theorem 1 finds with oracle models when one assumption is broken, by enumerating all sequences.

Truth: the event types that made the label's rule hold in the sequence. Sequences count by their probability, those
in which no rule holds are left out. Four readings of the evidence along a sequence, all with perfect models:

- *rises*: every type at which the forecast rises at all (theta = 0);
- *best k*: Eq. 6 with the k (0 to 2) that is best for this very process, chosen with the truth in hand;
- *direct*: the whole sequence with the type kept against replaced (tau > 0.05 at r = 0.25), past and future as context;
  replacements are drawn from Tf_x without the types present (*direct*), or from types that no label looks at (*inert*).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from enumeration import Enumeration, Floats, enumerate_all

from oscar_causal.data.solvable import EXAMPLES, Effect, LabelLaw, Pull, SolvableConfig, SolvableProcess
from oscar_causal.discovery.cmi import bernoulli_kl
from oscar_causal.score.bench.plots import save_plot

K_GRID = np.arange(0, 2.05, 0.05)
DELTA, RATE = 0.05, 0.25
Sets = Sequence[frozenset[int]]


def _changed(name: str, *effects: tuple[str, float], base: float = 0.05, **changes: Any) -> SolvableConfig:
    label = LabelLaw("fault", base, tuple(Effect(rule, size) for rule, size in effects))
    return replace(EXAMPLES[name], labels=(label,), **changes)


CASES: dict[str, tuple[str, SolvableConfig]] = {
    "one cause": ("events independent of each other", _changed("and", ("A", 0.8), memory=0.0)),
    "two causes": ("both needed", EXAMPLES["and"]),
    "announcer": ("N brings the cause A about", EXAMPLES["announcer"]),
    "mediator": ("A works through M alone", _changed("mediator", ("M", 0.8))),
    "symptom": ("G brings A, then S", EXAMPLES["symptom"]),
    "xor": ("faithfulness: either, not both", EXAMPLES["xor"]),
    "redundant": ("faithfulness, nearly: A and B come together, one is enough", EXAMPLES["redundant"]),
    "certain": ("faithfulness: a label decided by its first cause", _changed("or", ("A | B", 1.0), base=0.0)),
    "hidden": ("sufficiency (A3): an unseen coin raises D and the label", EXAMPLES["hidden"]),
}


@dataclass(frozen=True)
class Score:
    """Means over sequences, weighted by probability."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """Of the two means."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    def to_json(self) -> dict[str, float]:
        """For the record."""
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1}


def score(found: Sets, truth: Sets, mass: Floats) -> Score:
    """Precision (0 where nothing was found) and recall of each sequence, averaged."""
    hits = np.array([len(own & true) for own, true in zip(found, truth, strict=True)], float)
    precision = hits / np.maximum([len(own) for own in found], 1)
    recall = hits / np.array([len(true) for true in truth])
    return Score(float(mass @ precision), float(mass @ recall))


def measure_assumptions() -> dict[str, Any]:
    """Every case, and two exact statements about the threshold and about faithfulness."""
    return {
        "cases": {name: {"about": about, **measure_case(SolvableProcess(config))}
                  for name, (about, config) in CASES.items()},
        "balanced_xor": balanced_xor(),
        "fewest_positions": {str(k): fewest_positions(k) for k in (2.0, 2.75, 3.0)},
        "window": window_recall(enumerate_all(SolvableProcess(EXAMPLES["and"]))),
    }  # fmt: skip


def measure_case(process: SolvableProcess) -> dict[str, Any]:
    """Scores of the four readings, and how often `best k` calls each type a cause."""
    whole = enumerate_all(process)
    causes = whole.causes()
    rows = np.flatnonzero([bool(own) for own in causes])
    mass = whole.probs[rows] * whole.forecast[rows, -1]
    mass = mass / mass.sum()
    truth = [causes[row] for row in rows]
    rising = whole.forecast[rows, 1:] > whole.forecast[rows, :-1] + 1e-12  # (R, L)
    gain = bernoulli_kl(whole.forecast[rows, 1:], whole.forecast[rows, :-1])  # clamped, as the listing's
    above = _deviations(gain)
    by_k = {float(k): score(_types(whole, rows, rising & (above > k)), truth, mass) for k in K_GRID}
    best = max(by_k, key=lambda k: by_k[k].f1)
    return {
        "parents": [process.event_names[t] for t in process.true_parents(0)],
        "rises": score(_types(whole, rows, rising), truth, mass).to_json(),
        "best_k": best,
        "prefix": by_k[best].to_json(),
        "direct": score([direct(process, whole.sequences[row]) for row in rows], truth, mass).to_json(),
        "inert": score([direct(process, whole.sequences[row], inert=True) for row in rows], truth, mass).to_json(),
        "called": _called(whole, rows, rising & (above > best), mass),
    }


def _deviations(gain: Floats) -> Floats:
    """How many standard deviations each position lies above the mean of its sequence."""
    sd = gain.std(axis=1, ddof=1, keepdims=True)
    deviations: Floats = (gain - gain.mean(axis=1, keepdims=True)) / np.where(sd > 0, sd, np.inf)
    return deviations


def _types(whole: Enumeration, rows: Any, marked: Any) -> list[frozenset[int]]:
    sequences = whole.sequences[rows]
    return [frozenset(own[mark].tolist()) for own, mark in zip(sequences, marked, strict=True)]


def _called(whole: Enumeration, rows: Any, marked: Any, mass: Floats) -> dict[str, float]:
    """How often each relevant type is called a cause where it is present."""
    found, shares = _types(whole, rows, marked), {}
    for t, name in enumerate(whole.process.config.events):
        present = (whole.sequences[rows] == t).any(axis=1)
        if present.any():
            called = np.array([t in own for own in found])
            shares[name] = float(mass @ (called & present) / (mass @ present))
    return shares


def direct(process: SolvableProcess, sequence: Any, *, inert: bool = False) -> frozenset[int]:
    """The types of a sequence whose direct effect exceeds delta."""
    law = process.next_event_probs_along(sequence)
    if inert:
        law[:, : len(process.config.events)] = 0.0
    law[:, np.unique(sequence)] = 0.0
    types, effects = process.direct_effects(sequence, RATE, law)
    return frozenset(types[effects[:, 0] > DELTA].tolist())


def balanced_xor() -> dict[str, Any]:
    """Two events, Y when exactly one of A and B came: whatever comes first, the second is a fair coin."""
    even = math.log(3)
    config = _changed(
        "xor", ("(A & !B) | (!A & B)", 0.8), length=2, memory=0.0, events=("A", "B"), inert=2,
        weights=(0.0, 0.0), inert_weight=math.log(2), inert_tail=0.0,
        pulls=(Pull("A", "B", even), Pull("B", "A", even)),
    )  # fmt: skip
    process = SolvableProcess(config)
    effects = {name: process.total_effect(0, t, 1, reference=2) for t, name in enumerate(config.events)}
    return {
        "cmi_nats": [process.cmi(0, i) for i in range(2)],
        "parents": [process.event_names[t] for t in process.true_parents(0)],
        "effects_of_the_second_event": effects,
    }


def fewest_positions(k: float) -> int:
    """Fewest tested positions at which one of them can exceed mean + k sd: the largest deviation is (n - 1) / sqrt(n).

    >>> fewest_positions(2.0)
    6
    """
    return next(n for n in range(2, 1000) if (n - 1) / math.sqrt(n) > k)


def window_recall(whole: Enumeration) -> list[float]:
    """Share of the true causes that stand among the last w events, w = 1 .. L: what a bounded lag can find at most."""
    causes = whole.causes()
    rows = np.flatnonzero([bool(own) for own in causes])
    mass = whole.probs[rows] * whole.forecast[rows, -1]
    mass = mass / mass.sum()
    truth = [causes[row] for row in rows]
    length = whole.sequences.shape[1]
    marks = [np.tile(np.arange(length) >= length - w, (len(rows), 1)) for w in range(1, length + 1)]
    return [score(_types(whole, rows, mark), truth, mass).recall for mark in marks]


def plot_assumptions(found: dict[str, Any], folder: Path) -> None:
    """F1 of the four readings in every case."""
    cases = found["cases"]
    titles = {"rises": "forecast rises (theta = 0)", "prefix": "mean + k sd, best k", "direct": "direct effect",
              "inert": "direct effect, inert replacements"}  # fmt: skip

    def draw(axis: Any) -> None:
        for offset, (key, title) in enumerate(titles.items()):
            values = [100 * part[key]["f1"] for part in cases.values()]
            axis.bar(np.arange(len(cases)) + 0.2 * offset, values, 0.2, label=title)
        axis.set_xticks(np.arange(len(cases)) + 0.2, list(cases), rotation=30)
        axis.set_ylabel("F1 with perfect models, %")
        axis.set_ylim(0, 130)
        axis.legend(fontsize=8, ncols=2, loc="upper center")

    save_plot(folder / "broken-assumptions.png", draw)
