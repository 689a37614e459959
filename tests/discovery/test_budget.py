"""`contexts` is a cap: with ties, with several labels, with slopes and with all of them; what is spent is reported."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from oscar_causal.data.sequences import from_records
from oscar_causal.density.interface import Contexts
from oscar_causal.density.slopes import PASSES
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover


def answers(labels: int) -> Any:
    """Label j hangs on events 2j and 2j + 1."""
    return lambda present: np.stack(
        [np.where(present[:, [2 * j, 2 * j + 1]].all(1), 0.95, 0.03) for j in range(labels)], axis=1
    )


@dataclass(frozen=True)
class WithSlopes:
    """A model that can be differentiated, and counts what that costs: a pass forward and back is worth three."""

    inner: Any
    sloped: list[int]
    max_length: int = 100
    min_context: int = 1

    @property
    def vocabulary(self) -> Any:
        return self.inner.vocabulary

    def event_probs(self, sequence: Contexts) -> torch.Tensor:
        return self.inner.event_probs(sequence)

    def label_probs(self, *question: Any) -> torch.Tensor:
        return self.inner.label_probs(*question)

    def label_slopes(self, sequence: Contexts, labels: torch.Tensor, law: torch.Tensor, shares: Any) -> torch.Tensor:
        self.sloped.append(PASSES * len(labels) * len(shares))
        slopes = torch.zeros(len(shares), sequence.event_ids.shape[1], len(labels))
        slopes[:, :6] = 1.0
        return slopes


@pytest.mark.parametrize("contexts", [16, 40, 100])
@pytest.mark.parametrize(("tied", "labels", "slopes"), list(product([False, True], [1, 3], [False, True])))
def test_the_cap_is_kept(workshop: Any, contexts: int, tied: bool, labels: int, slopes: bool) -> None:
    names = tuple(f"label {j}" for j in range(labels))
    counted = workshop.response(60, answers(labels), names)
    model = WithSlopes(counted, []) if slopes else counted
    events = [f"e{k}" for k in range(24)]
    times = [k // 3 if tied else k for k in range(24)]
    data = from_records([{"sequence_id": "s", "events": events, "times": times, "labels": list(names)}])
    (found,) = discover(model, data, DiscoveryConfig(intervention=InterventionConfig(contexts=contexts, redraws=99)))
    spent = sum(len(ids) for ids in counted.asked) + (sum(model.sloped) if slopes else 0)
    assert {item.contexts for item in found} == {spent}
    assert spent <= contexts
    if slopes and contexts == 100:  # or nothing was tried
        assert found[0].ranked_by == "slopes"
