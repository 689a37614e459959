"""Training: the same weights after kill -9 at any moment, the same losses in two processes, densities that learn."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from oscar_causal.data.batches import encode
from oscar_causal.data.sequences import Dataset
from oscar_causal.data.solvable import SolvableProcess, bernoulli_kl, example
from oscar_causal.data.vocabulary import SPECIAL_IDS, build_vocabulary
from oscar_causal.density import settings
from oscar_causal.density.checkpoint import load_model
from oscar_causal.density.exact import ExactDensity
from oscar_causal.density.fitting import train
from oscar_causal.density.lists import boundary_lists
from oscar_causal.density.model import OscarModel, sequence_contexts
from oscar_causal.density.settings import TrainConfig
from oscar_causal.density.training import Trainer
from oscar_causal.density.transformer import Network
from oscar_causal.errors import UsageError

CHILD = Path(__file__).with_name("training_child.py")


def child(words: list[str], data: Path, out: Path, config: TrainConfig) -> subprocess.Popen[str]:
    command = [sys.executable, *words, str(CHILD), str(data), str(out), json.dumps(config.to_json())]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def same_weights(one: Path, two: Path) -> bool:
    left, right = (load_file(folder / "model.safetensors") for folder in (one, two))
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


@pytest.mark.bits
def test_kill_9_then_resume_gives_the_same_bits(
    fleet: Dataset, tiny: TrainConfig, fleet_folder: Path, tmp_path: Path
) -> None:
    config = replace(tiny, steps=45, evaluations=9, patience=100, checkpoint_seconds=0.0)
    train(fleet, tmp_path / "whole", config)
    rng = np.random.default_rng()  # any moment will do: that is the claim
    stop = int(rng.integers(2, 22))
    process = child([], fleet_folder, tmp_path / "killed", config)
    assert process.stdout is not None
    steps = 0
    for line in process.stdout:
        steps = json.loads(line)[0]
        if steps >= stop:
            break
    time.sleep(rng.uniform(0, 0.05))  # in the middle of a step or of a checkpoint
    process.send_signal(signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, f"killed at step {stop}: {err}"
    partial = tmp_path / "killed.partial"
    assert partial.exists(), f"killed at step {stop}"
    assert not (tmp_path / "killed").exists()
    with pytest.raises(UsageError, match="--resume"):
        train(fleet, tmp_path / "killed", config)
    with pytest.raises(UsageError, match="another setting of learning_rate"):
        train(fleet, tmp_path / "killed", replace(config, learning_rate=0.001), resume=True)
    with pytest.raises(UsageError, match="another dataset"):
        train(fleet.take(np.arange(100)), tmp_path / "killed", config, resume=True)
    with pytest.raises(UsageError, match="folds"):
        train(fleet, tmp_path / "killed", config, resume=True, folds=2)
    begun: list[int] = []
    train(fleet, tmp_path / "killed", config, resume=True, on_step=lambda step, *_: begun.append(step))
    assert begun[0] >= stop, f"killed at step {stop}"  # it went on, it did not begin again
    assert same_weights(tmp_path / "whole", tmp_path / "killed"), f"killed at step {stop}"
    assert not partial.exists()
    quality = [json.loads((tmp_path / name / "quality.json").read_text()) for name in ("whole", "killed")]
    assert quality[0] == quality[1]


@pytest.mark.bits
def test_the_best_weights_so_far_survive_an_interruption(
    fleet: Dataset, tiny: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rate at which training falls apart: the best weights are from before the interruption."""
    monkeypatch.setitem(settings.SIZES, "tiny", settings.SIZES["tiny"] | {"shortlist": 0})
    config = replace(
        tiny, steps=12, evaluations=12, patience=100, checkpoint_seconds=0.0, learning_rate=1.0, warmup=0.9
    )
    train(fleet, tmp_path / "whole", config)
    history = json.loads((tmp_path / "whole" / "training.json").read_text())["history"]
    losses = [look["held_out_loss"] for look in history]
    assert len(losses) == 12
    assert np.argmin(losses) < 8

    def stop(step: int, *_: Any) -> None:
        if step == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(fleet, tmp_path / "cut", config, on_step=stop)
    train(fleet, tmp_path / "cut", config, resume=True)
    assert same_weights(tmp_path / "whole", tmp_path / "cut")
    assert json.loads((tmp_path / "cut" / "training.json").read_text())["history"] == history


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.bits
@pytest.mark.usefixtures("two_threads")
def test_two_threads_train_the_same_bits_again_and_after_an_interruption(
    fleet: Dataset, tiny: TrainConfig, tmp_path: Path
) -> None:
    """Batches so large that both threads have work; a run goes on with as many threads as it began with."""
    config = replace(tiny, steps=4, evaluations=1, batch_tokens=2048, checkpoint_seconds=0.0)
    threads: list[int] = []

    def stop(step: int, *_: Any) -> None:
        threads.append(torch.get_num_threads())
        if step == 3:
            raise KeyboardInterrupt

    for name in ("one", "two"):
        train(fleet, tmp_path / name, config)
    with pytest.raises(KeyboardInterrupt):
        train(fleet, tmp_path / "cut", config, on_step=stop)
    torch.set_num_threads(1)
    train(fleet, tmp_path / "cut", config, resume=True, on_step=lambda *_: threads.append(torch.get_num_threads()))
    assert set(threads) == {2}
    assert torch.get_num_threads() == 1
    assert same_weights(tmp_path / "one", tmp_path / "two")
    assert same_weights(tmp_path / "one", tmp_path / "cut")
    assert json.loads((tmp_path / "cut" / "training.json").read_text())["threads"] == 2


