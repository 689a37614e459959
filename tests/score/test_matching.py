"""Scores against hand-worked cases, an independent reimplementation and scikit-learn."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_fscore_support

from oscar_causal.data.rules import PublishedRule, parse, write_rules
from oscar_causal.data.sequences import Dataset, from_records, read_dataset
from oscar_causal.data.writer import dataset_writer
from oscar_causal.errors import DataError, UsageError
from oscar_causal.score.matching import Pair, match, summarise, truth_of, why_roles

Sets = dict[Pair, frozenset[str]]

events = st.frozensets(st.sampled_from("ABCDEF"), max_size=5)
pairs = st.tuples(st.sampled_from(["s1", "s2", "s3", "s4"]), st.sampled_from(["x", "y", "z"]))
both = st.dictionaries(pairs, st.tuples(events, events), max_size=10)


def split(mixed: dict[Pair, tuple[frozenset[str], frozenset[str]]]) -> tuple[Sets, Sets]:
    return {pair: found for pair, (found, _) in mixed.items()}, {pair: true for pair, (_, true) in mixed.items()}


def by_hand(found: Sets, truth: Sets) -> dict[str, dict[str, float]]:
    """Plain loops: counts per label, precision, recall and F1 of each, then the averages over labels."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for pair, names in found.items():
        if truth.get(pair):
            for name in names | truth[pair]:
                kind = 0 if name in names and name in truth[pair] else 1 if name in names else 2
                counts[pair[1]][kind] += 1
    scores, weights = [], []
    for hits, false, missed in counts.values():
        p = hits / (hits + false) if hits + false else 0.0
        r = hits / (hits + missed)
        scores.append((p, r, 2 * p * r / (p + r) if p + r else 0.0))
        weights.append(hits + missed)
    averages = {}
    for name, weight in (("macro", [1.0] * len(weights)), ("weighted", [float(w) for w in weights])):
        total = sum(weight) or 1.0
        means = [sum(w * score[k] for w, score in zip(weight, scores, strict=True)) / total for k in range(3)]
        of_means = 2 * means[0] * means[1] / (means[0] + means[1]) if means[0] + means[1] else 0.0
        averages[name] = dict(zip(("precision", "recall", "f1", "f1_of_means"), [*means, of_means], strict=True))
    return averages


@settings(deadline=None)
@given(both)
def test_macro_and_weighted_averages_agree_with_plain_loops(
    mixed: dict[Pair, tuple[frozenset[str], frozenset[str]]],
) -> None:
    found, truth = split(mixed)
    got = summarise(match(found, truth))
    for name, scores in by_hand(found, truth).items():
        assert got[name] == pytest.approx(scores, abs=1e-9)


@settings(deadline=None, max_examples=40)
@given(both)
def test_micro_macro_and_weighted_agree_with_scikit_learn(
    mixed: dict[Pair, tuple[frozenset[str], frozenset[str]]],
) -> None:
    """Every (pair, event) is a case; a found event is a prediction of its pair's label, a true one its class."""
    found, truth = split(mixed)
    scored = [pair for pair in found if truth[pair]]
    labels = sorted({label for _, label in scored})
    if not labels:
        return
    cases = [(pair, event) for pair in scored for event in "ABCDEF"]
    columns = [*labels, "a column more, so that one label is still a matrix of labels"]
    true = np.array([[event in truth[pair] and pair[1] == label for label in columns] for pair, event in cases])
    said = np.array([[event in found[pair] and pair[1] == label for label in columns] for pair, event in cases])
    got = summarise(match(found, truth))
    for average in ("micro", "macro", "weighted"):
        chosen = {"labels": list(range(len(labels))), "average": average, "zero_division": 0.0}
        wanted = precision_recall_fscore_support(true, said, **chosen)[:3]
        assert [got[average][key] for key in ("precision", "recall", "f1")] == pytest.approx(wanted, abs=1e-9)


@settings(deadline=None, max_examples=40)
@given(both)
def test_the_sample_average_is_scikit_learns(mixed: dict[Pair, tuple[frozenset[str], frozenset[str]]]) -> None:
    found, truth = split(mixed)
    scored = [pair for pair in found if truth[pair]]
    if not scored:
        return
    true, said = (np.array([[event in sets[pair] for event in "ABCDEF"] for pair in scored]) for sets in (truth, found))
    wanted = precision_recall_fscore_support(true, said, average="samples", zero_division=0.0)[:3]
    sample = summarise(match(found, truth))["sample"]
    assert [sample[key] for key in ("precision", "recall", "f1")] == pytest.approx(wanted, abs=1e-9)


