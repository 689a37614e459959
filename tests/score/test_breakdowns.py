"""Groups of pairs, training counts and the spread over folds, by hand and by plain numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from oscar_causal.data.folders import write_json
from oscar_causal.data.sequences import from_records
from oscar_causal.data.subjects import pack_subjects
from oscar_causal.errors import FolderError
from oscar_causal.score.breakdowns import (
    by_group,
    cause_groups,
    frequency_groups,
    over_folds,
    size_groups,
    spread,
    subjects_of,
    training_counts,
)
from oscar_causal.score.matching import PairScores, match, summarise


def scores_of(number: int, seed: int = 0) -> PairScores:
    """Random counts of `number` pairs over three labels."""
    rng = np.random.default_rng(seed)
    true, found = rng.integers(1, 5, number), rng.integers(0, 5, number)
    common = np.minimum(np.minimum(true, found), rng.integers(0, 5, number))
    pairs = tuple((f"s{index}", "xyz"[index % 3]) for index in range(number))
    return PairScores(pairs, found.astype(float), true.astype(float), common.astype(float))


def test_groups_follow_the_size_of_the_truth() -> None:
    truth = {(f"s{size}", "x"): frozenset("ABCDEFGHIJKL"[:size]) for size in (1, 2, 6, 11, 0)}
    assert list(size_groups(truth).values()) == ["1", "2", "6", "11"]
    assert list(cause_groups(truth).values()) == ["1", "2", "6+", "6+"]
    scores = match({pair: frozenset("A") for pair in truth}, truth)
    assert list(by_group(scores, size_groups(truth))) == ["1", "2", "6", "11"]  # by number, not by text
    recall = {name: part["sample"]["recall"] for name, part in by_group(scores, cause_groups(truth)).items()}
    assert recall == pytest.approx({"1": 1.0, "2": 1 / 2, "6+": (1 / 6 + 1 / 11) / 2})


def test_pairs_without_a_group_are_left_out() -> None:
    scores = scores_of(6)
    parts = by_group(scores, {scores.pairs[0]: "1", scores.pairs[4]: "3"})
    assert {name: part["pairs"] for name, part in parts.items()} == {"1": 1, "3": 1}


def test_frequency_groups_in_order() -> None:
    counts = {"a": 9, "b": 10, "c": 99, "d": 100, "e": 1000, "f": 10**6}
    pairs = [("s", label) for label in "fedcbaz"]
    groups = frequency_groups(pairs, counts)
    assert groups == {
        ("s", "a"): "<10",
        ("s", "b"): "10-99",
        ("s", "c"): "10-99",
        ("s", "d"): "100-999",
        ("s", "e"): ">=1000",
        ("s", "f"): ">=1000",
        ("s", "z"): "<10",
    }
    found = {pair: frozenset("A") for pair in pairs}
    assert list(by_group(match(found, found), groups)) == ["<10", "10-99", "100-999", ">=1000"]


RECORDS = [
    {"sequence_id": f"s{k}", "subject_id": f"car {k // 2}", "events": ["A"], "times": [0], "labels": labels}
    for k, labels in enumerate([["x"], ["x", "y"], ["x"], [], ["y"], ["y"]])
]


def test_labels_are_counted_where_the_model_was_trained(tmp_path: Path) -> None:
    data = from_records(RECORDS)
    assert training_counts(data, None) == ({"x": 3, "y": 3}, "all sequences of the dataset")
    trained = data.take([0, 1, 2, 3])  # cars 0 and 1
    write_json(tmp_path / "training.json", {"subjects": pack_subjects(trained.subject_ids)})
    assert training_counts(data, tmp_path) == ({"x": 3, "y": 1}, "the model's training sequences")


def test_a_model_that_does_not_say_what_it_saw_is_refused(tmp_path: Path) -> None:
    data = from_records(RECORDS)
    with pytest.raises(FolderError, match=r"training\.json"):
        training_counts(data, tmp_path)
    write_json(tmp_path / "training.json", {})
    with pytest.raises(FolderError, match="subjects"):
        training_counts(data, tmp_path)


def test_with_folds_every_seen_sequence_counts(tmp_path: Path) -> None:
    data = from_records(RECORDS)
    write_json(tmp_path / "folds.json", {})
    for k, rows in enumerate(([0, 1], [2, 3])):
        (tmp_path / f"fold-{k}").mkdir()
        subjects = pack_subjects(data.take(rows).subject_ids)
        write_json(tmp_path / f"fold-{k}" / "training.json", {"subjects": subjects})
    assert training_counts(data, tmp_path)[0] == {"x": 3, "y": 1}


def test_subjects_of_pairs() -> None:
    assert subjects_of(from_records(RECORDS), [("s3", "x"), ("s0", "y")]) == ["car 1", "car 0"]


def test_folds_keep_subjects_whole_and_lose_no_pair() -> None:
    scores = scores_of(90)
    subjects = [f"car {index // 3}" for index in range(90)]
    found = over_folds(scores, subjects, 4)
    assert found["folds"] == 4
    assert found["mean"]["pairs"] * 4 == 90
    one_each = [f"car {index}" for index in range(90)]
    assert over_folds(scores, one_each, 4)["mean"] != found["mean"]
    one = over_folds(scores, ["the same car"] * 90, 4)
    assert one["folds"] == 1
    assert one["mean"]["weighted"] == pytest.approx(summarise(scores)["weighted"])
    assert one["sd"]["weighted"]["f1"] == 0.0


def test_spread_is_numpys_mean_and_sd() -> None:
    parts = [summarise(scores_of(20, seed)) for seed in range(5)]
    found = spread(parts)
    for average in ("sample", "micro", "macro", "weighted"):
        for figure in ("precision", "recall", "f1", "f1_of_means"):
            values = [part[average][figure] for part in parts]
            assert found["mean"][average][figure] == pytest.approx(np.mean(values), abs=1e-12)
            assert found["sd"][average][figure] == pytest.approx(np.std(values, ddof=1), abs=1e-12)


def test_spread_keeps_only_what_all_share() -> None:
    assert spread([{"a": 1, "b": {"c": 2.0}}, {"b": {"c": 4.0, "d": 1.0}}])["mean"] == {"b": {"c": 3.0}}
    assert spread([]) == {"mean": {}, "sd": {}}
