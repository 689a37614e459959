"""Figures by hand; rivals find what is planted, see only the training part, and are tuned on a part of it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.errors import MissingExtra
from oscar_causal.score.bench.outside import rivals
from oscar_causal.score.bench.outside.interface import Answer, OutsideSet, Reasons
from oscar_causal.score.bench.outside.rivals import RIVALS, Cut, Rival, Scored, decide, perfect_boundary
from oscar_causal.score.bench.outside.scoring import average_precision_at, edge_figures, edges_named, our_figures
from oscar_causal.score.bench.outside.table import Ready, choose, measure
from oscar_causal.score.matching import Pair


def test_the_denominator_is_every_pair_with_a_truth() -> None:
    truth = {
        ("1", "y"): Reasons(frozenset("AB")),
        ("2", "y"): Reasons(frozenset("A"), frozenset("C")),
        ("3", "y"): Reasons(frozenset("A")),
        ("4", "y"): Reasons(frozenset()),
        ("5", "y"): Reasons(frozenset()),
    }
    answers = {
        ("1", "y"): Answer(frozenset("AX")),
        ("2", "y"): Answer(frozenset("AC")),  # C is unknown: neither right nor wrong
        ("4", "y"): Answer(frozenset("A")),
        ("9", "z"): Answer(frozenset("Q")),  # nobody asked
    }
    found = our_figures(answers, truth)
    precision, recall = (0.5 + 1 + 0) / 3, (0.5 + 1 + 0) / 3
    assert (found["precision"], found["recall"]) == (pytest.approx(precision), pytest.approx(recall))
    assert found["f1_of_means"] == pytest.approx(2 * precision * recall / (precision + recall))
    assert found["micro_f1"] == pytest.approx(2 * 2 / (3 + 4))  # 2 hits of 3 named and 4 true
    assert (found["pairs"], found["empty_pairs"], found["false_alarms"]) == (3, 2, 0.5)


def test_only_unknown_named_is_nothing_named() -> None:
    truth = {("1", "y"): Reasons(frozenset("A"), frozenset("C"))}
    found = our_figures({("1", "y"): Answer(frozenset("C"))}, truth)
    assert (found["precision"], found["recall"]) == (0.0, 0.0)


def test_units_are_scored_once() -> None:
    truth = {("1", "y"): Reasons(frozenset({"P=0", "P=1"}), frozenset({"Q=0"}))}
    found = our_figures({("1", "y"): Answer(frozenset({"P=3", "R=0"}))}, truth, lambda event: event[0])
    assert (found["precision"], found["recall"]) == (0.5, 1.0)


def test_edges_and_rankings() -> None:
    present = {(str(k), "y"): frozenset("AB") for k in range(4)}
    answers = {(str(k), "y"): Answer(frozenset("A" if k < 2 else "")) for k in range(3)}
    assert edges_named(answers, present) == {("y", "A")}  # in two of four
    assert edge_figures({("y", "A")}, {("y", "A"), ("y", "B")})["edge F1"] == pytest.approx(2 / 3)
    assert average_precision_at(3, ["x", "a"], frozenset("a")) == 0.5
    assert average_precision_at(1, ["a", "x"], frozenset("ab")) == 1.0
    assert average_precision_at(3, [], frozenset("a")) == 0.0


def test_a_cut_takes_ties_and_both_signs() -> None:
    scored = Scored({("1", "y"): {"A": 3.0, "B": 2.0, "C": 2.0, "D": 0.1, "E": -0.2, "F": -4.0}})
    answer = decide(scored, Cut(0.15, 2))["1", "y"]
    assert (answer.causes, answer.inhibitors) == ({"A", "B", "C"}, {"E", "F"})
    assert decide(scored, Cut())["1", "y"].causes == set("ABCD")


def planted(sequences: int = 600, seed: int = 0) -> list[dict[str, Any]]:
    """Label y: A occurs (in a third); label z: B before C; noise D, E, F and G, which is in every sequence."""
    rng, rows = np.random.default_rng(seed), []
    for number in range(sequences):
        names = [name for name, chance in zip("ABCDEF", (0.33, 0.6, 0.6, 0.3, 0.5, 0.2), strict=True)
                 if rng.random() < chance] + ["G"]  # fmt: skip
        names = [names[k] for k in rng.permutation(len(names))]
        before = {"B", "C"} <= set(names) and names.index("B") < names.index("C")
        labels = [label for label, holds in (("y", "A" in names), ("z", before)) if holds]
        times = np.cumsum(rng.exponential(60.0, len(names))).tolist()
        rows.append({"sequence_id": f"s{number}", "subject_id": f"car {number // 2}", "events": names,
                     "times": times, "labels": labels})  # fmt: skip
    return rows


def planted_set(rows: list[dict[str, Any]]) -> OutsideSet:
    causes = {"y": frozenset("A"), "z": frozenset("BC")}
    truth = {(row["sequence_id"], label): Reasons(causes[label]) for row in rows for label in row["labels"]}
    fold = np.array([0 if number % 300 < 60 else -1 for number in range(len(rows))])
    return OutsideSet("planted", pa.Table.from_pylist(rows), fold, truth, lambda answers, truth: {})


def ready_for(rows: list[dict[str, Any]]) -> Ready:
    return Ready(planted_set(rows), from_records(rows))


@pytest.mark.parametrize(
    "rival", [*RIVALS[3:], perfect_boundary(planted_set(planted(100)))], ids=lambda rival: rival.name
)
def test_rivals_find_what_is_planted(rival: Rival) -> None:
    ready = ready_for(planted())
    tuned = measure(ready, rival, 0, tuned=rival.tunable)
    expected = {
        "lift": 0.9,
        "presence difference": 0.9,
        "L1 logistic": 0.85,
    }  # noise slips in, or one of B and C is lost
    assert tuned["f1_of_means"] >= expected.get(rival.name, 0.97)
    assert tuned["pairs"] == len(ready.scored) > 30


def test_simple_rows() -> None:
    ready = ready_for(planted(300))
    figures = {rival.name: measure(ready, rival, 0, tuned=False) for rival in RIVALS[:3]}
    assert figures["nothing"]["f1_of_means"] == 0.0
    assert figures["everything present"]["recall"] == 1.0
    assert figures["most frequent"]["recall"] == 1.0  # A, and B and C, are in all sequences of their labels; so is G
    assert 0.5 < figures["most frequent"]["precision"] < 2 / 3


@pytest.mark.parametrize("rival", RIVALS, ids=lambda rival: rival.name)
def test_the_test_part_teaches_nothing(rival: Rival) -> None:
    """What is said of a tested sequence does not depend on the other tested sequences, their labels or their truth."""
    rows = planted(400)
    ready = ready_for(rows)
    (train, test) = next(ready.parts())
    asked = set(test.sequence_ids.to_pylist())
    kept = sorted(asked)[0]
    other = [
        row if row["sequence_id"] not in asked - {kept} else {**row, "events": ["F"], "times": [0.0]} for row in rows
    ]
    (_, changed) = next(ready_for(other).parts())

    def said(part: Dataset) -> Mapping[Pair, Answer]:
        setting, cut, _ = choose(rival, train, ready, 0)
        return {pair: a for pair, a in decide(rival.scored(train, part, setting), cut).items() if pair[0] == kept}

    assert said(test) == said(changed)
    known = ready.outside.truth
    wrong = {pair: Reasons(frozenset("F")) if pair[0] in asked else reasons for pair, reasons in known.items()}
    blind = Ready(OutsideSet("x", ready.outside.sequences, ready.outside.fold, wrong, ready.outside.own), ready.data)
    assert choose(rival, train, ready, 0) == choose(rival, train, blind, 0)


def test_tuning_goes_by_the_truth_of_the_training_part() -> None:
    def scored(train: Dataset, test: Dataset, setting: float) -> Scored:
        names = test.sequence_ids.to_pylist()
        pairs = [(k, label) for k in range(len(test)) for label in test.labels_of(k)]
        return Scored({(names[k], label): dict.fromkeys(test.events_of(k), setting) for k, label in pairs})

    rival, ready = Rival("x", scored, (-1.0, 2.0), (Cut(), Cut(3.0))), ready_for(planted(200))
    train, _ = next(ready.parts())
    assert choose(rival, train, ready, 0) == (2.0, Cut(), True)
    nothing = Ready(OutsideSet("x", ready.outside.sequences, ready.outside.fold, {}, ready.outside.own), ready.data)
    assert choose(rival, train, nothing, 0) == (-1.0, Cut(), False)


def test_folds_never_cut_a_subject_and_cover_the_scored_pairs() -> None:
    ready = ready_for(planted(300))
    asked = set()
    for train, test in ready.parts():
        assert not set(train.subject_ids.to_pylist()) & set(test.subject_ids.to_pylist())
        asked |= set(test.sequence_ids.to_pylist())
    assert {name for name, _ in ready.scored} == asked


def test_without_scikit_learn_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    train, test = next(ready_for(planted(100)).parts())
    with pytest.raises(MissingExtra, match=r"L1 logistic needs the package sklearn.*'oscar-causal\[bench\]'"):
        rivals.logistic(train, test, 1.0)
