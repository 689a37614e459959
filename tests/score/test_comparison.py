"""The paired bootstrap against resampling by plain lists."""

from __future__ import annotations

import numpy as np
import pytest

from oscar_causal.errors import UsageError
from oscar_causal.score.comparison import common_pairs, paired_bootstrap
from oscar_causal.score.matching import PairScores, summarise


def scores_of(number: int, seed: int, skill: float) -> PairScores:
    """Pairs of four labels with one to three true events, each found with probability `skill`, and false ones."""
    rng = np.random.default_rng(seed)
    true = rng.integers(1, 4, number)
    common = rng.binomial(true, skill)
    pairs = tuple((f"s{index}", "wxyz"[index % 4]) for index in range(number))
    return PairScores(
        pairs, (common + rng.poisson(0.4, number)).astype(float), true.astype(float), common.astype(float)
    )


SUBJECTS = [f"car {index // 3}" for index in range(60)]  # 20 cars of three pairs


def test_differences_and_intervals_agree_with_plain_resampling() -> None:
    first, second = scores_of(60, 1, 0.5), scores_of(60, 2, 0.7)
    got = paired_bootstrap(first, second, SUBJECTS, draws=150, generator=np.random.default_rng(7))
    cars = sorted(set(SUBJECTS))
    rng = np.random.default_rng(7)
    drawn = []
    for chosen in np.concatenate([rng.integers(20, size=(n, 20)) for n in (64, 64, 22)]):
        rows = [index for car in chosen for index in owned(cars[car])]
        drawn.append([summarise(part.take(np.array(rows))) for part in (first, second)])
    for average in ("sample", "micro", "macro", "weighted"):
        for figure in ("precision", "recall", "f1", "f1_of_means"):
            values = [b[average][figure] - a[average][figure] for a, b in drawn]
            mine = got[average][figure]
            whole = summarise(second)[average][figure] - summarise(first)[average][figure]
            assert mine["difference"] == pytest.approx(whole, abs=1e-9)
            assert [mine["low"], mine["high"]] == pytest.approx(np.quantile(values, [0.025, 0.975]).tolist(), abs=1e-9)


def owned(car: str) -> list[int]:
    return [index for index, name in enumerate(SUBJECTS) if name == car]


def test_a_method_against_itself_differs_by_nothing() -> None:
    scores = scores_of(60, 1, 0.5)
    got = paired_bootstrap(scores, scores, SUBJECTS, draws=20, generator=np.random.default_rng(0))
    assert (got["pairs"], got["subjects"], got["draws"]) == (60, 20, 20)
    assert got["weighted"]["f1"] == {"difference": 0.0, "low": 0.0, "high": 0.0}


def test_pairs_of_one_subject_are_drawn_together() -> None:
    """With one subject every draw is the whole: no spread at all."""
    got = paired_bootstrap(
        scores_of(60, 1, 0.5), scores_of(60, 2, 0.7), ["one"] * 60, draws=10, generator=np.random.default_rng(0)
    )
    figure = got["sample"]["f1"]
    assert figure["low"] == pytest.approx(figure["difference"]) == pytest.approx(figure["high"])


def test_only_common_pairs_are_compared() -> None:
    first, second = scores_of(10, 1, 0.5), scores_of(10, 2, 0.5)
    mine, other = common_pairs(first.take([7, 3, 1]), second.take([1, 2, 3]))
    assert mine.pairs == other.pairs == (first.pairs[3], first.pairs[1])
    assert other.common.tolist() == second.common[[3, 1]].tolist()


def test_what_cannot_be_compared_is_refused() -> None:
    first, second = scores_of(4, 1, 0.5), scores_of(4, 2, 0.5)
    rng = np.random.default_rng(0)
    with pytest.raises(UsageError, match="same pairs"):
        paired_bootstrap(first, second.take([1, 0, 2, 3]), SUBJECTS[:4], draws=2, generator=rng)
    with pytest.raises(UsageError, match="found none"):
        paired_bootstrap(first.take([]), second.take([]), [], draws=2, generator=rng)
