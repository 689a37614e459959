"""The listing's transcription against a literal twin in loops, oddities included."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from oscar_causal.data.batches import pad
from oscar_causal.data.vocabulary import START_ID
from oscar_causal.density.model import to_tokens
from oscar_causal.density.shortlist import past_in_rows
from oscar_causal.score.bench.listing import ListingConfig, run_listing, sample_context
from oscar_causal.score.bench.workload import Sizes, Workload, make_workload

CONFIG = ListingConfig(context=5, contexts=6, top_k=4, threshold=1.5)


@pytest.fixture(scope="module")
def work() -> Workload:
    sizes = Sizes("tiny", events=40, labels=3, mean_length=28.0, sd_length=3.0, longest=39, sequences=3)
    return make_workload(sizes, "cpu")


def test_it_finds_what_the_loops_find(work: Workload) -> None:
    network = work.model.network
    tokens = to_tokens(pad(work.encoded, np.arange(3), length=40), torch.device("cpu"))
    found = run_listing(work.model, tokens, CONFIG, torch.Generator().manual_seed(0))
    with torch.inference_mode():
        probs = torch.softmax(network.event_logits(network(tokens)[0]), dim=-1)
        contexts = sample_context(tokens.event_ids, probs, CONFIG, torch.Generator().manual_seed(0))
        for b in range(3):
            rows = type(tokens)(
                contexts[b], tokens.gaps[[b]], tokens.elapsed[[b]], tokens.channels[[b]], tokens.positions
            )
            past = past_in_rows(rows, torch.arange(40).expand(len(contexts[b]), -1))
            after = torch.sigmoid(network.label_logits(network(rows)[1], past)).double().clamp(1e-6, 1 - 1e-6)
            for y in range(3):
                gains, changes = [], []
                for i in range(CONFIG.context + 1, 40):
                    pairs = [(float(after[n, i, y]), float(after[n, i - 1, y])) for n in range(CONFIG.contexts)]
                    gain = [p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q)) for p, q in pairs]
                    gains.append(float(np.mean(gain)))
                    changes.append([p - q for p, q in pairs])
                limit = np.mean(gains) + CONFIG.threshold * np.std(gains, ddof=1)  # padding is part of both
                clear = np.abs(np.array(gains) - limit) > 1e-4 * limit
                assert (found.accepted[b, :, y].numpy() == (np.array(gains) >= limit))[clear].all()
                assert found.strength[b, :, y].tolist() == pytest.approx(np.mean(changes, 1).tolist(), abs=1e-5)
                assert found.strength_sd[b, :, y].tolist() == pytest.approx(np.std(changes, 1, ddof=1), abs=1e-5)
    assert found.accepted.any()


def test_the_draw_for_the_next_event_stands_one_place_early() -> None:
    probs = torch.zeros(1, 8, 12)
    for i in range(8):
        probs[0, i, 3 + i] = 1.0  # after token i comes event 3 + i, for sure
    ids = torch.tensor([[START_ID, 3, 4, 5, 6, 7, 8, 9]])
    config = ListingConfig(context=4, contexts=2, top_k=3)
    drawn = sample_context(ids, probs, config, torch.Generator().manual_seed(0))
    assert drawn[0].tolist() == [[START_ID, 4, 5, 6, 6, 7, 8, 9]] * 2  # 3 is gone, 6 stands twice


def test_draws_keep_to_the_nucleus() -> None:
    law = torch.tensor([0.0, 0.0, 0.0, 0.5, 0.25, 0.125, 0.125])
    probs = law.expand(1, 30, 7)
    ids = torch.full((1, 30), 3)
    config = ListingConfig(context=20, contexts=500, top_k=3, top_p=0.8)
    drawn = sample_context(ids, probs, config, torch.Generator().manual_seed(0))[0, :, 1:20].flatten()
    shares = torch.bincount(drawn, minlength=7) / len(drawn)
    assert shares[3].item() == pytest.approx(2 / 3, abs=0.02)  # 0.5 and 0.25 pass; with 0.125 the sum exceeds 0.8
    assert shares[4].item() == pytest.approx(1 / 3, abs=0.02)
    assert shares[5:].sum() < 1e-3
