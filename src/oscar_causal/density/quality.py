"""Is this model oracle enough? Label scores on unseen sequences, calibration, and which labels not to trust."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from oscar_causal.data.batches import Encoded
from oscar_causal.data.folders import finite_or_none
from oscar_causal.data.metrics import Counts, average_precision, averages, count, label_scores, reliability
from oscar_causal.data.sequences import Int64
from oscar_causal.density.labels import Calibration, fit_calibration
from oscar_causal.density.model import TOKENS_PER_PASS, OscarModel, length_batches
from oscar_causal.density.precision import quick_products

MIN_POSITIVES = 5
"""A label with fewer positive held-out sequences cannot be judged."""
MIN_F1 = 0.5
"""A label predicted worse than this on held-out sequences is not to be trusted."""
THRESHOLD = 0.5
"""A label is predicted where its probability is above this."""
CUTS = np.arange(0.1, 0.91, 0.02)
PULL = 0.02
"""Thresholds of a label's own that are tried, and the F1 that one further from 0.5 by 1 has to gain."""
PREFIXES = 6
"""Number of prefix lengths at which labels are scored."""
PREFIX_SEQUENCES = 4000
"""At most this many sequences (the first ones) are scored at every prefix length."""

Float64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Judged:
    """Calibrated label probabilities of S sequences beside the truth, whole and after the first c events."""

    probs: Float64
    """(S, Y)"""
    truth: Bool
    """(S, Y)"""
    prefixes: tuple[int, ...]
    """The P prefix lengths."""
    prefix_probs: Float64
    """(S', P, Y) of the first S' sequences; NaN where the sequence is shorter than the prefix."""


def logits_at(model: OscarModel, encoded: Encoded, rows: Int64, positions: Int64) -> npt.NDArray[np.float32]:
    """Uncalibrated label logits of the chosen sequences after their first `positions[s, p]` events: (S, P, Y)."""
    result = np.empty((*positions.shape, len(model.vocabulary.labels)), np.float32)
    with quick_products(model.device):
        room = model.pieces.tokens or TOKENS_PER_PASS[model.device.type]
        for chosen in length_batches(encoded.events.lengths[rows], room):
            result[chosen] = model.label_logits_at(encoded, rows[chosen], positions[chosen]).cpu().numpy()
    return result


def assess(model: OscarModel, encoded: Encoded, *, evaluated_on: str, fit: bool = False) -> dict[str, Any]:
    """The content of `quality.json` for these sequences; with `fit` a new calibration is fitted on them first.

    Calibration and scores then share the same held-out sequences; with two weights per label and a prior this costs
    the scores next to nothing, and the thresholds (0.5) are not tuned at all.
    """
    rows = np.flatnonzero(encoded.labelled)
    logits = logits_at(model, encoded, rows, encoded.events.lengths[rows][:, None])[:, 0]
    truth = encoded.labels.take(rows).indicator(logits.shape[1])
    calibration = fit_calibration(torch.from_numpy(logits), torch.from_numpy(truth)) if fit else model.calibration
    prefixes, positions = prefix_positions(encoded, rows, model.min_context)
    early = logits_at(model, encoded, rows[: len(positions)], positions)
    judged = Judged(
        calibrated(logits, calibration),
        truth,
        prefixes,
        hide_short(calibrated(early, calibration), encoded, rows, prefixes),
    )
    return quality_content(judged, model.vocabulary.labels, calibration, evaluated_on=evaluated_on)


def quality_content(
    judged: Judged, names: tuple[str, ...], calibration: Calibration | None, *, evaluated_on: str
) -> dict[str, Any]:
    """Scores, reliability, labels and prefixes in the form of `quality.json`."""
    table, _ = reliability(judged.probs, judged.truth)
    return {
        "kind": "quality",
        "format_version": 1,
        "evaluated_on": evaluated_on,
        "sequences": len(judged.truth),
        "threshold": THRESHOLD,
        "labels": overall(judged.probs, judged.truth),
        "reliability": table,
        "calibration": None
        if calibration is None
        else {"slope": list(calibration.slope), "shift": list(calibration.shift)},
        "per_label": _per_label(judged, names),
        "by_prefix": _by_prefix(judged),
    }


def overall(probs: Float64, truth: Bool) -> dict[str, Any]:
    """Micro, macro and weighted scores, mean average precision over labels that occur, and calibration error."""
    return {
        **averages(count(probs > THRESHOLD, truth)),
        "at_own_thresholds": averages(crossed(probs, truth)),
        "mean_average_precision": finite_or_none(_nanmean(average_precision(probs, truth))),
        "ece": reliability(probs, truth)[1],
    }


