"""A training step's targets against a literal reading, sequence by sequence; padded and packed losses agree."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from oscar_causal.data.batches import Encoded, encode
from oscar_causal.data.sequences import from_records
from oscar_causal.data.vocabulary import SPECIAL_IDS, UNKNOWN_ID, build_vocabulary
from oscar_causal.density import transformer
from oscar_causal.density.next_event import time_loss
from oscar_causal.density.objective import MOST_HIDDEN, TIME_WEIGHT, Objective, hide_types, make_step
from oscar_causal.density.settings import TrainConfig, preset_config
from oscar_causal.density.shortlist import past_in_run
from oscar_causal.density.transformer import Network

CONFIG = TrainConfig(min_context=3, max_length=8, prefix_weight=0.5)


@pytest.fixture(scope="module")
def encoded() -> Encoded:
    """Lengths 1 to 11 (the longest are cut), ties, unlabelled ones, labels with and without a time."""
    rng = np.random.default_rng(5)
    records = []
    for i, length in enumerate([1, 2, 5, 11, 8, 4, 3]):
        labels = None if i == 2 else [["u"], ["v", "w"], [], ["w"]][i % 4]
        records.append(
            {
                "sequence_id": str(i),
                "events": rng.choice(list("ABCDE"), length).tolist(),
                "times": np.cumsum(rng.integers(0, 3, length)).astype(float).tolist(),
                "labels": labels,
                "label_times": None if labels is None else [None if i == 3 else 20.0 + j for j in range(len(labels))],
            }
        )
    data = from_records(records)
    return encode(data, build_vocabulary(data), max_length=8)


@pytest.mark.parametrize("packed", [None, (40, 12)])
def test_targets_sequence_by_sequence(encoded: Encoded, packed: tuple[int, int] | None) -> None:
    indices = np.array([3, 0, 2, 6, 1])
    step = make_step(encoded, indices, CONFIG, 3, packed=packed)
    ids = step.tokens.event_ids.numpy().reshape(-1)
    width = int(encoded.events.lengths[indices].max()) + 1
    starts = [width * k for k in range(5)]
    if packed is not None:
        starts = np.concatenate([[0], np.cumsum(encoded.events.lengths[indices] + 1)])[:-1].tolist()
    used = np.zeros(len(ids), bool)
    for k, (start, index) in enumerate(zip(starts, indices, strict=True)):
        events, length = encoded.events[index], len(encoded.events[index])
        times = encoded.times[encoded.events.offsets[index] : encoded.events.offsets[index + 1]]
        for at in range(length + 1):
            token = start + at
            used[token] = True
            assert step.next_ids[token] == (events[at] if at < length else -1)
            gap = times[at] - times[at - 1] if 0 < at < length else 0.0
            assert float(step.next_gaps[token]) == pytest.approx(gap)
            weight = 0.0
            if encoded.labelled[index] and at == length:
                weight = 1.0
            elif encoded.labelled[index] and at >= 3:
                weight = 0.5 / (length - 3)
            assert step.owners[token] == k
            outcome = encoded.outcome_times[index]
            known = weight > 0 and np.isfinite(outcome)
            assert float(step.outcome_weights[token]) == pytest.approx(weight if known else 0.0)
            if known:
                now = times[at - 1]
                assert float(step.outcome_gaps[token]) == pytest.approx(max(outcome - now, 0))
        assert set(np.flatnonzero(step.targets[k])) == set(encoded.labels[index].tolist())
    assert (step.next_ids[~used] == -1).all()
    assert not step.outcome_weights[~used].any()


@pytest.mark.parametrize("packed", [None, (40, 12)])
def test_labels_are_asked_at_the_end_and_after_prefixes_drawn_evenly(
    encoded: Encoded, packed: tuple[int, int] | None
) -> None:
    indices = np.array([3, 0, 2, 6, 4])  # 8 (cut), 1, 5 without labels, 3 and 8 events
    seen = []
    for number in range(300):
        step = make_step(encoded, indices, CONFIG, 3, packed=packed, step=number)
        owners = step.owners[step.places].reshape(5, -1)
        assert (owners == torch.arange(5)[:, None]).all()
        positions = step.tokens.positions.expand(step.tokens.event_ids.shape).flatten()[step.places].reshape(5, -1)
        weights = step.place_weights.reshape(5, -1)
        assert positions[:, 0].tolist() == [8, 1, 5, 3, 8]
        assert weights[:, 0].tolist() == [1, 1, 0, 1, 1]
        assert weights[:, 1:].sum(1).tolist() == pytest.approx([0.5, 0, 0, 0, 0.5])
        seen.append(positions[[0, 4], 1:])
    counts = np.bincount(torch.cat(seen).flatten().numpy(), minlength=9)
    assert counts[:3].sum() == counts[8] == 0
    assert counts[3:8] / counts.sum() == pytest.approx(0.2, abs=0.035)  # 4 standard deviations


def runs_apart(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bounds: torch.Tensor, _: int
) -> torch.Tensor:
    parts = []
    for begin, end in zip(bounds.tolist(), bounds.tolist()[1:], strict=False):
        part = (x[begin:end].transpose(0, 1) for x in (query, key, value))
        parts.append(F.scaled_dot_product_attention(*part, is_causal=True).transpose(0, 1))
    return torch.cat(parts)


def gradients(network: Network, run: Callable[[], torch.Tensor]) -> tuple[float, torch.Tensor]:
    network.zero_grad()
    loss = run()
    loss.backward()
    return loss.item(), torch.cat([p.grad.reshape(-1) for p in network.parameters() if p.grad is not None])


def with_lists(network: Network) -> None:
    """Every label listens to some types."""
    assert network.shortlist is not None
    lists = torch.rand(network.shortlist.types.shape).argsort(-1) + SPECIAL_IDS
    network.shortlist.types.copy_(lists)


def test_shortlists_learn_alone_and_together_with_the_network(encoded: Encoded) -> None:
    torch.manual_seed(0)
    network = Network(CONFIG.network(events=8, labels=3, channels=0))
    with_lists(network)
    torch.nn.init.normal_(network.label_head.weight)
    step = make_step(encoded, np.arange(7), CONFIG, 3, packed=None)
    _, label, alone = Objective(network, CONFIG)(step, torch.tensor(1 / 31), torch.tensor(1 / 6))
    _, hidden_y = (hidden.flatten(0, -2) for hidden in network(step.tokens))
    begins = step.places - step.tokens.positions.expand(step.tokens.event_ids.shape).flatten()[step.places]
    past = past_in_run(step.tokens, begins, step.places, step.tokens.event_ids.shape[1])
    listed, bias = network.shortlist(past), network.label_head.bias  # type: ignore[misc]
    targets, weights = step.targets[step.owners[step.places]], step.place_weights[:, None] / 6

    def plain(logits: torch.Tensor) -> torch.Tensor:
        return (F.binary_cross_entropy_with_logits(logits, targets, reduction="none") * weights).sum()

    assert alone.item() == pytest.approx(plain(listed + bias).item(), rel=1e-5)
    together = plain(listed + network.state_logits(hidden_y[step.places]))
    outcome = time_loss(network.outcome_head(hidden_y), step.outcome_gaps, step.outcome_weights) / 6
    assert label.item() == pytest.approx((together + TIME_WEIGHT * outcome).item(), rel=1e-5)
    alone.backward()
    assert network.shortlist.singles.grad.abs().sum() > 0  # type: ignore[union-attr]
    assert network.label_head.weight.grad is None


def test_padded_packed_and_shards_give_one_loss(encoded: Encoded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformer, "packed_attention", runs_apart)
    torch.manual_seed(0)
    network = Network(CONFIG.network(events=8, labels=3, channels=0))
    with_lists(network)
    objective = Objective(network, CONFIG)
    indices = np.arange(7)

    def loss(rows: np.ndarray, packed: tuple[int, int] | None) -> torch.Tensor:
        step = make_step(encoded, rows, CONFIG, 3, packed=packed)
        return torch.stack(objective(step, torch.tensor(1 / 31), torch.tensor(1 / 6))).sum()

    whole = gradients(network, lambda: loss(indices, None))
    packed = gradients(network, lambda: loss(indices, (64, 24)))
    shards = gradients(network, lambda: loss(indices[0::2], None) + loss(indices[1::2], None))
    for value, grad in (packed, shards):
        assert value == pytest.approx(whole[0], rel=1e-5)
        torch.testing.assert_close(grad, whole[1], rtol=1e-3, atol=1e-5)


def test_hidden_types_are_whole_types_and_a_function_of_step_and_sequence() -> None:
    rng = np.random.default_rng(0)
    config = preset_config("tiny", hidden=0.6, seed=4)
    ids = rng.integers(0, 40, (300, 30))
    sequences = np.repeat(np.arange(300)[:, None], 30, axis=1)
    seen = hide_types(ids, sequences, config, step=7)
    changed = seen != ids
    assert (seen[changed] == UNKNOWN_ID).all()
    assert not changed[ids < SPECIAL_IDS].any()
    for row in range(300):
        for event in np.unique(ids[row]):
            assert len(set(changed[row][ids[row] == event].tolist())) == 1
    order = rng.permutation(300)
    assert (hide_types(ids[order], sequences[order], config, step=7) == seen[order]).all()
    assert (hide_types(ids, sequences, config, step=8) != seen).any()
    touched = changed.any(1).mean()
    assert 0.4 < touched < 0.65  # 60 % of the sequences, some at so small a rate that nothing is hidden
    assert changed[ids >= SPECIAL_IDS].mean() == pytest.approx(0.6 * MOST_HIDDEN / 2, abs=0.02)


def test_targets_are_the_true_events_whatever_is_hidden(encoded: Encoded) -> None:
    chosen = np.arange(len(encoded))
    plain, hidden = (
        make_step(encoded, chosen, preset_config("tiny", hidden=share, seed=1), 3, packed=None, step=5)
        for share in (0.0, 1.0)
    )
    assert (plain.next_ids == hidden.next_ids).all()
    assert (plain.tokens.event_ids != hidden.tokens.event_ids).any()
