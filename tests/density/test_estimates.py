"""Memory plans of verbs: estimates stand beside measured peaks, pieces shrink only where a cap asks for it, and what is
cut in pieces learns the same.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from oscar_causal.data.batches import encode
from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.data.vocabulary import build_vocabulary
from oscar_causal.density import memory
from oscar_causal.density.checking import check
from oscar_causal.density.checkpoint import load_model, load_tensors
from oscar_causal.density.estimates import CheckWork, Plan, ReportWork, ServeWork, TrainPieces, TrainWork, weight_bytes
from oscar_causal.density.fitting import train
from oscar_causal.density.held_out import held_out_event_loss, held_out_label_losses
from oscar_causal.density.memory import GIB, Work, cap_bytes, free_bytes
from oscar_causal.density.objective import Objective
from oscar_causal.density.settings import SIZES, TrainConfig, preset_config
from oscar_causal.density.training import Trainer, make_optimizer
from oscar_causal.density.transformer import Network, NetworkConfig
from oscar_causal.errors import UsageError

CHILD = Path(__file__).with_name("memory_child.py")


def shape(events: int, labels: int) -> NetworkConfig:
    return NetworkConfig(events=events, labels=labels, **SIZES["tiny"])


def work(events: int, labels: int, *, length: int = 20, count: int = 600, tokens: int = 4096) -> TrainWork:
    return TrainWork(shape(events, labels), np.full(count, length), np.full(count // 10, length), tokens)


def drawn(count: int, length: int, types: int, labels: int) -> Dataset:
    rng = np.random.default_rng(0)
    return from_records(
        {
            "sequence_id": f"s{k}",
            "events": [f"e{v}" for v in rng.integers(0, types, length)],
            "times": (np.arange(length) * 60.0).tolist(),
            "labels": [f"y{v}" for v in {*rng.integers(0, labels, 4).tolist()}],
        }
        for k in range(count)
    )


# --- plans from sizes alone ---


def test_a_million_event_types_fit_with_fewer_logits_at_a_time() -> None:
    plan = work(1_000_003, 5, length=520, count=2000).plan(8 * GIB)
    assert plan.total <= 8 * GIB
    assert set(plan.pieces) == {"logits"}  # whole batches, as ever
    assert 12 * plan.pieces["logits"] * 1_000_003 < 4 * GIB < 12 * 4096 * 1_000_003
    assert "memory is short: next-event logits of" in plan.words()
    assert plan.to_json()["smaller"] == dict(plan.pieces)


def test_five_thousand_labels_fit_with_smaller_batches() -> None:
    usual, small = work(103, 5000).estimate(TrainPieces()), work(103, 5000).plan(6 * GIB)
    assert usual.total > 8 * GIB
    assert small.total <= 6 * GIB
    assert set(small.pieces) <= {"tokens", "held_out"}
    assert small.pieces["tokens"] in (2048, 1024, 512, 256)


def test_what_has_room_is_not_cut_and_pieces_are_as_large_as_they_can_be() -> None:
    sizes = work(2000, 300)
    roomy = sizes.estimate(TrainPieces())
    assert sizes.plan(roomy.total).pieces == {}
    for share in (0.9, 0.7, 0.5):
        plan = sizes.plan(share * roomy.total)
        assert plan.total <= share * roomy.total
        larger = {name: 2 * size for name, size in plan.pieces.items()}
        assert sizes.estimate(TrainPieces(**larger)).total > share * roomy.total


@pytest.mark.parametrize(("events", "labels"), [(1_000_003, 5), (103, 5000)])
def test_weights_that_do_not_fit_are_one_line(events: int, labels: int) -> None:
    with pytest.raises(UsageError) as told:
        work(events, labels).plan(GIB / 4)
    words = str(told.value)
    assert words.startswith("--memory: expected at least ")
    assert f"{events:,} event types and {labels:,} labels (weights " in words
    assert words.endswith("got 0.25")
    assert "\n" not in words


def test_steps_that_must_keep_their_shape_are_told_not_cut() -> None:
    sizes = replace(work(103, 5000), fixed=True)
    assert sizes.plan(4 * GIB).total > 4 * GIB
    assert sizes.plan(4 * GIB).pieces.keys() <= {"logits"}
    with pytest.raises(UsageError, match="--memory: expected at least"):
        sizes.plan(GIB)
    assert replace(work(1_000_003, 5), fixed=True).plan(8 * GIB).pieces.keys() == {"logits"}


def test_a_check_of_many_labels_has_smaller_passes_or_one_line() -> None:
    sizes = CheckWork(shape(103, 5000), GIB // 3, np.full(600, 20))
    small = sizes.plan(4 * GIB)
    assert small.pieces["tokens_per_pass"] < 8192
    assert sizes.plan(1e12).pieces == {}
    with pytest.raises(UsageError, match="expected at least .* for checking 600 sequences with 5,000 labels"):
        sizes.plan(GIB)


def test_a_service_has_smaller_passes_or_one_line() -> None:
    few, many = (ServeWork(Work(shape(103, labels), GIB // 3, 512, 512), 8192, GIB) for labels in (5, 5000))
    assert few.plan(4 * GIB, "cpu").pieces == {}
    assert many.plan(6 * GIB, "cpu").pieces["tokens_per_pass"] < 8192
    with pytest.raises(UsageError, match="for serving 103 event types and 5,000 labels .*dataset 1.00"):
        many.plan(2 * GIB, "cpu")


def test_a_page_is_estimated_from_the_rows_of_its_results() -> None:
    sizes = ReportWork(1000, 4000, 50_000, 5_000_000, shown=0.5, events=10_000, weights=7, dataset=11)
    plan = sizes.plan(GIB)
    assert (plan.parts["weights"], plan.parts["dataset"]) == (7, 11)
    assert replace(sizes, verdicts=10**6, causes=10**7).plan(1e12).total > 30 * GIB
    with pytest.raises(UsageError, match=r"1,000,000 explained pairs .* \(--limit shows fewer"):
        replace(sizes, verdicts=10**6, causes=10**7).plan(16 * GIB)


def test_weights_are_counted_without_making_them() -> None:
    network = Network(shape(500, 7))
    state = network.state_dict()
    assert weight_bytes(network.config) == sum(tensor.nbytes for tensor in state.values())
    parts = ("embedding.", "blocks.", "norm_", "bag.", "label_", "gap_", "outcome_", "shortlist.")
    assert weight_bytes(network.config) == sum(weight_bytes(network.config, part) for part in parts)


# --- caps ---


def test_the_address_space_that_ulimit_leaves_is_a_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    free = free_bytes("cpu")
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (used + GIB // 8, resource.RLIM_INFINITY))
    assert free_bytes("cpu") <= min(free, GIB // 8 + GIB // 64)  # the process may have grown or shrunk
    assert cap_bytes(4.0, "cpu") <= GIB // 8 + GIB // 64
    assert cap_bytes(None, "cpu") <= memory.FREE_SHARE * (GIB // 8 + GIB // 64)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert cap_bytes(4.0, "cpu") == 4 * GIB


@pytest.mark.parametrize("gib", [0.0, -1.0, float("nan")])
def test_a_cap_is_above_nothing(gib: float) -> None:
    with pytest.raises(UsageError, match="--memory: expected a number of GiB above 0"):
        cap_bytes(gib, "cpu")


# --- against what is really taken ---


@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        ((60, 20, 100, 3), {}),
        ((60, 20, 100, 1000), {}),
        ((60, 20, 20_000, 3), {}),
        ((8, 120, 100, 3), {"label_form": "cross"}),
    ],
)
def test_a_step_takes_about_what_is_estimated(
    sizes: tuple[int, ...], options: dict[str, Any], peak_bytes: Callable[[Any], int]
) -> None:
    """Against the allocations that torch itself reports."""
    data = drawn(*sizes)
    vocabulary = build_vocabulary(data, min_count=1)
    encoded, config = (
        encode(data, vocabulary, max_length=512),
        TrainConfig(batch_tokens=1024, min_context=15, **options),
    )
    network = Network(config.network(events=vocabulary.size, labels=len(vocabulary.labels), channels=0))
    lists = np.full((len(vocabulary.labels), SIZES["tiny"]["shortlist"]), vocabulary.size)
    lists[:, :2] = np.random.default_rng(1).integers(3, vocabulary.size, (len(lists), 2))
    trainer = Trainer(network, config, encoded, encoded, None, lists)
    objective, optimizer = Objective(network, config), make_optimizer(network, config)
    built = trainer._build(0, np.arange(1024 // (sizes[1] + 1)))
    taken = peak_bytes(lambda: trainer._update(objective, optimizer, *built))
    phases = TrainWork(network.config, encoded.events.lengths, encoded.events.lengths, 1024)._phases(TrainPieces())
    assert 0.7 < (sum(phases["step"].values()) + weight_bytes(network.config)) / taken < 2  # and the gradients
    looked = max(
        peak_bytes(lambda: held_out_label_losses(network, encoded, config)),
        peak_bytes(lambda: held_out_event_loss(network, encoded)),
    )
    assert 0.7 < sum(phases["look"].values()) / looked < 3


def test_processes_grow_by_about_what_is_estimated(tmp_path: Path) -> None:
    """Peak resident memory of processes of their own, from the plan to the end."""
    ran = subprocess.run(
        [sys.executable, CHILD, str(tmp_path)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    for verb, (estimated, grown) in json.loads(ran.stdout.splitlines()[-1]).items():
        assert 0.7 < estimated / grown < 2, (verb, estimated / GIB, grown / GIB)


# --- the same model ---


def test_gradients_of_micro_batches_add_up() -> None:
    data = drawn(40, 20, 50, 6)
    vocabulary = build_vocabulary(data, min_count=1)
    encoded, config = encode(data, vocabulary, max_length=512), TrainConfig(batch_tokens=420, hidden=0.5)
    grads: list[dict[str, torch.Tensor]] = []
    for pieces in (TrainPieces(), TrainPieces(tokens=100, logits=7)):
        torch.manual_seed(0)
        network = Network(config.network(events=vocabulary.size, labels=len(vocabulary.labels), channels=0))
        trainer = Trainer(network, config, encoded, encoded, None, pieces=pieces)
        objective = Objective(network, config, logits=pieces.logits)
        optimizer = torch.optim.SGD([{"params": list(network.parameters()), "peak": 0.0, "stage": "events"}], lr=0.0)
        optimizer.zero_grad = lambda set_to_none=True: None  # type: ignore[method-assign,misc]
        built = trainer._build(0, np.arange(20))
        assert len(built[1]) == (1 if pieces.tokens is None else 5)
        trainer._update(objective, optimizer, *built)
        grads.append({name: weight.grad for name, weight in network.named_parameters() if weight.grad is not None})
    assert len(grads[0]) > 20
    for name, grad in grads[0].items():
        torch.testing.assert_close(grads[1][name], grad, rtol=1e-4, atol=1e-6, msg=name)


def test_a_run_under_a_tight_cap_is_cut_and_learns_the_same(tmp_path: Path) -> None:
    data, config = drawn(60, 20, 50, 40), preset_config("tiny", steps=3, batch_tokens=1024, min_context=5)
    plans: list[Plan] = []
    train(data, tmp_path / "whole", config, on_plan=plans.append)
    cap = 0.75 * plans[0].total / GIB
    train(data, tmp_path / "cut", config, memory=cap, on_plan=plans.append)
    assert plans[0].pieces == {}
    assert "tokens" in plans[1].pieces
    told = [json.loads((tmp_path / name / "training.json").read_text()) for name in ("whole", "cut")]
    assert [one["memory"]["smaller"] for one in told] == [{}, dict(plans[1].pieces)]
    for name in ("event_loss", "label_loss"):
        losses = [[row[f"held_out_{name}"] for row in one["history"]] for one in told]
        assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    whole, cut = (load_tensors(tmp_path / name / "model.safetensors") for name in ("whole", "cut"))
    for name, weights in whole.items():  # Adam's first steps go by the sign of a gradient, however small
        assert float((cut[name] - weights).abs().double().sum()) <= 1e-4 * weights.numel(), name


def test_a_resumed_run_keeps_its_pieces_to_the_bit(tmp_path: Path) -> None:
    data = drawn(60, 20, 50, 40)
    config = preset_config("tiny", steps=4, batch_tokens=1024, min_context=5, checkpoint_seconds=0.0)
    plans: list[Plan] = []
    train(data, tmp_path / "usual", replace(config, steps=1), on_plan=plans.append)
    cap = 0.75 * plans[0].total / GIB
    train(data, tmp_path / "through", config, memory=cap)

    def stop(step: int, *_: Any) -> None:
        if step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(data, tmp_path / "stopped", config, memory=cap, on_step=stop)
    train(data, tmp_path / "stopped", config, resume=True, on_plan=plans.append)
    assert plans[0].pieces == {}
    assert plans[1].pieces.get("tokens", 1024) < 1024  # though there was room for more
    one, other = (load_tensors(tmp_path / name / "model.safetensors") for name in ("through", "stopped"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_check_in_smaller_passes_finds_the_same(tmp_path: Path) -> None:
    data = drawn(60, 20, 50, 12)
    train(data, tmp_path / "model", preset_config("tiny", steps=2, min_context=5))
    plans: list[Plan] = []
    whole = check(tmp_path / "model", data, on_plan=plans.append)
    cut = check(tmp_path / "model", data, on_plan=plans.append, memory=0.7 * plans[0].total / GIB)
    assert plans[1].pieces["tokens_per_pass"] < 8192
    assert cut["memory"]["smaller"] == dict(plans[1].pieces)
    assert cut["labels"]["ece"] == pytest.approx(whole["labels"]["ece"], abs=1e-6)
    assert cut["times"]["next_event"]["gain"] == pytest.approx(whole["times"]["next_event"]["gain"], abs=1e-5)
    with pytest.raises(UsageError, match="--memory: expected at least"):
        check(tmp_path / "model", data, memory=1e-6)


def test_observed_probabilities_are_the_law_read_at_the_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from oscar_causal.density import model as models
    from oscar_causal.density.model import sequence_contexts

    data = drawn(30, 20, 50, 3)
    train(data, tmp_path / "model", preset_config("tiny", steps=1, min_context=5))
    model = load_model(tmp_path / "model")
    asked = sequence_contexts(model.encode(data), 3)
    wanted = model.event_probs(asked).gather(1, asked.event_ids[0][:, None])[:, 0]
    assert torch.equal(model.observed_probs(asked), wanted)
    monkeypatch.setattr(models, "MOST_OBSERVED", 3 * model.network.config.events)  # three positions at a time
    torch.testing.assert_close(model.observed_probs(asked), wanted)
