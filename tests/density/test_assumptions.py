"""The assumption page: figures against literal counts, and verdicts on fleets made to break one assumption each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from oscar_causal.data.sequences import Dataset, from_table
from oscar_causal.data.solvable import SolvableProcess, example
from oscar_causal.density.assumptions import (
    LAG_BINS,
    LAG_NAMES,
    Evidence,
    Finding,
    bounded_lag,
    causal_sufficiency,
    deterministic_labels,
    oracle_models,
    rare_labels,
    survey,
    temporal_precedence,
    xor_labels,
)
from oscar_causal.density.folds import load_models
from oscar_causal.density.model import sequence_contexts
from oscar_causal.density.quality import Judged


@pytest.fixture
def evidence(model_folder: Path, fleet: Dataset) -> Evidence:
    models = load_models(model_folder)
    encoded = models.models[0].encode(fleet)
    rows = np.flatnonzero(fleet.labelled)
    truth = encoded.labels.take(rows).indicator(2)
    probs = np.where(truth, 0.9, 0.1)
    judged = Judged(probs, truth, (), np.empty((0, 0, 2)))
    return Evidence(models, fleet, encoded, rows, np.zeros(len(rows), np.int64), judged)


def test_the_page_has_every_assumption_in_one_line_each(evidence: Evidence) -> None:
    page = survey(evidence)
    assert [finding.assumption for finding in page] == ["A1", "A2", "A3", "A4", "A4", "faithfulness", "faithfulness"]
    for finding in page:
        assert "\n" not in finding.text
        assert finding.verdict in ("no sign against", "doubtful", "cannot say")
        assert finding.to_json()["figures"] == finding.figures


def test_ties_are_counted(evidence: Evidence, draw: Callable[..., Dataset]) -> None:
    tied = draw(example("ties"), 30, seed=0)
    found = temporal_precedence(replace(evidence, dataset=tied))
    expected, sequences = [], []
    for row in range(len(tied)):
        times = tied.times[tied.events.offsets[row] : tied.events.offsets[row + 1]].tolist()
        expected += [times.count(t) > 1 for t in times]
        sequences.append(len(set(times)) < len(times))
    assert found.figures["tied_events"] == pytest.approx(np.mean(expected))
    assert found.figures["sequences_with_ties"] == pytest.approx(np.mean(sequences))
    assert found.verdict == "doubtful"
    assert temporal_precedence(evidence).verdict == "no sign against"


def test_events_after_the_label_are_counted(
    evidence: Evidence, process: SolvableProcess, table: Callable[..., pa.Table]
) -> None:
    drawn = table(process, 40, seed=2)
    early = [None if x is None else [-1.0 for _ in x] for x in drawn["label_times"].to_pylist()]
    drawn = drawn.set_column(drawn.column_names.index("label_times"), "label_times", [early])
    found = temporal_precedence(replace(evidence, dataset=from_table(drawn)))
    assert found.figures["late_labels"] == 1.0
    assert found.verdict == "doubtful"


def test_forecast_moves_by_lag(evidence: Evidence) -> None:
    """Against a literal loop over sequences, labels and positions."""
    few = replace(evidence, rows=evidence.rows[:12], routes=evidence.routes[:12])
    found = bounded_lag(few)
    model = few.models.models[0]
    shares = dict.fromkeys(LAG_NAMES, 0.0)
    pairs = 0
    for row in few.rows.tolist():
        for label in few.encoded.labels[row].tolist():
            contexts = sequence_contexts(few.encoded, row)
            curve = model.label_probs(contexts, torch.tensor([label]), torch.arange(2, 7))[0, :, 0].double().tolist()
            moves = [abs(b - a) for a, b in zip(curve, curve[1:], strict=False)]
            for back, move in enumerate(reversed(moves), start=1):
                name = next((n for n, high in zip(LAG_NAMES, LAG_BINS, strict=False) if back <= high), LAG_NAMES[-1])
                shares[name] += move / sum(moves)
            pairs += 1
    assert found.figures["pairs"] == pairs > 3
    for name, value in found.figures["moves_by_lag"].items():
        assert value == pytest.approx(shares[name] / pairs, abs=1e-5)
    assert sum(found.figures["moves_by_lag"].values()) == pytest.approx(1)


def test_nothing_to_follow_is_said(evidence: Evidence) -> None:
    nobody = np.flatnonzero([not len(evidence.encoded.labels[i]) for i in range(len(evidence.dataset))])
    found = bounded_lag(replace(evidence, rows=nobody, routes=np.zeros(len(nobody), np.int64)))
    assert found.verdict == "cannot say"


def judged_with(evidence: Evidence, probs: np.ndarray, truth: np.ndarray) -> Evidence:
    return replace(evidence, judged=Judged(probs, truth, (), np.empty((0, 0, 2))))


def test_hidden_drivers(evidence: Evidence) -> None:
    rng = np.random.default_rng(0)
    driver = rng.random(800) < 0.5
    truth = rng.random((800, 2)) < np.where(driver, 0.6, 0.1)[:, None]
    found = causal_sufficiency(judged_with(evidence, np.full((800, 2), 0.35), truth))
    assert found.verdict == "doubtful"
    assert set(found.figures["pairs"][0]["labels"]) == {"fault", "common"}
    blind = causal_sufficiency(judged_with(evidence, np.full((800, 2), 0.35), rng.random((800, 2)) < 0.35))
    assert blind.verdict == "no sign against"
    assert "cannot be seen" in blind.text
    assert causal_sufficiency(judged_with(evidence, np.ones((4, 2)), np.ones((4, 2), bool))).verdict == "cannot say"


def test_deterministic_and_rare_labels(evidence: Evidence) -> None:
    rng = np.random.default_rng(0)
    truth = rng.random((300, 2)) < [0.3, 0.01]
    probs = np.stack([np.where(truth[:, 0], 0.999, 0.001), np.full(300, 0.01)], axis=1)
    changed = judged_with(evidence, probs, truth)
    first, second = evidence.models.vocabulary.labels
    assert deterministic_labels(changed).figures == {"labels": [first]}
    assert deterministic_labels(evidence).verdict == "no sign against"
    found = rare_labels(changed)
    assert found.figures == {"rare": [second], "poor": []}
    poor = rare_labels(replace(changed, doubts={first: "no skill", second: "only 3"}))
    assert poor.figures == {"rare": [second], "poor": [first]}


def test_the_models_are_compared_with_plain_frequencies(evidence: Evidence) -> None:
    few = replace(evidence, rows=evidence.rows[:9], routes=evidence.routes[:9])
    found = oracle_models(few)
    model = few.models.models[0]
    counts = np.bincount(few.encoded.events.ids, minlength=model.vocabulary.size) + 1.0
    nats, plain = [], []
    for row in few.rows.tolist():
        law = model.event_probs(sequence_contexts(few.encoded, row))
        for at, event in enumerate(few.encoded.events[row].tolist()):
            nats.append(-float(law[at, event].log()))
            plain.append(-np.log(counts[event] / counts.sum()))
    assert found.figures["event_nats"] == pytest.approx(np.mean(nats), rel=1e-5)
    assert found.figures["unigram_nats"] == pytest.approx(np.mean(plain), rel=1e-9)
    assert found.figures["weighted_f1"] == 1.0
    assert found.figures["ece"] == pytest.approx(0.1)


def test_xor_labels_say_what_they_cannot_see(evidence: Evidence, draw: Callable[..., Dataset]) -> None:
    config = example("xor").config
    often = SolvableProcess(replace(config, weights=(-0.32, -0.32, -0.32), inert=4, inert_weight=1.5, memory=0.0))
    found: Finding = xor_labels(replace(evidence, dataset=draw(often, 3000, seed=1)))
    pairs: list[dict[str, Any]] = found.figures["pairs"]
    assert {"A", "B"} in [set(pair["events"]) for pair in pairs]
    assert found.verdict == "doubtful"
    assert "not triples, order or counts" in found.text
