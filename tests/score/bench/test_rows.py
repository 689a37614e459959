"""Rows measured on a small fleet say what `oscar score` says of the same results; figure k is `discover` at each k."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oscar_causal.data.folders import read_json
from oscar_causal.data.rules import event_names, positive_names, read_rules
from oscar_causal.data.subjects import held_out, seen_subjects
from oscar_causal.discovery.classical.learning import learn_boundaries
from oscar_causal.discovery.classical.methods import BaselineConfig
from oscar_causal.discovery.fused import FusedConfig
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.local import discover_folder, unseen_indices
from oscar_causal.discovery.results import read_run
from oscar_causal.errors import OscarError, UsageError
from oscar_causal.score.bench import place as place_module
from oscar_causal.score.bench import rows as rows_module
from oscar_causal.score.bench import threshold
from oscar_causal.score.bench.estimators import PAPER_PREFIX, intervention_settings, prefix_settings
from oscar_causal.score.bench.explaining import job_of
from oscar_causal.score.bench.perturbations import LeaveOneOut
from oscar_causal.score.bench.place import Place, model_figures
from oscar_causal.score.bench.rivals import Rival
from oscar_causal.score.bench.rows import Classical, Fused, OneShot, Presence
from oscar_causal.score.bench.settings import bench_settings
from oscar_causal.score.scoring import read_explained, score_results

SMALL = replace(PAPER_PREFIX, contexts=4, context=6)
Settings = Callable[..., Any]


def test_a_row_is_what_score_says_of_the_same_discovery(settings: Settings, tmp_path: Path) -> None:
    place = Place(settings())
    got = OneShot(prefix_settings(SMALL), folds=2).measure(place)
    data, model = place.settings.dataset, place.settings.model
    rows = place.unseen_labelled[:8]
    assert len(rows) == got["sequences"] == 8
    assert set(rows) <= set(unseen_indices(model, data))
    discover_folder(model, data, tmp_path / "r", prefix_settings(SMALL), indices=rows)
    wanted = score_results(tmp_path / "r", folds=2)
    assert got["truth"]["why"]["mean"]["weighted"] == wanted["truth"]["why"]["over_folds"]["mean"]["weighted"]
    assert got["truth"]["why"]["sd"]["sample"] == wanted["truth"]["why"]["over_folds"]["sd"]["sample"]
    sizes = {size: part["pairs"] for size, part in wanted["truth"]["rule_all"]["by_size"].items()}
    assert {size: part["pairs"] for size, part in got["by_size"]["rule_all"].items()} == sizes
    groups = wanted["truth"]["why"]["by_frequency"]
    assert {name: part["pairs"] for name, part in got["by_frequency"]["why"].items()} == {
        name: part["pairs"] for name, part in groups.items()
    }


def test_runs_differ_by_seed_alone_and_are_averaged(settings: Settings) -> None:
    place = Place(settings())
    both = OneShot(prefix_settings(SMALL), runs=2).measure(place)
    model = place.settings.model
    each = [place.score(place.explain(model, replace(prefix_settings(SMALL), seed=s))[0]) for s in (0, 1)]
    values = [part["rule_all"]["micro"]["precision"] for part in each]
    assert both["truth"]["rule_all"]["mean"]["micro"]["precision"] == pytest.approx(np.mean(values))
    assert both["truth"]["rule_all"]["sd"]["micro"]["precision"] == pytest.approx(np.std(values, ddof=1))
    assert both["runs"] == 2


def test_what_was_explained_before_is_not_explained_again(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    configs = (prefix_settings(SMALL), intervention_settings(InterventionConfig(contexts=40)))
    first = [OneShot(config).measure(Place(settings())) for config in configs]

    def never(*args: object, **kwargs: object) -> None:
        raise AssertionError("explained again")

    monkeypatch.setattr(place_module, "explain_folder", never)
    monkeypatch.setattr(place_module, "prefix_pass", never)
    for config, wanted in zip(configs, first, strict=True):
        assert OneShot(config).measure(Place(settings())) == wanted
        with pytest.raises(AssertionError, match="again"):  # another commit may give other results
            OneShot(config).measure(Place(settings(commit="another")))
    OneShot(prefix_settings(replace(SMALL, threshold=3.0))).measure(Place(settings()))  # only k is another
    with pytest.raises(AssertionError, match="again"):
        OneShot(prefix_settings(replace(SMALL, contexts=5))).measure(Place(settings()))


@pytest.mark.bits
def test_a_row_measured_again_elsewhere_gives_the_same_figures(settings: Settings, tmp_path: Path) -> None:
    row = OneShot(prefix_settings(SMALL), folds=2)
    first, again = row.measure(Place(settings())), row.measure(Place(settings(work=tmp_path / "elsewhere")))
    assert {**first, "seconds": None} == {**again, "seconds": None}


def test_small_samples_are_disjoint(settings: Settings) -> None:
    got = OneShot(prefix_settings(SMALL), small_sample=2).measure(Place(settings()))
    sizes = got["small_sample"]["sequences"]
    assert all(1 <= size <= 2 for size in sizes)
    assert sum(sizes) <= 8
    assert 0 <= got["small_sample"]["truth"]["rule_all"]["mean"]["weighted"]["f1"] <= 1


def test_every_threshold_is_discover_at_that_threshold(settings: Settings, tmp_path: Path) -> None:
    place = Place(settings())
    model = place.settings.model
    found = place.prefix_pass(model, replace(prefix_settings(SMALL), seed=3))
    assert found.seconds > 0
    assert found.passes == (4,) * 8
    for k in (0.5, 2.0, 2.75):
        config = replace(prefix_settings(replace(SMALL, threshold=k)), seed=3)
        discover_folder(model, place.part.folder, tmp_path / f"{k}", config)
        wanted = read_explained(tmp_path / f"{k}")
        assert found.at(k).pairs == wanted.pairs
        for truth in ("why", "rule_all"):
            assert found.at(k).found(truth) == wanted.found(truth)
    assert found.at(0.5).found("rule_all") != found.at(2.0).found("rule_all")


def test_sequences_not_longer_than_c_find_nothing_at_any_threshold(settings: Settings) -> None:
    place = Place(settings())
    found = place.prefix_pass(place.settings.model, prefix_settings(replace(SMALL, context=500)))
    assert found.at(0.5).pairs
    assert not found.at(-1.0).accepted
    assert set(found.passes) == {0}


@pytest.mark.parametrize("kind", [OneShot, Fused])
def test_every_level_is_discover_at_that_level(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[OneShot]
) -> None:
    """Alpha also decides when contexts are enough, so each level is explained for itself."""
    place = Place(settings(test=4, work=tmp_path / "work"))
    small = InterventionConfig(contexts=48)
    monkeypatch.setattr(threshold, "InterventionConfig", lambda alpha: replace(small, alpha=alpha))
    monkeypatch.setattr(threshold, "ALPHAS", (0.01, 0.5))
    got = threshold.Levels(kind, 1).measure(place)
    assert [point["at"] for point in got["points"]] == [0.01, 0.5]
    assert "alpha" not in got["settings"]
    for point in got["points"]:
        alone = intervention_settings(replace(small, alpha=point["at"]))
        config = kind(alone).prepared(place, place.settings.model, 0)
        explained, _ = place.explain(place.settings.model, config)
        scored = place.score(explained)
        assert point["truth"]["why"]["mean"]["sample"] == scored["why"]["sample"]
    made = [read_run(folder)["config"] for folder in (tmp_path / "work").glob("results-*")]
    levels = sorted(run["intervention"]["alpha"] for run in made if (run["estimator"] == "fused") == (kind is Fused))
    assert levels == [0.01, 0.5]


def test_a_fused_row_makes_its_population_from_the_same_sequences(settings: Settings) -> None:
    place = Place(settings())
    config = intervention_settings(InterventionConfig(contexts=40))
    got = Fused(config).measure(place)
    (folder,) = place.settings.work_folder.glob("population-*")
    wanted = replace(config, estimator="fused", fused=FusedConfig(population=str(folder)))
    explained, _ = place.explain(place.settings.model, wanted)
    assert got["truth"]["why"]["mean"]["weighted"] == place.score(explained)["why"]["weighted"]
    assert got["settings"]["estimator"] == "fused"
    assert str(folder) not in str(got)  # no place of this machine in what is published


def test_a_classical_row_learns_from_all_that_training_gets_however_much(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, given = Place(settings()), []

    def learn(data: Any, *args: Any, **kwargs: Any) -> list[Any]:
        given.append(data)
        return learn_boundaries(data.take(np.arange(2)), *args, **kwargs)

    monkeypatch.setattr(rows_module, "learn_boundaries", learn)
    Classical(BaselineConfig("iamb")).measure(place)
    place.__dict__["training_rows"] = np.zeros(120_000, np.int64)
    assert Classical(BaselineConfig("iamb")).measure(place)["learnt_from"] == len(given[1]) == 120_000
    trained = read_json(place.settings.model / "training.json")
    stopping = held_out(given[0].subject_ids, trained["config"]["validation"], seed=trained["config"]["seed"])
    assert (seen_subjects(given[0].subject_ids, [trained["subjects"]]) ^ stopping).all()
    assert not set(given[0].subject_ids.to_pylist()) & set(place.part.data.subject_ids.to_pylist())


def test_a_classical_row_is_scored_where_its_events_are_present(settings: Settings) -> None:
    place = Place(settings())
    got = Classical(BaselineConfig("iamb"), folds=2).measure(place)
    assert got["learnt_from"] == len(place.training_rows)
    assert got["incomplete_labels"] == 0
    assert got["truth"]["rule_all"]["mean"]["weighted"]["precision"] > 0.5  # the demo's rules are easy to see in counts
    assert got["whole_boundary"]["weighted"]["recall"] >= got["truth"]["rule_all"]["mean"]["weighted"]["recall"] - 0.2


def test_knowing_the_rules_is_a_ceiling_that_absent_events_keep_low(settings: Settings) -> None:
    place = Place(settings())
    got = Presence().measure(place)
    assert got["truth"]["rule_present"]["mean"]["sample"]["f1"] == 1.0
    assert got["truth"]["rule_all"]["mean"]["micro"]["precision"] == 1.0
    rules = {label: item.rule for label, item in read_rules(place.fleet / "rules.json").items()}
    data, found, wanted = place.part.data, 0, 0
    for row in range(len(data)):
        for label in set(data.labels_of(row)) & set(rules):
            found += len(set(positive_names(rules[label])) & set(data.events_of(row)))
            wanted += len(set(event_names(rules[label])))
    assert got["truth"]["rule_all"]["mean"]["micro"]["recall"] == pytest.approx(found / wanted)
    assert 0 < found < wanted


def test_what_is_held_out_is_known_without_a_model(ready: Any, tmp_path: Path) -> None:
    """A classical row on one machine and a model's row on another judge the same sequences."""
    sizes = {"dataset": ready.fleet, "test": 8, "steps": 3, "work": tmp_path / "work"}
    place = Place(bench_settings(tmp_path, quick=True, **sizes))
    Classical(BaselineConfig("mi-mcf")).measure(place)
    assert not list((tmp_path / "work").glob("model-*"))
    model = place.model()
    assert not set(place.unseen.tolist()) - set(unseen_indices(model, ready.fleet).tolist())
    assert model_figures(model)["min_context"] == 4
    given = Place(bench_settings(tmp_path, quick=True, model=model, **sizes))
    assert given.explained_digest == place.explained_digest
    assert given.part.ground.label_counts == place.part.ground.label_counts


