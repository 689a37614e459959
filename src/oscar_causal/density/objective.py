"""One training step's data and loss: everything a process needs for its share of a global batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from oscar_causal.data.batches import Encoded, Packed, Padded, pack, pad
from oscar_causal.data.keyed import keyed_uniforms
from oscar_causal.data.sequences import Int64
from oscar_causal.data.vocabulary import PAD_ID, SPECIAL_IDS, UNKNOWN_ID
from oscar_causal.density.labels import label_loss
from oscar_causal.density.next_event import CHUNK, next_event_loss, time_loss
from oscar_causal.density.settings import TrainConfig
from oscar_causal.density.shortlist import past_in_run
from oscar_causal.density.transformer import Network, Tokens

TIME_WEIGHT = 0.05
"""Weight of the time losses: enough to learn them, too little to disturb the events."""
PREFIXES = 4
"""Prefixes of each sequence that are asked for its labels in a step."""
MOST_HIDDEN = 0.3
"""Largest share of the event types of a sequence that is hidden while training."""


@dataclass(frozen=True)
class Step:
    """Tokens with targets; T tokens end to end (a rectangle flattened), S sequences."""

    tokens: Tokens
    next_ids: Tensor  # (T,) -1 = no target
    next_gaps: Tensor  # (T,) seconds to the next event
    targets: Tensor  # (S, Y) labels
    owners: Tensor  # (T,) sequence of each token
    places: Tensor  # (P,) tokens after which labels are asked
    place_weights: Tensor  # (P,) share of each in its sequence's label loss
    outcome_gaps: Tensor  # (T,) seconds to the first label, 0 where unknown
    outcome_weights: Tensor  # (T,) share of each token in its sequence's loss


class Objective(nn.Module):
    """The sum of the losses of a step, each divided by its global count."""

    emphasis: Tensor | None

    def __init__(
        self, network: Network, config: TrainConfig, emphasis: Tensor | None = None, logits: int | None = None
    ) -> None:
        """`emphasis` (Y,): log weight of each label's positives (see `label_loss`); `logits`: see `TrainPieces`."""
        super().__init__()
        self.register_buffer("emphasis", emphasis, persistent=False)
        self.network = network
        self.config = config
        self.logits = logits or CHUNK
        self.run_network: Callable[[Tokens], tuple[Tensor, Tensor]] = network
        """The network, or its compiled form."""

    def forward(self, step: Step, token_scale: Tensor, sequence_scale: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The next-event and the label loss, times included, and that of the shortlists alone.

        Scaled by 1 / global tokens and 1 / global sequences. Shortlists learn to stand alone as well as together with
        h^y: how much of what it adds is true and not learnt by heart, held-out sequences decide (`Trainer`).
        """
        hidden_x, hidden_y = (hidden.flatten(0, -2) for hidden in self.run_network(step.tokens))  # (T, D)
        network = self.network
        if torch.is_autocast_enabled(hidden_x.device.type):
            hidden_x = hidden_x.to(torch.get_autocast_dtype(hidden_x.device.type))
        real = (step.next_ids >= 0).float()
        event = next_event_loss(
            hidden_x, network.embedding.events.weight, step.next_ids, token_scale, chunk=self.logits
        )
        gap = time_loss(network.gap_head(hidden_x), step.next_gaps, real) * token_scale
        positions = step.tokens.positions
        begins = step.places - positions.expand(step.tokens.event_ids.shape).flatten()[step.places]
        past = past_in_run(step.tokens, begins, step.places, step.tokens.longest or len(positions))
        logits, targets = network.state_logits(hidden_y[step.places]), step.targets[step.owners[step.places]]  # (P, Y)
        alone = torch.zeros_like(sequence_scale)
        if network.shortlist is not None:
            listed = network.shortlist(past)
            logits = logits + listed
            alone = self._label_loss(listed + network.label_head.bias, targets, step.place_weights) * sequence_scale
        label = self._label_loss(logits, targets, step.place_weights)
        outcome = time_loss(network.outcome_head(hidden_y), step.outcome_gaps, step.outcome_weights)
        return event + TIME_WEIGHT * gap, (label + TIME_WEIGHT * outcome) * sequence_scale, alone

    def _label_loss(self, logits: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        return label_loss(logits, targets, weights, lost=self.config.lost_labels, emphasis=self.emphasis)


def make_step(
    encoded: Encoded, indices: Int64, config: TrainConfig, labels: int, *, packed: tuple[int, int] | None, step: int = 0
) -> Step:
    """Lay out the chosen sequences with their targets; `packed` = (tokens, runs) of a packed row.

    `step` decides which events are hidden this time (`TrainConfig.hidden`); their channel values are missing.
    """
    lengths = encoded.events.lengths[indices] + 1
    if packed is None:
        batch: Padded | Packed = pad(encoded, indices)
        width = batch.event_ids.shape[1]
        positions = np.tile(np.arange(width), len(indices))
        owners = np.repeat(np.arange(len(indices)), width)
        tokens = _tokens(batch, np.arange(width), None, 0)
        rows = len(indices)
    else:
        total, rows = packed
        batch = pack(encoded, indices, tokens=total, most_sequences=rows)
        positions = batch.positions
        ends = np.concatenate([batch.bounds[: len(indices) + 1], [total]])
        owners = np.repeat(np.arange(len(indices) + 1), np.diff(ends))
        tokens = _tokens(batch, positions, batch.bounds, config.max_length + 1)
    laid_out = _with_targets(encoded, indices, config, (tokens, positions, owners, lengths, rows, labels), step)
    if not config.hidden:
        return laid_out
    ids = tokens.event_ids.numpy()
    sequences = np.append(indices, -1)[np.minimum(owners, len(indices))].reshape(ids.shape)
    seen = hide_types(ids, sequences, config, step)
    channels = tokens.channels.masked_fill(torch.from_numpy(seen != ids).unsqueeze(-1), torch.nan)
    return replace(laid_out, tokens=replace(tokens, event_ids=torch.from_numpy(seen), channels=channels))


def hide_types(ids: Int64, sequences: Int64, config: TrainConfig, step: int) -> Int64:
    """Event ids with some types of some sequences turned into `unknown`, whole types at a time.

    A sequence is met with up to `MOST_HIDDEN` of its types hidden, other ones each time, so it cannot be learnt by
    heart from the rare events it happens to hold. A function of (seed, step, sequence, type).
    """
    key = (config.seed, step)
    coin = keyed_uniforms(key, sequences, -1)
    rate = MOST_HIDDEN * np.maximum(coin - (1 - config.hidden), 0.0) / config.hidden
    hidden = (ids >= SPECIAL_IDS) & (keyed_uniforms(key, sequences, ids) < rate)
    return np.where(hidden, UNKNOWN_ID, ids)


def _with_targets(
    encoded: Encoded,
    indices: Int64,
    config: TrainConfig,
    layout: tuple[Tokens, Int64, Int64, Int64, int, int],
    step: int,
) -> Step:
    tokens, positions, owners, lengths, rows, labels = layout
    ids = tokens.event_ids.numpy().reshape(-1)
    inside = (ids != PAD_ID) & (owners < len(indices))
    owner_lengths = np.append(lengths, 1)[owners]
    has_next = inside & (positions < owner_lengths - 1)
    next_ids = np.where(has_next, np.append(ids[1:], PAD_ID), -1)
    next_gaps = np.where(has_next, np.append(tokens.gaps.numpy().reshape(-1)[1:], 0), 0)
    targets = np.zeros((rows + 1, labels), np.float32)
    chosen = encoded.labels.take(indices)
    targets[chosen.rows(), chosen.ids] = 1.0
    weights = _prefix_weights(encoded, indices, config, positions, owners, owner_lengths, inside)
    places, place_weights = _label_places(encoded, indices, config, positions, owners, inside, step)
    outcome = np.append(encoded.outcome_times[indices], np.nan)[owners] - tokens.elapsed.numpy().reshape(-1)
    known = np.isfinite(outcome) & (weights > 0)
    return Step(
        tokens,
        torch.from_numpy(next_ids.astype(np.int64)),
        torch.from_numpy(next_gaps.astype(np.float32)),
        torch.from_numpy(targets),
        torch.from_numpy(np.minimum(owners, rows)),
        torch.from_numpy(places),
        torch.from_numpy(place_weights.astype(np.float32)),
        torch.from_numpy(np.where(known, np.maximum(outcome, 0), 0).astype(np.float32)),
        torch.from_numpy(np.where(known, weights, 0).astype(np.float32)),
    )


def _prefix_weights(
    encoded: Encoded,
    indices: Int64,
    config: TrainConfig,
    positions: Int64,
    owners: Int64,
    owner_lengths: Int64,
    inside: np.typing.NDArray[np.bool_],
) -> np.typing.NDArray[np.float64]:
    """Weight 1 on the whole sequence; `prefix_weight` spread evenly over its proper prefixes of at least c events."""
    labelled = np.append(encoded.labelled[indices], False)[owners]
    last = positions == owner_lengths - 1
    prefixes = np.maximum(owner_lengths - 1 - config.min_context, 0)
    proper = (positions >= config.min_context) & ~last
    spread = np.where(proper, config.prefix_weight / np.maximum(prefixes, 1), 0.0)
    return np.where(inside & labelled, last + spread, 0.0)


def _label_places(
    encoded: Encoded,
    indices: Int64,
    config: TrainConfig,
    positions: Int64,
    owners: Int64,
    inside: np.typing.NDArray[np.bool_],
    step: int,
) -> tuple[Int64, np.typing.NDArray[np.float64]]:
    """Tokens (P,) after which labels are asked, with their weights: the whole sequence and a few of its prefixes.

    The prefixes are drawn evenly from those of at least c events, other ones each time: on average their loss is that
    of all prefixes. A function of (seed, step, sequence).
    """
    begins = np.flatnonzero(inside & (positions == 0))  # one token a sequence, in order
    lengths = encoded.events.lengths[indices]
    proper = np.maximum(lengths - config.min_context, 0)
    draws = keyed_uniforms((config.seed, step), indices[:, None], -2 - np.arange(PREFIXES))  # (S, PREFIXES)
    drawn = config.min_context + np.floor(draws * proper[:, None]).astype(np.int64)
    at = np.concatenate([lengths[:, None], np.minimum(drawn, lengths[:, None])], axis=1)
    share = np.where(proper > 0, config.prefix_weight / PREFIXES, 0.0)
    weights = np.concatenate([np.ones((len(indices), 1)), np.repeat(share[:, None], PREFIXES, axis=1)], axis=1)
    return (begins[:, None] + at).ravel(), (weights * encoded.labelled[indices][:, None]).ravel()


def _tokens(
    batch: Padded | Packed, positions: Int64, bounds: np.typing.NDArray[np.int32] | None, longest: int
) -> Tokens:
    return Tokens(
        torch.from_numpy(batch.event_ids),
        torch.from_numpy(batch.gaps),
        torch.from_numpy(batch.elapsed),
        torch.from_numpy(batch.channels),
        torch.from_numpy(positions),
        None if bounds is None else torch.from_numpy(bounds),
        longest,
    )