def prefix_positions(encoded: Encoded, rows: Int64, least: int) -> tuple[tuple[int, ...], Int64]:
    """A handful of prefix lengths from `least` on, evenly spaced in ratio, and where to read them: (S', P).

    The longest is reached by a quarter of the sequences. Positions stop at a sequence's own length.
    """
    lengths = encoded.events.lengths[rows]
    longest = int(np.quantile(lengths, 0.75)) if len(lengths) else 0
    steps = np.geomspace(max(1, least), max(longest, 1), PREFIXES) if longest > max(1, least) else np.empty(0)
    prefixes = np.unique(np.rint(steps).astype(np.int64))
    return tuple(prefixes.tolist()), np.minimum(prefixes[None, :], lengths[:PREFIX_SEQUENCES, None])


def hide_short(probs: Float64, encoded: Encoded, rows: Int64, prefixes: tuple[int, ...]) -> Float64:
    """Set (S', P, Y) to NaN where a sequence has fewer events than the prefix."""
    lengths = encoded.events.lengths[rows[: len(probs)]]
    short = lengths[:, None] < np.array(prefixes, np.int64)[None, :]
    return np.where(short[:, :, None], np.nan, probs)


def calibrated(logits: npt.NDArray[np.float32], calibration: Calibration | None) -> Float64:
    """Probabilities from raw logits (..., Y)."""
    scaled = logits.astype(np.float64)
    if calibration is not None:
        scaled = scaled * np.array(calibration.slope) + np.array(calibration.shift)
    probs: Float64 = 1 / (1 + np.exp(-np.clip(scaled, -60, 60)))
    return probs


def best_thresholds(probs: Float64, truth: Bool) -> Float64:
    """For each label the threshold with the best F1 on these sequences (S, Y); 0.5 for labels with too few positives.

    Of thresholds that are nearly as good the one nearer to 0.5, so that few sequences decide little.

    >>> probs = np.tile([[0.45], [0.4], [0.1], [0.1]], (20, 1))
    >>> best_thresholds(probs, np.tile([[True], [True], [False], [False]], (20, 1))).round(2).tolist()
    [0.38]
    """
    scores = [label_scores(count(probs > cut, truth))[2] - PULL * abs(cut - THRESHOLD) for cut in CUTS]
    best: Float64 = CUTS[np.argmax(scores, axis=0)]
    return np.where(truth.sum(0) < MIN_POSITIVES, THRESHOLD, best)


def crossed(probs: Float64, truth: Bool) -> Counts:
    """Hits and errors at thresholds of each label's own, those of even sequences from the odd ones and the reverse."""
    predicted = np.zeros_like(truth)
    for part in (0, 1):
        thresholds = best_thresholds(probs[1 - part :: 2], truth[1 - part :: 2])
        predicted[part::2] = probs[part::2] > thresholds
    return count(predicted, truth)


def trusted_labels(quality: dict[str, Any]) -> dict[str, bool]:
    """Label -> may verdicts on it be trusted? Empty when the model was never checked."""
    return {name: bool(row["trusted"]) for name, row in quality.get("per_label", {}).items()}


def _per_label(judged: Judged, names: tuple[str, ...]) -> dict[str, Any]:
    probs, truth = judged.probs, judged.truth
    precision, recall, f1 = label_scores(count(probs > THRESHOLD, truth))
    ranked = average_precision(probs, truth)
    early = [f1_early for _, _, f1_early in _prefix_parts(judged)]
    own = best_thresholds(probs, truth)
    result = {}
    for index, name in enumerate(names):
        positives = int(truth[:, index].sum())
        reason = _doubt(positives, float(f1[index]))
        table, ece = reliability(probs[:, index], truth[:, index])
        result[name] = {
            "positives": positives,
            "precision": float(precision[index]),
            "recall": float(recall[index]),
            "f1": float(f1[index]),
            "own_threshold": float(own[index]),
            "f1_by_prefix": [float(part[index]) for part in early],
            "average_precision": finite_or_none(float(ranked[index])),
            "ece": ece,
            "reliability": table,
            "trusted": reason is None,
            "reason": reason,
        }
    return result


def _by_prefix(judged: Judged) -> list[dict[str, Any]]:
    parts = zip(judged.prefixes, _prefix_parts(judged), strict=True)
    return [{"events": c, "sequences": len(truth), **overall(probs, truth)} for c, (probs, truth, _) in parts]


def _prefix_parts(judged: Judged) -> list[tuple[Float64, Bool, Float64]]:
    """For each prefix length: probabilities and truth of the sequences that reach it, and F1 of each label."""
    parts = []
    for index in range(len(judged.prefixes)):
        probs = judged.prefix_probs[:, index]
        long = ~np.isnan(probs[:, 0])
        probs, truth = probs[long], judged.truth[: len(long)][long]
        parts.append((probs, truth, label_scores(count(probs > THRESHOLD, truth))[2]))
    return parts


def _doubt(positives: int, f1: float) -> str | None:
    if positives < MIN_POSITIVES:
        return f"only {positives} held-out sequences carry it (at least {MIN_POSITIVES} needed)"
    if f1 < MIN_F1:
        return f"held-out F1 {f1:.2f} is below {MIN_F1}"
    return None


def _nanmean(values: Float64) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")
