"""What data and model show about the paper's assumptions, one finding per line, in plain words.

Nothing here proves an assumption. A finding is `doubtful` when the figures speak against it and `no sign against` when
they do not; `cannot say` when there is too little to look at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch

from oscar_causal.data.batches import Encoded
from oscar_causal.data.metrics import averages, count, reliability
from oscar_causal.data.sequences import Dataset, Int64
from oscar_causal.density.associations import residual_pairs, xor_like
from oscar_causal.density.folds import MEAN, MeanModel, ModelSet
from oscar_causal.density.model import OscarModel, sequence_contexts
from oscar_causal.density.quality import MIN_POSITIVES, Float64, Judged

SAMPLE = 200
"""Sequences whose forecasts are followed event by event."""
CERTAIN = 0.02
"""Probabilities within this of 0 or 1 are called certain."""
LAG_BINS = (1, 4, 16, 64, 256)
"""Upper ends of the bins of forecast moves, in events from the end (the last event is 1); one open bin follows."""
LAG_NAMES = ("1", "2-4", "5-16", "17-64", "65-256", ">256")

Verdict = Literal["no sign against", "doubtful", "cannot say"]


@dataclass(frozen=True)
class Finding:
    """One line of the page."""

    assumption: str
    name: str
    verdict: Verdict
    text: str
    figures: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return dict(vars(self))


@dataclass(frozen=True)
class Evidence:
    """What the findings are drawn from: the dataset, and what the models say of the S judged sequences."""

    models: ModelSet
    dataset: Dataset
    encoded: Encoded
    rows: Int64
    """(S,) judged sequences, as rows of `encoded`."""
    routes: Int64
    """(S,) which fold judges each."""
    judged: Judged
    doubts: Mapping[str, str] = field(default_factory=dict)
    """Labels that show no skill on the judged sequences, and why."""

    def sample(self) -> list[tuple[int, OscarModel | MeanModel]]:
        """Up to `SAMPLE` judged sequences, evenly spread, each with its model."""
        chosen = np.unique(np.linspace(0, len(self.rows) - 1, min(SAMPLE, len(self.rows))).astype(int))
        pairs = zip(self.rows[chosen].tolist(), self.routes[chosen].tolist(), strict=True)
        return [(row, self.models.mean if route == MEAN else self.models.models[route]) for row, route in pairs]


def survey(evidence: Evidence) -> list[Finding]:
    """All findings, in the order of the paper's assumptions."""
    return [
        temporal_precedence(evidence),
        bounded_lag(evidence),
        causal_sufficiency(evidence),
        oracle_models(evidence),
        rare_labels(evidence),
        deterministic_labels(evidence),
        xor_labels(evidence),
    ]


def temporal_precedence(evidence: Evidence) -> Finding:
    """A1: an order inside a timestamp is no order in time, and an event after the label cannot have caused it."""
    data = evidence.dataset
    tied = _tied(data)
    touched = float(np.mean(np.bincount(data.events.rows()[tied], minlength=len(data)) > 0))
    share = float(tied.mean())
    late, known = _events_after_labels(data)
    figures = {"tied_events": share, "sequences_with_ties": touched, "labels_with_time": known, "late_labels": late}
    text = f"{share:.1%} of the events share their timestamp with a neighbour ({touched:.1%} of the sequences)"
    if known:
        text += f"; {late:.1%} of the labels with a time came before the last event"
    verdict: Verdict = "doubtful" if share > 0.05 or late > 0.01 else "no sign against"
    return Finding("A1", "temporal precedence", verdict, text, figures)


def bounded_lag(evidence: Evidence) -> Finding:
    """A2: how far back from the end the events stand that move the forecast of the labels that came."""
    cut = float(evidence.encoded.cut.mean())
    mass, old, pairs = _forecast_moves(evidence)
    if not pairs:
        text = f"no labelled sequence is longer than {evidence.models.min_context} events: no forecast to follow"
        return Finding("A2", "bounded lag", "cannot say", text, {"cut_sequences": cut})
    by_lag = dict(zip(LAG_NAMES, mass.tolist(), strict=True))
    figures = {"moves_by_lag": by_lag, "oldest_quarter": old, "cut_sequences": cut, "pairs": pairs}
    shown = ", ".join(f"{name}: {value:.0%}" for name, value in by_lag.items() if value >= 0.005)
    text = f"share of the forecasts' movement by distance from the last event, in events: {shown}"
    text += f"; the oldest quarter of each sequence holds {old:.0%}; {cut:.1%} of the sequences were cut"
    verdict: Verdict = "doubtful" if cut > 0.05 or old > 0.35 else "no sign against"
    return Finding("A2", "bounded lag", verdict, text, figures)


