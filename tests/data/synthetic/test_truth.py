"""The promises of a written fleet: labels follow from the rules up to the stated noise, reasons are reasons."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from oscar_causal.data.rules import event_names, positive_names

Fleet = Any  # of conftest.py


@pytest.fixture(params=["hard", "temporal"])
def fleet(request: pytest.FixtureRequest) -> Fleet:
    return request.getfixturevalue(request.param)


def within(found: int, total: int, rate: float) -> bool:
    return stats.binomtest(found, total, rate).pvalue > 0.001 if 0 < rate < 1 else found == total * rate


def test_labels_follow_from_the_rules_except_for_the_stated_noise(fleet: Fleet) -> None:
    came = lost = other = false = 0
    expected_false = 0.0
    frequencies = planned_rates(fleet)
    for row, label, true in fleet.verdicts():
        recorded = label in row["labels"]
        came, lost = came + true, lost + (true and not recorded)
        other, false = other + (not true), false + (recorded and not true)
        expected_false += 0 if true else fleet.config.false_labels * frequencies[label]
    assert came > 800
    assert within(lost, came, fleet.config.lost_labels)
    assert false == pytest.approx(expected_false, abs=4 * np.sqrt(expected_false))


def planned_rates(fleet: Fleet) -> dict[str, float]:
    """The labels' planned frequencies, from the config alone: log-normal quantiles in some order, here by rank."""
    from oscar_causal.data.synthetic import make_world

    world = make_world(fleet.config, fleet.info["generator"]["seed"])
    return dict(zip(world.label_names, world.rates.tolist(), strict=True))


def test_published_rules_alone_agree_where_they_are_in_force(hard: Fleet) -> None:
    """A reader of the folder who knows nothing but `rules.json` finds the noise and no more."""
    judged = wrong = 0
    for label, item in hard.published.items():
        if label in hard.graded:
            continue
        for row in hard.rows:
            if item.in_force(row["start"]):
                judged += 1
                wrong += hard.holds(item.rule, row["events"], row["times"]) != (label in row["labels"])
    counts = hard.info["label_counts"]
    noise = (counts["lost"] + counts["false"]) / (hard.config.sequences * hard.config.labels)
    assert wrong / judged == pytest.approx(noise, rel=0.5)
    assert judged > 0.5 * hard.config.sequences * hard.config.labels


def test_a_label_has_reasons_unless_it_is_false_or_lost(fleet: Fleet) -> None:
    judged = set()
    for row, label, true in fleet.verdicts():
        key = (row["sequence_id"], label)
        assert (key in fleet.why) == (true and label in row["labels"])
        judged.add(key)
    recorded = {(row["sequence_id"], label) for row in fleet.rows for label in row["labels"]}
    assert set(fleet.why) <= recorded
    assert len(recorded - judged - set(fleet.why)) <= 0.2 * len(recorded)  # false labels of graded laws


def test_reasons_name_present_events_and_their_places(fleet: Fleet) -> None:
    rows = {row["sequence_id"]: row for row in fleet.rows}
    for (sequence, label), reasons in fleet.why.items():
        events = rows[sequence]["events"]
        assert len({reason["event"] for reason in reasons}) == len(reasons)
        assert any(reason["role"] == "cause" for reason in reasons)
        for reason in reasons:
            assert reason["positions"]
            assert all(events[place] == reason["event"] for place in reason["positions"]), (sequence, label)


def test_without_a_necessary_cause_the_label_would_not_have_come(fleet: Fleet) -> None:
    """Edit the sequence, ask the literal judge; dispensable causes may go one at a time."""
    rows = {row["sequence_id"]: row for row in fleet.rows}
    checked = {True: 0, False: 0}
    for (sequence, label), reasons in fleet.why.items():
        if label in fleet.graded:
            continue
        row = rows[sequence]
        rule = fleet.rule_at(label, row["start"])
        for reason in reasons:
            kept = [pair for pair in zip(row["events"], row["times"], strict=True) if pair[0] != reason["event"]]
            still = fleet.holds(rule, [name for name, _ in kept], [time for _, time in kept])
            assert still != reason["necessary"]
            checked[reason["necessary"]] += 1
    assert checked[True] > 500
    assert checked[False] > 50


def test_causes_alone_suffice(fleet: Fleet) -> None:
    """A sequence stripped of everything but the causes still has its label."""
    rows = {row["sequence_id"]: row for row in fleet.rows}
    for (sequence, label), reasons in fleet.why.items():
        if label in fleet.graded:
            continue
        row = rows[sequence]
        causes = {reason["event"] for reason in reasons if reason["role"] == "cause"}
        kept = [pair for pair in zip(row["events"], row["times"], strict=True) if pair[0] in causes]
        assert fleet.holds(fleet.rule_at(label, row["start"]), [name for name, _ in kept], [time for _, time in kept])


