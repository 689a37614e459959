"""Figures of `bench_fleet.py`: methods beside each other on the same pairs, with bootstrap bounds; the unseen route."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from oscar_causal.discovery.boundary import Boundary
from oscar_causal.score.comparison import paired_bootstrap
from oscar_causal.score.matching import Pair, Sets, match, summarise

LEAST_PAIRS = 10
"""Parts with fewer pairs get no row."""
FDP = 0.1
"""World false discovery proportion at which the unseen route is looked for."""
POSITIVES = (0, 100, 300, 1000)
"""Labels are rare or not by their positives in the training set."""
POSTERIORS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
POSTERIOR_EDGES = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 1.0)


@dataclass(frozen=True)
class Method:
    """What one method says of every pair."""

    found: Sets
    strength: Mapping[Pair, Mapping[str, float]] | None = None
    """Pair -> event -> how strongly it is held for a cause; None = the method knows no degrees."""

    def on(self, pairs: Sequence[Pair]) -> Sets:
        """The accepted events of these pairs; none where the method has no word."""
        return {pair: self.found.get(pair, frozenset()) for pair in pairs}


def judged(items: Iterable[Boundary], strength: str) -> Method:
    """Verdicts, with a field of the evidence as strength (of p-values and q-values: the smaller the stronger)."""
    listed = list(items)
    sign = -1.0 if strength in ("p_value", "q_value") else 1.0
    told = {
        (b.sequence_id, b.label): {
            e.event: sign * float(getattr(e, strength))
            for e in b.evidence
            if getattr(e, strength) is not None and (strength == "posterior" or e.effect >= 0)
        }
        for b in listed
    }
    return Method(accepted(listed), told)


def accepted(items: Iterable[Boundary]) -> dict[Pair, frozenset[str]]:
    """Pair -> the events that are causes there."""
    return {(b.sequence_id, b.label): frozenset(e.event for e in b.evidence if e.verdict == "cause") for b in items}


def at_posterior(items: Iterable[Boundary], least: float) -> Method:
    """The causes at another posterior than that of the verdicts."""
    found = {
        (b.sequence_id, b.label): frozenset(
            e.event for e in b.evidence if (e.posterior or 0.0) >= least and e.verdict != "inhibitor"
        )
        for b in items
    }
    return Method(found)


def best_posterior(items: Sequence[Boundary], truth: Sets) -> float:
    """The posterior with the best F1 on these (validation) pairs; the highest of equals, and of none."""
    pairs = [(b.sequence_id, b.label) for b in items if (b.sequence_id, b.label) in truth]
    scores = {p: summarise(match(at_posterior(items, p).on(pairs), truth))["sample"]["f1_of_means"] for p in POSTERIORS}
    return max(POSTERIORS, key=lambda least: (scores[least], least))


def parts_of(pairs: Sequence[Pair], truth: Sets, oracle: Sets, positives: Mapping[str, int]) -> dict[str, list[Pair]]:
    """The pairs by what makes them hard. Decoys: events of the label's rules stand by that are no causes here."""
    decoy = {pair for pair in pairs if oracle.get(pair, frozenset()) - truth[pair]}
    number = {pair: positives.get(pair[1], 0) for pair in pairs}
    by_number = {
        f"training positives {low}-{high - 1}": [pair for pair in pairs if low <= number[pair] < high]
        for low, high in pairwise(POSITIVES)
    }
    return {
        "all": list(pairs),
        "with decoys": [pair for pair in pairs if pair in decoy],
        "with decoys, several causes": [pair for pair in pairs if pair in decoy and len(truth[pair]) > 1],
        "several causes": [pair for pair in pairs if len(truth[pair]) > 1],
        **by_number,
        f"training positives {POSITIVES[-1]} or more": [pair for pair in pairs if number[pair] >= POSITIVES[-1]],
    }


def compare(
    methods: Mapping[str, Method],
    first: str,
    truth: Sets,
    parts: Mapping[str, Sequence[Pair]],
    subjects: Mapping[str, str],
    *,
    draws: int,
    seed: int,
) -> dict[str, Any]:
    """Part -> method -> sample precision, recall, F1 of means; `first` minus this with a bootstrap over subjects."""
    tables: dict[str, Any] = {}
    for part, chosen in parts.items():
        if len(chosen) < LEAST_PAIRS:
            continue
        scores = {name: match(method.on(chosen), truth) for name, method in methods.items()}
        owners = [subjects[sequence_id] for sequence_id, _ in scores[first].pairs]
        tables[part] = {}
        for name, score in scores.items():
            row = {key: value for key, value in summarise(score).items() if key in ("pairs", "labels", "sample")}
            if draws and name != first:
                rng = np.random.default_rng(seed)
                gap = paired_bootstrap(score, scores[first], owners, draws=draws, generator=rng)
                row["first_minus_this"] = gap["sample"]["f1_of_means"]
            tables[part][name] = row
    return tables


