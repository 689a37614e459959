"""Results folders against the truths of a fleet small enough to score by hand."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from oscar_causal.data.folders import read_json, write_json
from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.subjects import pack_subjects
from oscar_causal.discovery.boundary import Boundary, EventEvidence
from oscar_causal.discovery.results import ResultsWriter
from oscar_causal.errors import FolderError, UsageError
from oscar_causal.score.scoring import compare_results, explained_of, read_explained, score_results

Write = Callable[..., Path]
FOUND = {("s1", "x"): "AD", ("s1", "y"): "D", ("s2", "x"): "ACn", ("s3", "y"): "", ("s4", "y"): "E"}


def test_every_truth_by_hand(results: Write) -> None:
    got = score_results(results("r", FOUND))
    assert (got["estimator"], got["pairs"], got["accepted"]) == ("intervention", 5, 7)
    why = got["truth"]["why"]
    assert (why["pairs"], why["labels"]) == (4, 2)  # s4 has no reason
    # x: found AD, AC of AB, AC: 3 hits, 1 false, 1 missed; y: found D, nothing of D, D: 1 hit, 1 missed
    assert why["micro"] == pytest.approx({"precision": 4 / 5, "recall": 4 / 6, "f1": 8 / 11, "f1_of_means": 8 / 11})
    assert why["macro"]["f1"] == pytest.approx((6 / 8 + 2 / 3) / 2)
    assert why["weighted"]["f1"] == pytest.approx((4 * 6 / 8 + 2 * 2 / 3) / 6)
    assert why["weighted"]["f1_of_means"] == pytest.approx(
        harmonic((4 * 3 / 4 + 2 * 1) / 6, (4 * 3 / 4 + 2 * 1 / 2) / 6)
    )
    assert why["sample"]["f1"] == pytest.approx((1 / 2 + 1 + 1 + 0) / 4)
    necessary = got["truth"]["why_necessary"]["micro"]  # AB, D, A, D
    assert (necessary["precision"], necessary["recall"]) == pytest.approx((3 / 5, 3 / 5))
    everything = got["truth"]["rule_all"]["micro"]  # inhibitors count: ABCN, D, ABCN, D, D
    assert (everything["precision"], everything["recall"]) == pytest.approx((5 / 7, 5 / 11))
    present = got["truth"]["rule_present"]["micro"]  # AB, D, AC, D
    assert (present["precision"], present["recall"]) == pytest.approx((4 / 5, 4 / 6))


def test_figures_of_each_label_by_hand_and_against_the_averages(results: Write) -> None:
    truths = score_results(results("r", FOUND))["truth"]
    assert truths["why"]["per_label"] == {
        "x": {"pairs": 2, "events": 4, "precision": 3 / 4, "recall": 3 / 4, "f1": 3 / 4},
        "y": {"pairs": 2, "events": 2, "precision": 1.0, "recall": 1 / 2, "f1": 2 / 3},
    }
    for truth in truths.values():
        labels = truth["per_label"].values()
        events = sum(figures["events"] for figures in labels)
        for name in ("precision", "recall", "f1"):
            assert truth["macro"][name] == pytest.approx(sum(figures[name] for figures in labels) / len(labels))
            weighted = sum(figures["events"] * figures[name] for figures in labels) / events
            assert truth["weighted"][name] == pytest.approx(weighted)


def harmonic(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall)


def test_breakdowns_and_controls(results: Write) -> None:
    why = score_results(results("r", FOUND))["truth"]["why"]
    assert {size: part["pairs"] for size, part in why["by_size"].items()} == {"1": 2, "4": 2}  # y has 1, x has 4 events
    assert {size: part["pairs"] for size, part in why["by_causes"].items()} == {"1": 2, "2": 2}
    assert why["by_causes"]["2"]["sample"]["recall"] == pytest.approx((1 / 2 + 1) / 2)
    assert why["by_frequency"]["<10"]["pairs"] == 4
    assert why["controls"]["rule_present"]["sample"]["f1"] == 1.0
    assert why["controls"]["random"]["micro"]["precision"] == pytest.approx((2 * 2 / 3 + 1 / 3 + 2 * 2 / 3) / 5)


def test_discoveries(results: Write) -> None:
    got = score_results(results("r", FOUND))
    assert got["signs"]["agreement"] == 1.0
    assert got["signs"]["table"]["inhibitor found, blocker true"] == 1
    assert (got["q_calibration"]["false"], got["q_calibration"]["on_false_labels"]) == (2, 1)
    assert got["q_calibration"]["rate"] == pytest.approx((1 / 2 + 0 + 0 + 0 + 1) / 5)


def test_precision_of_what_a_test_and_of_what_a_score_accepted_by_hand(results: Write) -> None:
    assert score_results(results("silent", FOUND))["accepted_by"] == {}
    ways = {"A": "test", "n": "test", "D": "score", "C": "score", "E": "score"}
    got = score_results(results("r", FOUND, by=ways))["accepted_by"]
    assert (got["test"]["accepted"], got["score"]["accepted"]) == (3, 4)  # A, A, n; D, D, C, E
    assert got["test"]["of"] == {
        "rule_all": 3,
        "rule_present": 2,
        "why": 2,
        "why_necessary": 2,
    }  # n: for rule_all alone
    assert set(got["test"]["precision"].values()) == {1.0}
    # s1: D is right for y alone; C of s2 is right and not necessary; E of s4 is wrong, only rule_all has a truth there
    assert got["score"]["of"] == {"rule_all": 4, "rule_present": 3, "why": 3, "why_necessary": 3}
    wanted = {"rule_all": 2 / 4, "rule_present": 2 / 3, "why": 2 / 3, "why_necessary": 1 / 3}
    assert got["score"]["precision"] == pytest.approx(wanted)
    alone = score_results(results("one", FOUND, by={"A": "test"}))["accepted_by"]["score"]
    assert (alone["accepted"], set(alone["precision"].values())) == (0, {None})


def test_frequencies_are_those_of_the_models_training_set(results: Write, fleet: Path, tmp_path: Path) -> None:
    folder = results("r", FOUND)
    assert score_results(folder)["frequency_counted_in"] == "all sequences of the dataset"
    (tmp_path / "model").mkdir()
    trained = read_dataset(fleet).take([2])
    write_json(tmp_path / "model" / "training.json", {"subjects": pack_subjects(trained.subject_ids)})
    got = score_results(folder, model=tmp_path / "model")
    assert got["frequency_counted_in"] == "the model's training sequences"


def test_weighted_f1_agrees_with_an_independent_reimplementation(results: Write, fleet: Path) -> None:
    """From the Parquet files to the number in plain Python."""
    import pyarrow.parquet as pq

    folder = results("r", FOUND)
    true, found = defaultdict(set), defaultdict(set)
    for row in pq.read_table(fleet / "why").to_pylist():
        if row["role"] == "cause":
            true[row["sequence_id"], row["label"]].add(row["event"])
    for row in pq.read_table(folder / "causes").to_pylist():
        if row["verdict"] == "cause":
            found[row["sequence_id"], row["label"]].add(row["event"])
    hits, said, there = defaultdict(int), defaultdict(int), defaultdict(int)
    for row in pq.read_table(folder / "verdicts").to_pylist():
        pair = (row["sequence_id"], row["label"])
        if true[pair]:
            hits[row["label"]] += len(true[pair] & found[pair])
            said[row["label"]] += len(found[pair])
            there[row["label"]] += len(true[pair])
    f1 = {label: 2 * hits[label] / (said[label] + there[label]) for label in there}
    weighted = sum(there[label] * f1[label] for label in there) / sum(there.values())
    assert score_results(folder)["truth"]["why"]["weighted"]["f1"] == pytest.approx(weighted, abs=1e-9)


def test_only_observed_labels_are_scored(results: Write) -> None:
    folder = results("r", FOUND)
    explained = read_explained(folder)
    assert explained.pairs == tuple(FOUND)
    assert explained.found("rule_all")["s2", "x"] == frozenset("ACN")
    assert explained.found("why")["s2", "x"] == frozenset("AC")


def test_folds_of_subjects(results: Write) -> None:
    got = score_results(results("r", FOUND), folds=2)["truth"]["why"]["over_folds"]
    assert got["mean"]["pairs"] * got["folds"] == 4
    with pytest.raises(UsageError, match="folds"):
        score_results(results("q", FOUND), folds=1)


def test_seeds_of_one_method_have_a_mean_and_a_spread(results: Write) -> None:
    better = {**FOUND, ("s3", "y"): "D"}
    got = compare_results([results("a", FOUND), results("b", better)])
    one, two = (run["truth"]["why"]["sample"]["recall"] for run in got["runs"])
    assert (one, two) == pytest.approx((5 / 8, 7 / 8))
    assert got["mean"]["why"]["sample"]["recall"] == pytest.approx(6 / 8)
    assert got["sd"]["why"]["sample"]["recall"] == pytest.approx(2 / 8 / 2**0.5)
    assert "differences" not in got


def test_methods_are_compared_on_the_pairs_both_explain(results: Write) -> None:
    other = {pair: "D" for pair in FOUND if pair != ("s2", "x")}
    got = compare_results([results("a", FOUND), results("b", other, "prefix")], draws=50)
    assert "mean" not in got  # of two different estimators
    (difference,) = got["differences"]
    why = difference["truth"]["why"]
    assert (why["pairs"], why["subjects"]) == (3, 2)
    assert why["sample"]["recall"]["difference"] == pytest.approx((0 + 1 + 1) / 3 - (1 / 2 + 1 + 0) / 3)
    assert why["sample"]["recall"]["low"] <= why["sample"]["recall"]["difference"] <= why["sample"]["recall"]["high"]
    again = compare_results([results("c", FOUND), results("d", other, "prefix")], draws=50)
    assert again["differences"][0]["truth"] == difference["truth"]  # the same seed, the same draws


def test_what_cannot_be_scored_is_refused(results: Write, fleet: Path, tmp_path: Path) -> None:
    folder = results("r", FOUND)
    with pytest.raises(UsageError, match="at least two"):
        compare_results([folder], draws=10)
    with pytest.raises(UsageError, match="draws"):
        compare_results([folder, folder], draws=0)
    with pytest.raises(UsageError, match="explain no pair"):
        score_results(results("nothing", {}))
    run = read_json(folder / "run.json")
    (folder / "checksums.json").unlink()
    write_json(folder / "run.json", {**run, "dataset": {"path": str(tmp_path / "gone")}})
    with pytest.raises(FolderError, match=r"gone.*--dataset"):
        score_results(folder)
    assert score_results(folder, dataset=fleet)["pairs"] == 5
    write_json(folder / "run.json", {**run, "dataset": 7})
    with pytest.raises(FolderError, match="expected dataset to be a JSON object, got 7"):
        score_results(folder, dataset=fleet)


def test_results_are_scored_against_their_own_dataset_alone(results: Write, fleet: Path) -> None:
    ours, theirs = results("a", FOUND), results("b", FOUND)
    for folder, digest in ((ours, read_dataset(fleet).info["digest"]), (theirs, "other")):
        run = read_json(folder / "run.json")
        (folder / "checksums.json").unlink()
        write_json(folder / "run.json", {**run, "dataset": {"path": str(fleet), "digest": digest}})
    assert score_results(ours, dataset=fleet)["pairs"] == 5
    for named in (None, fleet):
        with pytest.raises(FolderError, match=r"fleet: is not the dataset of .*b \(other content\)"):
            score_results(theirs, dataset=named)


def test_only_results_of_one_dataset_are_compared(results: Write, fleet: Path, tmp_path: Path) -> None:
    shutil.copytree(fleet, tmp_path / "half")
    other = read_json(fleet / "dataset.json")
    (tmp_path / "half" / "checksums.json").unlink()
    write_json(tmp_path / "half" / "dataset.json", {**other, "digest": "other"})
    ours, theirs = results("a", FOUND), results("b", FOUND)
    run = read_json(theirs / "run.json")
    (theirs / "checksums.json").unlink()
    write_json(theirs / "run.json", {**run, "dataset": {"path": str(tmp_path / "half"), "digest": "other"}})
    assert len(compare_results([ours, theirs])["runs"]) == 2  # beside each other they may stand
    with pytest.raises(FolderError, match="b: explains another dataset than .*a"):
        compare_results([ours, theirs], draws=5)
    with pytest.raises(UsageError, match="seed: expected 0 or more, got -1"):
        compare_results([ours, ours], draws=5, seed=-1)


def test_only_labels_that_came_are_scored(tmp_path: Path) -> None:
    """Explained although absent (False) or not recorded (None): not among the pairs, nor are their events."""
    cause = EventEvidence("A", (0,), "cause", 0.5)
    boundaries = [
        Boundary("s1", "x", True, 0.9, (cause,)),
        Boundary("s1", "y", False, 0.1, (cause,)),
        Boundary("s2", "x", None, 0.9, (cause,)),
    ]
    writer = ResultsWriter(tmp_path / "r", {"fingerprint": "", "estimator": "intervention"})
    writer.write_shard(0, boundaries)
    writer.finish()
    for explained in (read_explained(tmp_path / "r"), explained_of(boundaries)):
        assert explained.pairs == (("s1", "x"),)
        assert [(item.pair, item.event) for item in explained.accepted] == [(("s1", "x"), "A")]
