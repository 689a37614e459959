"""The training loop: plan, step, look at held-out data, checkpoint; resumable at any moment to the same weights.

Everything random is keyed by (seed, epoch); everything that decides the next step is in the checkpoint.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oscar_causal.data.batches import Encoded, fill_batches, plan_batches
from oscar_causal.data.sequences import Float64, Int64
from oscar_causal.density.checkpoint import CheckpointWriter, load_checkpoint
from oscar_causal.density.estimates import TrainPieces
from oscar_causal.density.held_out import BELIEVED, held_out_event_loss, held_out_label_losses
from oscar_causal.density.objective import Objective, Step, make_step
from oscar_causal.density.precision import quick_products
from oscar_causal.density.settings import TrainConfig
from oscar_causal.density.shortlist import PAIR_WEIGHTS, shorten, time_windows
from oscar_causal.density.transfer import send
from oscar_causal.density.transformer import Network, Tokens
from oscar_causal.errors import UsageError

MOST_EMPHASIS = 1000.0
"""Most that one positive label counts against a negative one."""
FEWEST_STEPS = 10
"""Steps between two looks, at least."""
TOLD_EVERY = 20
"""Steps after which losses are asked of a GPU, which has to be waited for then."""
SHORTLIST_RATE = 5e-3
"""Peak learning rate of the labels' own small networks, whatever the size of the large one."""
KEPT = ("best", "events", "listed")
"""Weights that a run remembers."""
OnStep = Callable[[int, int, dict[str, float]], None]
"""Called after each step with (step, steps, figures)."""


@dataclass
class _Run:
    """What changes while training."""

    step: int = 0
    best_loss: float = math.inf
    """The least held-out loss of events and labels."""
    event_loss: float = math.inf
    """The least held-out loss of events, and"""
    listed_loss: float = math.inf
    """of labels that are told from shortlists and base rates alone."""
    gained: int = 0
    """The step of the last look at which more was to be had than before."""
    believed: float = 1.0
    """Share of what h^y says that held-out sequences bear out, with the best weights."""
    history: list[dict[str, float]] = field(default_factory=list)
    best: dict[str, Tensor] = field(default_factory=dict)
    events: dict[str, Tensor] = field(default_factory=dict)
    listed: dict[str, Tensor] = field(default_factory=dict)
    """The weights of those looks; of the last shortlists and base rates only."""
    tokens: int = 0
    seconds: float = 0.0


