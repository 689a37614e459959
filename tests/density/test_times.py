"""Laws of time: their numbers against scipy, and what is said of them against a count by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import torch

from oscar_causal.data.sequences import from_records
from oscar_causal.data.vocabulary import build_vocabulary
from oscar_causal.density.model import OscarModel, sequence_contexts
from oscar_causal.density.times import TimeLaw, judge_times, next_times, outcome_times
from oscar_causal.density.transformer import Network, NetworkConfig


def test_quantiles_and_densities_are_those_of_a_shifted_lognormal() -> None:
    law = TimeLaw(np.array([3.0, 7.0]), np.array([0.4, 1.5]))
    for k, (mean, scale) in enumerate(zip(law.mean, law.scale, strict=True)):
        twin = scipy.stats.lognorm(scale, loc=-1, scale=np.exp(mean))
        for level in (0.05, 0.5, 0.95):
            assert law.quantile(level)[k] == pytest.approx(max(twin.ppf(level), 0.0))
        seconds = 500.0  # the density of log(1 + t) is that of t times 1 + t
        assert law.log_density(np.full(2, seconds))[k] == pytest.approx(twin.logpdf(seconds) + np.log1p(seconds))


@pytest.fixture(scope="module")
def told() -> tuple[OscarModel, list[dict[str, list[float]]]]:
    """A model with one law for all places, log(1 + t) ~ N(4, 0.5), and sequences with gaps and outcomes."""
    rng, records = np.random.default_rng(0), []
    for k in range(30):
        times = np.cumsum(np.expm1(rng.normal(4, 0.5, 6)).clip(0)).tolist()
        late = times[-1] + 100.0
        records.append(
            {
                "sequence_id": f"s{k}",
                "events": [f"e{j}" for j in rng.integers(0, 5, 6)],
                "times": times,
                "labels": ["y"] if k % 2 else [],
                "label_times": [late] if k % 2 else [],
            }
        )
    vocabulary = build_vocabulary(from_records(records))
    network = Network(NetworkConfig(vocabulary.size, 1, width=16, heads=2, layers=1, hidden=16)).eval()
    with torch.no_grad():
        for head in (network.gap_head, network.outcome_head):
            head.weight.zero_()
            head.bias.copy_(torch.tensor([4.0, float(np.log(np.expm1(0.45)))]))
    return OscarModel(network.requires_grad_(False), vocabulary, (), max_length=64, min_context=2), records


def test_one_law_for_all_places(told: tuple[OscarModel, list[dict[str, list[float]]]]) -> None:
    model, records = told
    sequence = sequence_contexts(model.encode(from_records(records)), 1)
    for law in (next_times(model, sequence), outcome_times(model, sequence)):
        assert law.mean == pytest.approx(np.full(6, 4.0), abs=1e-5)
        assert law.scale == pytest.approx(np.full(6, 0.5), abs=1e-5)


def test_coverage_and_gain_are_those_counted_by_hand(told: tuple[OscarModel, list[dict[str, list[float]]]]) -> None:
    model, records = told
    found = judge_times(model, model.encode(from_records(records)), np.arange(30))
    gaps = np.concatenate([np.diff(r["times"]) for r in records])
    left = np.concatenate([[r["label_times"][0] - t for t in r["times"][1:]] for r in records if r["labels"]])
    for name, seconds in (("next_event", gaps), ("outcome", left)):
        logs = np.log1p(seconds)
        inside = np.abs(logs - 4) <= scipy.stats.norm.ppf(0.95) * 0.5
        gain = scipy.stats.norm.logpdf(logs, 4, 0.5) - scipy.stats.norm.logpdf(logs, logs.mean(), logs.std())
        assert found[name]["count"] == len(seconds)
        assert found[name]["coverage"] == pytest.approx(inside.mean(), abs=1e-6)
        assert found[name]["gain"] == pytest.approx(gain.mean(), abs=1e-3)
