"""Two methods on the same pairs: the difference of every figure, with a bootstrap interval over subjects.

Sequences of one subject are not independent, so subjects are drawn, with replacement, and bring all their pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from oscar_causal.data.metrics import Counts
from oscar_causal.errors import UsageError
from oscar_causal.score.matching import AVERAGES, FIGURES, Float, PairScores, figures, label_counts, pair_figures

LEVEL = 0.95
"""Coverage of the intervals."""
DRAWS_AT_ONCE = 64


def paired_bootstrap(
    first: PairScores, second: PairScores, subjects: Sequence[str], *, draws: int, generator: np.random.Generator
) -> dict[str, Any]:
    """`second` minus `first` for every average: the difference and its percentile interval.

    Both score the same pairs in the same order (see `common_pairs`); `subjects[i]` owns pair i.
    """
    if first.pairs != second.pairs:
        raise UsageError("compare: expected scores of the same pairs in the same order")
    if not len(first):
        raise UsageError("compare: expected pairs that both results explain, found none")
    names, owner = np.unique(np.array(subjects, dtype=object).astype(str), return_inverse=True)
    sums = [_subject_sums(scores, owner, len(names)) for scores in (first, second)]
    observed = [_all_figures(np.ones((1, len(names))), part)[0] for part in sums]
    parts = []
    for begin in range(0, draws, DRAWS_AT_ONCE):
        number = min(DRAWS_AT_ONCE, draws - begin)
        chosen = generator.integers(len(names), size=(number, len(names)))
        weights = np.stack([np.bincount(row, minlength=len(names)) for row in chosen]).astype(float)
        parts.append(_all_figures(weights, sums[1]) - _all_figures(weights, sums[0]))
    drawn = np.concatenate(parts)  # (draws, averages, figures)
    return {
        "pairs": len(first),
        "subjects": len(names),
        "draws": draws,
        **_intervals(observed[1] - observed[0], drawn),
    }


def common_pairs(first: PairScores, second: PairScores) -> tuple[PairScores, PairScores]:
    """Both scores on the pairs they share, in the order of the first."""
    place = {pair: index for index, pair in enumerate(second.pairs)}
    mine = [index for index, pair in enumerate(first.pairs) if pair in place]
    return first.take(mine), second.take([place[first.pairs[index]] for index in mine])


def _subject_sums(scores: PairScores, owner: Any, subjects: int) -> Any:
    """A sparse matrix (subjects, 3 Y + 4): what each subject adds to the sums that all figures are made of."""
    names, label = scores.labels
    pairs = np.arange(len(scores))
    columns = [sparse.csr_matrix((part, (pairs, label)), (len(pairs), len(names))) for part in label_counts(scores)]
    columns.append(sparse.csr_matrix(np.vstack([pair_figures(scores), np.ones(len(pairs))]).T))
    belongs = sparse.csr_matrix((np.ones(len(pairs)), (owner, pairs)), (subjects, len(pairs)))
    return (belongs @ sparse.hstack(columns, format="csr")).tocsr()


def _all_figures(weights: Float, sums: Any) -> Float:
    """Every figure for every row of weights: (draws, averages, figures)."""
    totals = (sums.T @ weights.T).T  # (draws, 3 Y + 4)
    result = np.empty((len(weights), len(AVERAGES), len(FIGURES)))
    for draw, row in enumerate(totals):
        counts = Counts(*np.split(row[:-4], 3))
        found = figures(counts, row[-4:-1], row[-1])
        result[draw] = [[found[average][figure] for figure in FIGURES] for average in AVERAGES]
    return result


def _intervals(observed: Float, drawn: Float) -> dict[str, Any]:
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
    return {
        average: {
            figure: {
                "difference": float(observed[a, f]),
                "low": float(low[a, f]),
                "high": float(high[a, f]),
            }
            for f, figure in enumerate(FIGURES)
        }
        for a, average in enumerate(AVERAGES)
    }
