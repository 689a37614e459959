"""A rare label of many alternatives: no single test finds them, together they are; what only comes with them leaves."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import fisher_exact

from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.data.subjects import pack_subjects, seen_subjects
from oscar_causal.discovery.choosing import best_classical
from oscar_causal.discovery.classical.learning import learn_boundaries
from oscar_causal.discovery.fleet_prior import Classical
from oscar_causal.discovery.reading import Features, Readings, count_patterns, readings_of
from oscar_causal.discovery.widening import FEW, Patterns, prune, raising_types, widened, with_wider

WAYS = [f"X{k}" for k in range(12)]
TRUTH = {"A", *WAYS}


def garage(count: int, seed: int) -> Dataset:
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


@pytest.fixture(scope="module")
def cars() -> Dataset:
    return garage(3000, 1)


@pytest.fixture(scope="module")
def iamb(cars: Dataset) -> Classical:
    return learnt(cars)


def learnt(cars: Dataset) -> Classical:
    found = {item.label: item for item in learn_boundaries(cars, labels=["fault"])}["fault"]
    features = {"fault": tuple(member.feature for member in found.members)}
    return Classical("iamb", features, {"fault": found.positives}, pack_subjects(cars.subject_ids))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_alternatives_are_found_together(seed: int) -> None:
    cars = garage(3000, seed)
    single = learnt(cars)
    assert single.positives["fault"] < FEW
    assert len(single.members["fault"]) < 5  # one test at a time misses most of the thirteen
    told: list[tuple[int, int]] = []
    sources = with_wider([single], [cars], on_progress=lambda *now: told.append(now))
    assert sources[0] is single
    assert told == [(1, 1)]
    best = best_classical(sources, [cars])
    assert best.members["fault"] == TRUTH  # and neither the symptom nor noise
    assert best.subjects == single.subjects  # the same cars


def test_raising_types_are_those_of_fishers_test(cars: Dataset) -> None:
    found = raising_types([cars], ["fault", "none", "unheard of"])
    assert set(found) == {"fault"}  # `none` is no rare label
    has = {name: np.array([name in cars.events_of(k) for k in range(len(cars))]) for name in cars.event_names}
    came = np.array(["fault" in cars.labels_of(k) for k in range(len(cars))])
    chances = {}
    for name, held in has.items():
        table = [[(held & came).sum(), (held & ~came).sum()], [(~held & came).sum(), (~held & ~came).sum()]]
        chances[name] = float(fisher_exact(table, alternative="greater").pvalue)
    sure = [name for name in sorted(chances, key=lambda name: chances[name]) if chances[name] <= 0.01 / len(has)]
    assert found["fault"] == sure
    assert set(sure) >= {"A", "S"}


def test_an_event_may_have_the_name_of_a_label() -> None:
    records = [
        {"sequence_id": str(k), "events": ["y", "x"] if k < 8 else ["x"], "times": [0, 1][: 2 if k < 8 else 1]}
        | {"labels": ["y"] if k < 6 else ["n"]}
        for k in range(40)
    ]
    assert raising_types([from_records(records)], ["y"]) == {"y": ["y"]}


def test_several_datasets_are_one(cars: Dataset, iamb: Classical) -> None:
    """Cut where a car ends, so that folds are the same."""
    parts = [cars.take(np.arange(0, 1000)), cars.take(np.arange(1000, 3000))]
    assert raising_types(parts, ["fault"]) == raising_types([cars], ["fault"])
    one, two = (with_wider([iamb], data)[1] for data in ([cars], parts))
    assert (one.features, one.lowering) == (two.features, two.lowering)


def test_pruning_counts_as_a_fresh_count_does(cars: Dataset) -> None:
    """Merged patterns against patterns counted again for every subset of the features."""
    whole = Features(("A", "X0", "X1", "S"), ("n1",))
    patterns = Patterns.of(_read(cars, whole), "fault")
    for left_out in range(5):
        fewer = patterns.without(left_out)
        assert fewer.log_likelihood() == pytest.approx(_read(cars, fewer.features).log_likelihood("fault"), rel=1e-12)
    twice = patterns.without(4).without(3)
    assert twice.features == Features(("A", "X0", "X1"))
    assert twice.log_likelihood() == pytest.approx(_read(cars, twice.features).log_likelihood("fault"), rel=1e-12)


def test_what_is_pruned_is_what_a_search_by_hand_prunes(cars: Dataset) -> None:
    kept, best = ["A", "X0", "X1", "X2", "S", "n1"], _read(cars, Features(("A", "X0", "X1", "X2", "S", "n1")))
    score = best.log_likelihood("fault")
    while len(kept) > 1:
        tried = {out: _read(cars, Features(tuple(t for t in kept if t != out))).log_likelihood("fault") for out in kept}
        worst = max(tried, key=lambda out: tried[out])
        if tried[worst] < score:
            break
        score = tried[worst]
        kept.remove(worst)
    assert prune(Patterns.of(best, "fault")) == Features(tuple(kept))
    assert kept == ["A", "X0", "X1", "X2"]


def _read(data: Dataset, features: Features) -> Readings:
    read = readings_of(count_patterns(data, {"fault": features}).patterns, {"fault": features})
    assert read is not None
    return read


def test_cars_it_was_learnt_from_are_told(cars: Dataset, iamb: Classical) -> None:
    other = garage(3000, 2)
    wide = widened(iamb, [other], raising_types([other], ["fault"]))
    assert wide.subjects is not None
    asked = pa.array(["car 1 5", "car 2 5", "car 3 5"])
    assert seen_subjects(asked, [wide.subjects]).tolist() == [True, True, False]
    unknown = Classical("iamb", iamb.features, iamb.positives, None)
    assert widened(unknown, [other], raising_types([other], ["fault"])).subjects is None


def test_nothing_to_widen(cars: Dataset) -> None:
    common = Classical("iamb", {"none": ("n1",)}, {"none": 2900}, None)
    assert with_wider([common], [cars]) == [common]
    unlabelled = from_records([{"sequence_id": "a", "events": ["A"], "times": [0], "labels": None}])
    assert raising_types([unlabelled], ["fault"]) == {}
    for datasets in ([], [unlabelled]):  # populations alone; nothing recorded
        assert with_wider([common], datasets) == [common]