def test_other_libraries_do_not_go_on(fleet: Dataset, tiny: TrainConfig, tmp_path: Path) -> None:
    config = replace(tiny, steps=3, checkpoint_seconds=0.0)

    def stop(step: int, *_: Any) -> None:
        if step == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(fleet, tmp_path / "cut", config, on_step=stop)
    plan = tmp_path / "cut.partial" / "plan.json"
    found = json.loads(plan.read_text())
    assert found["versions"]["torch"] == torch.__version__
    plan.write_text(json.dumps({**found, "versions": {**found["versions"], "torch": "1.0"}}))
    with pytest.raises(
        UsageError, match=r"--resume: that run began with torch 1\.0 and this is 2.*; expected the same"
    ):
        train(fleet, tmp_path / "cut", config, resume=True)
    plan.write_text(json.dumps(found))
    train(fleet, tmp_path / "cut", config, resume=True)  # nothing was lost by the refusal


@pytest.mark.bits
def test_folds_go_on_too(fleet: Dataset, tiny: TrainConfig, tmp_path: Path) -> None:
    config = replace(tiny, steps=6, checkpoint_seconds=0.0)
    train(fleet, tmp_path / "whole", config, folds=2)

    class Interrupt(Exception):
        pass

    calls: list[int] = []

    def stop_in_the_second_fold(step: int, *_: Any) -> None:
        calls.append(step)
        if len(calls) == 9:
            raise Interrupt

    with pytest.raises(Interrupt):
        train(fleet, tmp_path / "cut", config, folds=2, on_step=stop_in_the_second_fold)
    later: list[int] = []
    train(fleet, tmp_path / "cut", config, folds=2, resume=True, on_step=lambda step, *_: later.append(step))
    assert later == [3, 4, 5, 6]  # the checkpoint after step 2 of the second fold is the newest
    for k in range(2):
        assert same_weights(tmp_path / "whole" / f"fold-{k}", tmp_path / "cut" / f"fold-{k}")