def threshold_at(method: Method, truth: Sets, pairs: Sequence[Pair], fdp: float = FDP) -> float:
    """The lowest strength at which at most this share of the events so strong is false in the world."""
    told = [(s, e in truth[p]) for p in pairs for e, s in (method.strength or {}).get(p, {}).items()]
    if not told:
        return float("inf")
    strength, true = np.array([s for s, _ in told]), np.array([t for _, t in told])
    order = np.argsort(-strength, kind="stable")
    false = np.cumsum(~true[order]) / np.arange(1, len(order) + 1)
    last = np.append(np.diff(strength[order]) != 0, True)  # events of equal strength come in together
    fine = np.flatnonzero((false <= fdp) & last)
    return float(strength[order][fine[-1]]) if len(fine) else float("inf")


def unseen_route(
    methods: Mapping[str, Method],
    truth: Sets,
    lost: Mapping[str, frozenset[str]],
    validation: Sequence[Pair],
    test: Sequence[Pair],
) -> dict[str, Any]:
    """Recall of the route that neither pool nor classical data contain, at 10 % world-FDP, threshold from validation.

    Both parts hold pairs in which such a route fired. Also at the method's own threshold.
    """
    rows: dict[str, Any] = {}
    for name, method in methods.items():
        row: dict[str, Any] = {"pairs": len(test), "validation_pairs": len(validation)}
        row["own_threshold"] = _recall(method.on(test), truth, lost)
        if method.strength is not None:
            limit = threshold_at(method, truth, validation)
            told = {pair: method.strength.get(pair, {}) for pair in test}
            taken = {pair: frozenset(e for e, s in events.items() if s >= limit) for pair, events in told.items()}
            row |= {"threshold": limit if np.isfinite(limit) else None, "at_fdp": _recall(taken, truth, lost)}
        rows[name] = row
    return rows


def _recall(found: Sets, truth: Sets, lost: Mapping[str, frozenset[str]]) -> dict[str, Any]:
    unseen = {pair: truth[pair] & lost[pair[1]] for pair in found}
    wanted, hits = sum(map(len, unseen.values())), sum(len(found[pair] & events) for pair, events in unseen.items())
    taken, false = sum(map(len, found.values())), sum(len(events - truth[pair]) for pair, events in found.items())
    return {
        "recall": hits / wanted if wanted else None,
        "hits": hits,
        "of": wanted,
        "fdp": false / taken if taken else None,
    }


def posterior_calibration(items: Iterable[Boundary], truth: Sets) -> list[dict[str, float]]:
    """What posteriors say and how often it is so, over events of pairs with a known reason."""
    told = [
        (e.posterior, e.event in truth[b.sequence_id, b.label])
        for b in items
        if (b.sequence_id, b.label) in truth
        for e in b.evidence
        if e.posterior is not None
    ]
    posterior, true = np.array([p for p, _ in told]), np.array([t for _, t in told])
    place = np.digitize(posterior, POSTERIOR_EDGES[1:-1])
    rows = []
    for k in np.unique(place).tolist():
        inside = place == k
        said, right = float(posterior[inside].mean()), float(true[inside].mean())
        edges = {"from": POSTERIOR_EDGES[k], "to": POSTERIOR_EDGES[k + 1]}
        rows.append({**edges, "events": int(inside.sum()), "said": said, "true": right})
    return rows


def show(result: Mapping[str, Any], first: str = "fused") -> None:
    """The closing table; differences are to `first`."""
    for part, table in result.get("tables", {}).items():
        rows = list(table.values())
        print(f"\n{part}: {rows[0]['pairs']} pairs, {rows[0]['labels']} labels{'':20s} {first} - this (95 %)")
        for name, row in table.items():
            sample, gap = row["sample"], row.get("first_minus_this")
            bounds = f"{_points(gap, 'difference')} ({_points(gap, 'low')} to {_points(gap, 'high')})" if gap else ""
            cells = "  ".join(f"{key} {100 * sample[field]:5.1f}" for key, field in _CELLS)
            print(f"  {name:38s} {cells}   {bounds}")
    for name, row in result.get("unseen_route", {}).items():
        at, own = row.get("at_fdp"), row["own_threshold"]
        told = f"at 10 % FDP {_share(at['recall'])} (realised FDP {_share(at['fdp'])})" if at else ""
        print(f"unseen route, {row['pairs']} pairs: {name:38s} recall {_share(own['recall'])} {told}")
    for name in ("calibration", "calibration_off_map"):
        if name in result:
            told = [(round(r["said"], 2), round(r["true"], 2), r["events"]) for r in result[name]]
            print(f"{name}: said, true, events", told)
    print("seconds", {key: round(value) for key, value in result["seconds"].items()}, flush=True)


_CELLS = (("F1", "f1_of_means"), ("P", "precision"), ("R", "recall"))


def _points(gap: Mapping[str, float], key: str) -> str:
    return f"{100 * gap[key]:+.1f}"


def _share(value: float | None) -> str:
    return "    -" if value is None else f"{100 * value:5.1f}"
