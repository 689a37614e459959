"""Is this model oracle enough? Label scores on unseen sequences, calibration, and which labels not to trust."""

from __future__ import annotations

from dataclasses import asdict, dataclass
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
from oscar_causal.density.reference import Reference
from oscar_causal.density.skill import log_losses, mean_interval, precision_interval, random_precision

MIN_POSITIVES = 5
"""A label that fewer held-out sequences carry, or fewer lack, cannot be judged."""
JUDGED_BY = "skill"
"""What `trusted` in `quality.json` rests on; files without the entry are older: F1 of at least 0.5 alone."""
THRESHOLD = 0.5
"""A label is predicted where its probability is above this."""
CUTS = np.concatenate([np.geomspace(0.001, 0.08, 12), np.arange(0.1, 0.91, 0.02)])
PULL = 0.02
"""Thresholds of a label's own that are tried, and the share of its F1 that one further from 0.5 by 1 has to gain."""
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


def assess(
    model: OscarModel, encoded: Encoded, reference: Reference, *, evaluated_on: str, fit: bool = False
) -> dict[str, Any]:
    """The content of `quality.json` for these sequences; with `fit` a new calibration is fitted on them first.

    `reference` holds one row for each labelled sequence. Calibration and scores then share the same held-out sequences;
    with two weights per label and a prior this costs
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
    return quality_content(judged, reference, model.vocabulary.labels, calibration, evaluated_on=evaluated_on)


def quality_content(
    judged: Judged, reference: Reference, names: tuple[str, ...], calibration: Calibration | None, *, evaluated_on: str
) -> dict[str, Any]:
    """Scores, reliability, labels and prefixes in the form of `quality.json`."""
    table, _ = reliability(judged.probs, judged.truth)
    return {
        "kind": "quality",
        "format_version": 1,
        "evaluated_on": evaluated_on,
        "judged_by": JUDGED_BY,
        "base_rates_from": reference.base_rates_from,
        "logistic_left_out": reference.logistic_left_out,
        "sequences": len(judged.truth),
        "threshold": THRESHOLD,
        "labels": overall(judged.probs, judged.truth),
        "reliability": table,
        "calibration": None
        if calibration is None
        else {"slope": list(calibration.slope), "shift": list(calibration.shift)},
        "per_label": _per_label(judged, reference, names),
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
    scores = [label_scores(count(probs > cut, truth))[2] * (1 - PULL * abs(cut - THRESHOLD)) for cut in CUTS]
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


def _per_label(judged: Judged, reference: Reference, names: tuple[str, ...]) -> dict[str, Any]:
    probs, truth = judged.probs, judged.truth
    precision, recall, f1 = label_scores(count(probs > THRESHOLD, truth))
    early = [f1_early for _, _, f1_early in _prefix_parts(judged)]
    own = best_thresholds(probs, truth)
    compared = compare(probs, truth, reference)
    result = {}
    for index, name in enumerate(names):
        table, ece = reliability(probs[:, index], truth[:, index])
        result[name] = {
            "positives": int(truth[:, index].sum()),
            "precision": float(precision[index]),
            "recall": float(recall[index]),
            "f1": float(f1[index]),
            "own_threshold": float(own[index]),
            "f1_by_prefix": [float(part[index]) for part in early],
            "ece": ece,
            "reliability": table,
            **compared[index],
        }
        reason = doubt(result[name], len(truth))
        result[name] |= {"trusted": reason is None, "reason": reason}
    return result


def compare(probs: Float64, truth: Bool, reference: Reference) -> list[dict[str, Any]]:
    """For each label: log loss, AP and F1 of the model beside those of always yes, the base rate and the logistic."""
    every = len(truth)
    ours = _three(probs, truth)
    logistic = [None] * truth.shape[1] if reference.logistic is None else _three(reference.logistic, truth)
    result = []
    for index, rate in enumerate(reference.base_rates.tolist()):
        true, positives = truth[:, index], int(truth[:, index].sum())
        base = log_losses(np.full(every, rate), true)
        row: dict[str, Any] = {**ours[index], "log_loss_gain": None, "average_precision_interval": None}
        if every:
            gain = mean_interval(base - log_losses(probs[:, index], true), reference.subjects)
            row["log_loss_gain"] = {name: finite_or_none(value) for name, value in asdict(gain).items()}
        if positives:
            found = precision_interval(probs[:, index], true, reference.subjects)
            row["average_precision_interval"] = {"low": found.low, "high": found.high}
        row["always_yes"] = {"f1": 2 * positives / (every + positives) if every else 0.0}
        random = random_precision(positives, every) if positives else None
        row["base_rate"] = {
            "rate": rate,
            "log_loss": finite_or_none(float(base.mean())) if every else None,
            "average_precision": random,
        }
        result.append({**row, "logistic": logistic[index]})
    return result


def _three(probs: Float64, truth: Bool) -> list[dict[str, Any]]:
    """Log loss, average precision, and F1 at the label's own threshold (chosen on the other half) of each label."""
    columns = range(truth.shape[1] if len(truth) else 0)  # one by one: no second (S, Y)
    losses = [log_losses(probs[:, j], truth[:, j]).mean() for j in columns] or [np.nan] * truth.shape[1]
    figures = zip(losses, average_precision(probs, truth), label_scores(crossed(probs, truth))[2], strict=True)
    names = ("log_loss", "average_precision", "f1_own")
    return [{name: finite_or_none(float(v)) for name, v in zip(names, row, strict=True)} for row in figures]


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


def doubt(row: dict[str, Any], sequences: int) -> str | None:
    """Why verdicts on a label are not to be trusted, from its row of `per_label`; None = it shows skill."""
    positives, base, always = row["positives"], row["base_rate"], row["always_yes"]["f1"]
    for number, verb in ((positives, "carry"), (sequences - positives, "lack")):
        if number < MIN_POSITIVES:
            return f"only {number} held-out sequences {verb} it (at least {MIN_POSITIVES} needed)"
    gain, ranked = row["log_loss_gain"], row["average_precision_interval"]
    words = f"the base rate's, with {positives:,} held-out sequences that carry it"
    if gain["low"] is None or gain["low"] <= 0:
        told = f"{row['log_loss']:.4f} against {base['log_loss']:.4f}"
        return f"log loss is not clearly below {words} ({told}; gain {_span(gain)})"
    if ranked["low"] <= base["average_precision"]:
        told = f"{row['average_precision']:.3f} ({_span(ranked)}) against {base['average_precision']:.3f}"
        return f"average precision is not clearly above {words} ({told})"
    if row["f1_own"] <= always:
        return f"F1 {row['f1']:.3f} ({row['f1_own']:.3f} at its own threshold) is not above always-yes {always:.3f}"
    return None


def _span(interval: dict[str, float | None]) -> str:
    low, high = interval["low"], interval["high"]
    return "of one subject alone" if low is None or high is None else f"95 % interval {low:.4f} to {high:.4f}"


def _nanmean(values: Float64) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")
