"""Flags that tell a reader to be careful are set where there is reason to, and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch

from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.data.vocabulary import SPECIAL_IDS
from oscar_causal.density.interface import Contexts
from oscar_causal.discovery.boundary import Boundary, EventEvidence
from oscar_causal.discovery.intervention import TIE_FLAG, InterventionConfig, _turning
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.discovery.prefix import PrefixConfig

TIED = [0, 0, *range(1, 11)]
"""The first two of twelve events share a timestamp."""


def sequence(events: int, times: list[int] | None = None) -> Dataset:
    names = [f"e{k}" for k in range(events)]
    record = {"sequence_id": "s", "events": names, "times": times or list(range(events)), "labels": ["fault"]}
    return from_records([record])


def explained(model: Any, data: Dataset, config: DiscoveryConfig) -> Boundary:
    ((boundary,),) = discover(model, data, config)
    return boundary


@dataclass(frozen=True)
class FirstBeforeSecond:
    """P = 0.9 where e0 stands right before e1, else 0.1; all else as the model inside."""

    inner: Any
    max_length: int = 100
    min_context: int = 1

    @property
    def vocabulary(self) -> Any:
        return self.inner.vocabulary

    def event_probs(self, sequence: Contexts) -> torch.Tensor:
        return self.inner.event_probs(sequence)

    def label_probs(self, contexts: Contexts, labels: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        ids = contexts.event_ids - SPECIAL_IDS
        hit = ((ids[:, :-1] == 0) & (ids[:, 1:] == 1)).any(1)
        return torch.where(hit, 0.9, 0.1)[:, None, None].expand(-1, len(positions), len(labels))


def present(column: int) -> Any:
    return lambda found: np.where(found[:, [column]], 0.9, 0.1)


def test_order_inside_a_timestamp(workshop: Any) -> None:
    """Two random orders of two tied events: one of them turns the stored one in three of four sequences."""
    model = FirstBeforeSecond(workshop.response(20, present(0)))
    told = [TIE_FLAG in explained(model, sequence(12, TIED), DiscoveryConfig(seed=seed)).flags for seed in range(24)]
    low, high = scipy.stats.binom.ppf([1e-4, 1 - 1e-4], 24, 0.75)
    assert low <= sum(told) <= high


@pytest.mark.parametrize("case", ["no ties", "order is nothing to the model", "ties are kept as stored"])
def test_where_the_order_cannot_matter_nothing_is_said(workshop: Any, case: str) -> None:
    sets = workshop.response(20, present(0))
    model = sets if case == "order is nothing to the model" else FirstBeforeSecond(sets)
    data = sequence(12) if case == "no ties" else sequence(12, TIED)
    settings = InterventionConfig(shuffle_ties=case != "ties are kept as stored")
    for seed in range(6):
        config = DiscoveryConfig(intervention=settings, seed=seed)
        assert TIE_FLAG not in explained(model, data, config).flags


def turning(found: np.ndarray) -> np.ndarray:
    """e0 raises P while e1 to e4 are all there, and lowers it as soon as one of them is gone."""
    helped = found[:, 1:5].all(1)
    return np.where(found[:, 0] == helped, 0.9, 0.1)[:, None]


def test_a_direction_that_depends_on_the_context(workshop: Any) -> None:
    model = workshop.response(40, turning)
    flagged = 0
    for seed in range(6):
        config = DiscoveryConfig(intervention=InterventionConfig(contexts=256), seed=seed)
        boundary = explained(model, sequence(10), config)
        turned = [cause.event for cause in boundary.causes if (cause.verdict == "cause") != (cause.effect > 0)]
        told = [flag for flag in boundary.flags if "depends on the context" in flag]
        assert told == [f"the direction of {event} depends on the context" for event in turned]
        flagged += len(told)
    assert flagged


@pytest.mark.parametrize(
    ("verdict", "effect", "turned"),
    [("cause", -0.1, True), ("cause", 0.1, False), ("inhibitor", 0.1, True), ("inhibitor", -0.1, False),
     ("no effect", 0.1, False)],
)  # fmt: skip
def test_a_mean_effect_against_the_verdict_turns(verdict: Any, effect: float, turned: bool) -> None:
    assert (_turning(EventEvidence("A", (0,), verdict, effect)) is not None) == turned


@pytest.mark.parametrize("events", [5, 11, 12, 13])
def test_few_positions_for_a_threshold(workshop: Any, events: int) -> None:
    """After c = 2 events fewer than ten are left in the first two sequences."""
    config = DiscoveryConfig(estimator="prefix", prefix=PrefixConfig(context=2, contexts=4))
    flags = explained(workshop.response(20, present(3)), sequence(events), config).flags
    told = [flag for flag in flags if flag.startswith("only ")]
    assert told == ([f"only {events - 2} positions to set a threshold on"] if events - 2 < 10 else [])


def test_a_channel_that_the_data_lacks(workshop: Any) -> None:
    class Reads(type(workshop.response(5, present(0)))):  # type: ignore[misc]
        channels = ("mileage", "speed")

    inner = workshop.response(20, present(0))
    model = Reads(inner.vocabulary, inner.answer)
    bare = sequence(8)
    assert {"channel mileage missing", "channel speed missing"} <= set(explained(model, bare, DiscoveryConfig()).flags)
    record = {
        "sequence_id": "s",
        "events": ["e0", "e1"],
        "times": [0, 1],
        "mileage": [1.0, None],
        "labels": ["fault"],
    }
    flags = explained(model, from_records([record]), DiscoveryConfig()).flags
    assert [flag for flag in flags if "missing" in flag] == ["channel speed missing"]
