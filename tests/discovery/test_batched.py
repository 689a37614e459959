"""Many sequences at once: what a loop over them gives, in any order, company and number."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.density.checkpoint import load_model
from oscar_causal.density.folds import MeanModel, load_models
from oscar_causal.density.interface import Contexts
from oscar_causal.density.model import OscarModel
from oscar_causal.discovery import batched
from oscar_causal.discovery.batched import explain_together
from oscar_causal.discovery.boundary import Boundary
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.local import discover_folder
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.discovery.prefix import PrefixConfig
from oscar_causal.errors import UsageError

CONFIGS = {
    "intervention": DiscoveryConfig(intervention=InterventionConfig(contexts=48)),
    "prefix": DiscoveryConfig(estimator="prefix", prefix=PrefixConfig(context=4, contexts=6)),
}


@pytest.fixture(scope="module")
def fleet(toy: Any) -> Dataset:
    return read_dataset(toy.fleet)


@pytest.fixture(scope="module")
def model(toy: Any) -> OscarModel:
    return load_model(toy.model)


@pytest.fixture(scope="module")
def fast(model: OscarModel) -> OscarModel:
    return model.compiled(torch.float32)


def verdicts(found: list[list[Boundary]]) -> list[tuple[str, str, str, str]]:
    return [
        (item.sequence_id, item.label, event.event, event.verdict)
        for boundaries in found
        for item in boundaries
        for event in item.evidence
    ]


@pytest.mark.parametrize("estimator", CONFIGS)
def test_verdicts_are_those_of_one_at_a_time(
    estimator: str, model: OscarModel, fast: OscarModel, fleet: Dataset
) -> None:
    one, many = (list(discover(part, fleet, CONFIGS[estimator])) for part in (model, fast))
    assert verdicts(one) == verdicts(many)
    assert any(event.accepted for found in one for item in found for event in item.evidence)
    for first, second in zip(one, many, strict=True):
        assert [item.probability for item in first] == pytest.approx([item.probability for item in second], abs=1e-5)


@pytest.mark.bits
@pytest.mark.parametrize("estimator", CONFIGS)
def test_company_order_and_number_change_no_bit(
    estimator: str, fast: OscarModel, fleet: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = list(discover(fast, fleet, CONFIGS[estimator]))
    some = [17, 3, 1, 28]
    assert list(discover(fast, fleet, CONFIGS[estimator], indices=some)) == [every[k] for k in some]
    monkeypatch.setattr(batched, "IN_FLIGHT", 3)
    monkeypatch.setattr(batched, "MOST_IN_FLIGHT", 3)
    assert list(discover(fast, fleet, CONFIGS[estimator])) == every


def test_other_models_and_means_are_asked_too(toy: Any, fast: OscarModel, fleet: Dataset) -> None:
    config = CONFIGS["prefix"]
    other, folds = load_model(toy.other), load_models(toy.folds)
    plain = list(discover(load_model(toy.model), fleet, config, also=[other]))
    assert verdicts(plain) == verdicts(list(discover(fast, fleet, config, also=[other.compiled(torch.float32)])))
    mean = folds.compiled(torch.float32).mean
    assert isinstance(mean, MeanModel)
    assert verdicts(list(discover(folds.mean, fleet, config))) == verdicts(list(discover(mean, fleet, config)))


@pytest.mark.bits
def test_questions_of_waiting_threads_are_answered_together(
    fast: OscarModel, fleet: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    answer = batched._answer

    def counted(model: OscarModel, kind: str, questions: list[Any]) -> list[torch.Tensor]:
        sizes.append(len(questions))
        return answer(model, kind, questions)

    monkeypatch.setattr(batched, "_answer", counted)
    list(discover(fast, fleet, CONFIGS["prefix"]))
    assert max(sizes) >= 10  # two thirds of the thirty sequences have a label to explain
    assert sum(sizes) > 2 * len(sizes)


def test_the_first_failure_by_place_ends_the_work(fast: OscarModel) -> None:
    sequence = Contexts(torch.tensor([[5, 6, 7]]), torch.arange(3).double(), torch.zeros(3, 0))
    begun: list[int] = []

    def explain(models: Any, item: int) -> float:
        begun.append(item)
        models[0].event_probs(sequence)
        if item in (2, 4):
            time.sleep(0.05 * (4 - item))
            raise ValueError(f"item {item}")
        return float(item)

    with pytest.raises(ValueError, match="item 2"):
        explain_together(explain, [fast], range(6), in_flight=6)
    assert threading.active_count() < 6  # nobody is left waiting
    begun.clear()
    with pytest.raises(ValueError, match="item 2"):
        explain_together(explain, [fast], range(100), in_flight=2)
    assert len(begun) < 10
    assert explain_together(explain, [fast], [7, 5], in_flight=4) == [7.0, 5.0]
    assert explain_together(explain, [fast], [], in_flight=4) == []


def test_an_error_of_the_model_reaches_every_thread_that_asked(fast: OscarModel) -> None:
    broken = Contexts(torch.tensor([[10_000]]), torch.zeros(1).double(), torch.zeros(1, 0))

    def explain(models: Any, item: int) -> Any:
        return models[0].event_probs(broken)

    with pytest.raises(IndexError):
        explain_together(explain, [fast], range(3), in_flight=3)


def test_memory_that_was_short_is_flagged(fast: OscarModel, fleet: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    from oscar_causal.density import compiled

    run = compiled.Launch.run

    def scarce(self: compiled.Launch) -> torch.Tensor:
        if self.kind == "end" and len(self.asked) > 20:
            raise torch.OutOfMemoryError("no room")
        return run(self)

    monkeypatch.setattr(compiled.Launch, "run", scarce)
    found = list(discover(fast, fleet, CONFIGS["intervention"], indices=range(10)))
    flags = [flag for boundaries in found for item in boundaries for flag in item.flags]
    assert any(flag.startswith("memory was short") for flag in flags)


@pytest.mark.parametrize(("precision", "device"), [("bf16", "cpu"), ("fp8", "cpu")])
def test_half_precision_is_for_gpus(toy: Any, tmp_path: Path, precision: str, device: str) -> None:
    with pytest.raises(UsageError, match=f"--precision.*{precision}"):
        discover_folder(toy.model, toy.fleet, tmp_path / "out", device=device, precision=precision)
    assert not (tmp_path / "out").exists()
