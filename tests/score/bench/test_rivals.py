"""Cuts are chosen on other subjects' sequences; rows say what the method did; the table holds all of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oscar_causal.density.folds import load_models
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.local import unseen_indices
from oscar_causal.discovery.oneshot import discover
from oscar_causal.errors import UsageError
from oscar_causal.score.bench import rivals
from oscar_causal.score.bench.estimators import intervention_settings
from oscar_causal.score.bench.perturbations import LeaveOneOut
from oscar_causal.score.bench.place import Place, observed_pairs
from oscar_causal.score.bench.ratings import Case, Cut, Rated, Ratings, best_cut, case_of, f1_of
from oscar_causal.score.bench.rivals import BENCH, Counted, Rival, validation_part, validation_rows
from oscar_causal.score.matching import truth_of

Settings = Callable[..., Any]


@dataclass(frozen=True)
class Knowing:
    """Rates the true causes 1 and, if it is no good, everything else too."""

    truth: Any
    good: bool

    def rate(self, case: Case) -> Ratings:
        vocabulary, rows = case.model.vocabulary, []
        for label in case.labels:
            causes = self.truth.get((case.subject.sequence_id, vocabulary.labels[int(label)]), frozenset())
            rows.append([vocabulary.name(int(t)) in causes or not self.good for t in case.subject.types])
        return Ratings(np.array(rows, float).T, 7)


def truth_of_fleet(place: Place) -> Any:
    return truth_of(place.data, observed_pairs(place.data))["why"]


def test_validation_sequences_are_unseen_and_of_other_subjects(settings: Settings) -> None:
    place = Place(settings())
    model = place.settings.model
    rows = validation_rows(place)
    assert len(rows)
    assert set(rows.tolist()) <= set(unseen_indices(model, place.fleet).tolist())
    chosen = set(place.data.take(rows).subject_ids.to_pylist())
    assert not chosen & set(place.part.data.subject_ids.to_pylist())


def test_without_sequences_to_choose_cuts_on_it_refuses(settings: Settings) -> None:
    place = Place(settings(test=5000))
    with pytest.raises(UsageError, match="--test"):
        validation_part(place)


def test_the_variant_that_is_best_on_validation_is_taken(settings: Settings) -> None:
    place = Place(settings())
    truth = truth_of_fleet(place)
    row = Rival((Knowing(truth, good=False), Knowing(truth, good=True)))
    figures = row.measure(place)
    assert figures["settings"]["good"] is True
    assert figures["validation_f1"] == 1.0
    assert figures["passes"] == 7
    assert figures["truth"]["why"]["mean"]["sample"]["f1_of_means"] == pytest.approx(1.0)
    bad = Rival((Knowing(truth, good=False),)).measure(place)
    assert bad["truth"]["why"]["mean"]["sample"]["precision"] < 0.3
    assert bad["truth"]["why"]["mean"]["sample"]["recall"] == pytest.approx(1.0)


def test_the_best_cut_is_the_best_of_all_cuts() -> None:
    rng = np.random.default_rng(0)
    events = tuple("abcdefgh")
    rated = [Rated((str(n), "y"), events, rng.normal(size=8)) for n in range(30)]
    truth = {item.pair: frozenset(e for e, s in zip(events, item.scores, strict=True) if s > 0.8) for item in rated}
    cut, f1 = best_cut(rated, truth)
    assert cut.kind == "number"
    assert cut.at == pytest.approx(0.8, abs=0.15)
    every = np.sort(np.concatenate([item.scores for item in rated]))
    most = max(f1_of(Cut("number", float(at)).explain(rated), truth) for at in every if at > 0)
    assert f1 >= most - 0.05
    assert f1 == f1_of(cut.explain(rated), truth)


def test_relative_cuts_win_where_pairs_have_different_scales() -> None:
    scales = np.geomspace(0.01, 100, 20)
    rated = [Rated((str(n), "y"), ("a", "b", "c"), scale * np.array([1.0, 0.8, 0.3])) for n, scale in enumerate(scales)]
    cut, f1 = best_cut(rated, {item.pair: frozenset("ab") for item in rated})
    assert cut.kind == "share"
    assert 0.3 < cut.at <= 0.8
    assert f1 == 1.0


def test_ratings_of_nothing_accept_nothing() -> None:
    rated = [Rated(("1", "y"), ("a", "b"), np.array([0.0, -1.0]))]
    cut, f1 = best_cut(rated, {("1", "y"): frozenset("a")})
    assert not cut.explain(rated).accepted
    assert f1 == 0.0


def test_occurrences_of_a_type_are_added_up(settings: Settings) -> None:
    place = Place(settings())
    case = case_of(load_models(place.settings.model), place.data, 0, seed=0)
    by_position = np.arange(len(case.subject.event_ids), dtype=float)[:, None]
    found = case.by_type(by_position)
    for k, t in enumerate(case.subject.types):
        assert found[k, 0] == np.flatnonzero(case.subject.event_ids == t).sum()


def test_counted_passes_are_the_contexts_spent(settings: Settings) -> None:
    place = Place(settings())
    config = intervention_settings(InterventionConfig(contexts=24))
    figures = Counted(config, folds=2).measure(place)
    boundaries = discover(load_models(place.settings.model).models[0], place.part.data, config)
    assert figures["passes"] == np.mean([found[0].contexts for found in boundaries])
    assert 0 < figures["passes"] <= 24


def test_the_bench_writes_table_and_plot(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rivals, "VALIDATION", 6)
    found = BENCH(settings(rows="input x gradient,leave-one-out,prefix, prefix"))
    text = Path(found["files"]["md"]).read_text()
    assert "| input x gradient | " in text
    assert "| leave-one-out | " in text
    assert text.index("| leave-one-out |") < text.index("| prefix |")
    assert Path(found["files"]["png"]).stat().st_size > 1000
    row = found["rows"]["leave-one-out"]
    assert row["settings"]["method"] == LeaveOneOut.__name__
    assert row["validation_sequences"] == 6
    again = BENCH(settings(rows="leave-one-out"))["rows"]["leave-one-out"]
    assert {**row, "seconds": 0, "provenance": 0} == {**again, "seconds": 0, "provenance": 0}