class Trainer:
    """Fits a network to encoded sequences. `fit` returns the history; the network holds the best weights."""

    def __init__(
        self,
        network: Network,
        config: TrainConfig,
        train: Encoded,
        validation: Encoded,
        folder: Path | None,
        lists: Int64 | None = None,
        pieces: TrainPieces | None = None,
    ) -> None:
        """`lists` (Y, K): the event types that each label listens to (`boundary_lists`); None: as they are.

        `pieces`: how a step is cut where memory is short; losses and gradients of its parts add up.
        """
        from accelerate import Accelerator

        if not len(train):
            raise UsageError("training needs at least one sequence outside the held-out part")
        cuda = torch.cuda.is_available()
        self.accelerator = Accelerator(mixed_precision="bf16" if cuda else "no", cpu=not cuda)
        self.config, self.train, self.validation, self.folder = config, train, validation, folder
        self.pieces = pieces or TrainPieces()
        self.packed = self.accelerator.device.type == "cuda"
        self.network = network.to(self.accelerator.device)
        self.run = _Run()
        self._set_out(lists)

    def fit(self, *, resume: bool = False, on_step: OnStep | None = None) -> list[dict[str, float]]:
        """Train all stages; with `resume` go on from the newest checkpoint of the folder."""
        objective = Objective(self.network, self.config, self._emphasis(), logits=self.pieces.logits)
        optimizer = make_optimizer(self.network, self.config)
        if resume and self.folder is not None:
            self._restore(optimizer)
        if self.packed:
            objective.run_network = torch.compile(self.network, dynamic=False)
        wrapped, optimizer = self.accelerator.prepare(objective, optimizer)
        with self._checkpoints() as checkpoints:
            self._train(wrapped, optimizer, checkpoints, on_step)
        self._take_best()
        return self.run.history

    def _checkpoints(self) -> AbstractContextManager[CheckpointWriter | None]:
        if self.folder is None or not self.accelerator.is_main_process:
            return nullcontext()
        return CheckpointWriter(self.folder)

    def _train(
        self, objective: Any, optimizer: Any, checkpoints: CheckpointWriter | None, on_step: OnStep | None
    ) -> None:
        last_saved, every = time.monotonic(), self._look_every()
        for step, batch, counts in self._steps():
            begun = time.monotonic()
            figures = self._update(objective, optimizer, step, batch, counts)
            self.run.step = step + 1
            self.run.tokens += counts[2]
            self.run.seconds += time.monotonic() - begun
            if self.run.step % every == 0 or self.run.step == self.config.steps:
                figures |= self._look()
            if on_step is not None:
                on_step(self.run.step, self.config.steps, figures | self._speed())
            if self._gains_no_more():
                break
            if checkpoints is not None:
                checkpoints.check()
                if time.monotonic() - last_saved > self.config.checkpoint_seconds:
                    checkpoints.save(self.run.step, *self._state(optimizer))
                    last_saved = time.monotonic()

    @torch.no_grad()
    def _take_best(self) -> None:
        """The weights that held-out sequences chose: those of one look, or Tf_x of one and shortlists of another.

        On little data Tf_x, and h^y with it, are at their best long before the shortlists are, and then learn by heart.
        """
        run = self.run
        if run.best:
            apart = self._apart() < run.best_loss
            self.network.load_state_dict(run.events | run.listed if apart else run.best)
            run.believed = 0.0 if apart else run.believed
            self.network.label_head.weight.mul_(run.believed)

    def _apart(self) -> float:
        """The least held-out loss with labels told from shortlists alone."""
        return self.run.event_loss + self.config.label_weight * self.run.listed_loss

    def _steps(self) -> Iterator[tuple[int, list[Step], tuple[float, float, int]]]:
        """Steps from where the run stands, built one ahead in a thread."""
        with ThreadPoolExecutor(1) as pool:
            waiting = None
            for step, indices in self._plan():
                upcoming = pool.submit(self._build, step, indices)
                if waiting is not None:
                    yield waiting.result()
                waiting = upcoming
            if waiting is not None:
                yield waiting.result()

    def _plan(self) -> Iterator[tuple[int, Int64]]:
        lengths = self.train.events.lengths + 1
        world = self.accelerator.num_processes
        step = epoch = 0
        most = self._most_sequences() * world if self.packed else None
        while step < self.config.steps:
            plan = plan_batches(
                lengths,
                self.config.batch_tokens,
                seed=self.config.seed,
                epoch=epoch,
                padded=not self.packed,
                most_sequences=most,
            )
            for indices in plan:
                if step >= self.config.steps:
                    return
                if step >= self.run.step:
                    yield step, indices
                step += 1
            epoch += 1

    def _most_sequences(self) -> int:
        """Sequences one process may have to pack: a quarter more than the average."""
        mean = float((self.train.events.lengths + 1).mean())
        return math.ceil(1.25 * self.config.batch_tokens / int(self.accelerator.num_processes) / mean) + 8

    def _build(self, step: int, indices: Int64) -> tuple[int, list[Step], tuple[float, float, int]]:
        rank, world = self.accelerator.process_index, self.accelerator.num_processes
        labels = self.network.config.labels
        packed = None
        if self.packed:
            share = self.config.batch_tokens // world + (self.config.max_length + 1) * (world > 1)
            packed = (share, self._most_sequences() + share // 64)
        mine = indices[rank::world]
        chosen = mine if len(mine) else indices[:1]
        parts = [chosen]
        if self.pieces.tokens is not None:
            parts = fill_batches(self.train.events.lengths + 1, chosen, self.pieces.tokens, padded=not self.packed)
        batch = [make_step(self.train, part, self.config, labels, packed=packed, step=step) for part in parts]
        events = int(self.train.events.lengths[indices].sum())
        if not len(mine):  # fewer sequences than processes: this one goes through the motions with weight 0
            return step, batch, (0.0, 0.0, events)
        sequences = max(1, int(self.train.labelled[indices].sum()))
        return step, batch, (1.0 / events, 1.0 / sequences, events)

    def _update(
        self, objective: Any, optimizer: Any, step: int, batch: list[Step], counts: tuple[float, float, int]
    ) -> dict[str, float]:
        stage = self._stage(step)
        device, world = self.accelerator.device, self.accelerator.num_processes
        pace = self._pace(step)
        for group in optimizer.param_groups:
            group["lr"] = pace * group["peak"] if stage in ("joint", group["stage"]) else 0.0
        scales = torch.tensor(counts[:2], device=device) * world  # processes are averaged, sums are wanted
        told = []
        for part in batch:
            with self.accelerator.autocast():
                event, label, alone = objective(to_device(part, device), scales[0], scales[1])
                loss = event * (stage != "labels") + self.config.label_weight * (label + alone) * (stage != "events")
            self.accelerator.backward(loss)
            told.append(torch.stack([event.detach(), label.detach()]))
        if self.config.clip:
            self.accelerator.clip_grad_norm_(self.network.parameters(), self.config.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if self.config.sparsity and stage != "events":
            shorten(self.network.bag.events.weight, self.config.sparsity * pace * self.config.learning_rate)
            if self.network.shortlist is not None:
                shorten(
                    self.network.shortlist.pairs.view(-1, PAIR_WEIGHTS), self.config.sparsity * pace * SHORTLIST_RATE
                )
        if step % TOLD_EVERY and self.accelerator.device.type != "cpu":
            return {}
        sums = self.accelerator.reduce(torch.stack(told).sum(0), reduction="mean")
        return {"event_loss": float(sums[0]), "label_loss": float(sums[1])}

    def _look_every(self) -> int:
        """Steps between looks: as many looks as asked for, and at least one in each pass over the data.

        On a few hundred sequences the best weights lie before the first of ten evenly spread looks.
        """
        one_pass = int((self.train.events.lengths + 1).sum()) // self.config.batch_tokens
        return max(1, min(self.config.steps // self.config.evaluations, max(one_pass, FEWEST_STEPS)))

    def _gains_no_more(self) -> bool:
        wait = self.config.patience * max(1, self.config.steps // self.config.evaluations)
        return math.isfinite(self.run.best_loss) and self.run.step - self.run.gained >= wait

    def _stage(self, step: int) -> str:
        if self.config.scheme == "joint":
            return "joint"
        return "events" if step < self.config.steps // 2 else "labels"

    def _pace(self, step: int) -> float:
        """The learning rate as a share of its peak."""
        total = self.config.steps if self.config.scheme == "joint" else self.config.steps // 2
        at = step if self.config.scheme == "joint" else step % max(1, total)
        warm = max(1, round(self.config.warmup * total))
        rise = min(1.0, (at + 1) / warm)
        fall = 0.5 * (1 + math.cos(math.pi * max(0, at - warm) / max(1, total - warm)))
        return rise * (0.02 + 0.98 * fall)

    def _look(self) -> dict[str, float]:
        """Held-out losses; remembers the best weights, and the best shortlists."""
        if not len(self.validation) or self._stage(self.run.step - 1) == "events":
            return {}
        run, state = self.run, self.network.state_dict()
        with quick_products(self.accelerator.device):
            at_end, weighted = held_out_label_losses(
                self.network, self.validation, self.config, tokens=self.pieces.held_out
            )
            event = self._agreed(
                held_out_event_loss(
                    self.network, self.validation, tokens=self.pieces.held_out, logits=self.pieces.logits
                )
            )
        totals = [self._agreed(total) for total in weighted]
        share = totals.index(min(totals))
        loss = event + self.config.label_weight * totals[share]
        before = min(run.best_loss, self._apart())
        if loss < run.best_loss:
            run.best_loss, run.believed, run.best = loss, BELIEVED[share], _copied(state)
        if self.network.shortlist is not None and event < run.event_loss:
            run.event_loss, run.events = event, _copied(state)
        if self.network.shortlist is not None and totals[-1] < run.listed_loss:
            listed = {name: part for name, part in state.items() if name.startswith(("shortlist.", "label_head.bias"))}
            run.listed_loss, run.listed = totals[-1], _copied(listed)
        if min(run.best_loss, self._apart()) < before:
            run.gained = run.step
        figures = {
            "held_out_loss": loss,
            "held_out_label_loss": self._agreed(at_end[share]),
            "held_out_event_loss": event,
        }
        run.history.append({"step": run.step, **figures})
        return figures

    def _agreed(self, value: float) -> float:
        """The mean over processes, so that all take the same decision."""
        tensor = torch.tensor(value, dtype=torch.float64, device=self.accelerator.device)
        return float(self.accelerator.reduce(tensor, reduction="mean"))

    def _speed(self) -> dict[str, float]:
        return {"tokens_per_s": self.run.tokens / max(self.run.seconds, 1e-9)}

    def _base_log_odds(self) -> Float64:
        """Log odds (Y,) of every label in the training part."""
        counts = np.bincount(self.train.labels.ids, minlength=self.network.config.labels)
        rates = np.clip((counts + 0.5) / (max(1, int(self.train.labelled.sum())) + 1.0), 1e-6, 1 - 1e-6)
        return np.asarray(np.log(rates / (1 - rates)))

    def _emphasis(self) -> Tensor | None:
        """Log weight of every label's positives (`TrainConfig.balance`)."""
        if not self.config.balance:
            return None
        weights = (-self.config.balance * self._base_log_odds()).clip(0.0, math.log(MOST_EMPHASIS))
        return torch.from_numpy(weights).float().to(self.accelerator.device)

    def _set_out(self, lists: Int64 | None) -> None:
        """What counting can say before the first step: shortlists, base rates of labels, scales of channels."""
        if self.network.shortlist is not None:
            self.network.shortlist.windows.copy_(torch.from_numpy(time_windows(self.train)))
            if lists is not None:
                self.network.shortlist.types.copy_(torch.from_numpy(lists))
        self.network.label_head.bias.data.copy_(torch.from_numpy(self._base_log_odds()))
        values = self.train.channels
        if values.shape[1]:
            known = np.isfinite(values)
            number = np.maximum(known.sum(0), 1)
            mean = np.where(known, values, 0.0).sum(0, dtype=np.float64) / number
            scale = np.sqrt((np.where(known, values - mean, 0.0) ** 2).sum(0) / number)
            self.network.embedding.channel_mean.copy_(torch.from_numpy(mean))
            self.network.embedding.channel_scale.copy_(torch.from_numpy(np.where(scale > 0, scale, 1.0)))

    def _state(self, optimizer: Any) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything that decides the next step: tensors, and the rest."""
        tensors = {f"network.{name}": tensor for name, tensor in self.network.state_dict().items()}
        for kept in KEPT:
            tensors |= {f"{kept}.{name}": tensor for name, tensor in getattr(self.run, kept).items()}
        names = {parameter: name for name, parameter in self.network.named_parameters()}
        for parameter, state in optimizer.state.items():
            for key, value in state.items():
                tensors[f"optimizer.{key}.{names[parameter]}"] = torch.as_tensor(value)
        state = {key: None if value == math.inf else value for key, value in vars(self.run).items() if key not in KEPT}
        return tensors, {"run": state, "config": self.config.to_json(), "pieces": asdict(self.pieces)}

    def _restore(self, optimizer: torch.optim.Optimizer) -> None:
        assert self.folder is not None  # noqa: S101
        found = load_checkpoint(self.folder)
        if found is None:
            return
        tensors, state = found
        if state["config"] != self.config.to_json():
            changed = [key for key, value in self.config.to_json().items() if state["config"].get(key) != value]
            raise UsageError(f"--resume: the checkpoint was made with another setting of {', '.join(changed)}")
        told: dict[str, Any] = {key: math.inf if value is None else value for key, value in state["run"].items()}
        self.run = _Run(**{part.name: told[part.name] for part in fields(_Run) if part.name in told})
        device = self.accelerator.device
        for kept in KEPT:
            mine = {key.removeprefix(f"{kept}."): value for key, value in tensors.items() if key.startswith(f"{kept}.")}
            setattr(self.run, kept, {key: value.to(device) for key, value in mine.items()})
        self.network.load_state_dict({key[8:]: v for key, v in tensors.items() if key.startswith("network.")})
        for name, parameter in self.network.named_parameters():
            for key in ("step", "exp_avg", "exp_avg_sq"):
                value = tensors.get(f"optimizer.{key}.{name}")
                if value is not None:
                    keep = value if key == "step" and not self.packed else value.to(device)
                    optimizer.state[parameter][key] = keep


def _copied(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in state.items()}


def make_optimizer(network: Network, config: TrainConfig) -> torch.optim.Optimizer:
    """AdamW; matrices decay; embeddings, shortlists, norms and biases do not; groups know their stage and peak rate."""
    groups: dict[tuple[str, float, float], list[Tensor]] = {}
    for name, parameter in network.named_parameters():
        stage = "labels" if name.startswith(("label_", "bag.", "norm_y", "outcome_", "shortlist.")) else "events"
        short = name.startswith("shortlist.")
        decay = config.weight_decay if parameter.dim() > 1 and "embedding" not in name and not short else 0.0
        groups.setdefault((stage, decay, SHORTLIST_RATE if short else config.learning_rate), []).append(parameter)
    fused = next(network.parameters()).is_cuda
    parameters = [
        {"params": p, "stage": stage, "weight_decay": decay, "peak": peak} for (stage, decay, peak), p in groups.items()
    ]
    return torch.optim.AdamW(parameters, lr=config.learning_rate, betas=(0.9, 0.95), fused=fused)


def to_device(step: Step, device: torch.device) -> Step:
    """Move every tensor of a step, without waiting for the copy."""
    inputs: dict[str, Any] = {
        key: send(v, device) if isinstance(v, Tensor) else v for key, v in vars(step.tokens).items()
    }
    rest = {name: send(value, device) for name, value in vars(step).items() if name != "tokens"}
    return Step(tokens=Tokens(**inputs), **rest)
