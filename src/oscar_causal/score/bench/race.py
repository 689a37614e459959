"""To equal F1: the paper's listing against the smallest budget of ours that is at least as good, on one CPU thread.

The listing runs twice: padded to one length, as printed, and padded only to the longest sequence of a batch, which the
printed code does not do and which saves it most of its work on short sequences.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch

from oscar_causal.data.batches import pad
from oscar_causal.data.sequences import Dataset
from oscar_causal.density.checkpoint import load_model
from oscar_causal.density.model import OscarModel, to_tokens
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.score.bench.listing import ListingConfig, run_listing
from oscar_causal.score.bench.place import Place, ShowProgress
from oscar_causal.score.bench.settings import BenchSettings
from oscar_causal.score.bench.stopwatch import one_thread
from oscar_causal.score.discoveries import Accepted
from oscar_causal.score.scoring import Explained, explained_of

BUDGETS = (20, 24, 32, 64)
BATCH = 8
PADDED = 256
"""Tokens of every sequence in the listing as printed."""
LISTINGS = {"listing": PADDED, "listing, least padding": None}


def measure_race(settings: BenchSettings, show: ShowProgress) -> dict[str, Any]:
    """F1 (causes present, mean over pairs) and CPU seconds of the listings and of ours at each budget.

    `times_faster`: a listing's seconds over those of the smallest budget with at least its F1; None where none has it.
    """
    place = Place(settings, show)
    folder = place.model()
    part, model = place.part, load_model(folder)
    entrants: dict[str, Callable[[], Explained]] = {
        name: partial(explain_by_listing, model, part.data, settings.seed, padded=padded)
        for name, padded in LISTINGS.items()
    }
    for budget in BUDGETS:
        config = DiscoveryConfig(intervention=InterventionConfig(contexts=budget), seed=settings.seed)
        entrants[f"ours N={budget}"] = partial(_explain, model, part.data, config)
    found: dict[str, Any] = {}
    with one_thread():
        for name, explain in entrants.items():
            with show(f"race: {name}", "sequences"):
                begun = time.process_time()
                explained = explain()
                seconds = time.process_time() - begun
            found[name] = {"cpu_seconds": seconds, "f1": place.score(explained)["why"]["sample"]["f1_of_means"]}
    faster = {name: times_faster(found, name) for name in LISTINGS}
    return {"entrants": found, "sequences": len(part.data), "times_faster": faster}


def times_faster(found: Mapping[str, Mapping[str, float]], listing: str) -> float | None:
    """Seconds of a listing over those of the smallest budget that is at least as good.

    >>> figures = {"listing": {"f1": 0.6, "cpu_seconds": 9.0}, "ours N=20": {"f1": 0.5, "cpu_seconds": 1.0}}
    >>> times_faster({**figures, "ours N=32": {"f1": 0.7, "cpu_seconds": 3.0}}, "listing")
    3.0
    """
    good = [name for name in found if name.startswith("ours") and found[name]["f1"] >= found[listing]["f1"]]
    return found[listing]["cpu_seconds"] / found[good[0]]["cpu_seconds"] if good else None


def _explain(model: OscarModel, data: Dataset, config: DiscoveryConfig) -> Explained:
    return explained_of(item for found in discover(model, data, config) for item in found)


def explain_by_listing(model: OscarModel, data: Dataset, seed: int, *, padded: int | None) -> Explained:
    """What the listing accepts for the observed labels; `padded`: to so many tokens at least, None = least padding."""
    encoded = model.encode(data)
    width = None if padded is None else max(padded, int(encoded.events.lengths.max()) + 1)
    ids, config = data.sequence_ids.to_pylist(), ListingConfig()
    generator = torch.Generator().manual_seed(seed)
    pairs: list[tuple[str, str]] = []
    accepted: list[Accepted] = []
    for begin in range(0, len(data), BATCH):
        rows = np.arange(begin, min(begin + BATCH, len(data)))
        found = run_listing(model, to_tokens(pad(encoded, rows, length=width), model.device), config, generator)
        for b, row in enumerate(rows.tolist()):
            events = encoded.events.ids[encoded.events.offsets[row] : encoded.events.offsets[row + 1]]
            for label in encoded.labels[row].tolist():
                pair = (ids[row], model.vocabulary.labels[label])
                pairs.append(pair)
                real = max(0, len(events) - config.context)
                where = found.accepted[b, :real, label].nonzero()[:, 0].tolist()
                signs = {}
                for r in where:  # row r is about event c + r
                    name = model.vocabulary.name(int(events[config.context + r]))
                    signs[name] = "cause" if float(found.strength[b, r, label]) >= 0 else "inhibitor"
                accepted += [Accepted(pair, event, verdict, None) for event, verdict in signs.items()]
    return Explained(tuple(pairs), tuple(accepted))
