"""The network: causal in every form, blind to padding, the same padded, packed and alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from oscar_causal.data.batches import Encoded, pack, pad
from oscar_causal.data.sequences import Ragged, ragged_offsets
from oscar_causal.data.vocabulary import SPECIAL_IDS
from oscar_causal.density import transformer
from oscar_causal.density.model import to_tokens
from oscar_causal.density.settings import SIZES
from oscar_causal.density.transformer import Network, NetworkConfig, Tokens
from oscar_causal.errors import UsageError

FORMS = ("shared", "cross")
CPU = torch.device("cpu")


def network_of(form: str) -> Network:
    torch.manual_seed(3)
    config = NetworkConfig(
        events=20, labels=5, channels=2, width=32, heads=4, layers=2, label_layers=2, label_form=form, hidden=48
    )  # type: ignore[arg-type]
    network = Network(config)
    torch.nn.init.normal_(network.label_head.weight)  # zero at birth: it would hide differences
    return network.eval().requires_grad_(False)


def random_encoded(lengths: list[int], seed: int = 0) -> Encoded:
    rng = np.random.default_rng(seed)
    total = sum(lengths)
    channels = rng.normal(size=(total, 2)).astype(np.float32)
    channels[rng.random(channels.shape) < 0.3] = np.nan
    times = np.concatenate([np.cumsum(rng.integers(0, 3, n) * rng.exponential(100, n)) for n in lengths])
    none = Ragged(np.zeros(len(lengths) + 1, np.int64), np.empty(0, np.int32))
    ids = rng.integers(SPECIAL_IDS, 20, total).astype(np.int32)
    return Encoded(
        Ragged(ragged_offsets(np.array(lengths)), ids),
        times,
        channels,
        none,
        np.ones(len(lengths), bool),
        np.full(len(lengths), np.nan),
        np.zeros(len(lengths), bool),
    )


def hidden(network: Network, tokens: Tokens) -> tuple[Tensor, Tensor]:
    with torch.inference_mode():
        return network(tokens)  # type: ignore[no-any-return]


@pytest.mark.bits
@pytest.mark.parametrize("form", FORMS)
def test_a_later_event_never_changes_an_earlier_state(form: str) -> None:
    network = network_of(form)
    tokens = to_tokens(pad(random_encoded([9, 9, 9]), np.arange(3)), CPU)
    before = hidden(network, tokens)
    for at in range(1, 10):
        ids, gaps, elapsed, channels = (
            x.clone() for x in (tokens.event_ids, tokens.gaps, tokens.elapsed, tokens.channels)
        )
        ids[:, at:] = (ids[:, at:] - SPECIAL_IDS + 5) % 17 + SPECIAL_IDS
        gaps[:, at:] += 1e3
        elapsed[:, at:] += 1e5
        channels[:, at:] = -7.0
        after = hidden(network, replace(tokens, event_ids=ids, gaps=gaps, elapsed=elapsed, channels=channels))
        for old, new in zip(before, after, strict=True):
            assert torch.equal(old[:, :at], new[:, :at])
            assert (old[:, at] - new[:, at]).abs().amax(-1).min() > 1e-3  # and it does change its own


@pytest.mark.bits
@pytest.mark.parametrize("form", FORMS)
def test_padding_never_matters(form: str) -> None:
    network = network_of(form)
    encoded = random_encoded([7, 3, 5])
    short = pad(encoded, np.arange(3))
    long = to_tokens(pad(encoded, np.arange(3), length=14), CPU)
    rubbish = replace(long, event_ids=torch.where(long.event_ids == 0, 19, long.event_ids))
    wide, filled = hidden(network, long), hidden(network, rubbish)
    for one, two, three in zip(hidden(network, to_tokens(short, CPU)), wide, filled, strict=True):
        for row, length in enumerate(short.lengths):
            torch.testing.assert_close(one[row, :length], two[row, :length], rtol=1e-5, atol=1e-5)
            assert torch.equal(two[row, :length], three[row, :length])


@pytest.mark.parametrize("form", FORMS)
def test_a_batch_is_its_sequences_alone(form: str) -> None:
    network = network_of(form)
    encoded = random_encoded([6, 11, 2, 8])
    batch = pad(encoded, np.arange(4))
    together = hidden(network, to_tokens(batch, CPU))
    for row in range(4):
        alone = hidden(network, to_tokens(pad(encoded, np.array([row])), CPU))
        for one, two in zip(together, alone, strict=True):
            torch.testing.assert_close(one[row, : batch.lengths[row]], two[0], rtol=1e-5, atol=1e-5)


def runs_apart(query: Tensor, key: Tensor, value: Tensor, bounds: Tensor, longest: int) -> Tensor:
    """What packed attention promises, one run after the other."""
    parts = []
    for begin, end in zip(bounds.tolist(), bounds.tolist()[1:], strict=False):
        assert end - begin <= longest
        part = (x[begin:end].transpose(0, 1) for x in (query, key, value))
        parts.append(F.scaled_dot_product_attention(*part, is_causal=True).transpose(0, 1))
    return torch.cat(parts)


@pytest.mark.parametrize("form", FORMS)
def test_packed_is_padded(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformer, "packed_attention", runs_apart)
    network = network_of(form)
    encoded = random_encoded([6, 11, 2, 8])
    order = np.array([2, 0, 3, 1])
    batch, packed = pad(encoded, order), pack(encoded, order, tokens=40, most_sequences=9)
    as_tensors = [
        torch.from_numpy(x) for x in (packed.event_ids, packed.gaps, packed.elapsed, packed.channels, packed.positions)
    ]
    row = hidden(network, Tokens(*as_tensors, bounds=torch.from_numpy(packed.bounds), longest=12))
    for one, two in zip(hidden(network, to_tokens(batch, CPU)), row, strict=True):
        for index in range(4):
            begin, end = packed.bounds[index], packed.bounds[index + 1]
            torch.testing.assert_close(one[index, : batch.lengths[index]], two[begin:end], rtol=1e-4, atol=1e-4)


def test_only_order_and_distance_are_seen_by_attention() -> None:
    """Rotary positions: scores depend on the distance of two tokens, not on where they stand."""
    torch.manual_seed(0)
    query, key = torch.randn(2, 12, 1, 8)
    near, far = (transformer.rotary_table(torch.arange(12) + shift, 8) for shift in (0, 100))
    scores = [
        torch.einsum("ihd,jhd->ij", *(transformer.rotate(part.clone(), table) for part in (query, key)))
        for table in (near, far)
    ]
    torch.testing.assert_close(*scores, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(scores[0], torch.einsum("ihd,jhd->ij", query, key))


def test_rotation_is_that_of_complex_numbers() -> None:
    """A feature and its partner half a head away are one number; the first quarter of them turns with the position."""
    heads, positions = torch.randn(3, 5, 2, 16, generator=torch.Generator().manual_seed(0)), torch.arange(5)
    rates = torch.tensor([1.0, 10_000.0**-0.5, 0, 0, 0, 0, 0, 0])
    turned = torch.complex(heads[..., :8], heads[..., 8:]) * torch.exp(1j * positions[:, None, None] * rates)
    found = transformer.rotate(heads, transformer.rotary_table(positions, 16))
    torch.testing.assert_close(found, torch.cat([turned.real, turned.imag], dim=-1))


def test_a_block_leaves_its_input_alone_with_and_without_a_way_back() -> None:
    torch.manual_seed(0)
    block = transformer.Block(NetworkConfig(events=9, labels=1, width=16, heads=2), hidden=24)
    state, at = torch.randn(3, 5, 16), torch.tensor([[1], [4], [2]])
    before, table = state.clone(), transformer.rotary_table(torch.arange(5), 8)
    tokens = transformer.Tokens(*[torch.empty(0)] * 4, torch.arange(5))
    asked = block(state, table, tokens), block.at(state, table, at, state)
    with torch.no_grad():
        silent = block(state, table, tokens), block.at(state, table, at, state)
    assert torch.equal(state, before)
    for one, two in zip(asked, silent, strict=True):
        torch.testing.assert_close(one, two)
    torch.testing.assert_close(asked[1], asked[0][torch.arange(3)[:, None], at])


def test_the_law_of_the_next_event_is_a_softmax_without_the_padding() -> None:
    torch.manual_seed(0)
    network = Network(NetworkConfig(events=70, labels=1, width=16, heads=2))
    states = torch.randn(4, 16)
    assert network.embedding.events.weight.shape[0] > 70
    torch.testing.assert_close(network.event_law(states), torch.softmax(network.event_logits(states), dim=-1))


def test_weights_as_many_as_the_presets_say() -> None:
    for name, backbone, labels in (("base", 34e6, 24e6), ("paper", 90e6, 18e6)):
        with torch.device("meta"):
            network = Network(NetworkConfig(events=29_103, labels=474, **SIZES[name]))  # type: ignore[arg-type]
        parts = {"x": 0, "y": 0}
        for key, parameter in network.named_parameters():
            names = ("label_", "norm_y", "outcome_", "bag.", "shortlist.")
            parts["y" if key.startswith(names) else "x"] += parameter.numel()
        assert parts["x"] == pytest.approx(backbone, rel=0.05), parts
        assert parts["y"] == pytest.approx(labels, rel=0.05), parts


@pytest.mark.parametrize(
    "change",
    [{"width": 20}, {"labels": 0}, {"events": 0}, {"label_form": "other"}, {"label_form": "cross", "label_layers": 0}],
)
def test_shapes_that_cannot_be(change: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        NetworkConfig(**({"events": 9, "labels": 1, "width": 32, "heads": 4} | change))  # type: ignore[arg-type]
