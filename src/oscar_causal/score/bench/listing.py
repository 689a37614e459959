"""The paper's appendix listing in our own words, as a yardstick of speed: what it computes and what it keeps in memory.

Its oddities are kept. The law of event i + 1 is drawn from for place i; mean and standard deviation of the threshold
run over padding too; everything of shape (B, N, L, Y) is there at once, for every label of the vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from oscar_causal.data.vocabulary import START_ID
from oscar_causal.density.model import OscarModel
from oscar_causal.density.shortlist import past_in_rows
from oscar_causal.density.transformer import Tokens


@dataclass(frozen=True)
class ListingConfig:
    """The listing's arguments with its defaults."""

    context: int = 15
    contexts: int = 64
    top_k: int = 20
    top_p: float = 0.8
    threshold: float = 2.75
    epsilon: float = 1e-6


@dataclass(frozen=True)
class ListingFound:
    """Shapes (B, L - c - 1, Y); row r is about token c + 1 + r, the start token being token 0."""

    accepted: Tensor
    strength: Tensor
    """Mean change of P(label) over contexts."""
    strength_sd: Tensor


@torch.inference_mode()
def run_listing(model: OscarModel, tokens: Tokens, config: ListingConfig, generator: torch.Generator) -> ListingFound:
    """One batch of padded sequences (B, L tokens): both passes, all labels, all positions."""
    network, c = model.network, config.context
    hidden_x, _ = network(tokens)
    next_probs = torch.softmax(network.event_logits(hidden_x), dim=-1)  # (B, L, V)
    rows = _repeated(tokens, sample_context(tokens.event_ids, next_probs, config, generator))
    _, hidden_y = network(rows)
    labels = torch.arange(network.config.labels, device=hidden_y.device)
    logits = network.state_logits(hidden_y[:, c:])  # (B * N, L - c, Y)
    if network.shortlist is not None:  # a row at a time: the paper's model has none, its listing keeps everything
        at = torch.arange(c, rows.event_ids.shape[1], device=logits.device)[None]
        for k, one in enumerate(logits):
            part = replace(rows, **{name: getattr(rows, name)[k : k + 1] for name in ("event_ids", "gaps", "elapsed")})
            one += network.shortlist(past_in_rows(part, at))
    probs = torch.sigmoid(model.calibrate(logits, labels))
    probs = probs.view(-1, config.contexts, *probs.shape[1:])  # (B, N, L - c, Y)
    probs = torch.clamp(probs, config.epsilon, 1 - config.epsilon)
    before, after = probs[:, :, :-1], probs[:, :, 1:]
    gain = after * torch.log(after / before) + (1 - after) * torch.log((1 - after) / (1 - before))
    cmi = gain.mean(dim=1)  # (B, L - c - 1, Y)
    change = after - before
    limit = cmi.mean(dim=1) + config.threshold * cmi.std(dim=1)  # (B, Y), padding included
    return ListingFound(cmi >= limit.unsqueeze(1), change.mean(dim=1), change.std(dim=1))


def sample_context(event_ids: Tensor, probs: Tensor, config: ListingConfig, generator: torch.Generator) -> Tensor:
    """N variants of every sequence whose first c tokens are drawn: event_ids (B, L), probs (B, L, V) -> (B, N, L)."""
    c, n = config.context, config.contexts
    values, which = torch.topk(probs[:, :c].float(), min(config.top_k, probs.shape[-1]), dim=-1)  # (B, c, k), falling
    beyond = values.cumsum(dim=-1) > config.top_p
    beyond[..., 0] = False
    weights = values.masked_fill(beyond, 0.0) + 1e-8
    weights = (weights / weights.sum(dim=-1, keepdim=True)).unsqueeze(1).repeat(1, n, 1, 1)  # (B, N, c, k)
    drawn = torch.multinomial(weights.flatten(0, 2), 1, generator=generator).view(-1, n, c, 1)
    first = which.unsqueeze(1).repeat(1, n, 1, 1).gather(-1, drawn).squeeze(-1)  # (B, N, c)
    first[..., 0] = START_ID
    return torch.cat([first, event_ids.unsqueeze(1).repeat(1, n, 1)[..., c:]], dim=-1)


def _repeated(tokens: Tokens, event_ids: Tensor) -> Tokens:
    """Every context with the times and channels of its sequence: (B * N, L)."""
    n = event_ids.shape[1]
    return replace(
        tokens,
        event_ids=event_ids.flatten(0, 1),
        gaps=tokens.gaps.repeat_interleave(n, dim=0),
        elapsed=tokens.elapsed.repeat_interleave(n, dim=0),
        channels=tokens.channels.repeat_interleave(n, dim=0),
    )
