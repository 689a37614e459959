"""Does half precision change verdicts? The same contexts scored twice, beside two seeds in one precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from oscar_causal.data.sequences import Dataset
from oscar_causal.density.checkpoint import load_model
from oscar_causal.density.model import OscarModel
from oscar_causal.density.precision import float32_products
from oscar_causal.discovery.local import unseen_indices
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.score.bench.place import Place, ShowProgress
from oscar_causal.score.bench.settings import BenchSettings

Accepted = frozenset[tuple[str, str, str, str]]
"""(sequence, label, event, verdict) of what was accepted."""


def measure_agreement(settings: BenchSettings, show: ShowProgress) -> Iterator[dict[str, Any]]:
    """Share of the union of accepted events that two runs have in common: after one estimator, then after both.

    `precision`: single against half precision, same seed, same contexts. `seeds`: half precision, two seeds.
    """
    assert settings.model is not None  # noqa: S101
    model = load_model(settings.model, device=settings.device)
    half = torch.bfloat16 if settings.device.startswith("cuda") else torch.float16  # bfloat16 fails on some CPUs
    single, low = model.compiled(torch.float32), model.compiled(half)
    place = Place(settings, show)
    rows = unseen_indices(settings.model, place.fleet)
    data = place.data.take(rows[place.data.labels.lengths[rows] > 0][: settings.test])
    found: dict[str, Any] = {"half": str(half).removeprefix("torch."), "sequences": len(data)}
    for estimator in ("intervention", "prefix"):
        with show(f"agreement ({estimator})", "runs"), float32_products("highest"):
            exact = accepted_by(single, data, estimator, settings.seed)
            fast = accepted_by(low, data, estimator, settings.seed)
            other = accepted_by(low, data, estimator, settings.seed + 1)
        found[estimator] = {
            "precision": agreement(exact, fast),
            "seeds": agreement(fast, other),
            "union": len(exact | fast),
        }
        yield found


def accepted_by(model: OscarModel, data: Dataset, estimator: str, seed: int) -> Accepted:
    """What an estimator accepts with its usual settings."""
    config = DiscoveryConfig(estimator=estimator, seed=seed)
    boundaries = (item for found in discover(model, data, config) for item in found)
    return frozenset(
        (item.sequence_id, item.label, event.event, event.verdict) for item in boundaries for event in item.causes
    )


def agreement(first: frozenset[Any], second: frozenset[Any]) -> float:
    """Common share of the union; two empty sets agree.

    >>> agreement(frozenset("abc"), frozenset("bcd"))
    0.5
    """
    union = first | second
    return len(first & second) / len(union) if union else 1.0
