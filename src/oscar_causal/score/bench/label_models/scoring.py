"""Figures of predicted label probabilities: log loss, skill, average precision, F1 at thresholds from validation.

Skill = (LL_base - LL_model) / (LL_base - LL_Bayes): 0 = knows no more than each label's base rate, 1 = knows all that
the recorded sequence tells. Pooled: log losses are added over labels first. Without true probabilities `gain`, the same
with LL_Bayes = 0, is what there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from oscar_causal.data.folders import finite_or_none
from oscar_causal.data.metrics import average_precision, averages, count, label_scores
from oscar_causal.data.sequences import Float64
from oscar_causal.density.reference import base_rates
from oscar_causal.score.bench.label_models.material import Bool, Predicted

SMALLEST = 1e-6
"""Probabilities are clipped to [1e-6, 1 - 1e-6] before their logarithm is taken."""
RESAMPLES = 1000


def log_losses(probs: Float64, truth: Bool) -> Float64:
    """-log P(what came) of every pair, in nats: (S, Y)."""
    clipped = np.clip(probs, SMALLEST, 1 - SMALLEST)
    return np.asarray(-np.log(np.where(truth, clipped, 1 - clipped)))


def skill(model: float, base: float, bayes: float) -> float | None:
    """Share of the knowable that is known, from three log losses; None where nothing can be known.

    >>> skill(0.3, base=0.5, bayes=0.25)
    0.8
    """
    return (base - model) / (base - bayes) if base > bayes else None


def best_thresholds(probs: Float64, truth: Bool) -> Float64:
    """(Y,): the threshold t with the best F1 of `probs >= t`; of equally good ones the highest, inf without positives.

    >>> best_thresholds(np.array([[0.9], [0.6], [0.4], [0.1]]), np.array([[True], [False], [True], [False]])).tolist()
    [0.4]
    """
    best = np.full(probs.shape[1], np.inf)
    for y in np.flatnonzero(truth.any(0)):
        order = np.argsort(-probs[:, y], kind="stable")
        scores, hits = probs[order, y], np.cumsum(truth[order, y])
        f1 = 2 * hits / (np.arange(1, len(hits) + 1) + hits[-1])
        last = np.append(np.diff(scores) != 0, True)  # equal scores fall on one side
        best[y] = scores[last][np.argmax(f1[last])]
    return best


def figures(
    predicted: Predicted, came: tuple[Bool, Bool], learnt: Bool, names: Sequence[str], bayes: Predicted | None
) -> dict[str, Any]:
    """Every figure of one label model. `came`: labels of validation and test (n, Y), `learnt`: of the training part."""
    truth = came[1]
    base = log_losses(np.broadcast_to(base_rates(learnt), truth.shape), truth)
    own = log_losses(predicted.test, truth)
    best = None if bayes is None else log_losses(bayes.test, truth)
    f1 = _f1(predicted, came)
    known = None if bayes is None else _f1(bayes, came)
    return {
        "sequences": len(truth),
        "labels": len(names),
        "log_loss": float(own.mean()),
        "log_loss_base": float(base.mean()),
        "log_loss_bayes": None if best is None else float(best.mean()),
        "gain": skill(own.sum(), base.sum(), 0.0),
        **_pooled_skill(own, base, best),
        "average_precision": finite_or_none(_mean(average_precision(predicted.test, truth))),
        "f1": f1,
        "f1_bayes": known,
        "f1_ratio": None if known is None else {k: f1[k] / known[k] if known[k] else None for k in f1},
        "per_label": _per_label(predicted, came, names, (own, base, best)),
    }


def _pooled_skill(own: Float64, base: Float64, best: Float64 | None) -> dict[str, float | None]:
    """Skill of all labels together with its 95 % interval over resampled sequences."""
    if best is None:
        return {"skill": None, "skill_low": None, "skill_high": None}
    sums = np.stack([part.sum(1) for part in (own, base, best)], axis=1)  # (S, 3)
    weights = np.random.default_rng(0).multinomial(len(sums), np.full(len(sums), 1 / len(sums)), size=RESAMPLES)
    drawn = [found for row in weights @ sums if (found := skill(*row)) is not None]
    low, high = np.quantile(drawn, [0.025, 0.975]) if drawn else (np.nan, np.nan)
    return {"skill": skill(*sums.sum(0)), "skill_low": finite_or_none(low), "skill_high": finite_or_none(high)}


def _f1(predicted: Predicted, came: tuple[Bool, Bool]) -> dict[str, float]:
    chosen = predicted.test >= best_thresholds(predicted.validation, came[0])
    found = averages(count(chosen, came[1]))
    return {name: found[name]["f1"] for name in ("micro", "macro")}


def _per_label(
    predicted: Predicted,
    came: tuple[Bool, Bool],
    names: Sequence[str],
    losses: tuple[Float64, Float64, Float64 | None],
) -> dict[str, Any]:
    cuts = best_thresholds(predicted.validation, came[0])
    f1 = label_scores(count(predicted.test >= cuts, came[1]))[2]
    ranked = average_precision(predicted.test, came[1])
    own, base = losses[0].mean(0), losses[1].mean(0)
    best = None if losses[2] is None else losses[2].mean(0)
    return {
        name: {
            "positives": int(came[1][:, y].sum()),
            "log_loss": float(own[y]),
            "skill": None if best is None else skill(own[y], base[y], best[y]),
            "average_precision": finite_or_none(ranked[y]),
            "f1": float(f1[y]),
            "threshold": finite_or_none(cuts[y]),
        }
        for y, name in enumerate(names)
    }


def _mean(values: npt.NDArray[np.float64]) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")
