"""Close looks at sampled sequences: which are chosen, and that company changes no count."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
import torch

from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.density.folds import load_models
from oscar_causal.discovery.evidence import empty_evidence, merge
from oscar_causal.discovery.fleet_prior import fit_prior
from oscar_causal.discovery.fused import FusedConfig
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.graph.calibration import Calibration, calibrate, choose_sequences

HOW = Calibration(fit_prior(empty_evidence()), (InterventionConfig(contexts=22), FusedConfig(looks=6)))


def test_chosen_are_unseen_sequences_first_with_all_labels_that_may_have_come() -> None:
    rows = [
        {"sequence_id": f"s{k}", "label": label, "seen_in_training": k < 6, "observed": observed}
        for k in range(10)
        for label, observed in (("y", True), ("z", None), ("absent", False))
    ]
    chosen = choose_sequences(pa.Table.from_pylist(rows), 3)
    assert len(chosen) == 3
    assert set(chosen) <= {"s6", "s7", "s8", "s9"}
    assert all(labels == ["y", "z"] for labels in chosen.values())
    assert len(choose_sequences(pa.Table.from_pylist(rows), 100)) == 10


@pytest.fixture(scope="module")
def fleet(toy: Any) -> Dataset:
    return read_dataset(toy.fleet)


@pytest.mark.bits
@pytest.mark.parametrize("place", ["model", "folds"])
def test_looks_alone_and_together_give_the_same_counts(toy: Any, fleet: Dataset, place: str) -> None:
    """Also for labels that nobody recorded: what to look at is told, not read off the dataset."""
    models = load_models(getattr(toy, place))
    label = models.vocabulary.labels[0]
    chosen = {fleet.sequence_ids[k].as_py(): [label] for k in range(2)}
    one = calibrate(models, fleet, chosen, HOW)
    assert len(one.cells)
    assert set(one.cells["label"].to_pylist()) == {label}
    fast = models.compiled(torch.float32)
    assert calibrate(fast, fleet, chosen, HOW) == one
    assert merge([calibrate(fast, fleet, {name: labels}, HOW) for name, labels in chosen.items()]) == one
