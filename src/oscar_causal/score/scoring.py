"""`oscar score`: a results folder against every truth its dataset carries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.discovery.results import read_run, read_table
from oscar_causal.errors import UsageError
from oscar_causal.score.matching import Pair, match, summarise, truth_of

POSITIVE_TRUTHS = ("rule_present", "why", "why_necessary")
"""Truths about what brought a label about: found inhibitors do not count there, neither for nor against."""


def score_results(results: Path | str, *, dataset: Path | str | None = None) -> dict[str, Any]:
    """Precision, recall and F1 of the boundaries of a results folder; see `matching` for the truths and averages."""
    run = read_run(results)
    data = read_dataset(dataset or run["dataset"]["path"])
    found = found_events(results)
    return {"results": str(results), "estimator": run["estimator"], "truth": score_found(found, data)}


def score_found(found: Mapping[str, Mapping[Pair, frozenset[str]]], data: Dataset) -> dict[str, Any]:
    """Scores of found events against each truth of a dataset; `found` as returned by `found_events`."""
    if not found["all"]:
        raise UsageError("score: the results explain no pair")
    truths = truth_of(data, found["all"])
    return {
        name: summarise(match(found["positive" if name in POSITIVE_TRUTHS else "all"], truth))
        for name, truth in truths.items()
    }


def found_events(results: Path | str) -> dict[str, dict[Pair, frozenset[str]]]:
    """Accepted events of every explained pair with an observed label: `all`, and `positive` ones alone."""
    verdicts = read_table(results, "verdicts").to_pydict()
    causes = read_table(results, "causes").to_pydict()
    every: dict[Pair, set[str]] = {
        (sequence_id, label): set()
        for sequence_id, label, observed in zip(
            verdicts["sequence_id"], verdicts["label"], verdicts["observed"], strict=True
        )
        if observed
    }
    positive = {pair: set[str]() for pair in every}
    for sequence_id, label, event, verdict in zip(
        causes["sequence_id"], causes["label"], causes["event"], causes["verdict"], strict=True
    ):
        if (sequence_id, label) in every:
            every[sequence_id, label].add(event)
            if verdict == "cause":
                positive[sequence_id, label].add(event)
    return {
        "all": {pair: frozenset(events) for pair, events in every.items()},
        "positive": {pair: frozenset(events) for pair, events in positive.items()},
    }