def test_graded_labels_come_with_the_stated_probability(hard: Fleet) -> None:
    """Noisy-or with inhibitors, then lost: expected and found counts agree in every group of present events."""
    assert len(hard.graded) == round(0.2 * 24)
    z_scores = []
    for label, law in hard.graded.items():
        for group in groups(hard, label, law).values():
            if group["chance"] * group["n"] > 5:
                sd = np.sqrt(group["n"] * group["chance"] * (1 - group["chance"]))
                z_scores.append((group["found"] - group["n"] * group["chance"]) / max(sd, 1))
    assert len(z_scores) > 10
    assert np.abs(z_scores).max() < 4
    assert np.std(z_scores) < 1.6


def groups(fleet: Fleet, label: str, law: dict[str, dict[str, float]]) -> dict[frozenset[str], dict[str, float]]:
    found: dict[frozenset[str], dict[str, float]] = {}
    for row in fleet.rows:
        present = frozenset({*law["causes"], *law["inhibitors"]} & set(row["events"]))
        if present & set(law["causes"]):
            missed = np.prod([1 - law["causes"][name] for name in present if name in law["causes"]])
            spared = np.prod([1 - law["inhibitors"][name] for name in present if name in law["inhibitors"]])
            chance = float((1 - missed) * spared * (1 - fleet.config.lost_labels))
            group = found.setdefault(present, {"n": 0, "found": 0, "chance": chance})
            group["n"] += 1
            group["found"] += label in row["labels"]
    return found


def test_reasons_of_graded_labels_are_causes_that_won_and_inhibitors_that_did_not(hard: Fleet) -> None:
    blockers = 0
    for (_, label), reasons in hard.why.items():
        if label not in hard.graded:
            assert all(reason["role"] == "cause" for reason in reasons)
            continue
        causes = [reason for reason in reasons if reason["role"] == "cause"]
        assert {reason["event"] for reason in causes} <= set(hard.graded[label]["causes"])
        assert all(reason["necessary"] == (len(causes) == 1) for reason in causes)
        others = [reason for reason in reasons if reason["role"] == "blocker"]
        assert {reason["event"] for reason in others} <= set(hard.graded[label]["inhibitors"])
        assert not any(reason["necessary"] for reason in others)
        blockers += len(others)
    assert blockers > 5


def test_symptoms_and_precursors_are_never_reasons(fleet: Fleet) -> None:
    in_rules = {name for _, item in fleet.every_rule for name in event_names(item.rule)}
    assert {reason["event"] for reasons in fleet.why.values() for reason in reasons} <= in_rules


def test_presence_oracle_recomputed_from_the_files(fleet: Fleet) -> None:
    rows = {row["sequence_id"]: row for row in fleet.rows}
    precisions, recalls, decoys, several = [], [], 0, 0
    for (sequence, label), reasons in fleet.why.items():
        row = rows[sequence]
        named = set(positive_names(fleet.rule_at(label, row["start"]))) & set(row["events"])
        causes = {reason["event"] for reason in reasons if reason["role"] == "cause"}
        precisions.append(len(named & causes) / len(named))
        recalls.append(len(named & causes) / len(causes))
        decoys += len(named) > len(causes)
        several += len(named) > len(causes) >= 2
    precision, recall = np.mean(precisions), np.mean(recalls)
    told = fleet.info["presence_oracle"]
    assert told["pairs"] == len(fleet.why)
    assert [told["precision"], told["recall"]] == pytest.approx([precision, recall])
    assert told["f1"] == pytest.approx(2 * precision * recall / (precision + recall))
    assert told["decoy_share"] == pytest.approx(decoys / len(fleet.why))
    assert told["decoy_share_several_causes"] == pytest.approx(several / len(fleet.why))


def test_in_the_temporal_fleet_presence_is_not_enough(temporal: Fleet) -> None:
    told = temporal.info["presence_oracle"]
    assert told["f1"] <= 0.80
    assert told["decoy_share_several_causes"] >= 0.5
    texts = [str(item.rule) for _, item in temporal.every_rule]
    assert any("Then" in text for text in texts)
    assert any("AtLeast" in text for text in texts)


def test_bayes_figures_agree_with_scikit_learn(hard: Fleet) -> None:
    """Forecast of one who knows every law: the rule's value, or the graded chance above one half."""
    from sklearn.metrics import f1_score

    labels = sorted({label for label, _ in hard.every_rule})
    column = {label: number for number, label in enumerate(labels)}
    line = {row["sequence_id"]: number for number, row in enumerate(hard.rows)}
    recorded, forecast = (np.zeros((len(line), len(labels)), bool) for _ in range(2))
    for row in hard.rows:
        recorded[line[row["sequence_id"]], [column[label] for label in row["labels"]]] = True
    for row, label, true in hard.verdicts():
        forecast[line[row["sequence_id"]], column[label]] = true
    for label, law in hard.graded.items():
        for present, group in groups(hard, label, law).items():
            if group["chance"] > 0.5:
                known = {*law["causes"], *law["inhibitors"]}
                here = [frozenset(known & set(row["events"])) == present for row in hard.rows]
                forecast[here, column[label]] = True
    told = hard.info["bayes"]
    for average in ("micro", "macro", "weighted"):
        assert told[f"{average}_f1"] == pytest.approx(f1_score(recorded, forecast, average=average), abs=2e-3)
    assert 0.5 < told["weighted_f1"] < 0.97