def causal_sufficiency(evidence: Evidence) -> Finding:
    """A3: labels that come together more (or less) often than the model allows hint at a hidden driver."""
    found = residual_pairs(evidence.judged.probs, evidence.judged.truth)
    names = evidence.models.vocabulary.labels
    pairs: list[dict[str, Any]] = [
        {"labels": [names[i], names[j]], "correlation": float(found.size[i, j]), "z": float(found.z[i, j])}
        for i, j in found.pairs
    ]
    figures = {"pairs_tested": found.tested, "pairs": pairs[:50], "pairs_found": len(pairs)}
    if not found.tested:
        return Finding("A3", "causal sufficiency", "cannot say", "too few positives to compare labels", figures)
    if not pairs:
        text = f"no two labels co-occur beyond what the model predicts ({found.tested:,} pairs looked at)"
        text += "; a hidden driver of one label alone cannot be seen this way"
        return Finding("A3", "causal sufficiency", "no sign against", text, figures)
    first = pairs[0]
    text = f"{len(pairs):,} of {found.tested:,} pairs of labels co-occur otherwise than the model predicts, most "
    text += f"{' and '.join(first['labels'])} (residual correlation {first['correlation']:+.2f})"
    text += ": a hidden driver, or a cause the model has missed"
    return Finding("A3", "causal sufficiency", "doubtful", text, figures)


def oracle_models(evidence: Evidence) -> Finding:
    """A4: how far the two densities are from useless, as far as held-out data tell."""
    probs, truth = evidence.judged.probs, evidence.judged.truth
    weighted = averages(count(probs > 0.5, truth))["weighted"]["f1"]
    error = reliability(probs, truth)[1]
    model_nats, unigram_nats = _event_nats(evidence)
    figures = {"weighted_f1": weighted, "ece": error, "event_nats": model_nats, "unigram_nats": unigram_nats}
    text = f"labels: weighted F1 {weighted:.3f}, calibration error {error:.3f}; next event: {model_nats:.2f} nats"
    text += f" against {unigram_nats:.2f} for plain frequencies"
    poor = weighted < 0.8 or error > 0.05 or model_nats > unigram_nats
    return Finding("A4", "oracle models", "doubtful" if poor else "no sign against", text, figures)


def rare_labels(evidence: Evidence) -> Finding:
    """A4 for single labels: which of them are too rare or too poorly predicted to be judged."""
    truth, names = evidence.judged.truth, evidence.models.vocabulary.labels
    rare = [names[i] for i in np.flatnonzero(truth.sum(0) < MIN_POSITIVES)]
    poor = [name for name in names if name in evidence.doubts and name not in rare]
    text = f"{len(rare):,} of {len(names):,} labels have fewer than {MIN_POSITIVES} positive sequences"
    text += f", {len(poor):,} more are not clearly predicted better than by their base rate"
    figures = {"rare": rare, "poor": poor}
    return Finding("A4", "rare labels", "doubtful" if rare or poor else "no sign against", text, figures)


def deterministic_labels(evidence: Evidence) -> Finding:
    """Faithfulness fails where a label is a function of the events: several sets then screen off the rest equally."""
    probs, names = evidence.judged.probs, evidence.models.vocabulary.labels
    possible = (probs > CERTAIN).sum(0)
    certain = (probs > 1 - CERTAIN).sum(0)
    found = [names[i] for i in np.flatnonzero((possible >= MIN_POSITIVES) & (certain >= 0.9 * possible))]
    figures = {"labels": found}
    if not found:
        text = "no label is all but certain (P within 0.02 of 0 or 1) wherever it is possible"
        return Finding("faithfulness", "deterministic labels", "no sign against", text, figures)
    text = f"{len(found):,} labels are all but certain wherever they are possible ({_some(found)})"
    text += ": redundant causes of such labels hide each other"
    return Finding("faithfulness", "deterministic labels", "doubtful", text, figures)


