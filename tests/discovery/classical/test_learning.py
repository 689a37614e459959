"""All labels of a dataset: the same answer from any number of processes, within time, and right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.discovery.classical.boundaries import GlobalBoundary
from oscar_causal.discovery.classical.ci_tests import CiConfig
from oscar_causal.discovery.classical.features import FeatureConfig
from oscar_causal.discovery.classical.learning import learn_boundaries
from oscar_causal.discovery.classical.methods import BaselineConfig, effect_in_positives
from oscar_causal.errors import FolderError, UsageError

RULES = {"and": lambda has: has("e1") and has("e2"), "or": lambda has: has("e3") or has("e4"),
         "not": lambda has: has("e5") and not has("e6"), "one": lambda has: has("e7")}  # fmt: skip
TRUTH = {"and": {"e1", "e2"}, "or": {"e3", "e4"}, "not": {"e5", "e6"}, "one": {"e7"}}
METHODS = ("iamb", "cmb", "mb-by-mb", "pcd-by-pcd", "mi-mcf")


@pytest.fixture(scope="module")
def fleet() -> Dataset:
    """1,500 sequences over 40 events; e8 echoes e1, so it goes with label `and` without causing it."""
    rng = np.random.default_rng(0)
    records = []
    for number in range(1500):
        present = {f"e{k}" for k in range(40) if rng.random() < (0.35 if k < 8 else 0.1)}
        if "e1" in present and rng.random() < 0.8:
            present.add("e8")
        events = sorted(present) or ["e0"]
        labels = [name for name, rule in RULES.items() if rule(present.__contains__) and rng.random() < 0.97]
        times = list(range(len(events)))
        records.append({"sequence_id": str(number), "events": events, "times": times, "labels": labels})
    return from_records(records)


def without_times(boundaries: list[GlobalBoundary]) -> list[GlobalBoundary]:
    return [replace(found, seconds=0.0) for found in boundaries]


@pytest.mark.parametrize("method", METHODS)
def test_the_rules_events_are_found(fleet: Dataset, method: Any) -> None:
    found = {item.label: item for item in learn_boundaries(fleet, BaselineConfig(method))}
    assert all(item.complete for item in found.values())
    right = {label: set(found[label].events) for label in TRUTH}
    if method == "mi-mcf":  # by design it drops what a stronger feature knows better
        assert sum(right[label] <= TRUTH[label] for label in TRUTH) >= 3
        assert {"e7"} == right["one"]
    else:
        assert right == TRUTH


@pytest.mark.bits
@pytest.mark.parametrize("method", METHODS)
def test_any_number_of_processes_gives_the_same_answer(fleet: Dataset, method: Any) -> None:
    config = BaselineConfig(method)
    one = learn_boundaries(fleet, config, labels=["or", "not"])
    assert [item.label for item in one] == ["or", "not"]
    if method in ("iamb", "mi-mcf"):  # starting processes takes seconds
        assert without_times(learn_boundaries(fleet, config, labels=["or", "not"], workers=2)) == without_times(one)
    whole = {item.label: item for item in without_times(learn_boundaries(fleet, config))}
    assert [whole["or"], whole["not"]] == without_times(one)


@pytest.mark.bits
def test_orders_in_several_processes(fleet: Dataset) -> None:
    config = BaselineConfig(features=FeatureConfig(("order",), windows=()))
    several = learn_boundaries(fleet, config, labels=["one", "or"], workers=2)
    assert without_times(several) == without_times(learn_boundaries(fleet, config, labels=["one", "or"]))


def test_effects_have_a_sign_and_a_size(fleet: Dataset) -> None:
    found = {item.label: item for item in learn_boundaries(fleet)}
    effects = {member.feature: member.effect for member in found["not"].members}
    assert effects["e5"] == pytest.approx(0.97, abs=0.03)
    assert effects["e6"] == pytest.approx(-0.97, abs=0.03)
    # of the sequences with label `or`, e3 decides where e4 is absent: 1 - 0.35 / (1 - 0.65²) of them
    share = {member.feature: member.effect for member in found["or"].members}["e3"]
    assert share == pytest.approx(0.97 * (1 - 0.35 / (1 - 0.65**2)), abs=0.04)


def test_effect_by_hand(table_of: Any) -> None:
    # stratum z = 0: y in 3 of 4 with x, 1 of 6 without; stratum z = 1: 2 of 2 and 2 of 4
    rows = [(0, 1, 1)] * 3 + [(0, 1, 0)] + [(0, 0, 1)] + [(0, 0, 0)] * 5
    rows += [(1, 1, 1)] * 2 + [(1, 0, 1)] * 2 + [(1, 0, 0)] * 2
    effect, error = effect_in_positives(table_of(np.array(rows)), 2, 1, [0])
    assert effect == pytest.approx((4 * (3 / 4 - 1 / 6) + 4 * (1 - 1 / 2)) / 8)
    assert error == pytest.approx(np.sqrt(0.25 * (3 / 16 / 4 + 5 / 36 / 6) + 0.25 * (0 + 1 / 4 / 4)))
    constant = np.array([(0, 1, 1), (0, 1, 0)])
    assert effect_in_positives(table_of(constant), 2, 1, [0]) == (None, None)


def test_time_limits_are_kept_and_told(fleet: Dataset) -> None:
    found = learn_boundaries(fleet, BaselineConfig(time_limit=1e-9))
    assert [item.complete for item in found] == [False] * 4
    assert all(item.seconds < 1 for item in found)
    assert not learn_boundaries(fleet, BaselineConfig(label_time_limit=1e-9), labels=["one"])[0].complete
    ordered = BaselineConfig(label_time_limit=1e-9, features=FeatureConfig(("order",)))
    assert not learn_boundaries(fleet, ordered, labels=["one"])[0].complete


def test_labels_take_part_only_when_asked(fleet: Dataset) -> None:
    rng = np.random.default_rng(1)
    records = []
    for number in range(800):
        events = [f"e{k}" for k in range(6) if rng.random() < 0.4] or ["e5"]
        labels = ["first"] if "e0" in events and rng.random() < 0.9 else []
        labels += ["second"] if labels and rng.random() < 0.95 else []
        records.append(
            {"sequence_id": str(number), "events": events, "times": list(range(len(events))), "labels": labels}
        )
    data = from_records(records)
    assert learn_boundaries(data, labels=["second"])[0].events == ("e0",)
    asked = learn_boundaries(data, BaselineConfig(labels_as_candidates=True), labels=["second"])[0]
    assert asked.events == ()  # the other label tells everything the event could
    assert learn_boundaries(data, BaselineConfig("mi-mcf"), labels=["second"])[0].events == ("e0",)


def test_a_label_in_every_sequence_has_nothing_to_be_explained() -> None:
    records = [{"sequence_id": str(n), "events": ["A"], "times": [0], "labels": ["y"]} for n in range(20)]
    for method in METHODS:
        assert learn_boundaries(from_records(records), BaselineConfig(method))[0].members == ()


def test_as_published_also_looks_for_effects(fleet: Dataset) -> None:
    for method in ("cmb", "mb-by-mb", "pcd-by-pcd"):
        config = BaselineConfig(method, outcomes=False)
        found = learn_boundaries(fleet, config, labels=["and"])[0]
        assert {"e1", "e2"} <= set(found.events)
        assert {member.role for member in found.members} <= {"parent", "child", "spouse", "undirected"}


def test_bad_settings_are_refused(fleet: Dataset) -> None:
    with pytest.raises(UsageError, match="expected one of iamb, .* got 'pc'"):
        BaselineConfig("pc")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="label time limit: expected"):
        BaselineConfig(label_time_limit=0)
    with pytest.raises(UsageError, match="time limit: expected"):
        BaselineConfig(time_limit=-1)
    with pytest.raises(UsageError, match="workers: expected at least 1, got 0"):
        learn_boundaries(fleet, workers=0)
    with pytest.raises(UsageError, match="label 'fire': not among the 4 labels"):
        learn_boundaries(fleet, labels=["fire"])
    with pytest.raises(UsageError, match="alpha"):
        BaselineConfig(tests=CiConfig(alpha=2))


def test_a_boundary_survives_its_line_of_json(fleet: Dataset) -> None:
    for found in learn_boundaries(fleet, labels=["and"]):
        assert GlobalBoundary.from_json(found.to_json()) == found
    with pytest.raises(FolderError, match="expected the line of a boundary"):
        GlobalBoundary.from_json({"label": "y"})
