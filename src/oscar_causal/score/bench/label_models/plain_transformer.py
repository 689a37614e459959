"""A plain Transformer that predicts labels from whole sequences: the rival every label model has to meet.

A token is an event vector plus a linear map of its times (logarithms, and sines of the time to the end), its place and
its channel values; one more token holds the static covariates. Four encoder layers, attention to both sides, the mean
over events beside the last event, one logit for each label. AdamW, a cosine, weights of the best validation log loss.
"""

from __future__ import annotations

import copy
import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from oscar_causal.data.batches import Encoded, plan_batches
from oscar_causal.data.sequences import Float64, Int64
from oscar_causal.density.precision import quick_products
from oscar_causal.score.bench.label_models.features import Float32, StaticTable
from oscar_causal.score.bench.label_models.material import Bool, Material, Predicted


@dataclass(frozen=True)
class PlainConfig:
    """About 1.3 M weights with 300 event types."""

    width: int = 160
    layers: int = 4
    heads: int = 5
    dropout: float = 0.1
    waves: int = 16
    """Wavelengths of sines and cosines of the time to the end."""
    steps: int = 4000
    batch: int = 256
    learning_rate: float = 1e-3
    warmup: float = 0.05
    """Share of the steps with rising learning rate; a cosine to 0 follows."""
    weight_decay: float = 0.05
    clip: float = 1.0
    evaluations: int = 20
    """How often the validation log loss is taken."""
    patience: int = 6
    """Stop after this many evaluations without improvement."""


class Batch(NamedTuple):
    """Sequences in a rectangle, padding behind; or a whole part of a dataset, on the device."""

    event_ids: Tensor
    """(B, L)"""
    numbers: Tensor
    """(B, L, F) standardised; 0 where missing."""
    ages: Tensor
    """(B, L) seconds to the end of the record."""
    static: Tensor
    """(B, S)"""
    lengths: Tensor
    """(B,)"""

    def rows(self, chosen: Tensor, longest: int) -> Batch:
        """Some sequences, none of them with more than `longest` events."""
        ids, numbers, ages = (part[chosen, :longest] for part in self[:3])
        return Batch(ids, numbers, ages, self.static[chosen], self.lengths[chosen])


