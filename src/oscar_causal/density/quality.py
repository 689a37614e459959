"""Is this model oracle enough? Label scores on sequences it has not seen, calibration, and which labels not to trust."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from oscar_causal.data.batches import Encoded
from oscar_causal.data.folders import finite_or_none
from oscar_causal.data.metrics import average_precision, averages, count, label_scores, reliability
from oscar_causal.density.labels import Calibration, fit_calibration
from oscar_causal.density.model import TOKENS_PER_PASS, OscarModel, length_batches

MIN_POSITIVES = 5
"""A label with fewer positive held-out sequences cannot be judged."""
MIN_F1 = 0.5
"""A label predicted worse than this on held-out sequences is not to be trusted."""


def last_logits(model: OscarModel, encoded: Encoded) -> npt.NDArray[np.float32]:
    """Uncalibrated label logits at the last event of every sequence: (B, Y)."""
    result = np.empty((len(encoded), len(model.vocabulary.labels)), np.float32)
    for indices in length_batches(encoded.events.lengths, TOKENS_PER_PASS[model.device.type]):
        result[indices] = model.last_label_logits(encoded, indices).cpu().numpy()
    return result


def assess(model: OscarModel, encoded: Encoded, *, evaluated_on: str, fit: bool = False) -> dict[str, Any]:
    """The content of `quality.json` for these sequences; with `fit` a new calibration is fitted on them first.

    Calibration and scores then share the same held-out sequences; with two weights per label and a prior this costs
    the scores next to nothing, and the thresholds (0.5) are not tuned at all.
    """
    rows = np.flatnonzero(encoded.labelled)
    logits = last_logits(model, encoded)[rows]
    truth = encoded.labels.take(rows).indicator(logits.shape[1])
    calibration = fit_calibration(torch.from_numpy(logits), torch.from_numpy(truth)) if fit else model.calibration
    probs = calibrated(logits, calibration)
    counts = count(probs > 0.5, truth)
    table, error = reliability(probs, truth)
    return {
        "kind": "quality",
        "format_version": 1,
        "evaluated_on": evaluated_on,
        "sequences": len(rows),
        "threshold": 0.5,
        "labels": {
            **averages(counts),
            "mean_average_precision": finite_or_none(_nanmean(average_precision(probs, truth))),
            "ece": error,
        },
        "reliability": table,
        "calibration": None if calibration is None else {"slope": calibration.slope, "shift": calibration.shift},
        "per_label": _per_label(model, probs, truth),
        "by_prefix": [],
    }


def calibrated(logits: npt.NDArray[np.float32], calibration: Calibration | None) -> npt.NDArray[np.float64]:
    """Probabilities from raw logits (B, Y)."""
    scaled = logits.astype(np.float64)
    if calibration is not None:
        scaled = scaled * np.array(calibration.slope) + np.array(calibration.shift)
    return 1 / (1 + np.exp(-np.clip(scaled, -60, 60)))


def trusted_labels(quality: dict[str, Any]) -> dict[str, bool]:
    """Label -> may verdicts on it be trusted? Empty when the model was never checked."""
    return {name: bool(row["trusted"]) for name, row in quality.get("per_label", {}).items()}


def _per_label(model: OscarModel, probs: npt.NDArray[np.float64], truth: npt.NDArray[np.bool_]) -> dict[str, Any]:
    precision, recall, f1 = label_scores(count(probs > 0.5, truth))
    ranked = average_precision(probs, truth)
    result = {}
    for index, name in enumerate(model.vocabulary.labels):
        positives = int(truth[:, index].sum())
        reason = _doubt(positives, float(f1[index]))
        result[name] = {
            "positives": positives,
            "precision": float(precision[index]),
            "recall": float(recall[index]),
            "f1": float(f1[index]),
            "average_precision": finite_or_none(float(ranked[index])),
            "ece": reliability(probs[:, index], truth[:, index])[1],
            "trusted": reason is None,
            "reason": reason,
        }
    return result


def _doubt(positives: int, f1: float) -> str | None:
    if positives < MIN_POSITIVES:
        return f"only {positives} held-out sequences carry it (at least {MIN_POSITIVES} needed)"
    if f1 < MIN_F1:
        return f"held-out F1 {f1:.2f} is below {MIN_F1}"
    return None


def _nanmean(values: npt.NDArray[np.float64]) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")
