"""Shortlists against loops over events."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from oscar_causal.data.batches import encode
from oscar_causal.data.sequences import from_records
from oscar_causal.data.vocabulary import PAD_ID, SPECIAL_IDS, START_ID, build_vocabulary
from oscar_causal.density.shortlist import Past, Shortlist, past_in_rows, past_in_run, time_windows
from oscar_causal.density.transformer import Tokens

TYPES, LABELS = 9, 4


def random_shortlist(size: int = 5) -> Shortlist:
    torch.manual_seed(0)
    part = Shortlist(SPECIAL_IDS + TYPES, LABELS, size)
    for row in range(LABELS):
        part.types[row] = torch.randperm(TYPES)[: part.types.shape[1]] + SPECIAL_IDS
    for parameter in part.parameters():
        parameter.data.normal_()
    return part


def literal_inputs(part: Shortlist, events: list[int], times: list[float], label: int) -> list[float]:
    """What one label is told about one row, event by event, as the docstrings say."""
    types = part.types[label].tolist()
    places = {t: [i for i, e in enumerate(events) if e == t] for t in types}
    there = [float(bool(places[t])) for t in types]
    head = types[: part.ordered]
    often = [float(len(places[t]) > k) for k in (1, 2, 3) for t in head]
    ends = {t: {places[t][0], places[t][-1]} if places[t] else set() for t in head}
    pairs = []
    for a, b in itertools.product(head, head):
        waits = [times[j] - times[i] for i in ends[a] for j in ends[b] if times[j] > times[i] and a != b]
        soon = [1 / (1 + (min(waits) / float(window)) ** 4) if waits else 0.0 for window in part.windows]
        pairs += [float(bool(waits)), *soon]
    return there + often + pairs


def literal_logit(part: Shortlist, events: list[int], times: list[float], label: int) -> float:
    inputs = np.array(literal_inputs(part, events, times, label))
    weights = torch.cat([part.singles[label], part.pairs[label].flatten(0, 1)]).detach().double().numpy()
    sums = inputs @ weights
    hidden = sums[:-1] + part.bias[label].detach().double().numpy()
    return float(hidden / (1 + np.exp(-hidden)) @ part.outer[label].detach().double().numpy() + sums[-1])


def some_tokens(rows: list[tuple[list[int], list[float]]], width: int) -> Tokens:
    """Rows with their start token, padded with ids and times that mean nothing."""
    ids = torch.full((len(rows), width), PAD_ID)
    elapsed, gaps = torch.full((len(rows), width), 7.0), torch.full((len(rows), width), 3.0)
    for k, (events, times) in enumerate(rows):
        ids[k, : len(events) + 1] = torch.tensor([START_ID, *events])
        elapsed[k, : len(events) + 1] = torch.tensor([0.0, *times])
        gaps[k, : len(events) + 1] = torch.tensor([0.0, 0.0, *np.diff(times)][: len(events) + 1])
    return Tokens(ids, gaps, elapsed, torch.zeros(len(rows), width, 0), torch.arange(width))


def random_row(rng: np.random.Generator, length: int) -> tuple[list[int], list[float]]:
    """Some events share their time."""
    times = np.cumsum(rng.integers(0, 3, length) * rng.exponential(30.0, length)) if length else np.zeros(0)
    return rng.integers(SPECIAL_IDS, SPECIAL_IDS + TYPES, length).tolist(), (times - times[:1].sum()).tolist()


def whole(tokens: Tokens, voice: torch.Tensor | None = None) -> Past:
    return Past(tokens.event_ids, tokens.gaps, tokens.elapsed, voice)


@pytest.mark.parametrize("size", [1, 5, 9, 40])
def test_logits_are_what_the_loops_say(size: int) -> None:
    part, rng = random_shortlist(size), np.random.default_rng(size)
    part.windows.copy_(torch.tensor([5.0, 20.0, 80.0, 200.0, 500.0, 1e4]))
    rows = [random_row(rng, length) for length in (0, 1, 3, 12, 25)]
    tokens = some_tokens(rows, 27)
    every = part(whole(tokens)).detach()
    for k, (events, times) in enumerate(rows):
        for label in range(LABELS):
            wanted = literal_logit(part, events, times, label)
            assert float(every[k, label]) == pytest.approx(wanted, rel=1e-4, abs=1e-3)
    chosen = torch.tensor([2, 0])
    torch.testing.assert_close(part(whole(tokens), chosen).detach(), every[:, chosen], rtol=1e-4, atol=1e-4)
    own = torch.tensor([[2, 0], [1, 1], [3, 2], [0, 1], [2, 3]])
    torch.testing.assert_close(part(whole(tokens), own).detach(), every.gather(1, own), rtol=1e-4, atol=1e-4)


def test_times_far_from_the_start_keep_their_order() -> None:
    part = random_shortlist(9)
    early = some_tokens([([3, 5, 4, 5, 8], [0.0, 0.001, 0.002, 0.003, 0.004])], 6)
    late = Past(early.event_ids, early.gaps, early.elapsed + 1e8)
    near, far = (part._pair_inputs(part._look(past, part.types))[..., 0] for past in (whole(early), late))
    assert near.sum() > 0
    torch.testing.assert_close(near, far)


def test_all_labels_and_chosen_ones_learn_alike() -> None:
    part, rng = random_shortlist(), np.random.default_rng(5)
    tokens = some_tokens([random_row(rng, length) for length in (1, 9, 20)], 21)
    grads = []
    for labels in (None, torch.arange(LABELS)):
        part.zero_grad()
        part(whole(tokens), labels).square().sum().backward()
        grads.append({name: parameter.grad for name, parameter in part.named_parameters()})
    for name, grad in grads[0].items():
        torch.testing.assert_close(grad, grads[1][name], rtol=1e-3, atol=1e-3)


def test_full_voices_change_nothing_and_silence_is_absence() -> None:
    part = random_shortlist()
    tokens = some_tokens([([3, 5, 4, 5, 8], [0.0, 1.0, 1.0, 4.0, 9.0])], 6)
    torch.testing.assert_close(part(whole(tokens, torch.ones(1, 6))), part(whole(tokens)))
    voice = torch.ones(1, 6)
    voice[0, 3] = 0.0
    gone = Past(torch.where(voice > 0, tokens.event_ids, PAD_ID), tokens.gaps, tokens.elapsed)
    torch.testing.assert_close(part(whole(tokens, voice)), part(gone))


def test_slopes_along_voices_are_finite_differences() -> None:
    part = random_shortlist()
    tokens = some_tokens([([3, 5, 4, 6, 8], [0.0, 1.0, 1.0, 4.0, 9.0])], 6)
    voice = torch.tensor([[1.0, 0.9, 0.7, 0.5, 0.6, 0.8]], requires_grad=True)
    (slopes,) = torch.autograd.grad(part(whole(tokens, voice))[0, 1], voice)
    assert bool(slopes.isfinite().all())
    (again,) = torch.autograd.grad(part(whole(tokens, voice), torch.tensor([[1]]))[0, 0], voice)
    torch.testing.assert_close(again, slopes, rtol=1e-4, atol=1e-4)
    for at in range(1, 6):
        step = torch.zeros(1, 6)
        step[0, at] = 1e-2
        with torch.no_grad():
            wanted = (part(whole(tokens, voice + step)) - part(whole(tokens, voice - step)))[0, 1] / 2e-2
        assert float(slopes[0, at]) == pytest.approx(float(wanted), rel=0.02, abs=0.02)


@pytest.mark.bits
def test_rows_and_runs_give_the_same_past() -> None:
    part, rng = random_shortlist(), np.random.default_rng(0)
    lengths = [4, 1, 6]
    tokens = some_tokens([random_row(rng, length - 1) for length in lengths], 6)
    at = torch.tensor([[0, 3], [0, 0], [2, 5]])
    begins = torch.tensor([0, 0, 4, 4, 5, 5])
    run = Tokens(
        *(
            torch.cat([getattr(tokens, name)[row, :length] for row, length in enumerate(lengths)])
            for name in ("event_ids", "gaps", "elapsed", "channels")
        ),
        torch.arange(11),
    )
    rows, runs = past_in_rows(tokens, at), past_in_run(run, begins, begins + at.flatten(), 6)
    assert torch.equal(runs.event_ids, rows.event_ids)
    assert torch.equal(part(runs), part(rows))


def test_windows_lie_between_the_usual_gap_and_the_usual_length() -> None:
    records = [
        {"sequence_id": "a", "events": ["x"] * 4, "times": [5.0, 7.0, 7.0, 9.0]},
        {"sequence_id": "b", "events": ["x"] * 3, "times": [0.0, 2.0, 512.0]},
        {"sequence_id": "d", "events": ["x"] * 2, "times": [0.0, 252.0]},
    ]
    data = from_records(records)
    windows = time_windows(encode(data, build_vocabulary(data), max_length=8))
    gap, span = np.median([2.0, 2.0, 2.0, 510.0, 252.0]), np.median([4.0, 512.0, 252.0])
    assert np.log(windows) == pytest.approx(np.linspace(np.log(gap), np.log(span), 8)[1:-1])
    still = from_records([{"sequence_id": "a", "events": ["x", "y"], "times": [3.0, 3.0]}])
    assert time_windows(encode(still, build_vocabulary(still), max_length=8)).tolist() == [1.0] * 6


def test_empty_places_say_nothing() -> None:
    torch.manual_seed(1)
    short, long = Shortlist(SPECIAL_IDS + TYPES, 1, 2), Shortlist(SPECIAL_IDS + TYPES, 1, 4)
    assert (long.types == SPECIAL_IDS + TYPES).all()  # none yet
    for part in (short, long):
        part.types[0, :2] = torch.tensor([SPECIAL_IDS + 1, SPECIAL_IDS + 4])
    rows = [([SPECIAL_IDS + k for k in (1, 3, 4, 4)], [0.0, 1.0, 2.0, 3.0]), ([SPECIAL_IDS + 2], [0.0])]
    tokens = some_tokens(rows, 7)
    at = torch.tensor([[4], [1]])
    for parameter in short.parameters():
        parameter.data.normal_()
    shared = [k for k in range(long.ordered**2) if k // 4 < 2 and k % 4 < 2]
    places = [0, 1] + [4 + 4 * n + k for n in range(3) for k in range(2)]
    with torch.no_grad():
        for parameter in long.parameters():
            parameter.normal_()
        long.singles[:, places], long.pairs[:, shared] = short.singles, short.pairs
        long.bias.copy_(short.bias)
        long.outer.copy_(short.outer)
        for labels in (None, torch.tensor([0]), torch.tensor([[0], [0]])):
            torch.testing.assert_close(long(past_in_rows(tokens, at), labels), short(past_in_rows(tokens, at), labels))
