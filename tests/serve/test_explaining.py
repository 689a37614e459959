"""The service explains exactly as the library does, in slices, and stops when told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from oscar_causal.data.sequences import Dataset
from oscar_causal.density import memory
from oscar_causal.density.folds import ModelSet
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.local import discover_folder
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.discovery.results import read_table
from oscar_causal.serve.explaining import discovery_config, explain
from oscar_causal.serve.payloads import Sequence, Settings
from oscar_causal.serve.prepared import judge, prepare
from oscar_causal.serve.worker import Stopped

SHORT = Settings(contexts=32, seed=3)


@pytest.mark.bits
def test_equal_to_the_library_bit_for_bit(models: ModelSet, fleet: Dataset) -> None:
    part = fleet.take(range(350, 356))
    config = DiscoveryConfig(intervention=InterventionConfig(contexts=32), seed=3)
    wanted = list(discover(models.models[0], part, config))
    for row in range(len(part)):
        sent = Sequence(
            sequence_id=part.sequence_ids[row].as_py(),
            subject_id=part.subject_ids[row].as_py(),
            events=part.events_of(row),
            times=part.times[part.events.offsets[row] : part.events.offsets[row + 1]].tolist(),
            channels={"mileage": [None if v != v else v for v in part.take([row]).channel("mileage").tolist()]},
            labels=part.labels_of(row),
        )
        prepared = prepare(models, sent)
        found = explain(models, prepared, replace(discovery_config(SHORT, prepared), labels="observed"), lambda n: None)
        assert [replace(item, trusted=None, seen_in_training=None) for item in found] == wanted[row]
        assert {item.trusted for item in found} <= {models.trusted(item.label) for item in found}
        assert not any(item.seen_in_training for item in found)


@pytest.mark.bits
def test_slices_change_no_bit(
    models: ModelSet, draw_sequence: Callable[..., Sequence], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(memory.TOKENS_PER_PASS, "cpu", 100)  # a pass holds few contexts
    prepared = prepare(models, draw_sequence(20))
    config = replace(discovery_config(SHORT, prepared), labels=tuple(models.vocabulary.labels))
    passes: list[int] = []
    found = explain(models, prepared, config, passes.append)
    [wanted] = discover(models.models[0], prepared.data, config)
    assert [replace(item, trusted=None, seen_in_training=None) for item in found] == wanted
    slopes = 3 * len(found)  # a pass forward and back for each label
    assert found[0].ranked_by == "slopes"
    assert max(count for count in passes if count != slopes) == 100 // 21
    assert sum(passes) == found[0].contexts


@pytest.mark.bits
def test_with_folds_equal_to_discover_folder(
    folds: ModelSet, folds_folder: Path, fleet_folder: Path, fleet: Dataset, tmp_path: Path
) -> None:
    """Known subjects by their own fold, new ones by the mean."""
    import numpy as np

    rows = np.array([0, 1, 2, 5, 390])
    config = DiscoveryConfig(intervention=InterventionConfig(contexts=16), labels=("common",))
    discover_folder(folds_folder, fleet_folder, tmp_path / "r", config, indices=rows)
    wanted = read_table(tmp_path / "r", "evidence").to_pylist()
    found = []
    for row in rows:
        one = fleet.take([int(row)])
        sent = Sequence(
            sequence_id=one.sequence_ids[0].as_py(),
            subject_id=one.subject_ids[0].as_py(),
            events=one.events_of(0),
            times=one.times.tolist(),
            channels={"mileage": [None if v != v else v for v in one.channel("mileage").tolist()]},
        )
        prepared = prepare(folds, sent)
        settings = Settings(contexts=16, labels=["common"])
        for item in explain(folds, prepared, discovery_config(settings, prepared), lambda n: None):
            found += [(item.sequence_id, e.event, e.effect, e.p_value) for e in item.evidence]
    assert found == [(row["sequence_id"], row["event"], row["effect"], row["p_value"]) for row in wanted]


def test_it_stops_before_the_next_pass(models: ModelSet, draw_sequence: Callable[..., Sequence]) -> None:
    prepared = prepare(models, draw_sequence(12))
    passes = 0

    def third_is_too_much(contexts: int) -> None:
        nonlocal passes
        passes += 1
        if passes == 3:
            raise Stopped

    with pytest.raises(Stopped):
        explain(models, prepared, DiscoveryConfig(labels=("common",)), third_is_too_much)
    assert passes == 3


@pytest.mark.parametrize(
    ("recorded", "asked", "expected"),
    [
        (["common"], None, "observed"),
        ([], None, "predicted"),
        (None, None, "predicted"),
        (None, "observed", "observed"),
        (["common"], ["steering <b>degraded</b>"], ("steering <b>degraded</b>",)),
    ],
)
def test_which_labels(models: ModelSet, recorded: list[str] | None, asked: object, expected: object) -> None:
    prepared = prepare(models, Sequence(events=["A"], labels=recorded))
    settings = Settings.model_validate({"labels": asked, "alpha": 0.1, "delta": 0.2, "contexts": 40, "seed": 7})
    config = discovery_config(settings, prepared)
    assert config.labels == expected
    assert config.seed == 7
    assert (config.intervention.contexts, config.intervention.alpha, config.intervention.delta) == (40, 0.1, 0.2)
    assert judge(models, prepared.route) is models.models[0]
