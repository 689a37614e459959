"""What a what-if did, in sentences: "without C0051 the probability of 'steering degraded' falls from 0.93 to 0.08"."""

from __future__ import annotations

from collections.abc import Sequence as List

import numpy as np
import numpy.typing as npt

NOTICEABLE = 0.01
"""Smaller changes of a probability are not told."""
MOST_SENTENCES = 3


def tell_changes(
    edits: List[str], labels: List[str], before: npt.ArrayLike, after: npt.ArrayLike, *, most: int = MOST_SENTENCES
) -> list[str]:
    """The largest changes in words, largest first; one sentence saying so when there is none.

    >>> tell_changes(["without C0051"], ["steering degraded"], [0.93], [0.08])
    ["without C0051 the probability of 'steering degraded' falls from 0.93 to 0.08"]
    """
    what = ", ".join(edits)
    first, second = np.asarray(before, float), np.asarray(after, float)
    order = np.argsort(-np.abs(second - first), kind="stable")
    told = [int(k) for k in order if abs(second[k] - first[k]) >= NOTICEABLE][:most]
    if not told:
        return [f"{what} no label's probability changes by {NOTICEABLE} or more"]
    return [
        f"{what} the probability of '{labels[k]}' {'falls' if second[k] < first[k] else 'rises'} "
        f"from {_figure(first[k])} to {_figure(second[k])}"
        for k in told
    ]


def _figure(probability: float) -> str:
    """Two decimals; never 0.00 or 1.00, which would claim certainty."""
    if probability < 0.005:
        return "less than 0.01"
    return "more than 0.99" if probability >= 0.995 else f"{probability:.2f}"
