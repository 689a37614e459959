"""Rows measured on a small fleet say what `oscar score` says of the same results; figure k is `discover` at each k."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oscar_causal.discovery.classical.methods import BaselineConfig
from oscar_causal.discovery.fused import FusedConfig
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.local import discover_folder, unseen_indices
from oscar_causal.discovery.results import read_run
from oscar_causal.errors import UsageError
from oscar_causal.score.bench import place as place_module
from oscar_causal.score.bench import threshold
from oscar_causal.score.bench.curves import explain_at_thresholds
from oscar_causal.score.bench.estimators import PAPER_PREFIX, intervention_settings, prefix_settings
from oscar_causal.score.bench.place import Place, model_figures
from oscar_causal.score.bench.rows import Classical, Fused, OneShot
from oscar_causal.score.scoring import score_results

SMALL = replace(PAPER_PREFIX, contexts=4, context=6)
Settings = Callable[..., Any]


def test_a_row_is_what_score_says_of_the_same_discovery(settings: Settings, tmp_path: Path) -> None:
    place = Place(settings())
    got = OneShot(prefix_settings(SMALL), folds=2).measure(place)
    data, model = place.settings.dataset, place.settings.model
    rows = place.held_out(model)
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
    each = [place.score(model, place.explain(model, replace(prefix_settings(SMALL), seed=s))[0]) for s in (0, 1)]
    values = [part["rule_all"]["micro"]["precision"] for part in each]
    assert both["truth"]["rule_all"]["mean"]["micro"]["precision"] == pytest.approx(np.mean(values))
    assert both["truth"]["rule_all"]["sd"]["micro"]["precision"] == pytest.approx(np.std(values, ddof=1))
    assert both["runs"] == 2


def test_what_was_explained_before_is_not_explained_again(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    first = OneShot(prefix_settings(SMALL)).measure(Place(settings()))

    def never(*args: object, **kwargs: object) -> None:
        raise AssertionError("explained again")

    monkeypatch.setattr(place_module, "discover_folder", never)
    assert OneShot(prefix_settings(SMALL)).measure(Place(settings())) == first
    with pytest.raises(AssertionError, match="again"):  # another commit may give other results
        OneShot(prefix_settings(SMALL)).measure(Place(settings(commit="another")))


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


def test_every_threshold_is_discover_at_that_threshold(settings: Settings) -> None:
    place = Place(settings())
    model = place.settings.model
    found, seconds = explain_at_thresholds(place, model, SMALL, (0.5, 2.0), seed=3)
    assert seconds > 0
    for k, explained in found.items():
        config = replace(prefix_settings(replace(SMALL, threshold=k)), seed=3)
        wanted, _ = place.explain(model, config)
        assert explained.pairs == wanted.pairs
        for truth in ("why", "rule_all"):
            assert explained.found(truth) == wanted.found(truth)
    assert found[0.5].found("rule_all") != found[2.0].found("rule_all")


def test_sequences_not_longer_than_c_find_nothing_at_any_threshold(settings: Settings) -> None:
    place = Place(settings())
    found, _ = explain_at_thresholds(place, place.settings.model, replace(SMALL, context=500), (0.5,), seed=0)
    assert found[0.5].pairs
    assert not found[0.5].accepted


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
        scored = place.score(place.settings.model, explained)
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
    assert got["truth"]["why"]["mean"]["weighted"] == place.score(place.settings.model, explained)["why"]["weighted"]
    assert got["settings"]["estimator"] == "fused"
    assert str(folder) not in str(got)  # no place of this machine in what is published


def test_a_classical_row_learns_from_training_sequences_only(settings: Settings) -> None:
    place = Place(settings())
    model = place.settings.model
    assert not set(place.training_rows(model)) & set(place.held_out(model))
    got = Classical(BaselineConfig("iamb"), folds=2).measure(place)
    assert got["learnt_from"] == len(place.training_rows(model))
    assert got["incomplete_labels"] == 0
    assert got["truth"]["rule_all"]["mean"]["weighted"]["precision"] > 0.5  # the demo's rules are easy to see in counts
    assert got["whole_boundary"]["weighted"]["recall"] >= got["truth"]["rule_all"]["mean"]["weighted"]["recall"] - 0.2


def test_model_figures(settings: Settings) -> None:
    model = settings().model
    figures = model_figures(model)
    assert (figures["preset"], figures["min_context"]) == ("tiny", 15)
    from safetensors.numpy import load_file

    assert figures["weights"] == sum(part.size for part in load_file(model / "model.safetensors").values())
    assert figures["tokens"] > 0


def test_a_dataset_without_held_out_sequences_is_refused(settings: Settings, ready: Any, tmp_path: Path) -> None:
    from oscar_causal.data.select import Selection, select_sequences

    place = Place(settings())
    seen = place.data.take(place.training_rows(ready.model)[:5]).sequence_ids.to_pylist()
    select_sequences(ready.fleet, tmp_path / "seen", Selection(ids=tuple(seen)))
    with pytest.raises(UsageError, match="held-out"):
        OneShot(prefix_settings(SMALL)).measure(Place(settings(dataset=tmp_path / "seen")))
