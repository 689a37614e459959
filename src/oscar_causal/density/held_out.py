"""How well events and labels are predicted on held-out sequences, and how much of what h^y adds to shortlists is borne
out.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from oscar_causal.data.batches import Encoded, pad
from oscar_causal.data.sequences import Float64, Int64
from oscar_causal.density.label_pass import event_states
from oscar_causal.density.model import length_batches, to_tokens
from oscar_causal.density.next_event import CHUNK
from oscar_causal.density.objective import PREFIXES
from oscar_causal.density.settings import TrainConfig
from oscar_causal.density.shortlist import past_in_rows
from oscar_causal.density.transfer import send
from oscar_causal.density.transformer import Network

BELIEVED = (1.0, 0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.0)
"""Shares of what h^y says, base rate and shortlists aside, that are tried on held-out sequences."""

EVENTS = 1 << 16
"""Events that the next-event loss is taken over, about: whole sequences, evenly spread over those held out."""
MOST_LOGITS = 1 << 33
"""Logits of those events, all in all: beyond 131,072 event types fewer events are looked at."""
TOKENS = {"cpu": 1 << 13, "cuda": 1 << 15}
"""Tokens of a pass."""


@torch.inference_mode()
def held_out_event_loss(
    network: Network, encoded: Encoded, *, tokens: int | None = None, logits: int | None = None
) -> float:
    """Mean over events of -log P(event | events before it), in nats.

    `tokens` of a pass and `logits`, tokens whose logits exist together: fewer than usual where memory is short.
    """
    device = network.label_head.weight.device
    most = max(1, min(EVENTS, MOST_LOGITS // network.config.events))
    every = max(1, -(-len(encoded.events.ids) // most))
    some = np.arange(0, len(encoded), every)
    total, count = torch.zeros((), dtype=torch.float64, device=device), 0
    chunk = logits or CHUNK
    for chosen in length_batches(encoded.events.lengths[some], tokens or TOKENS[device.type]):
        batch = to_tokens(pad(encoded, some[chosen]), device)
        lengths = send(encoded.events.lengths[some[chosen]], device)
        real = torch.arange(batch.event_ids.shape[1] - 1, device=device) < lengths[:, None]  # (B, L)
        states, targets = event_states(network, batch)[:, :-1][real], batch.event_ids[:, 1:][real]
        for part, wanted in zip(torch.split(states, chunk), torch.split(targets, chunk), strict=True):
            total += F.cross_entropy(network.event_logits(part).float(), wanted, reduction="sum").double()
        count += len(targets)
    return float(total) / max(1, count)


@torch.inference_mode()
def held_out_label_losses(
    network: Network, encoded: Encoded, config: TrainConfig, *, tokens: int | None = None
) -> tuple[list[float], list[float]]:
    """Mean over labelled sequences of the label cross entropy, summed over labels (nats), for each of `BELIEVED`.

    After the last event, and with prefixes weighed in as training does; `tokens` of a pass as above.
    """
    labelled = np.flatnonzero(encoded.labelled)
    room = tokens or TOKENS[network.label_head.weight.device.type]
    totals = torch.zeros(2, len(BELIEVED), dtype=torch.float64)
    for chosen in length_batches(encoded.events.lengths[labelled], room):
        indices = labelled[chosen]
        at, weights = _held_out_places(encoded.events.lengths[indices], config)
        listed, told = label_parts(network, encoded, indices, at)  # (B, P, Y)
        targets = torch.from_numpy(encoded.labels.take(indices).indicator(told.shape[2])).to(told)
        targets, shares = targets[:, None].expand_as(told), torch.from_numpy(weights)
        for k, share in enumerate(BELIEVED):
            losses = F.binary_cross_entropy_with_logits(listed + share * told, targets, reduction="none")
            sums = losses.double().sum(-1).cpu()  # (B, P)
            totals[:, k] += torch.stack([sums[:, 0].sum(), (sums * shares).sum()])
    at_end, weighted = (totals / max(1, len(labelled))).tolist()
    return at_end, weighted


def _held_out_places(lengths: Int64, config: TrainConfig) -> tuple[Int64, Float64]:
    """Tokens (B, P) after which held-out sequences are asked, with weights: the end, and prefixes evenly spread."""
    proper = np.maximum(lengths - config.min_context, 0)
    steps = (np.arange(PREFIXES) + 0.5) / PREFIXES
    at = np.minimum(config.min_context + np.floor(steps * proper[:, None]).astype(np.int64), lengths[:, None])
    shares = np.where(proper > 0, config.prefix_weight / PREFIXES, 0.0)
    weights = np.concatenate([np.ones((len(lengths), 1)), np.repeat(shares[:, None], PREFIXES, axis=1)], axis=1)
    return np.concatenate([lengths[:, None], at], axis=1), weights


def label_parts(network: Network, encoded: Encoded, indices: Int64, at: Int64) -> tuple[Tensor, Tensor]:
    """Logits (B, P, Y) after the tokens `at` (B, P): base rate and shortlists, and what h^y adds."""
    bias = network.label_head.bias
    tokens, places = to_tokens(pad(encoded, indices), bias.device), send(at, bias.device)
    _, hidden_y = network(tokens)
    told = network.state_logits(hidden_y[torch.arange(len(indices), device=bias.device)[:, None], places]) - bias
    listed = bias.expand_as(told)
    if network.shortlist is not None:
        listed = listed + network.shortlist(past_in_rows(tokens, places)).view(told.shape)
    return listed.float(), told.float()
