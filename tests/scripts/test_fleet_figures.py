"""The figures of the fleet benchmark against counting by hand."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from oscar_causal.discovery.boundary import Boundary, EventEvidence

TRUTH = {(f"s{k}", "y"): frozenset({"A", "B"} if k % 2 else {"C"}) for k in range(40)}
PAIRS = sorted(TRUTH)


@pytest.fixture
def figures(script: Callable[[str], ModuleType]) -> Any:
    return script("fleet_figures")


def test_the_threshold_lets_in_as_much_as_the_share_of_false_events_allows(figures: Any) -> None:
    rng = np.random.default_rng(0)
    strength = {pair: {e: float(rng.choice([0.1, 0.4, 0.7, 0.9])) for e in "ABCD"} for pair in PAIRS}
    method = figures.Method({}, strength)
    told = [(s, e in TRUTH[p]) for p in PAIRS for e, s in strength[p].items()]
    for share in (0.0, 0.1, 0.5, 0.6, 1.0):
        fine = [t for t in (0.1, 0.4, 0.7, 0.9) if np.mean([not true for s, true in told if s >= t]) <= share]
        assert figures.threshold_at(method, TRUTH, PAIRS, share) == min(fine, default=float("inf"))
    assert figures.threshold_at(figures.Method({}, {}), TRUTH, PAIRS) == float("inf")


def test_the_unseen_route_is_judged_with_a_threshold_from_other_pairs(figures: Any) -> None:
    lost = {"y": frozenset({"C"})}
    fired = [pair for pair in PAIRS if TRUTH[pair] & lost["y"]]
    strength = {pair: {"C": 0.9 if k % 4 else 0.2, "D": 0.5} for k, pair in enumerate(fired)}
    methods = {"own": figures.Method({pair: frozenset("D") for pair in fired}, strength), "none": figures.Method({})}
    found = figures.unseen_route(methods, TRUTH, lost, fired[:8], fired[8:])
    assert found["own"]["threshold"] == 0.9
    assert found["own"]["at_fdp"] == {"recall": 9 / 12, "hits": 9, "of": 12, "fdp": 0.0}
    assert found["own"]["own_threshold"] == {"recall": 0.0, "hits": 0, "of": 12, "fdp": 1.0}
    assert "at_fdp" not in found["none"]
    assert found["none"]["own_threshold"]["fdp"] is None


def test_methods_are_compared_on_the_same_pairs_and_parts(figures: Any) -> None:
    oracle = {pair: frozenset("ABC") if k < 20 else TRUTH[pair] for k, pair in enumerate(PAIRS)}
    parts = figures.parts_of(PAIRS, TRUTH, oracle, {"y": 150})
    assert {name: len(some) for name, some in parts.items()} == {
        "all": 40,
        "with decoys": 20,
        "with decoys, several causes": sum(len(TRUTH[pair]) > 1 for pair in PAIRS[:20]),
        "several causes": 20,
        "training positives 0-99": 0,
        "training positives 100-299": 40,
        "training positives 300-999": 0,
        "training positives 1000 or more": 0,
    }
    methods = {"fused": figures.Method(TRUTH), "oracle": figures.Method(oracle), "silent": figures.Method({})}
    subjects = {name: name for name, _ in PAIRS}
    tables = figures.compare(methods, "fused", TRUTH, parts, subjects, draws=50, seed=0)
    assert set(tables) == {"all", "with decoys", "several causes", "training positives 100-299"}
    precision = np.mean([len(TRUTH[p]) / len(oracle[p]) for p in PAIRS])
    row = tables["all"]["oracle"]
    assert row["sample"]["f1_of_means"] == pytest.approx(2 * precision / (1 + precision))
    gap = row["first_minus_this"]
    assert gap["difference"] == pytest.approx(1 - row["sample"]["f1_of_means"])
    assert 0 < gap["low"] < gap["difference"] < gap["high"]
    assert tables["all"]["silent"]["sample"]["recall"] == 0.0


def test_verdicts_and_posteriors_are_read_from_boundaries(figures: Any) -> None:
    evidence = (
        EventEvidence("A", (0,), "cause", 0.5, q_value=0.01, posterior=0.97),
        EventEvidence("D", (1,), "no effect", -0.1, q_value=0.5, posterior=0.03),
    )
    items = [Boundary("s1", "y", True, 0.9, evidence), Boundary("elsewhere", "y", True, 0.9, evidence)]
    assert figures.judged(items, "posterior").strength == {
        (s, "y"): {"A": 0.97, "D": 0.03} for s in ("s1", "elsewhere")
    }
    assert figures.judged(items, "q_value").strength == {(s, "y"): {"A": -0.01} for s in ("s1", "elsewhere")}
    assert figures.judged(items, "q_value").found["s1", "y"] == {"A"}
    rows = figures.posterior_calibration(items, TRUTH)  # a pair without a known reason does not count
    assert [(row["from"], row["events"], row["true"]) for row in rows] == [(0.0, 1, 0.0), (0.95, 1, 1.0)]


def test_a_wrong_rule_stated_with_confidence_counts_double(script: Callable[[str], ModuleType]) -> None:
    bench_rules = script("bench_rules")

    def row(status: str, confidence: float, whole: bool) -> dict[str, object]:
        return {"label": "y", "status": status, "confidence": confidence, "whole": whole}

    rows = [
        row("proposed", 0.9, True),
        row("proposed", 0.85, False),
        row("proposed", 0.3, False),
        row("not identifiable from this data", 0.9, False),
    ]
    found = bench_rules.confidence(rows)
    assert (found["stated"], found["right"], found["confident_and_wrong"]) == (3, 1, 1)
    assert found["net"] == (1 - 2) / 4
    assert found["brier"] == pytest.approx((0.1**2 + 0.85**2 + 0.3**2) / 3)
    assert found["said_minus_true"] == pytest.approx((-0.1 + 0.85 + 0.3) / 3)
    assert bench_rules.confidence([])["net"] is None


def test_another_posterior_is_chosen_on_validation_pairs(figures: Any) -> None:
    def item(name: str, posteriors: dict[str, float]) -> Boundary:
        events = tuple(EventEvidence(e, (0,), "not resolvable", 0.1, posterior=p) for e, p in posteriors.items())
        return Boundary(name, "y", True, 0.9, events)

    items = [item(f"s{k}", {"A": 0.97, "B": 0.75, "D": 0.45} if k % 2 else {"C": 1.0, "D": 0.55}) for k in range(40)]
    assert figures.at_posterior(items, 0.9).found["s1", "y"] == {"A"}
    assert figures.best_posterior(items, TRUTH) == 0.7  # B comes in, D does not
    assert figures.best_posterior([], TRUTH) == max(figures.POSTERIORS)
