"""`TrainConfig.balance`: rare labels are learnt sooner, probabilities stay those of the data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.density.checkpoint import load_model
from oscar_causal.density.fitting import train
from oscar_causal.density.settings import preset_config
from oscar_causal.errors import UsageError


def rare_faults(count: int = 600) -> Dataset:
    """One sequence in twenty has event A; six in ten of those get the fault."""
    rng = np.random.default_rng(0)
    records = []
    for k in range(count):
        events = [f"e{j}" for j in rng.integers(0, 12, 10)]
        if rng.random() < 0.05:
            events[int(rng.integers(0, 10))] = "A"
        fault = "A" in events and rng.random() < 0.6
        labels = ["fault"] if fault else (["other"] if rng.random() < 0.5 else [])
        records.append({"sequence_id": f"s{k}", "events": events, "times": list(range(10)), "labels": labels})
    return from_records(records)


@pytest.mark.parametrize("balance", [0.0, 0.7])
def test_probabilities_stay_those_of_the_data(tmp_path: Path, balance: float) -> None:
    data = rare_faults()
    config = preset_config("tiny", steps=60, batch_tokens=2048, min_context=2, balance=balance, evaluations=1)
    train(data, tmp_path / "m", config)
    model = load_model(tmp_path / "m")
    encoded, label = model.encode(data), model.vocabulary.labels.index("fault")
    chances = model.last_label_logits(encoded, np.arange(len(data)))[:, label].sigmoid().numpy()
    seen = np.array([label in encoded.labels[k] for k in range(len(data))])
    assert chances.mean() == pytest.approx(seen.mean(), abs=0.02)
    assert chances[seen].mean() > 3 * chances[~seen].mean()


def test_it_does_not_go_with_lost_labels() -> None:
    with pytest.raises(UsageError, match="balance"):
        preset_config("tiny", balance=0.5, lost_labels=0.1)