def test_two_processes_find_what_one_finds_start_once_and_may_die(settings: Settings, tmp_path: Path) -> None:
    one, two = Place(settings(test=5)), Place(settings(test=5, workers=2, work=tmp_path / "elsewhere"))
    configs = (prefix_settings(SMALL), intervention_settings(InterventionConfig(contexts=24)))
    try:
        for config in configs:
            found = [place.explain(place.settings.model, config)[0] for place in (one, two)]
            assert found[0] == found[1]
            rated = [
                Rival((LeaveOneOut(),))._rate(p, p.settings.model, LeaveOneOut(), p.part.folder) for p in (one, two)
            ]
            assert rated[0][1] == rated[1][1]
        job = job_of(two.processes, two.settings.model, two.part.folder, config)
        workers = set(two.processes.each(_process, job, [0] * 6))
        assert os.getpid() not in workers
        assert len(workers) <= 2
        with pytest.raises(OscarError, match="worker process died"):
            list(two.processes.each(_die, job, [0]))
    finally:
        two.close()


def _process(desk: Any, rows: Any) -> int:
    return os.getpid()


def _die(desk: Any, rows: Any) -> None:
    os._exit(9)


def test_model_figures(settings: Settings) -> None:
    model = settings().model
    figures = model_figures(model)
    assert figures["preset"] == "tiny"
    assert figures["min_context"] == json.loads((model / "config.json").read_text())["min_context"]
    from safetensors.numpy import load_file

    assert figures["weights"] == sum(part.size for part in load_file(model / "model.safetensors").values())
    assert figures["tokens"] > 0


def test_a_dataset_without_held_out_sequences_is_refused(settings: Settings, ready: Any, tmp_path: Path) -> None:
    from oscar_causal.data.select import Selection, select_sequences

    place = Place(settings())
    seen = place.data.take(place.training_rows[:5]).sequence_ids.to_pylist()
    select_sequences(ready.fleet, tmp_path / "seen", Selection(ids=tuple(seen)))
    with pytest.raises(UsageError, match="held-out"):
        OneShot(prefix_settings(SMALL)).measure(Place(settings(dataset=tmp_path / "seen")))