def test_two_processes_follow_the_losses_of_one(
    fleet: Dataset, tiny: TrainConfig, fleet_folder: Path, tmp_path: Path
) -> None:
    """Rounding is all that differs, so the settings must not amplify it: at three times this rate and an eighth of the
    batch one process drifts as far from itself when its first weights are moved by 1e-7.
    """
    config = replace(tiny, steps=50, evaluations=2, batch_tokens=2048, learning_rate=1e-3)
    alone: list[list[float]] = []
    train(
        fleet,
        tmp_path / "one",
        config,
        on_step=lambda step, _, figures: alone.append([step, figures["event_loss"], figures["label_loss"]]),
    )
    words = ["-m", "torch.distributed.run", "--nproc_per_node=2", "--master_port=0", "--rdzv_backend=c10d"]
    process = child([*words, "--rdzv_endpoint=localhost:0"], fleet_folder, tmp_path / "two", config)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    together = [json.loads(line) for line in out.splitlines() if line.startswith("[")]
    assert len(together) == len(alone) == 50
    np.testing.assert_allclose(together, alone, rtol=1e-4)
    assert sorted(path.name for path in (tmp_path / "two").iterdir()) == sorted(
        path.name for path in (tmp_path / "one").iterdir()
    )


def test_stages_move_only_their_own_weights(fleet: Dataset, tiny: TrainConfig) -> None:
    config = replace(tiny, steps=8, scheme="two-stage", label_form="cross")
    vocabulary = build_vocabulary(fleet)
    encoded = encode(fleet, vocabulary, max_length=16)
    network = Network(config.network(events=vocabulary.size, labels=2, channels=1))
    trainer = Trainer(network, config, encoded, encoded, None, boundary_lists(fleet, vocabulary, 24))
    snapshots: list[dict[str, torch.Tensor]] = [{k: v.clone() for k, v in network.state_dict().items()}]
    trainer.fit(on_step=lambda *_: snapshots.append({k: v.clone() for k, v in network.state_dict().items()}))

    def moved(before: int, after: int) -> set[str]:
        return {k for k, v in snapshots[before].items() if not torch.equal(v, snapshots[after][k])}

    parameters = {name for name, _ in network.named_parameters()}
    labels = {name for name in parameters if name.startswith(("label_", "bag.", "norm_y", "outcome_", "shortlist."))}
    assert moved(0, 4) == parameters - labels
    assert moved(4, 8) == labels


def test_a_trained_density_approaches_the_exact_one(draw: Callable[..., Dataset], tmp_path: Path) -> None:
    process = example("or")
    config = TrainConfig(
        steps=200,
        batch_tokens=512,
        min_context=1,
        max_length=8,
        evaluations=5,
        learning_rate=1e-2,
    )
    data = draw(process, 4000, seed=7)
    train(data, tmp_path / "trained", config)
    train(data, tmp_path / "untrained", replace(config, steps=1, learning_rate=1e-6))
    test = draw(process, 100, seed=8, first=10**6)
    trained, untrained = (divergences(load_model(tmp_path / name), process, test) for name in ("trained", "untrained"))
    print(f"event KL {untrained[0]:.4f} -> {trained[0]:.4f}, label KL {untrained[1]:.4f} -> {trained[1]:.4f}")
    assert trained[0] < untrained[0] / 10
    assert trained[1] < untrained[1] / 4


def divergences(model: OscarModel, process: SolvableProcess, test: Dataset) -> tuple[float, float]:
    """Mean KL(exact || model) in nats: of the next event over positions, of the label over prefixes."""
    exact, encoded = ExactDensity(process), model.encode(test)
    mine = torch.as_tensor(model.vocabulary.event_table(process.event_names)).long()
    theirs = {int(m): SPECIAL_IDS + t for t, m in enumerate(mine)}
    events, labels = [], []
    positions = torch.arange(1, process.length + 1)
    for row in range(len(test)):
        contexts = sequence_contexts(encoded, row)
        if (contexts.event_ids < SPECIAL_IDS).any():
            continue  # an event that training never met
        twin = replace(contexts, event_ids=torch.tensor([[theirs[int(i)] for i in contexts.event_ids[0]]]))
        law, found = exact.event_probs(twin)[:, SPECIAL_IDS:].double(), model.event_probs(contexts)[:, mine].double()
        events.append(float((law * (law / found).log()).sum(-1).mean()))
        every = torch.tensor([0])
        p, q = (d.label_probs(c, every, positions).double().numpy() for d, c in ((exact, twin), (model, contexts)))
        labels.append(float(bernoulli_kl(p, q).mean()))
    return float(np.mean(events)), float(np.mean(labels))
