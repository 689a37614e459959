"""Shortlists against loops over events, and the counting that chooses them against scipy's own tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats.contingency import expected_freq

from oscar_causal.data.batches import Encoded, encode
from oscar_causal.data.sequences import from_records
from oscar_causal.data.vocabulary import PAD_ID, SPECIAL_IDS, START_ID, build_vocabulary
from oscar_causal.density import shortlist
from oscar_causal.density.shortlist import Past, Shortlist, past_in_rows, past_in_run, shortlists

TYPES, LABELS = 9, 4


def random_shortlist(size: int = 5) -> Shortlist:
    torch.manual_seed(0)
    part = Shortlist(SPECIAL_IDS + TYPES, LABELS, size)
    for row in range(LABELS):
        part.types[row] = torch.randperm(TYPES)[: part.types.shape[1]] + SPECIAL_IDS
    for parameter in part.parameters():
        parameter.data.normal_()
    return part


def literal_logit(part: Shortlist, events: list[int], label: int) -> float:
    """One label of one row, event by event, as the docstrings say."""
    types = part.types[label].tolist()
    places = {t: [i for i, e in enumerate(events) if e == t] for t in types}
    there = [float(bool(places[t])) for t in types]
    again = [math.log(max(1, len(places[t]))) for t in types]
    head = types[: part.ordered]
    order = [
        float(bool(places[a]) and bool(places[b]) and min(places[a], default=0) < max(places[b], default=0))
        for a in head
        for b in head
    ]
    inputs = np.array(there + again + order)
    hidden = inputs @ part.inner[label].detach().double().numpy() + part.inner_bias[label].detach().double().numpy()
    gated = hidden / (1 + np.exp(-hidden))
    own = part.outer[label].detach().double().numpy(), part.direct[label].detach().double().numpy()
    return float(gated @ own[0] + inputs @ own[1])


@pytest.mark.parametrize("size", [1, 5, 9, 40])
def test_logits_are_what_the_loops_say(size: int) -> None:
    part, rng = random_shortlist(size), np.random.default_rng(size)
    rows = [rng.integers(SPECIAL_IDS, SPECIAL_IDS + TYPES, length).tolist() for length in (0, 1, 3, 12, 25)]
    padded = torch.full((len(rows), 27), PAD_ID)
    for k, row in enumerate(rows):
        padded[k, : len(row) + 1] = torch.tensor([START_ID, *row])
    every = part(Past(padded)).detach()
    for k, row in enumerate(rows):
        for label in range(LABELS):
            assert float(every[k, label]) == pytest.approx(literal_logit(part, row, label), rel=1e-4, abs=1e-4)
    chosen = torch.tensor([2, 0])
    torch.testing.assert_close(part(Past(padded), chosen).detach(), every[:, chosen])


def test_full_voices_change_nothing_and_silence_is_absence() -> None:
    part = random_shortlist()
    ids = torch.tensor([[3, 5, 4, 5, 8]])
    torch.testing.assert_close(part(Past(ids, torch.ones(1, 5))), part(Past(ids)))
    voice = torch.ones(1, 5)
    voice[0, 2] = 0.0
    gone = torch.where(voice > 0, ids, PAD_ID)
    torch.testing.assert_close(part(Past(ids, voice)), part(Past(gone)))


def test_slopes_along_voices_are_finite_differences() -> None:
    part = random_shortlist()
    ids = torch.tensor([[3, 5, 4, 6, 8]])
    voice = torch.tensor([[0.9, 0.7, 0.5, 0.6, 0.8]], requires_grad=True)
    (slopes,) = torch.autograd.grad(part(Past(ids, voice))[0, 1], voice)
    for at in range(5):
        step = torch.zeros(1, 5)
        step[0, at] = 1e-2
        with torch.no_grad():
            wanted = (part(Past(ids, voice + step)) - part(Past(ids, voice - step)))[0, 1] / 2e-2
        assert float(slopes[0, at]) == pytest.approx(float(wanted), rel=0.02, abs=0.02)


def test_rows_and_runs_give_the_same_past() -> None:
    rng = np.random.default_rng(0)
    lengths, ids = [4, 1, 6], torch.full((3, 6), PAD_ID)
    for row, length in enumerate(lengths):
        ids[row, :length] = torch.as_tensor(rng.integers(3, 9, length))
    at = torch.tensor([[0, 3], [0, 0], [2, 5]])
    rows = past_in_rows(ids, at).event_ids
    run = torch.cat([ids[row, :length] for row, length in enumerate(lengths)])
    begins = torch.tensor([0, 0, 4, 4, 5, 5])
    assert torch.equal(past_in_run(run, begins, begins + at.flatten(), 6).event_ids, rows)


def labelled_fleet(rng: np.random.Generator, count: int) -> Encoded:
    """`hit` comes with E0, rarely without; `miss` never with E1; some sequences have no labels at all."""
    records = []
    for k in range(count):
        events = [f"E{e}" for e in rng.integers(0, 8, 6)]
        labels = [name for name, on in (("hit", "E0" in events), ("miss", "E1" not in events)) if on]
        labels += ["rare"] if k % 50 == 0 else []
        records.append(
            {"sequence_id": str(k), "events": events, "times": [0.0] * 6, "labels": labels if k % 7 else None}
        )
    data = from_records(records)
    return encode(data, build_vocabulary(data), max_length=16)


def test_lists_are_ordered_by_how_far_counts_stray_from_chance() -> None:
    encoded = labelled_fleet(np.random.default_rng(1), 700)
    events, labels = int(encoded.events.ids.max()) + 1, 3
    lists = shortlists(encoded, events, labels, 4)
    rows = np.flatnonzero(encoded.labelled)
    present, targets = encoded.events.take(rows).indicator(events), encoded.labels.take(rows).indicator(labels)
    for label in range(labels):
        straying = []
        for event in range(SPECIAL_IDS, events):
            x, y = present[:, event], targets[:, label]
            table = np.array([[(x & y).sum(), (x & ~y).sum()], [(~x & y).sum(), (~x & ~y).sum()]])
            expected = expected_freq(table)[0, 0]
            straying.append(abs(table[0, 0] - expected) / math.sqrt(max(expected * (1 - x.mean()), 0.05)))
        wanted = SPECIAL_IDS + np.argsort(-np.array(straying), kind="stable")[:4]
        assert lists[label].tolist() == wanted.tolist()


def test_blocks_of_sequences_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = labelled_fleet(np.random.default_rng(3), 300)
    events = int(encoded.events.ids.max()) + 1
    whole = shortlists(encoded, events, 3, 8)
    monkeypatch.setattr(shortlist, "BLOCK", 37)
    assert shortlists(encoded, events, 3, 8).tolist() == whole.tolist()


def test_lists_never_hold_special_ids_and_fit_small_vocabularies() -> None:
    encoded = labelled_fleet(np.random.default_rng(2), 60)
    events = int(encoded.events.ids.max()) + 1
    lists = shortlists(encoded, events, 3, 64)
    assert lists.shape == (3, events - SPECIAL_IDS)
    assert lists.min() == SPECIAL_IDS
    assert all(len(set(row)) == events - SPECIAL_IDS for row in lists.tolist())
