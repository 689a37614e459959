"""Counts before and after a run: nothing is dropped without being counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oscar_causal.density.folds import load_models
from oscar_causal.density.memory import FREE_SHARE, GIB, TOKENS_PER_PASS, free_bytes
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.local import discover_folder
from oscar_causal.discovery.oneshot import DiscoveryConfig
from oscar_causal.discovery.prefix import PrefixConfig, least_positions, threshold
from oscar_causal.discovery.results import read_run, read_table
from oscar_causal.discovery.survey import memory_words, plan_memory, survey
from oscar_causal.errors import UsageError
from oscar_causal.verbs.discover import count_words, threshold_words

CONFIG = DiscoveryConfig(intervention=InterventionConfig(contexts=16, redraws=99))


def test_a_survey_counts_what_the_maker_of_the_data_counted(toy: Any) -> None:
    found = survey(toy.fleet, np.arange(30), load_models(toy.model), CONFIG)
    assert (found.sequences, found.longest) == (30, 32)
    for name in ("shorter_than_c", "cut", "cut_events", "unknown_events", "unknown_labels"):
        assert getattr(found, name) == toy.counts[name] > 0, name


def test_only_the_chosen_sequences_count(toy: Any) -> None:
    models = load_models(toy.model)
    parts = [survey(toy.fleet, np.array(rows), models, CONFIG) for rows in ([0, 7, 29], list(range(30)))]
    rest = survey(toy.fleet, np.array([i for i in range(30) if i not in (0, 7, 29)]), models, CONFIG)
    for name in ("sequences", "shorter_than_c", "cut", "cut_events", "unknown_events", "unknown_labels"):
        assert getattr(parts[0], name) + getattr(rest, name) == getattr(parts[1], name)
    assert survey(toy.fleet, np.array([0]), models, CONFIG).longest == 4


def test_for_prefix_c_is_its_own(toy: Any) -> None:
    models = load_models(toy.model)
    config = DiscoveryConfig(estimator="prefix", prefix=PrefixConfig(context=15))
    lengths = [4, 45, *np.random.default_rng(7).integers(6, 40, 28).tolist()]
    assert survey(toy.fleet, np.arange(30), models, config).shorter_than_c == sum(n <= 15 for n in lengths)


@pytest.mark.parametrize("k", [0.5, 1.0, 2.75, 4.0])
def test_fewer_positions_than_least_never_pass_the_threshold_and_that_many_can(k: float) -> None:
    """One number that stands out from equal ones is as far from the mean as any can be."""
    can = [n for n in range(2, 40) if (np.eye(n)[:, :1] > threshold(np.eye(n)[:, :1], k)).any()]
    assert can == list(range(least_positions(k), 40))


def test_sequences_in_which_no_position_can_pass_are_counted_and_told_once(toy: Any) -> None:
    models = load_models(toy.model)
    lengths = np.minimum([4, 45, *np.random.default_rng(7).integers(6, 40, 28).tolist()], 32)
    config = DiscoveryConfig(estimator="prefix", prefix=PrefixConfig(context=15))
    found = survey(toy.fleet, np.arange(30), models, config)
    assert found.no_position_passes == sum(0 < n - 15 < 10 for n in lengths) > 0
    assert survey(toy.fleet, np.arange(30), models, CONFIG).no_position_passes == 0
    (told,) = threshold_words(found.no_position_passes)
    assert told.startswith(f"{found.no_position_passes} sequences")
    assert "--threshold" in told
    assert not threshold_words(0)
    assert f"{toy.counts['cut_events']} oldest events cut off" in count_words(found.counts(3), {})


def test_a_run_records_what_became_of_every_sequence(toy: Any, tmp_path: Path) -> None:
    run = discover_folder(toy.model, toy.fleet, tmp_path / "r", CONFIG)
    counts = read_run(tmp_path / "r")["counts"]
    assert counts == run["counts"]
    assert counts["sequences"] == counts["explained"] + counts["without_labels"] == 30
    assert {name: counts[name] for name in toy.counts} == toy.counts
    verdicts = read_table(tmp_path / "r", "verdicts").to_pylist()
    assert len({row["sequence_id"] for row in verdicts}) == counts["explained"]
    short = [row for row in verdicts if row["sequence_id"] == "car 0"]
    assert short
    assert all("shorter than the model's c = 5 events" in row["flags"] for row in short)


# --- memory ---


def test_the_plan_follows_from_the_cap(toy: Any) -> None:
    models = [load_models(toy.model)]
    seen = survey(toy.fleet, np.arange(30), models[0], CONFIG)

    def go(**options: Any) -> Any:
        return plan_memory(models, seen, CONFIG, **{"device": "cpu", "gib": None, "processes": 1, **options})

    usual, cap = go()
    assert usual.tokens_per_pass == TOKENS_PER_PASS["cpu"]
    assert cap == pytest.approx(FREE_SHARE * free_bytes("cpu"), rel=0.2)
    assert go(gib=2.0)[1] == 2 * GIB
    assert go(gib=2.0, processes=4)[1] == 2 * GIB  # for one process: their number changes no piece
    assert go(processes=4)[1] == pytest.approx(FREE_SHARE * free_bytes("cpu") / 4, rel=0.2)
    tight, _ = go(gib=0.6 * usual.total / GIB)
    assert tight.tokens_per_pass < usual.tokens_per_pass
    for odd in (0.0, -1.0, float("nan"), 1e-6):
        with pytest.raises(UsageError, match="--memory"):
            go(gib=odd)
    assert "tokens at a time" in memory_words({**usual.to_json(), "cap_gib": None})


def test_every_model_has_weights(toy: Any) -> None:
    one, two = load_models(toy.model), load_models(toy.folds)
    seen = survey(toy.fleet, np.arange(30), one, CONFIG)
    options: dict[str, Any] = {"device": "cpu", "gib": 1.0, "processes": 1}
    alone = plan_memory([one], seen, CONFIG, **options)[0].weights
    assert alone == sum(weights.numel() * 4 for weights in one.models[0].network.parameters())
    assert plan_memory([one, two], seen, CONFIG, **options)[0].weights == 3 * alone


def test_a_sequence_takes_no_more_than_estimated() -> None:
    """The replacement law of a large vocabulary, all contexts, slopes: against the allocations that torch reports."""
    from torch.profiler import ProfilerActivity, profile

    from oscar_causal.data.sequences import from_records
    from oscar_causal.data.vocabulary import Vocabulary
    from oscar_causal.density.memory import Work
    from oscar_causal.density.model import OscarModel
    from oscar_causal.density.transformer import Network, NetworkConfig
    from oscar_causal.discovery.oneshot import discover

    shape = NetworkConfig(events=20_003, labels=2, width=32, heads=2, layers=1, hidden=48)
    names = Vocabulary(tuple(f"E{k}" for k in range(20_000)), ("x", "y"))
    model = OscarModel(Network(shape).eval().requires_grad_(False), names, (), max_length=64, min_context=1)
    events = [f"E{37 * k}" for k in range(60)]
    data = from_records([{"sequence_id": "a", "events": events, "times": list(range(60)), "labels": ["x", "y"]}])
    list(discover(model, data, CONFIG))
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        list(discover(model, data, CONFIG))
    total = peak = 0
    for event in record.profiler.kineto_results.events():
        if event.name() == "[memory]":
            total += event.nbytes()
            peak = max(peak, total)
    estimate = Work(shape, weights=0, length=60, contexts=16, sloped=1).estimate(8192)
    assert 0.5 * estimate.total < peak < estimate.total
