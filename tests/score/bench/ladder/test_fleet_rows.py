"""Rows that know the fleet, on sequences whose label follows one event."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.density.folds import ModelSet
from oscar_causal.density.interface import Contexts
from oscar_causal.score.bench.ladder import fleet_rows
from oscar_causal.score.bench.ladder.interface import Part, Reasons
from oscar_causal.score.bench.ladder.models import ModelSettings

FEW = ModelSettings(pool=15, rules=False)
CAUSE = "E00"


def drawn(count: int, seed: int, weak: float = 0.0) -> Dataset:
    """Eight sorts of events; y comes with E00, with E01 in this share of the sequences that lack E00, and with nothing
    else; in one sequence of twenty the contrary is recorded.
    """
    luck, rows = np.random.default_rng(seed), []
    for i in range(count):
        events = [f"E{k:02d}" for k in luck.permutation(8)[:4]]
        comes = CAUSE in events or ("E01" in events and luck.random() < weak)
        came = comes != (luck.random() < 0.05)
        rows.append(
            {"sequence_id": f"{seed}-{i}", "events": events, "times": [0, 1, 2, 3], "labels": ["y"] if came else []}
        )
    return from_records(rows)


@pytest.fixture(scope="module")
def one_cause(tmp_path_factory: pytest.TempPathFactory) -> Part:
    train, test = drawn(400, 1), drawn(20, 2)
    return Part(train, test, train, test, dict[Any, Reasons](), tmp_path_factory.mktemp("work"))


def by_presence(test: Dataset) -> dict[tuple[str, str], frozenset[str]]:
    """E00 where it is, for every label that came."""
    return {
        (test.sequence_ids[i].as_py(), "y"): frozenset({CAUSE} & set(test.events_of(i)))
        for i in range(len(test))
        if test.labels_of(i)
    }


def named(found: Any) -> dict[tuple[str, str], frozenset[str]]:
    return {pair: answer.causes for pair, answer in found.answers.items()}


def test_patterns_and_fused_without_a_network_find_what_counts_show(one_cause: Part) -> None:
    rows, expected = fleet_rows.fleet_rows(FEW), by_presence(one_cause.test)
    assert any(expected.values())
    assert not all(expected.values())  # labels that came by chance
    reading = rows["pattern reading"](one_cause)
    assert named(reading) == expected
    assert reading.passes is None
    alone = rows["fused without network"](one_cause)
    assert named(alone) == expected
    assert alone.extra == {"pool": 15.0, "rules": 0.0}


def test_patterns_tell_who_acted_where_two_are_there(one_cause: Part) -> None:
    """E01 raises P(y) from 0.05 to 0.32: alone it acted by (0.32 - 0.05) / 0.95 / 0.32, or 89 %; beside E00, with which
    y nearly always comes, it did not.
    """
    given = replace(one_cause, train=drawn(4000, 3, 0.3), test=drawn(300, 4, 0.3))
    found = named(fleet_rows.read_patterns(given, FEW))
    seen = set()
    for i in range(300):
        there = {"E00", "E01"} & set(given.test.events_of(i))
        if given.test.labels_of(i) and there:
            expected = {"E00"} if "E00" in there else {"E01"}
            assert found[given.test.sequence_ids[i].as_py(), "y"] == expected
            seen.add(frozenset(there))
    assert len(seen) == 3


def test_a_model_without_a_network_says_the_same_of_everything(one_cause: Part) -> None:
    model = fleet_rows._without_network(one_cause, FEW).models[0]
    labels, length = torch.tensor([0]), torch.tensor([2, 4])
    share = float((one_cause.train.labels.lengths > 0).mean())
    found = model.label_probs(_contexts(3), labels, length)
    assert found.shape == (3, 2, 1)
    np.testing.assert_allclose(found, share, rtol=1e-6)


def _contexts(count: int) -> Contexts:
    ids = torch.arange(4 * count).reshape(count, 4) % 8 + 3
    return Contexts(ids, torch.arange(4, dtype=torch.float64), torch.zeros(4, 0))


def test_fused_learns_from_its_pool(one_cause: Part, known: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a model that knows the cause, and no boundaries given, the pool makes the prior; the pool is held out."""
    asked = list[Any]()

    def discover(model: Any, data: Dataset, *given: Any, **how: Any) -> Any:
        asked.append(how["indices"])
        return real(model, data, *given, **how)

    real = fleet_rows.discover
    monkeypatch.setattr(fleet_rows, "discover", discover)
    models = ModelSet((known(0.7),), (np.empty(0, np.uint64),))
    found = fleet_rows.fused(one_cause, models, FEW, boundaries=False)
    assert named(found) == by_presence(one_cause.test)
    assert found.passes is not None
    assert found.passes > 0
    (pool,) = asked
    outside = fleet_rows.held_out(one_cause.train.subject_ids, 0.1, seed=one_cause.seed)
    assert len(pool) == 15
    assert outside[pool].all()
    assert (one_cause.train.labels.lengths[pool] > 0).all()


def test_rules_of_the_population_are_recovered_when_asked(one_cause: Part, known: Any) -> None:
    models = ModelSet((known(0.7),), (np.empty(0, np.uint64),))
    found = fleet_rows.fused(one_cause, models, ModelSettings(pool=15), boundaries=False)
    assert found.extra["rules"] == 1.0