class PlainTransformer(nn.Module):
    """Logits of every label."""

    wavelengths: Tensor

    def __init__(self, config: PlainConfig, sizes: tuple[int, int, int, int], wavelengths: Tensor) -> None:
        super().__init__()
        events, numbers, static, labels = sizes
        self.register_buffer("wavelengths", wavelengths)
        self.events = nn.Embedding(events, config.width)
        self.numbers = nn.Linear(numbers + 2 * len(wavelengths), config.width)
        self.static = nn.Linear(static, config.width)
        layer = nn.TransformerEncoderLayer(
            config.width, config.heads, 4 * config.width, config.dropout, "gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, config.layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(2 * config.width)
        self.labels = nn.Linear(2 * config.width, labels)

    def forward(self, batch: Batch) -> Tensor:
        """(B, Y)."""
        turns = batch.ages[..., None] / self.wavelengths * (2 * math.pi)
        numbers = torch.cat([batch.numbers, turns.sin(), turns.cos()], dim=-1)
        tokens = self.events(batch.event_ids) + self.numbers(numbers)  # (B, L, D)
        real = torch.arange(tokens.shape[1], device=tokens.device) < batch.lengths[:, None]  # (B, L)
        tokens = torch.cat([tokens, self.static(batch.static)[:, None]], dim=1)  # (B, L + 1, D)
        padding = torch.cat([~real, real.new_zeros(len(real), 1)], dim=1)
        states = self.encoder(tokens, src_key_padding_mask=padding)[:, :-1]  # (B, L, D)
        mean = (states * real[..., None]).sum(1) / batch.lengths[:, None]
        last = states[torch.arange(len(states), device=states.device), batch.lengths - 1]
        logits: Tensor = self.labels(self.norm(torch.cat([mean, last], dim=1)))
        return logits


@dataclass(frozen=True)
class Reader:
    """Turns parts of a dataset into tensors; scales are those of the part that is learnt from."""

    learnt: Encoded
    static: StaticTable
    device: torch.device

    def __call__(self, encoded: Encoded, static: Float32) -> Batch:
        lengths = encoded.events.lengths
        mean, sd = self._scale
        numbers = np.nan_to_num((_numbers(encoded) - mean) / sd)
        parts = (encoded.events.ids.astype(np.int64), numbers.astype(np.float32), _ages(encoded).astype(np.float32))
        always = np.column_stack([static, np.ones(len(static), np.float32)])  # the token has a weight of its own
        tables = [*(_rectangle(part, lengths) for part in parts), always, lengths]
        ids, *others = (torch.from_numpy(part).to(self.device) for part in tables)
        return Batch(ids, *others)

    @cached_property
    def _scale(self) -> tuple[Float64, Float64]:
        numbers = _numbers(self.learnt)
        known = np.maximum(np.isfinite(numbers).sum(0), 1)
        mean = np.nansum(numbers, axis=0) / known
        sd = np.sqrt(np.nansum((numbers - mean) ** 2, axis=0) / known)
        return mean, np.where(sd > 0, sd, 1.0)

    def wavelengths(self, count: int) -> Tensor:
        """From the shorter gaps between events to four times the longest record, evenly spaced in ratio."""
        gaps = np.diff(self.learnt.times)
        gaps = gaps[gaps > 0]
        shortest = float(np.quantile(gaps, 0.1)) if len(gaps) else 1.0
        longest = 4 * max(float(_ages(self.learnt).max()), shortest)
        return torch.from_numpy(np.geomspace(shortest, longest, count).astype(np.float32))


def _numbers(encoded: Encoded) -> Float64:
    """(events, F): log seconds since the start, the event before, the same type before, and to the end; log place;
    whether the type is new; channel values and whether each is missing. NaN = missing.
    """
    rows, offsets = encoded.events.rows(), encoded.events.offsets
    start = encoded.times[offsets[:-1]][rows]
    gaps = np.diff(encoded.times, prepend=encoded.times[:1])
    gaps[offsets[:-1]] = 0.0
    place = np.arange(len(rows)) - offsets[:-1][rows]
    same = _since_same_type(encoded)
    times = (encoded.times - start, gaps, same, _ages(encoded), place)
    columns = [np.log1p(np.maximum(part, 0.0)) for part in times]
    missing = np.isnan(encoded.channels).astype(float)
    return np.column_stack([*columns, np.isnan(same), encoded.channels, missing])


def _since_same_type(encoded: Encoded) -> Float64:
    """Seconds since the event of the same type before, in the same sequence; NaN where it is the first."""
    rows, ids = encoded.events.rows(), encoded.events.ids
    order = np.lexsort((np.arange(len(ids)), ids, rows))
    again = (np.diff(rows[order]) == 0) & (np.diff(ids[order]) == 0)
    since = np.full(len(ids), np.nan)
    since[order[1:][again]] = np.diff(encoded.times[order])[again]
    return since


def _ages(encoded: Encoded) -> Float64:
    end = encoded.times[encoded.events.offsets[1:] - 1]
    return np.asarray(end[encoded.events.rows()] - encoded.times)


def _rectangle(values: np.ndarray, lengths: Int64) -> np.ndarray:
    """(n, longest, ...): values laid end to end as rows, 0 behind."""
    table = np.zeros((len(lengths), int(lengths.max()), *values.shape[1:]), values.dtype)
    table[np.arange(table.shape[1]) < lengths[:, None]] = values
    return table


def plain_transformer(material: Material, config: PlainConfig | None = None) -> Predicted:
    """Train on `learn`, stop by `validation`, predict both."""
    config = config or PlainConfig(**({} if material.steps is None else {"steps": material.steps}))
    torch.manual_seed(material.seed)
    device = torch.device(material.device)
    parts = [material.learn, material.validation, material.asked]
    encoded = [material.encoded(part) for part in parts]
    read = Reader(encoded[0], StaticTable.of(material.learn), device)
    batches = [read(part, read.static(data)) for part, data in zip(encoded, parts, strict=True)]
    came = material.outcomes(material.learn)
    sizes = (material.vocabulary.size, batches[0].numbers.shape[2], batches[0].static.shape[1], came.shape[1])
    model = PlainTransformer(config, sizes, read.wavelengths(config.waves)).to(device)
    rate = torch.from_numpy((came.sum(0) + 0.5) / (len(came) + 1.0)).float()
    with torch.no_grad():
        model.labels.bias.copy_(torch.logit(rate))
    with quick_products(device):
        begun = time.monotonic()
        fitting = Fitting(model, config, batches[0], _targets(came, device), material.seed)
        stopping = batches[1], _targets(material.outcomes(material.validation), device)
        ran, best = fitting.run(*stopping)
        seconds = (time.monotonic() - begun) / ran
        probs = [predict(model, batch).sigmoid().double().cpu().numpy() for batch in batches[1:]]
    weights = sum(part.numel() for part in model.parameters())
    told = {"weights": weights, "steps": config.steps, "ran": ran, "best_step": best, "seconds_per_step": seconds}
    return Predicted(probs[0], probs[1], told)


@dataclass
class Fitting:
    """The training loop."""

    model: PlainTransformer
    config: PlainConfig
    data: Batch
    targets: Tensor
    seed: int

    def run(self, stopping: Batch, stopping_targets: Tensor) -> tuple[int, int]:
        """Leaves the best weights in the model; returns the steps run and the step of the best weights."""
        config, model = self.config, self.model
        every = max(1, config.steps // config.evaluations)
        optimizer = torch.optim.AdamW(
            model.parameters(), config.learning_rate, weight_decay=config.weight_decay, fused=True
        )
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, self._share)
        best, best_step, kept = math.inf, 0, copy.deepcopy(model.state_dict())
        step = 0
        for step, (chosen, longest) in enumerate(self._batches(), start=1):
            model.train()
            loss = F.binary_cross_entropy_with_logits(model(self.data.rows(chosen, longest)), self.targets[chosen])
            optimizer.zero_grad()
            torch.autograd.backward(loss * self.targets.shape[1])
            nn.utils.clip_grad_norm_(model.parameters(), config.clip)
            optimizer.step()
            schedule.step()
            if step % every == 0 or step == config.steps:
                held = float(F.binary_cross_entropy_with_logits(predict(model, stopping), stopping_targets))
                if held < best:
                    best, best_step, kept = held, step, copy.deepcopy(model.state_dict())
                if step == config.steps or step - best_step >= config.patience * every:
                    break
        model.load_state_dict(kept)
        return step, best_step

    def _batches(self) -> Iterator[tuple[Tensor, int]]:
        """Row numbers on the device and their longest sequence; sequences of similar length share a batch."""
        lengths = self.data.lengths.cpu().numpy()
        size = min(self.config.batch, len(lengths))
        for epoch in itertools.count():
            every = plan_batches(
                lengths, size * int(lengths.max()), seed=self.seed, epoch=epoch, padded=True, most_sequences=size
            )
            for chosen in every:
                yield torch.from_numpy(chosen).to(self.targets.device), int(lengths[chosen].max())

    def _share(self, step: int) -> float:
        """Of the peak learning rate."""
        rising = max(1, round(self.config.warmup * self.config.steps))
        if step < rising:
            return (step + 1) / rising
        return 0.5 * (1 + math.cos(math.pi * (step - rising) / max(1, self.config.steps - rising)))


@torch.no_grad()
def predict(model: PlainTransformer, batch: Batch, size: int = 1024) -> Tensor:
    """Logits (n, Y), sequences of similar length together."""
    model.eval()
    order = torch.argsort(batch.lengths, stable=True)
    logits = torch.empty(len(order), model.labels.out_features, device=order.device)
    for chosen in torch.split(order, size):
        logits[chosen] = model(batch.rows(chosen, int(batch.lengths[chosen[-1]])))
    return logits


def _targets(came: Bool, device: torch.device) -> Tensor:
    return torch.from_numpy(came).float().to(device)
