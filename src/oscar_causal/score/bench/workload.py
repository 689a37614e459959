"""Work of a given size for the benchmark of speed: a random model, random sequences, and one stage of contexts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from oscar_causal.data.batches import Encoded
from oscar_causal.data.sequences import Dataset, from_table
from oscar_causal.data.vocabulary import SPECIAL_IDS, Vocabulary
from oscar_causal.density.compiled import Question, padded_length
from oscar_causal.density.interface import Contexts
from oscar_causal.density.model import OscarModel, sequence_contexts
from oscar_causal.density.settings import SIZES
from oscar_causal.density.transfer import send
from oscar_causal.density.transformer import Network, NetworkConfig
from oscar_causal.discovery.contexts import Stream, present_types, without_types
from oscar_causal.discovery.device_contexts import draw_on, uniforms_on

SHORTEST = 24
"""Events of the shortest sequence: some must stand behind the first c."""
RATE = 0.15
"""Share of the event types that a context replaces."""
GROUP = 64
"""Sequences whose contexts are built before they go through the network."""


@dataclass(frozen=True)
class Sizes:
    """What the time depends on."""

    preset: str = "paper"
    events: int = 29_100
    labels: int = 474
    contexts: int = 64
    mean_length: float = 150.0
    sd_length: float = 90.0
    longest: int = 255
    """Events; with the start token the rectangle of the paper's listing."""
    sequences: int = 1024
    labels_per_sequence: int = 2
    seed: int = 0


@dataclass(frozen=True)
class Workload:
    """A random model and random sequences for it."""

    sizes: Sizes
    model: OscarModel
    """As `oscar train` makes it, with a shortlist of (random) event types for every label."""
    data: Dataset

    @cached_property
    def paper_model(self) -> OscarModel:
        """The same weights without shortlists: the paper's model has none."""
        network = Network(replace(self.model.network.config, shortlist=0)).eval().requires_grad_(False)
        kept = network.state_dict().keys()
        shared = {name: part for name, part in self.model.network.state_dict().items() if name in kept}
        network.load_state_dict(shared, assign=True)
        return replace(self.model, network=network.requires_grad_(False))

    @cached_property
    def encoded(self) -> Encoded:
        """The sequences in the model's ids."""
        return self.model.encode(self.data)

    @property
    def real_tokens(self) -> int:
        """Tokens of all sequences, start tokens included, padding not."""
        return int(self.data.lengths.sum()) + len(self.data)

    @property
    def weight_bytes(self) -> int:
        """Bytes of the model's weights in single precision."""
        return sum(4 * parameter.numel() for parameter in self.model.network.parameters())


def make_workload(sizes: Sizes, device: str) -> Workload:
    """Random weights and sequences of a size; the same for the same seed."""
    names = tuple(f"E{k}" for k in range(sizes.events))
    vocabulary = Vocabulary(names, tuple(f"Y{k}" for k in range(sizes.labels)))
    config = NetworkConfig(vocabulary.size, sizes.labels, **SIZES[sizes.preset])  # type: ignore[arg-type]
    generator = torch.Generator().manual_seed(sizes.seed)
    network = Network(config).eval().requires_grad_(False)
    for parameter in network.parameters():
        if parameter.dim() > 1:
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * parameter.shape[1] ** -0.5)
    if network.shortlist is not None:
        rng, types = np.random.default_rng(sizes.seed), network.shortlist.types
        lists = [rng.choice(sizes.events, types.shape[1], replace=False) for _ in range(sizes.labels)]
        types.copy_(torch.as_tensor(np.array(lists) + SPECIAL_IDS))
    model = OscarModel(network.to(device), vocabulary, (), max_length=max(512, sizes.longest), min_context=15)
    return Workload(sizes, model, random_sequences(sizes, names, vocabulary.labels))


def random_sequences(sizes: Sizes, events: Sequence[str], labels: Sequence[str]) -> Dataset:
    """Sequences of normally distributed length with uniform events, one a minute."""
    return from_table(random_table(sizes, events, labels))


