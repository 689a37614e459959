"""Counts of sequences without an event, against sets; and what a population makes of them."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pyarrow as pa

from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.discovery.boundary import EventEvidence
from oscar_causal.discovery.evidence import empty_evidence
from oscar_causal.discovery.fleet_prior import fit_prior
from oscar_causal.discovery.fused import never_without
from oscar_causal.discovery.prior_files import read_prior, write_prior
from oscar_causal.graph.population import BOUNDARY_SCHEMA
from oscar_causal.graph.population_folder import Population
from oscar_causal.graph.variants import LEAST, count_variants, with_variants

MEMBERS = {"y": ["A", "T", "B"], "z": ["B", "C"], "alone": ["A"]}


def fleet(seed: int, size: int = 60) -> Dataset:
    """T comes with every A and now and then without; C hardly ever comes."""
    rng = np.random.default_rng(seed)
    records = []
    for k in range(size):
        events = [name for name in ("A", "B") if rng.random() < 0.5]
        events += ["T"] if "A" in events or rng.random() < 0.2 else []
        events += ["C"] if k < 1 else []
        events += ["x", "x"]
        times = list(range(len(events)))
        records.append({"sequence_id": f"{seed}-{k}", "events": events, "times": times, "labels": []})
    return from_records(records)


def test_counts_are_those_of_sets_added_up_over_datasets() -> None:
    parts = [fleet(1), fleet(2)]
    present = [set(part.events_of(k)) for part in parts for k in range(len(part))]
    found = count_variants(parts, MEMBERS)
    expected = {
        (label, event, other): sum(other in held and event not in held for held in present)
        for label, events in MEMBERS.items()
        for event, other in permutations(events, 2)
        if sum(other in held for held in present) >= LEAST
    }
    assert found == expected
    assert found["y", "T", "A"] == 0 < found["y", "A", "T"]
    assert ("z", "B", "C") not in found  # too few sequences with C


def test_a_population_tells_what_was_never_seen_missing(tmp_path: Path) -> None:
    rows = [(label, event, "cause") for label, events in MEMBERS.items() for event in events]
    rows.append(("y", "x", "no effect"))
    columns = dict.fromkeys(BOUNDARY_SCHEMA.names, [None] * len(rows))
    columns |= dict(zip(("label", "event", "verdict"), map(list, zip(*rows, strict=True)), strict=True))
    table = pa.table(columns, schema=BOUNDARY_SCHEMA)
    bare = Population({}, empty_evidence(), table, table, fit_prior(empty_evidence()))
    found = with_variants(bare, [fleet(1), fleet(2)])
    told = {(row["label"], row["event"]): row for row in found.boundaries.to_pylist()}
    assert found.boundaries.schema == BOUNDARY_SCHEMA
    assert (told["y", "T"]["seen_without"], told["y", "T"]["never_without"]) == (0, ["A"])
    assert told["y", "A"]["seen_without"] > 0
    assert told["y", "A"]["never_without"] == []
    assert told["alone", "A"]["seen_without"] is None
    assert told["y", "x"]["seen_without"] is None  # no member
    assert found.prior is not None
    write_prior(tmp_path, found.prior)
    prior = read_prior(tmp_path)
    assert prior.never_without == found.prior.never_without == {"y": {"T": ("A",)}}
    accepted, refused = (EventEvidence("T", (0,), verdict, 0.5) for verdict in ("cause", "no effect"))
    (flag,) = never_without(prior, "y", (accepted,), ["A", "T"])
    assert flag == "never seen without T: A; the data cannot tell them apart"
    assert never_without(prior, "y", (accepted,), ["T", "B"]) == ()
    assert never_without(prior, "y", (refused,), ["A", "T"]) == ()
