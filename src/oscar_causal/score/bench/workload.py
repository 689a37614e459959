"""Work of a given size for the benchmark of speed: a random model, random sequences, and one stage of contexts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

import numpy as np
import pyarrow as pa
import torch

from oscar_causal.data.batches import Encoded
from oscar_causal.data.sequences import Dataset, from_table
from oscar_causal.data.vocabulary import SPECIAL_IDS, Vocabulary
from oscar_causal.density.compiled import Question, padded_length
from oscar_causal.density.interface import Contexts
from oscar_causal.density.model import OscarModel, sequence_contexts
from oscar_causal.density.settings import SIZES
from oscar_causal.density.transformer import Network, NetworkConfig, turning_pairs
from oscar_causal.discovery.batched import IN_FLIGHT, Parcel, by_length, room_for
from oscar_causal.discovery.contexts import Bool, Float64, Int64, Stream
from oscar_causal.discovery.subject import Variants, build_contexts, label_question, subject_of

SHORTEST = 24
"""Events of the shortest sequence: some must stand behind the first c."""
AHEAD = 4
"""Groups of sequences that the device may still be working on while the host prepares another."""
RATE = 0.15
"""Share of the event types that a context replaces."""


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
    count = min(sizes.labels_per_sequence, len(labels))
    drawn = [(rng.integers(0, len(events), length), rng.choice(len(labels), count, False)) for length in lengths]
    columns = {
        "events": _listed(pa.array(events), [ids for ids, _ in drawn]),
        "times": _listed(pa.array(60.0 * np.arange(sizes.longest)), [np.arange(length) for length in lengths]),
        "labels": _listed(pa.array(labels), [ids for _, ids in drawn]),
    }
    return pa.table({"sequence_id": [f"car {k}" for k in range(sizes.sequences)], **columns})


def _listed(values: pa.Array, parts: Sequence[Int64]) -> pa.Array:
    """Lists of values, given by their numbers."""
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    flat = np.concatenate(parts) if parts else np.empty(0, np.int64)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values.take(pa.array(flat)))


def one_per_launch(work: Workload) -> list[int]:
    """The longest sequence of every launch shape: enough to compile and record all of them."""
    shapes: dict[int, int] = {}
    for k, length in enumerate(work.data.lengths.tolist()):
        shapes.setdefault(padded_length(length + 1), k)
    return list(shapes.values())


def intervention_stage(work: Workload, model: OscarModel, which: Sequence[int]) -> list[Float64]:
    """One stage of N contexts for every chosen sequence, its labels and all its types: effects (K, Y').

    The work of the intervention estimator at N contexts without its tests: the law of replacements, masks, draws, one
    pass for every context, P(label) after the last event, mean difference between contexts that keep and replace.
    While the device works on some groups of sequences, the host prepares the next ones.
    """
    order = [which[k] for k in by_length(work.data.lengths[list(which)].tolist())]
    answers: dict[int, Float64] = {}
    asked: deque[tuple[Sequence[int], Callable[[], list[Float64]]]] = deque()
    for group in [*from_both_ends(list(_groups(work, order))), ()]:
        if group:
            asked.append((group, _group_effects(work, model, group)))
        while asked and (len(asked) > AHEAD or not group):
            done, effects = asked.popleft()
            answers.update(zip(done, effects(), strict=True))
    return [answers[k] for k in which]


def from_both_ends(groups: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    """The first, the last, the second, the last but one, ...: long sequences keep the device busy, short ones the host.

    >>> from_both_ends([[0], [1], [2], [3], [4]])
    [[0], [4], [1], [3], [2]]
    """
    return [groups[k // 2] if k % 2 == 0 else groups[-1 - k // 2] for k in range(len(groups))]


def _groups(work: Workload, order: Sequence[int]) -> Iterator[Sequence[int]]:
    """Sequences of one launch shape, in order of length, as many at a time as `discover` studies long ones."""
    for _, same in groupby(order, lambda k: padded_length(int(work.data.lengths[k]) + 1)):
        mine = list(same)
        count = min(IN_FLIGHT, room_for(int(work.data.lengths[mine[0]]), work.sizes.events))
        yield from (mine[begin : begin + count] for begin in range(0, len(mine), count))


def _group_effects(work: Workload, model: OscarModel, group: Sequence[int]) -> Callable[[], list[Float64]]:
    """Asks for the effects of some sequences; what is returned waits for them."""
    sequences = [sequence_contexts(work.encoded, k) for k in group]
    masks, questions = _drawn(work, group, sequences, model.event_probs_together(sequences))
    parcel = Parcel(model.label_probs_together(questions))

    def effects() -> list[Float64]:
        probs = [part[:, 0].double().numpy() for part in parcel.open()]
        return [type_effects(mask, part) for mask, part in zip(masks, probs, strict=True)]

    return effects


def _drawn(
    work: Workload, group: Sequence[int], sequences: Sequence[Contexts], laws: list[torch.Tensor]
) -> tuple[list[Bool], list[Question]]:
    """The masks of the contexts, and what is asked about them. Laws are large: they end here."""
    seed, variants, masks = work.sizes.seed, [], []
    for k, sequence in zip(group, sequences, strict=True):
        subject = subject_of(sequence, laws.pop(0), sequence_id=f"car {k}", seed=seed, shuffle=False)
        uniforms = Stream(seed, subject.sequence_id, "mask").uniforms(work.sizes.contexts, len(subject.types))
        masks.append(uniforms < RATE)
        variants.append(Variants(subject, masks[-1][:, subject.owner], "speed"))
    labels = [torch.as_tensor(work.encoded.labels[k].astype(np.int64)) for k in group]
    built = zip(build_contexts(variants), labels, strict=True)
    return masks, [Question(*label_question(*asked)) for asked in built]


def type_effects(masks: Bool, probs: Float64) -> Float64:
    """Mean P(label) of contexts that keep a type minus of those that replace it: masks (N, K), probs (N, Y')."""
    replaced = masks.astype(np.float64)

    def mean(weights: Float64) -> Float64:
        return np.asarray(weights.T @ probs / weights.sum(0).clip(min=1)[:, None])

    return mean(1 - replaced) - mean(replaced)


def multiplied_weights(config: NetworkConfig, *, last_block_at_one: bool) -> int:
    """Weights of the blocks that every token is multiplied with: two floating-point operations each.

    `last_block_at_one`: of the last label block every token meets only the keys of features that turn.
    """
    attention = 4 * config.width**2
    attentions = 2 if config.label_form == "cross" else 1
    block = attention + 3 * config.width * config.hidden
    label_block = attentions * attention + 3 * config.width * (config.label_hidden or config.hidden)
    total = config.layers * block + config.label_layers * label_block
    if last_block_at_one and config.label_layers:
        turning = 2 * turning_pairs(config.width // config.heads) * config.heads
        total -= label_block - attentions * turning * config.width
    return total