def random_table(sizes: Sizes, events: Sequence[str], labels: Sequence[str]) -> pa.Table:
    """The same as a table of the dataset format."""
    rng = np.random.default_rng(sizes.seed)
    lengths = rng.normal(sizes.mean_length, sizes.sd_length, sizes.sequences).clip(SHORTEST, sizes.longest).astype(int)
    records = (
        {
            "sequence_id": f"car {k}",
            "events": [events[e] for e in rng.integers(0, len(events), length)],
            "times": (60.0 * np.arange(length)).tolist(),
            "labels": [labels[y] for y in rng.choice(len(labels), min(sizes.labels_per_sequence, len(labels)), False)],
        }
        for k, length in enumerate(lengths)
    )
    return pa.Table.from_pylist(list(records))


def one_per_launch(work: Workload) -> list[int]:
    """The longest sequence of every launch shape: enough to compile and record all of them."""
    shapes: dict[int, int] = {}
    for k, length in enumerate(work.data.lengths.tolist()):
        shapes.setdefault(padded_length(length + 1), k)
    return list(shapes.values())


def intervention_stage(work: Workload, model: OscarModel, which: Sequence[int]) -> list[Tensor]:
    """One stage of N contexts for every chosen sequence, its labels and all its types: effects (K, Y') on the host.

    The work of the intervention estimator at N contexts without its tests: the law of replacements, masks, draws, one
    pass for every context, P(label) after the last event, mean difference between contexts that keep and replace.
    Sequences go by length; while the device works on a group, the host prepares the next.
    """
    order = sorted(which, key=lambda k: int(work.data.lengths[k]))
    answers: list[Tensor] = []
    waiting: list[Tensor] = []
    for begin in range(0, len(order), GROUP):
        fresh = _group_effects(work, model, order[begin : begin + GROUP])
        answers += [effects.cpu() for effects in waiting]
        waiting = fresh
    answers += [effects.cpu() for effects in waiting]
    place = {k: at for at, k in enumerate(order)}
    return [answers[place[k]] for k in which]


def _group_effects(work: Workload, model: OscarModel, group: Sequence[int]) -> list[Tensor]:
    sequences = [sequence_contexts(work.encoded, k) for k in group]
    laws = model.event_probs_together(sequences)
    masks, questions = [], []
    for k, sequence in zip(group, sequences, strict=True):
        mask, ids = _contexts(work, k, sequence, laws.pop(0))
        labels = torch.as_tensor(work.encoded.labels[k].astype(np.int64))
        masks.append(mask)
        length = torch.tensor([ids.shape[1]])
        questions.append(Question(Contexts(ids, sequence.times, sequence.channels), labels, length))
    probs = model.label_probs_together(questions)
    return [type_effects(mask, part[:, 0]) for mask, part in zip(masks, probs, strict=True)]


def _contexts(work: Workload, k: int, sequence: Contexts, law: Tensor) -> tuple[Tensor, Tensor]:
    """Masks (N, K) and contexts (N, L), built where the law lives."""
    observed = sequence.event_ids[0].numpy()
    types, owner = present_types(observed)
    n, device = work.sizes.contexts, law.device

    def uniforms(what: str, columns: int) -> Tensor:
        return uniforms_on(Stream(work.sizes.seed, f"car {k}", what), n, columns, device)

    masks = uniforms("mask", len(types)) < RATE
    draws = draw_on(without_types(law, types), uniforms("draw", len(observed)))
    replaced = masks[:, send(owner, device)]
    return masks, torch.where(replaced, draws, send(observed, device))


def type_effects(masks: Tensor, probs: Tensor) -> Tensor:
    """Mean P(label) of contexts that keep a type minus of those that replace it: masks (N, K), probs (N, Y')."""
    replaced = masks.to(probs.dtype)
    kept = 1 - replaced

    def mean(weights: Tensor) -> Tensor:
        return weights.T @ probs / weights.sum(0).clamp(min=1)[:, None]

    return mean(kept) - mean(replaced)


def multiplied_weights(config: NetworkConfig, *, last_block_at_one: bool) -> int:
    """Weights of the blocks that every token is multiplied with: two floating-point operations each.

    `last_block_at_one`: of the last label block only keys and values are made for every token.
    """
    attention = 4 * config.width**2
    cross = attention if config.label_form == "cross" else 0
    block = attention + 3 * config.width * config.hidden
    label_block = attention + cross + 3 * config.width * (config.label_hidden or config.hidden)
    total = config.layers * block + config.label_layers * label_block
    if last_block_at_one and config.label_layers:
        total -= label_block - (2 if config.label_form == "shared" else 4) * config.width**2
    return total