def test_a_case_worked_by_hand() -> None:
    found = {
        ("1", "x"): frozenset("AB"),  # truth AC: one of two right, one of two found
        ("2", "x"): frozenset("A"),  # truth A: all right
        ("3", "y"): frozenset(),  # truth BC: nothing found
        ("4", "y"): frozenset("D"),  # no truth known: not scored
        ("5", "z"): frozenset("E"),  # truth empty: not scored
    }
    truth = {
        ("1", "x"): frozenset("AC"),
        ("2", "x"): frozenset("A"),
        ("3", "y"): frozenset("BC"),
        ("5", "z"): frozenset(),
    }
    got = summarise(match(found, truth))
    assert (got["pairs"], got["labels"]) == (3, 2)
    assert got["micro"]["precision"] == pytest.approx(2 / 3)
    assert got["micro"]["recall"] == pytest.approx(2 / 5)
    assert got["macro"]["precision"] == pytest.approx((2 / 3 + 0) / 2)
    assert got["weighted"]["recall"] == pytest.approx((3 * 2 / 3 + 2 * 0) / 5)
    assert got["sample"]["precision"] == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert got["sample"]["recall"] == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert got["sample"]["f1"] == pytest.approx((1 / 2 + 1 + 0) / 3)


@settings(deadline=None)
@given(both, st.integers(0, 10))
def test_counts_of_parts_add_up_to_the_whole(
    mixed: dict[Pair, tuple[frozenset[str], frozenset[str]]], cut: int
) -> None:
    found, truth = split(mixed)
    names = list(found)
    parts = [match({pair: found[pair] for pair in part}, truth) for part in (names[:cut], names[cut:])]
    assert summarise(parts[0] + parts[1]) == summarise(match(found, truth))
    whole = match(found, truth)
    half = whole.take(np.arange(len(whole)) < cut)
    assert half.pairs == whole.pairs[:cut]
    assert half.common.tolist() == whole.common[:cut].tolist()


def test_nothing_to_score_is_all_zeros() -> None:
    got = summarise(match({}, {}))
    assert got["pairs"] == 0
    assert got["sample"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "f1_of_means": 0.0}


# --- truths ---

RECORDS = [
    {"sequence_id": "s1", "events": ["A", "B", "D", "A"], "times": [0, 1, 2, 3], "labels": ["x", "y"]},
    {"sequence_id": "s2", "events": ["C", "E"], "times": [0, 1], "labels": ["x"]},
]
RULES = {"x": "A & (B | C) & !N", "y": "D"}
WHY = [
    ("s1", "x", "A", [0, 3], "cause", True),
    ("s1", "x", "B", [1], "cause", False),
    ("s1", "x", "N", [], "blocker", True),
    ("s1", "y", "D", [2], "cause", True),
]


@pytest.fixture
def fleet(tmp_path: Path) -> Dataset:
    starts = [datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)]
    rows = [{**record, "start": start} for record, start in zip(RECORDS, starts, strict=True)]
    with dataset_writer(tmp_path / "fleet") as writer:
        writer.write(pa.Table.from_pylist(rows))
        columns = ("sequence_id", "label", "event", "positions", "role", "necessary")
        why = [dict(zip(columns, row, strict=True)) for row in WHY]
        writer.write_why(pa.Table.from_pylist(why))
    write_rules(tmp_path / "fleet" / "rules.json", {label: parse(text) for label, text in RULES.items()})
    return read_dataset(tmp_path / "fleet")


def test_the_truths_of_a_dataset(fleet: Dataset) -> None:
    truths = truth_of(fleet, [("s1", "x"), ("s1", "y"), ("s2", "x"), ("s2", "never heard of")])
    assert truths["rule_all"] == {
        ("s1", "x"): frozenset("ABCN"),
        ("s1", "y"): frozenset("D"),
        ("s2", "x"): frozenset("ABCN"),
    }
    assert truths["rule_present"] == {
        ("s1", "x"): frozenset("AB"),
        ("s1", "y"): frozenset("D"),
        ("s2", "x"): frozenset("C"),
    }
    assert truths["why"] == {("s1", "x"): frozenset("AB"), ("s1", "y"): frozenset("D")}
    assert truths["why_necessary"] == {("s1", "x"): frozenset("A"), ("s1", "y"): frozenset("D")}


def test_roles_of_events(fleet: Dataset) -> None:
    assert why_roles(fleet, [("s1", "x"), ("s2", "x")]) == {
        ("s1", "x"): {"A": ("cause", True), "B": ("cause", False), "N": ("blocker", True)}
    }
    assert why_roles(from_records(RECORDS), [("s1", "x")]) is None


def test_only_asked_pairs_get_a_truth(fleet: Dataset) -> None:
    truths = truth_of(fleet, [("s1", "y")])
    assert all(set(truth) <= {("s1", "y")} for truth in truths.values())
    with pytest.raises(DataError, match="s9"):
        truth_of(fleet, [("s9", "x")])


def test_a_rule_counts_only_while_it_is_in_force(fleet: Dataset) -> None:
    assert fleet.path is not None
    late = PublishedRule(parse("A"), start=datetime(2024, 6, 1, tzinfo=UTC))
    write_rules(fleet.path / "rules.json", {"x": late})
    truths = truth_of(fleet, [("s1", "x"), ("s2", "x")])
    assert set(truths["rule_all"]) == {("s2", "x")}


def test_a_dataset_without_any_truth_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="on disk"):
        truth_of(from_records(RECORDS), [("s1", "x")])
    with dataset_writer(tmp_path / "bare") as writer:
        writer.write(pa.Table.from_pylist(RECORDS))
    with pytest.raises(UsageError, match="rules.json or why"):
        truth_of(read_dataset(tmp_path / "bare"), [("s1", "x")])
