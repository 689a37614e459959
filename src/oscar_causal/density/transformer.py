"""The network: a decoder over events with their time gaps and channels, read by two heads.

    event, gap, channels -> embedding -> backbone blocks -> h^x -> next event (softmax), time to it      Tf_x, Eq. 7
                                              |-> label blocks -> h^y -> every label (sigmoid), time     Tf_y, Eq. 8

One pass yields both densities. Shapes: B sequences, L tokens (start token first), T = B * L tokens end to end,
V event ids, Y labels, D width, H heads, C channels. Attention is causal everywhere, so padding behind a sequence is
never looked at and needs no mask.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Literal, cast

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from oscar_causal.density.shortlist import Past, Shortlist
from oscar_causal.errors import UsageError

if torch.cuda.is_available():  # it takes a second to import, and only CUDA has it
    from torch.nn.attention import varlen

    _CAUSAL: dict[str, Any] = (
        {"window_size": (-1, 0)}
        if "window_size" in inspect.signature(varlen.varlen_attn).parameters
        else {"is_causal": True}  # torch 2.11
    )
ROW_MULTIPLE = 64
"""Vocabulary tables are padded to a multiple of this many rows: matrix units want it."""


@dataclass(frozen=True)
class NetworkConfig:
    """Everything that decides the shape of the weights."""

    events: int
    """Number of event ids V, special ones included."""
    labels: int
    """Number of labels Y."""
    channels: int = 0
    """Number of numeric channels C."""
    width: int = 96
    """Width D of the residual stream."""
    heads: int = 4
    """Attention heads; width must be divisible by twice this number."""
    layers: int = 3
    """Backbone blocks."""
    label_layers: int = 1
    """Blocks of Tf_y on top of (shared) or beside (cross) the backbone."""
    label_form: Literal["shared", "cross"] = "shared"
    """shared: label blocks continue the backbone; cross: they read the event embeddings and attend to the backbone."""
    hidden: int = 256
    """Inner width of the gated feed-forward layers of the backbone."""
    label_hidden: int = 0
    """The same in the label blocks; 0 = as in the backbone."""
    bag_width: int = 0
    """Width of the event vectors that Tf_y sums up; 0 = a quarter of D."""
    shortlist: int = 0
    """Event types that each label has a network of its own for (see `shortlist.py`); 0 = none."""

    def __post_init__(self) -> None:
        for name in ("events", "labels", "width", "heads", "layers", "hidden"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name}: expected at least 1, got {getattr(self, name)}")
        if self.width % (2 * self.heads):
            raise UsageError(f"width: expected a multiple of 2 x heads = {2 * self.heads}, got {self.width}")
        if self.label_form not in ("shared", "cross"):
            raise UsageError(f"label_form: expected shared or cross, got {self.label_form!r}")
        if self.label_form == "cross" and self.label_layers < 1:
            raise UsageError("label_layers: the cross form needs at least 1")

    @property
    def bag_size(self) -> int:
        """Features of the event vectors that Tf_y sums up."""
        return self.bag_width or max(16, self.width // 4)


@dataclass(frozen=True)
class Tokens:
    """Network input. A rectangle is (B, L) and has no `bounds`; packed tokens are (T,) with bounds (S + 1,)."""

    event_ids: Tensor
    gaps: Tensor
    elapsed: Tensor
    channels: Tensor
    positions: Tensor
    bounds: Tensor | None = None
    longest: int = 0


@dataclass(frozen=True)
class Blend:
    """Events partly replaced: at each token a share of its vectors is exchanged for a mean over replacements."""

    share: Tensor
    """(B, L) between 0 (as it is) and 1 (replaced)."""
    events: Tensor
    """(L, D) mean vectors of the replacements in the embedding."""
    bag: Tensor
    """(L, K) mean vectors of the replacements in the bag."""
    channels: bool = True
    """Do channel values fade into missing ones by the same share?"""


class Network(nn.Module):
    """Tf_x and Tf_y over one backbone."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = EventEmbedding(config)
        self.blocks = nn.ModuleList(Block(config, config.hidden) for _ in range(config.layers))
        self.norm_x = nn.RMSNorm(config.width)
        self.bag = EventBag(config)
        cross = config.label_form == "cross"
        inner = config.label_hidden or config.hidden
        self.label_blocks = nn.ModuleList(Block(config, inner, cross=cross) for _ in range(config.label_layers))
        self.norm_y = nn.RMSNorm(config.width)
        self.label_head = nn.Linear(config.width, config.labels)
        self.gap_head = nn.Linear(config.width, 2)
        self.outcome_head = nn.Linear(config.width, 2)
        self.shortlist = Shortlist(config.events, config.labels, config.shortlist) if config.shortlist else None
        self._initialise()

    def forward(self, tokens: Tokens, blend: Blend | None = None) -> tuple[Tensor, Tensor]:
        """Hidden states of both densities at every token: h^x and h^y, each (..., D)."""
        embedded = self.embedding(tokens, blend)
        if torch.is_autocast_enabled(embedded.device.type):
            embedded = embedded.to(torch.get_autocast_dtype(embedded.device.type))  # the residual stream too
        rotation = rotary_table(tokens.positions, self.config.width // self.config.heads)
        state = embedded
        for block in self.blocks:
            state = block(state, rotation, tokens)
        hidden_x = self.norm_x(state)
        label_state = (embedded if self.config.label_form == "cross" else state) + self.bag(tokens, blend)
        for block in self.label_blocks:
            label_state = block(label_state, rotation, tokens, memory=hidden_x)
        return hidden_x, self.norm_y(label_state)

    def event_logits(self, hidden_x: Tensor) -> Tensor:
        """Next-event logits (..., V); the output matrix is the embedding matrix without its padding rows."""
        return F.linear(hidden_x, self.embedding.events.weight[: self.config.events])

    def event_law(self, hidden_x: Tensor) -> Tensor:
        """P(next event) in float32: (..., V)."""
        return self.padded_event_logits(hidden_x).softmax(-1)[..., : self.config.events]

    def padded_event_logits(self, hidden_x: Tensor) -> Tensor:
        """Next-event logits in float32 with the padding rows, all of them -inf: matrix units want them, cutting them
        off is a copy.
        """
        logits = F.linear(hidden_x, self.embedding.events.weight).float()
        logits[..., self.config.events :] = -torch.inf
        return logits

    def label_logits(self, hidden_y: Tensor, past: Past, labels: Tensor | None = None) -> Tensor:
        """Label logits (..., Y), or of the chosen labels only; `past`: a row for every hidden state."""
        logits = self.state_logits(hidden_y, labels)
        return logits if self.shortlist is None else logits + self.shortlist(past, labels).view(logits.shape)

    def state_logits(self, hidden_y: Tensor, labels: Tensor | None = None) -> Tensor:
        """The part of the label logits that is read off h^y."""
        if labels is None:
            return self.label_head(hidden_y)  # type: ignore[no-any-return]
        return F.linear(hidden_y, self.label_head.weight[labels], self.label_head.bias[labels])

    def _initialise(self) -> None:
        depth = self.config.layers + self.config.label_layers
        for name, parameter in self.named_parameters():
            if parameter.dim() < 2 or name.startswith("shortlist."):
                continue
            scale = 0.02 if "embedding" in name else parameter.shape[1] ** -0.5
            if name.endswith(("out.weight", "down.weight")):
                scale /= (2 * depth) ** 0.5
            nn.init.normal_(parameter, std=scale)
        nn.init.normal_(self.bag.events.weight, std=self.bag.QUIET)
        nn.init.zeros_(self.embedding.times.weight)
        if self.embedding.values is not None:
            nn.init.zeros_(self.embedding.values.weight)
        nn.init.zeros_(self.label_head.weight)
        nn.init.zeros_(self.label_head.bias)


class EventEmbedding(nn.Module):
    """Event id, time since the event before, time since the start and channel values, added up."""

    channel_mean: Tensor
    channel_scale: Tensor
    WAVES = 8
    """Sine and cosine pairs of the logarithm of each time, from coarse to fine."""
    QUIET = 0.1
    """Times and channels start silent and learn at a tenth of the speed of events: many dense inputs would otherwise
    drown the few events that matter (demo fleet, 300 steps: label F1 0.84 at full speed, 0.94 without times)."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.events = nn.Embedding(padded_rows(config.events), config.width)
        self.times = nn.Linear(2 * (2 * self.WAVES + 2), config.width, bias=False)
        self.values = nn.Linear(2 * config.channels, config.width, bias=False) if config.channels else None
        self.register_buffer("channel_mean", torch.zeros(config.channels))
        self.register_buffer("channel_scale", torch.ones(config.channels))

    def forward(self, tokens: Tokens, blend: Blend | None = None) -> Tensor:
        times = torch.cat([self._waves(tokens.gaps), self._waves(tokens.elapsed)], dim=-1)
        dtype = self.events.weight.dtype
        vectors = self.events(tokens.event_ids)  # (..., D)
        if blend is not None:
            vectors = torch.lerp(vectors, blend.events.expand_as(vectors), blend.share.unsqueeze(-1))
        embedded = vectors + self.QUIET * self.times(times.to(dtype))
        if self.values is not None:
            absent = tokens.channels.isnan()
            known = ((tokens.channels - self.channel_mean) / self.channel_scale).masked_fill(absent, 0.0)
            missing = absent.float()
            if blend is not None and blend.channels:
                share = blend.share.unsqueeze(-1)
                known, missing = known * (1 - share), missing + share * (1 - missing)
            embedded = embedded + self.QUIET * self.values(torch.cat([known, missing], dim=-1).to(dtype))
        return embedded  # type: ignore[no-any-return]

    def _waves(self, seconds: Tensor) -> Tensor:
        logs = torch.log1p(seconds.float()).unsqueeze(-1)  # (..., 1)
        rates = 2.0 ** torch.arange(self.WAVES, device=logs.device) * 0.25
        angles = logs * rates
        return torch.cat([logs / 16, (seconds == 0).float().unsqueeze(-1), angles.sin(), angles.cos()], dim=-1)


class EventBag(nn.Module):
    """Which events came so far, whatever their order: a running sum of event vectors, read by Tf_y.

    Softmax attention averages, so one event among 150 starts with 1/150 of a voice and Tf_y spends most of its training
    finding it. A sum gives every event its full voice from the first step.
    """

    QUIET = 0.001
    """Scale of the vectors at the start: only events that keep telling about a label grow loud. Loud random vectors
    would be a fingerprint of every sequence, and Tf_y would learn the training set by heart."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.events = nn.Embedding(padded_rows(config.events), config.bag_size)
        self.out = nn.Linear(self.events.embedding_dim, config.width, bias=False)

    def added(self, state: Tensor, tokens: Tokens, blend: Blend | None = None) -> Tensor:
        """The state (..., L, D) with what the bag says of its tokens, in the precision of the state."""
        return state + cast(Tensor, self(tokens, blend)).to(state.dtype)

    def forward(self, tokens: Tokens, blend: Blend | None = None) -> Tensor:
        vectors = self.events(tokens.event_ids).float()  # (..., L, K)
        if blend is not None:
            vectors = torch.lerp(vectors, blend.bag.expand_as(vectors), blend.share.unsqueeze(-1))
        sums = vectors.cumsum(-2)
        if tokens.bounds is not None:
            starts = torch.arange(len(sums), device=sums.device) - tokens.positions  # (T,)
            sums = sums - sums[starts] + vectors[starts]
        return self.out(sums)  # type: ignore[no-any-return]


class Block(nn.Module):
    """Pre-norm attention (optionally also to the backbone) and a gated feed-forward layer."""

    def __init__(self, config: NetworkConfig, hidden: int, *, cross: bool = False) -> None:
        super().__init__()
        self.norm_attention = nn.RMSNorm(config.width)
        self.attention = Attention(config)
        self.norm_cross = nn.RMSNorm(config.width) if cross else None
        self.cross = Attention(config) if cross else None
        self.norm_forward = nn.RMSNorm(config.width)
        self.up = nn.Linear(config.width, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, config.width, bias=False)

    def forward(self, state: Tensor, rotation: Tensor, tokens: Tokens, memory: Tensor | None = None) -> Tensor:
        return self.closed(*self.opened(state, rotation, tokens, memory))

    def opened(self, state: Tensor, rotation: Tensor, tokens: Tokens, memory: Tensor | None) -> tuple[Tensor, Tensor]:
        """All but the last product: the state after attention, and what the feed-forward layer holds inside."""
        normed = self.norm_attention(state)
        state = state + self.attention(normed, normed, rotation, tokens)
        if self.cross is not None and self.norm_cross is not None and memory is not None:
            state = state + self.cross(self.norm_cross(state), memory, rotation, tokens)
        return state, self.gated(state)

    def gated(self, state: Tensor) -> Tensor:
        """What the feed-forward layer holds inside."""
        gate, value = self.up(self.norm_forward(state)).chunk(2, dim=-1)  # (..., hidden) twice
        inner: Tensor = F.silu(gate) * value
        return inner

    def closed(self, state: Tensor, inner: Tensor) -> Tensor:
        """The state with what the feed-forward layer adds; written over it where no way back is asked for."""
        flat, added = state.flatten(0, -2), (inner.flatten(0, -2), self.down.weight.T)
        way_back = torch.is_grad_enabled() and (state.requires_grad or inner.requires_grad)
        mixed = state.dtype != self.down.weight.dtype  # products in place know nothing of autocast
        return (flat.addmm(*added) if way_back or mixed else flat.addmm_(*added)).view(state.shape)

    def at(self, state: Tensor, rotation: Tensor, at: Tensor, memory: Tensor) -> Tensor:
        """What the block makes of the tokens `at` (B, P) alone: (B, P, D)."""
        chosen = tokens_at(state, at)
        looked = self.attention.at(self.norm_attention(chosen), self.norm_attention(state), rotation, at)
        chosen = chosen + looked
        if self.cross is not None and self.norm_cross is not None:
            chosen = chosen + self.cross.at(self.norm_cross(chosen), memory, rotation, at)
        return self.closed(chosen, self.gated(chosen))


class Attention(nn.Module):
    """Causal multi-head attention with rotary positions; queries from one stream, keys and values from another."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.query = nn.Linear(config.width, config.width, bias=False)
        self.key_value = nn.Linear(config.width, 2 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)

    def forward(self, queries: Tensor, memory: Tensor, rotation: Tensor, tokens: Tokens) -> Tensor:
        split = (self.heads, -1)
        query = rotate(self.query(queries).unflatten(-1, split), rotation)  # (..., H, D/H)
        key, value = self.remembered(memory, rotation)
        if tokens.bounds is not None:
            mixed = packed_attention(query, key, value, tokens.bounds, tokens.longest)  # (T, H, D/H)
        else:
            query, key, value = (x.transpose(-3, -2) for x in (query, key, value))  # (B, H, L, D/H)
            mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True).transpose(-3, -2)
        return self.out(mixed.flatten(-2))  # type: ignore[no-any-return]

    def at(self, queries: Tensor, memory: Tensor, rotation: Tensor, at: Tensor) -> Tensor:
        """Attention of the queries (B, P, D) at the tokens `at` to all tokens up to theirs.

        Queries are few and tokens many, so keys and values of all tokens are never made: a query goes through the
        weights of the keys, what it mixes through those of the values. Only features that turn need keys of their own.
        """
        key, value = self.key_value.weight.view(2, self.heads, -1, memory.shape[-1])  # (H, D/H, D) each
        query = rotate(self.query(queries).unflatten(-1, (self.heads, -1)), rotation[at])  # (B, P, H, D/H)
        (turning, still), (angles, _), (turning_key, still_key) = map(by_turning, (query, rotation, key.mT))
        turned = rotate(torch.einsum("ble,hef->blhf", memory, turning_key), angles)  # (B, L, H, F): F features turn
        asked = torch.einsum("bphf,hef->bphe", still, still_key)
        scores = torch.einsum("bphe,ble->bphl", asked, memory).float()  # by hand: fused kernels differ from run to run
        scores = scores + torch.einsum("bphf,blhf->bphl", turning, turned).float()
        later = torch.arange(memory.shape[1], device=at.device) > at[..., None]  # (B, P, L)
        scores = (scores * query.shape[-1] ** -0.5).masked_fill(later[:, :, None], -torch.inf)
        mixed = torch.einsum("bphl,ble->bphe", scores.softmax(-1).to(memory.dtype), memory)
        return self.out(torch.einsum("bphe,hfe->bphf", mixed, value).flatten(-2))  # type: ignore[no-any-return]

    def remembered(self, memory: Tensor, rotation: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values (..., H, D/H) of all tokens."""
        key, value = self.key_value(memory).unflatten(-1, (2, self.heads, -1)).unbind(-3)
        return rotate(key, rotation), value


def tokens_at(state: Tensor, at: Tensor) -> Tensor:
    """What stands at the tokens `at` (B, P) of a rectangle (B, L, ...): (B, P, ...)."""
    return state[torch.arange(len(at), device=at.device)[:, None], at]


def packed_attention(query: Tensor, key: Tensor, value: Tensor, bounds: Tensor, longest: int) -> Tensor:
    """Causal attention inside each run of packed tokens (CUDA only)."""
    return varlen.varlen_attn(query, key, value, bounds, bounds, longest, longest, **_CAUSAL)  # type: ignore[return-value]


def padded_rows(events: int) -> int:
    """Rows of a vocabulary table."""
    return -(-events // ROW_MULTIPLE) * ROW_MULTIPLE


def turning_pairs(size: int) -> int:
    """Pairs of features of a head of this size that turn with the position."""
    return max(1, size // 8)


def by_turning(features: Tensor) -> tuple[Tensor, Tensor]:
    """Of the features of heads (..., size) those that turn with the position, and the others."""
    size = features.shape[-1]
    halves = features.reshape(*features.shape[:-1], 2, size // 2)  # partners stand below each other
    first, second = halves[..., : turning_pairs(size)], halves[..., turning_pairs(size) :]
    return first.flatten(-2), second.flatten(-2)


def rotary_table(positions: Tensor, size: int) -> Tensor:
    """Cosine and sine of every position's rotation angles: (..., 1, 2, size); the sine has its partner's sign.

    Only the first quarter of the pairs turns; the rest compare content alone, wherever it stands, because most rules
    ask whether an event came, not how many events ago.
    """
    pairs = torch.arange(size // 2, device=positions.device)
    turning = turning_pairs(size)
    rates = torch.where(pairs < turning, 10_000.0 ** (-pairs.float() / turning), 0.0)
    angles = positions.float().unsqueeze(-1) * rates  # (..., size / 2)
    cos, sin = angles.cos(), angles.sin()
    return torch.stack([torch.cat([cos, cos], dim=-1), torch.cat([-sin, sin], dim=-1)], dim=-2).unsqueeze(-3)


def rotate(heads: Tensor, rotation: Tensor) -> Tensor:
    """Turn pairs of features by their position's angles; the partner of a feature stands half a head away."""
    cos, sin = rotation.unbind(-2)
    halves = heads.view(*heads.shape[:-1], 2, -1)
    partners = halves.flip(-2).flatten(-2)  # one rule for both halves: no branches on a GPU
    turned: Tensor = heads * cos + partners * sin
    return turned.to(heads.dtype)