def xor_labels(evidence: Evidence) -> Finding:
    """Faithfulness fails where two events matter together and neither alone. A screen of pairs of frequent events."""
    found, tested = xor_like(evidence.dataset)
    figures = {"pairs": found[:50], "pairs_found": len(found), "pairs_tested": tested}
    limits = "; only pairs of frequent events are looked at, not triples, order or counts"
    if not tested:
        return Finding("faithfulness", "XOR-like labels", "cannot say", "no frequent events to pair" + limits, figures)
    if not found:
        text = f"no pair of frequent events tells about a label what neither tells alone ({tested:,} seen)" + limits
        return Finding("faithfulness", "XOR-like labels", "no sign against", text, figures)
    first = found[0]
    text = f"{len(found):,} (label, event, event) tell only together, most of all {first['label']}: "
    text += " with ".join(first["events"]) + limits
    return Finding("faithfulness", "XOR-like labels", "doubtful", text, figures)


def _tied(data: Dataset) -> np.typing.NDArray[np.bool_]:
    """Which events share their timestamp with the event before or after them in the same sequence."""
    rows, times = data.events.rows(), data.times
    with_next = np.append((np.diff(times) == 0) & (np.diff(rows) == 0), False)
    result: np.typing.NDArray[np.bool_] = with_next | np.roll(with_next, 1)
    return result


def _events_after_labels(data: Dataset) -> tuple[float, int]:
    """Share of the labels with a known time that came before their sequence's last event; how many have a time."""
    times = data.label_times()
    if times is None or not np.isfinite(times).any():
        return 0.0, 0
    last = data.times[data.events.offsets[1:] - 1][data.labels.rows()]
    known = np.isfinite(times)
    return float((times < last)[known].mean()), int(known.sum())


def _forecast_moves(evidence: Evidence) -> tuple[Float64, float, int]:
    """Mean over (sequence, observed label) of the share of |change of P| in each lag bin and in the oldest quarter."""
    mass, old, pairs = np.zeros(len(LAG_BINS) + 1), 0.0, 0
    for row, model in evidence.sample():
        labels, length = evidence.encoded.labels[row], int(evidence.encoded.events.lengths[row])
        first = model.min_context
        if not len(labels) or length <= first + 1:
            continue
        positions = torch.arange(first, length + 1)
        probs = model.label_probs(sequence_contexts(evidence.encoded, row), torch.as_tensor(labels).long(), positions)
        moves = np.abs(np.diff(probs[0].double().cpu().numpy(), axis=0))  # (L - c, Y')
        moves = moves[:, moves.sum(0) > 0]
        shares = (moves / moves.sum(0)).sum(1)  # (L - c,)
        lags = np.arange(len(shares), 0, -1)
        mass += np.bincount(np.searchsorted(LAG_BINS, lags), shares, minlength=len(mass))
        old += float(shares[: max(1, len(shares) // 4)].sum())
        pairs += moves.shape[1]
    return mass / max(pairs, 1), old / max(pairs, 1), pairs


def _event_nats(evidence: Evidence) -> tuple[float, float]:
    """Mean -log P(event) of Tf_x and of the encoded sequences' own frequencies on the sampled sequences."""
    counts = np.bincount(evidence.encoded.events.ids, minlength=evidence.models.vocabulary.size)
    unigram = np.log((counts + 1) / (counts + 1).sum())
    model_nats = unigram_nats = 0.0
    number = 0
    for row, model in evidence.sample():
        ids = evidence.encoded.events[row].astype(np.int64)
        probs = model.observed_probs(sequence_contexts(evidence.encoded, row)).double().cpu().numpy()  # (L,)
        model_nats -= float(np.log(np.maximum(probs, 1e-300)).sum())
        unigram_nats -= float(unigram[ids].sum())
        number += len(ids)
    return model_nats / max(number, 1), unigram_nats / max(number, 1)


def _some(names: list[str], shown: int = 3) -> str:
    return ", ".join(names[:shown]) + (f" and {len(names) - shown:,} more" if len(names) > shown else "")
