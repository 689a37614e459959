"""What a label model is compared with: base rates, and a logistic regression on which event types are present."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from oscar_causal.data.batches import Encoded
from oscar_causal.data.sequences import Int64
from oscar_causal.data.subjects import subject_hashes
from oscar_causal.data.vocabulary import Vocabulary

Float64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]

LARGEST = 3 * 10**6
"""Most (events + 10 x types) x labels that it is fitted on; ten times this took more than 40 s on a busy core."""
STEPS = 100
"""Most steps of L-BFGS for a label."""


@dataclass(frozen=True)
class Reference:
    """What a model is compared with on S sequences."""

    subjects: Int64
    """(S,) a code from 0 for each subject: its sequences count as one draw."""
    base_rates: Float64
    """(Y,) share of training sequences with the label, strictly between 0 and 1."""
    base_rates_from: str = "training"
    logistic: Float64 | None = None
    """(S, Y) probabilities of a logistic regression on presence, fitted on training sequences."""
    logistic_left_out: str | None = None
    """Why there is none."""


def reference_of(train: Encoded, test: Encoded, subject_ids: pa.Array, vocabulary: Vocabulary) -> Reference:
    """For the labelled ones of `test`, from those of `train`; `subject_ids` of all of `test`."""
    rows, labels = np.flatnonzero(test.labelled), len(vocabulary.labels)
    known = train.labels.take(np.flatnonzero(train.labelled)).indicator(labels)
    subjects, rates = subject_codes(subject_ids)[rows], base_rates(known)
    left_out = too_large(len(train.events.ids), vocabulary.size, labels)
    if left_out is not None:
        return Reference(subjects, rates, logistic_left_out=left_out)
    return Reference(subjects, rates, logistic=logistic(train, test, rows, vocabulary))


def subject_codes(subject_ids: pa.Array) -> Int64:
    """A number from 0 for each subject."""
    codes: Int64 = np.unique(subject_hashes(subject_ids), return_inverse=True)[1].astype(np.int64)
    return codes


def base_rates(truth: Bool) -> Float64:
    """Share of sequences (S, Y) with each label; half a sequence with and half without are added."""
    rates: Float64 = (truth.sum(0) + 0.5) / (len(truth) + 1)
    return rates


def too_large(events: int, types: int, labels: int) -> str | None:
    """Why it is left out, or None."""
    if (events + 10 * types) * labels <= LARGEST:
        return None
    told = f"{events:,} training events, {types:,} event types, {labels:,} labels"
    return f"{told}: (events + 10 x types) x labels is more than {LARGEST:,}"


def logistic(train: Encoded, test: Encoded, rows: Int64, vocabulary: Vocabulary) -> Float64:
    """P(label) of the chosen sequences of `test`, fitted on the labelled ones of `train`: (S, Y)."""
    fitted = np.flatnonzero(train.labelled)
    known = train.labels.take(fitted).indicator(len(vocabulary.labels))
    parts = [presence(part, vocabulary.size)[at] for part, at in ((train, fitted), (test, rows))]
    return fit_predict(parts[0], known, parts[1])


def presence(encoded: Encoded, types: int) -> Any:
    """A sparse matrix (S, V) of zeros and ones: which event types each sequence holds."""
    from scipy.sparse import csr_array

    keys = np.unique(encoded.events.rows() * types + encoded.events.ids)
    return csr_array((np.ones(len(keys)), (keys // types, keys % types)), (len(encoded), types))


def fit_predict(train: Any, truth: Bool, test: Any) -> Float64:
    """P(label) of each row of `test` (S, V), fitted on `train` (T, V) and `truth` (T, Y): (S, Y).

    Minimises sum of log losses + |weights|^2 / 2, the intercept free: scikit-learn's default.
    """
    result = np.empty((test.shape[0], truth.shape[1]))
    across = train.T.tocsr()
    for label in range(truth.shape[1]):
        weights = _fit(train, across, truth[:, label])
        result[:, label] = _probs(test @ weights[1:] + weights[0])
    return result


def _fit(train: Any, across: Any, truth: Bool) -> Float64:
    from scipy.optimize import minimize

    start = np.zeros(train.shape[1] + 1)
    start[0] = np.log((truth.sum() + 0.5) / ((~truth).sum() + 0.5))
    sign = np.where(truth, 1.0, -1.0)

    def loss(weights: Float64) -> tuple[float, Float64]:
        margin = sign * (train @ weights[1:] + weights[0])
        pull = -sign * _probs(-margin)
        gradient = np.concatenate([[pull.sum()], across @ pull + weights[1:]])
        return float(np.logaddexp(0, -margin).sum() + (weights[1:] ** 2).sum() / 2), gradient

    found: Float64 = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x
    return found


def _probs(logits: Float64) -> Float64:
    probs: Float64 = 1 / (1 + np.exp(-np.clip(logits, -60, 60)))
    return probs
