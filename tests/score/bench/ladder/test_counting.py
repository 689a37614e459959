"""Rivals find what is planted, see only the training part, and are tuned on a part of it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.errors import MissingExtra
from oscar_causal.score.bench.ladder import boosted, counting
from oscar_causal.score.bench.ladder.counting import logistic, perfect_boundary
from oscar_causal.score.bench.ladder.interface import Method, Part, Reasons
from oscar_causal.score.bench.ladder.scoring import score
from oscar_causal.score.bench.ladder.tuning import Cut, Rival, Scored, choose, decide
from oscar_causal.score.matching import Pair

RIVALS = (*counting.RIVALS, boosted.RIVAL)


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
        names += ["D"] * int(rng.integers(3))
        before = {"B", "C"} <= set(names) and names.index("B") < names.index("C")
        labels = [label for label, holds in (("y", "A" in names), ("z", before)) if holds]
        times = np.cumsum(rng.exponential(60.0, len(names))).tolist()
        rows.append({"sequence_id": f"s{number}", "subject_id": f"car {number // 2}", "events": names,
                     "times": times, "labels": labels})  # fmt: skip
    return rows


def part_of(rows: list[dict[str, Any]]) -> Part:
    """Every fifth car is tested, every fifth of the others judges."""
    causes = {"y": frozenset("A"), "z": frozenset("BC")}
    data = from_records(rows)
    cars = np.array([int(name.split()[1]) for name in data.subject_ids.to_pylist()])
    train, test = data.take(cars % 5 > 0), data.take(cars % 5 == 0)
    held = cars[cars % 5 > 0] % 5 == 1
    judge = train.take(held)
    known = reasons_of(judge, causes)
    return Part(train, test, train.take(~held), judge, known, Path("nowhere"), boundaries=causes)


def reasons_of(data: Dataset, causes: Mapping[str, frozenset[str]]) -> dict[Pair, Reasons]:
    names = data.sequence_ids.to_pylist()
    return {(names[k], label): Reasons(causes[label]) for k in range(len(data)) for label in data.labels_of(k)}


def f1_of(method: Method, part: Part) -> float:
    return score(method(part).answers, reasons_of(part.test, part.boundaries)).f1()


@pytest.mark.parametrize("rival", RIVALS[3:], ids=lambda rival: rival.name)
def test_rivals_find_what_is_planted(rival: Rival) -> None:
    expected = {"lift": 0.85, "presence difference": 0.9, "L1 logistic": 0.85}  # noise slips in, or B or C is lost
    tuned = list(rival.methods().values())[-1]
    assert f1_of(tuned, part_of(planted())) >= expected.get(rival.name, 0.97)


def test_simple_rows() -> None:
    part = part_of(planted(300))
    truth = reasons_of(part.test, part.boundaries)
    figures = {
        rival.name: score(next(iter(rival.methods().values()))(part).answers, truth).figures() for rival in RIVALS[:3]
    }
    assert figures["nothing"]["f1"] == 0.0
    assert figures["everything present"]["recall"] == 1.0
    assert figures["most frequent"]["recall"] == 1.0  # A, and B and C, are in all sequences of their labels; so is G
    assert 0.5 < figures["most frequent"]["precision"] < 2 / 3
    assert f1_of(perfect_boundary, part) == 1.0
    units = replace(part, unit=str.lower, boundaries={"y": frozenset("a"), "z": frozenset("bc")})
    assert perfect_boundary(units).answers == perfect_boundary(part).answers


@pytest.mark.parametrize("rival", RIVALS, ids=lambda rival: rival.name)
def test_the_test_part_teaches_nothing(rival: Rival) -> None:
    """What is said of a tested sequence does not depend on the other tested sequences."""
    rows = planted(400)
    part = part_of(rows)
    kept, *others = part.test.sequence_ids.to_pylist()
    other = [row if row["sequence_id"] not in others else {**row, "events": ["F"], "times": [0.0]} for row in rows]
    changed = replace(part, test=part_of(other).test)
    assert choose(rival, part) == choose(rival, changed)
    for method in rival.methods().values():
        said, again = ({pair: a for pair, a in method(some).answers.items() if pair[0] == kept}
                       for some in (part, changed))  # fmt: skip
        assert said == again


def test_other_names_in_the_test_part_change_no_answer() -> None:
    """Read from another folder, types and labels have other numbers."""
    rows = planted(400)
    part = part_of(rows)
    few = [row for row in rows if row["labels"] == ["z"] and "A" not in row["events"]][:5]
    alone = replace(part, test=from_records(few))
    assert alone.test.event_names != part.train.event_names
    assert alone.test.label_names == ("z",)
    together = replace(part, test=from_records(rows).take([int(row["sequence_id"][1:]) for row in few]))
    for rival in RIVALS:
        for method in rival.methods().values():
            assert method(alone).answers == method(together).answers


@pytest.mark.parametrize("rival", RIVALS, ids=lambda rival: rival.name)
def test_nothing_is_changed_by_looking(rival: Rival) -> None:
    part = part_of(planted(200))
    before = [[data.events_of(k) for k in range(len(data))] for data in (part.train, part.test, part.judge)]
    for method in rival.methods().values():
        method(part)
    assert before == [[data.events_of(k) for k in range(len(data))] for data in (part.train, part.test, part.judge)]


def test_tuning_goes_by_the_truth_of_the_training_part() -> None:
    def scored(train: Dataset, test: Dataset, setting: float) -> Scored:
        names = test.sequence_ids.to_pylist()
        pairs = [(k, label) for k in range(len(test)) for label in test.labels_of(k)]
        return Scored({(names[k], label): dict.fromkeys(test.events_of(k), setting) for k, label in pairs})

    rival, part = Rival("x", scored, (-1.0, 2.0), (Cut(), Cut(3.0))), part_of(planted(200))
    assert choose(rival, part) == (2.0, Cut(), True)
    assert choose(rival, replace(part, known={})) == (-1.0, Cut(), False)
    assert list(rival.methods()) == ["x", "x (tuned)"]
    assert list(Rival("x", scored).methods()) == ["x"]
    assert rival.methods()["x (tuned)"](part).chosen == {
        "setting": "2.0", "least": 0.0, "top": None, "by_validation": True
    }  # fmt: skip


def test_without_scikit_learn_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    part = part_of(planted(100))
    with pytest.raises(MissingExtra, match=r"L1 logistic needs the package sklearn.*'oscar-causal\[bench\]'"):
        logistic(part.train, part.test, 1.0)


def test_recencies_are_of_the_last_occurrence() -> None:
    rows = [{"sequence_id": "1", "events": ["A", "B", "A", "C"], "times": [0.0, 1.0, 3.0, 7.0], "labels": []},
            {"sequence_id": "2", "events": ["B"], "times": [5.0], "labels": []}]  # fmt: skip
    found = boosted.recencies(from_records(rows)).toarray()
    np.testing.assert_allclose(found, [[1 / 5, 1 / 7, 1], [0, 1, 0]])


def test_shares_of_trees_add_up_to_the_log_odds() -> None:
    """And a recency that decides is found: y where A came within a minute of the end."""
    rng, rows = np.random.default_rng(3), []
    for number in range(800):
        ago = float(rng.uniform(0, 120))
        rows.append({"sequence_id": f"s{number}", "events": ["A", "B"], "times": [0.0, ago],
                     "labels": ["y"] * (ago < 60)})  # fmt: skip
    data = from_records(rows)
    table = boosted.features(data)
    model = boosted.fit(table, data.labels.lengths > 0, 20)
    shares = boosted.contributions(model, table)
    log_odds = model.predict(csr_matrix(table), raw_score=True)
    base = log_odds - shares.sum(1)
    np.testing.assert_allclose(base, base[0], atol=1e-6)
    near = data.labels.lengths > 0
    assert (shares[near, 0] > 0.5).all()
    assert (shares[~near, 0] < -0.5).all()
