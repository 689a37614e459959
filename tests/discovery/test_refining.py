"""Boundaries that single tests cannot find: alternatives of rare labels, orders behind decoys; and null labels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from oscar_causal.data.rules import Event, Then
from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.data.subjects import pack_subjects, seen_subjects
from oscar_causal.discovery.classical.features import FeatureConfig
from oscar_causal.discovery.classical.learning import learn_boundaries
from oscar_causal.discovery.classical.methods import BaselineConfig
from oscar_causal.discovery.fleet_prior import Classical
from oscar_causal.discovery.gains import PRICE
from oscar_causal.discovery.pools import Candidates, Fleet
from oscar_causal.discovery.refining import FEW, refined
from oscar_causal.errors import UsageError

Garage = Callable[[int, int], Dataset]
WAYS = [f"X{k}" for k in range(12)]


def learnt(cars: Dataset, *kinds: str) -> Classical:
    config = BaselineConfig(features=FeatureConfig(("presence", *kinds)))  # type: ignore[arg-type]
    found = learn_boundaries(cars, config, labels=["fault"])[0]
    parts: dict[bool, list[str]] = {True: [], False: []}
    for member in found.members:
        parts[member.effect is None or member.effect > 0].append(member.feature)
    subjects = pack_subjects(cars.subject_ids)
    return Classical(
        "iamb", {"fault": tuple(parts[True])}, {"fault": found.positives}, subjects, {"fault": tuple(parts[False])}
    )


def alternatives(count: int, seed: int) -> Dataset:
    """`fault` needs A and one of twelve; a symptom S mostly comes with A, and so do the twelve; the rest is noise."""
    rng = np.random.default_rng(seed)
    records = []
    for k in range(count):
        events = [f"n{e}" for e in rng.integers(0, 40, 6)]
        if rng.random() < 0.05:
            events += ["A", *(["S"] if rng.random() < 0.8 else []), *(way for way in WAYS if rng.random() < 0.06)]
        events += [way for way in WAYS if rng.random() < 0.004]
        came = "A" in events and any(way in events for way in WAYS)
        labels = ["fault"] if came and rng.random() < 0.95 or rng.random() < 0.0005 else ["none"]
        rng.shuffle(events)
        records.append(
            {"sequence_id": f"{seed} {k}", "subject_id": f"car {seed} {k // 2}", "events": events, "labels": labels}
        )
    return from_records([record | {"times": list(range(len(record["events"])))} for record in records])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_alternatives_of_a_rare_label_are_found_together(seed: int) -> None:
    cars = alternatives(3000, seed)
    single = learnt(cars)
    assert single.positives["fault"] < FEW
    assert len(single.members["fault"]) < 5  # one test at a time misses most of the thirteen
    told: list[tuple[int, int]] = []
    best = refined([single], [cars], on_progress=lambda *now: told.append(now))
    assert told == [(1, 1)]
    assert best.members["fault"] >= {"A"}
    assert len(best.members["fault"] & set(WAYS)) >= 10
    assert best.members["fault"] <= {"A", *WAYS}  # and neither the symptom nor noise
    assert best.subjects == single.subjects  # the same cars


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_orders_counts_and_companions_behind_decoys(decoy_garage: Garage, seed: int) -> None:
    cars = decoy_garage(3000, seed)
    single = [learnt(cars), learnt(cars, "counts", "order")]
    truth = {"A then B", "D >= 3", "C"}
    assert all({text.split(" within")[0] for text in source.features["fault"]} != truth for source in single)
    best = refined(single, [cars])
    assert {text.split(" within")[0] for text in best.features["fault"]} == truth
    window = next(float(text.split(" within ")[1][:-1]) for text in best.features["fault"] if "within" in text)
    assert 570 <= window <= 630
    assert best.lowering["fault"] == ("E",)
    assert best.positives == {"fault": single[0].positives["fault"]}


def test_labels_related_to_nothing_get_nothing(decoy_garage: Garage) -> None:
    """Labels of other sequences: of sixty none gets a feature, and few keep one that they were told of."""
    cars = decoy_garage(1500, 1)
    rng, records = np.random.default_rng(0), []
    chances = rng.uniform(0.005, 0.2, 60)
    for k in range(len(cars)):
        labels = [f"label {n}" for n in np.flatnonzero(rng.random(60) < chances)]
        times = cars.times[cars.events.offsets[k] : cars.events.offsets[k + 1]].tolist()
        records.append({"sequence_id": str(k), "events": cars.events_of(k), "times": times, "labels": labels})
    nothing = Classical("iamb", {f"label {n}": () for n in range(60)}, {}, None)
    told = Classical("guess", {f"label {n}": ("A", "A then B") for n in range(60)}, {}, None, {"label 1": ("D >= 2",)})
    data = from_records(records)
    for sources, most in (([nothing], 0), ([told, nothing], 6)):
        found = refined(sources, [data])
        assert sum(bool(texts) for texts in found.features.values()) <= most


@pytest.mark.bits
def test_workers_and_parts_do_not_matter(decoy_garage: Garage) -> None:
    """Parts are cut where a car ends, so that folds are the same."""
    cars = decoy_garage(1500, 2)
    sources = [Classical("iamb", {"fault": ("A", "F"), "none": ("n1",)}, {}, pack_subjects(cars.subject_ids))]
    one = refined(sources, [cars])
    parts = [cars.take(np.arange(500)), cars.take(np.arange(500, 1500))]
    for other in (refined(sources, [cars], workers=2), refined(sources, parts)):
        assert (other.features, other.lowering, other.subjects) == (one.features, one.lowering, one.subjects)
    assert one.features["fault"] != ("A", "F")


def test_few_do_not_overrule_many(decoy_garage: Garage) -> None:
    """Boundaries learnt from far more positives stay as they are; of several, the one that predicts best is taken."""
    cars = decoy_garage(1500, 2)
    positives = sum("fault" in cars.labels_of(k) for k in range(len(cars)))
    right, wrong = ("A then B within 700s", "D >= 3"), ("F",)
    for known in (positives, 3 * positives):
        sources = [
            Classical(name, {"fault": texts}, {"fault": known}, None) for name, texts in (("a", wrong), ("b", right))
        ]
        found = refined(sources, [cars])
        assert (found.features["fault"] == right) == (known > positives)
        assert found.method == "a or b"


def test_wide_boundaries_stay(decoy_garage: Garage) -> None:
    cars = decoy_garage(600, 1)
    wide = tuple(f"n{k}" for k in range(30)) + ("A", "D", "F")
    sources = [Classical("a", {"fault": ("n1",)}, {}, None), Classical("b", {"fault": wide}, {}, None)]
    assert refined(sources, [cars]).features["fault"] == wide


def test_features_that_nothing_spoke_for_cost_more(decoy_garage: Garage) -> None:
    candidates = Candidates(Fleet.of(decoy_garage(600, 1)), 0, [Then(Event("A"), Event("B"), 9.0)])
    spoken_for = (Event("D"), Then(Event("A"), Event("B")), Then(Event("A"), Event("B"), 9.0))
    assert {candidates.price(atom) for atom in spoken_for} == {PRICE}
    assert candidates.price(Then(Event("B"), Event("A"))) > PRICE + 2


def test_what_was_not_recorded_stays() -> None:
    source = Classical("iamb", {"fault": ("A",), "other": ("B",)}, {"fault": 9}, None, {"fault": ("C",)})
    unlabelled = from_records([{"sequence_id": "a", "events": ["A"], "times": [0], "labels": None}])
    elsewhere = from_records([{"sequence_id": "a", "events": ["A"], "times": [0], "labels": ["new"]}])
    for datasets in ([], [unlabelled], [elsewhere]):  # populations alone; nothing recorded; none of its labels
        found = refined([source], datasets)
        assert (found.features, found.positives) == (source.features, source.positives)
        assert found.lowering["fault"] == ("C",)
    with pytest.raises(UsageError, match="at least one source"):
        refined([], [])
    with pytest.raises(UsageError, match="workers"):
        refined([source], [], workers=0)


def test_cars_it_was_learnt_from_are_told(decoy_garage: Garage) -> None:
    mine, other = decoy_garage(600, 1), decoy_garage(600, 2)
    source = Classical("iamb", {"fault": ("A",)}, {}, pack_subjects(mine.subject_ids))
    found = refined([source], [other])
    assert found.subjects is not None
    asked = pa.array(["car 1 5", "car 2 5", "car 3 5"])
    assert seen_subjects(asked, [found.subjects]).tolist() == [True, True, False]
    assert refined([Classical("iamb", {"fault": ("A",)}, {}, None)], [other]).subjects is None
