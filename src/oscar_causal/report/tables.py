"""The report's tables: labels with the model's quality, and where the numbers come from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from oscar_causal.data.folders import finite_or_none
from oscar_causal.discovery.boundary import Boundary
from oscar_causal.report.entries import Entry
from oscar_causal.report.sources import Sources


def label_rows(boundaries: Iterable[Boundary], sources: Sources) -> list[dict[str, Any]]:
    """One row per explained label, most explained first, with what `quality.json` says about it."""
    groups: dict[str, list[Boundary]] = defaultdict(list)
    for item in boundaries:
        groups[item.label].append(item)
    rows = [{**_counts(label, items), **_quality(label, sources), "rule": sources.rules.get(label)}
            for label, items in groups.items()]  # fmt: skip
    return sorted(rows, key=lambda row: (-row["explained"], row["label"]))


def _counts(label: str, items: list[Boundary]) -> dict[str, Any]:
    probabilities = [item.probability for item in items if item.probability is not None]
    return {
        "label": label,
        "explained": len(items),
        "with_causes": sum(bool(item.causes) for item in items),
        "mean_probability": _mean(probabilities),
        "causes_per_sequence": sum(len(item.causes) for item in items) / len(items),
    }


def _quality(label: str, sources: Sources) -> dict[str, Any]:
    """Figures of the label; with folds positives are added up, scores averaged, and the majority decides on trust."""
    parts = [Entry.of(quality, "quality.json of the model").entry("per_label") for quality in sources.qualities]
    found = [None if part is None else part.entry(label) for part in parts]
    known = [row for row in found if row is not None]
    if not known:
        return dict.fromkeys(("trusted", "reason", "positives", "f1", "average_precision", "ece"))
    trusted = 2 * sum(bool(row.flag("trusted")) for row in known) > len(known)
    reasons = [reason for reason in (row.text("reason") for row in known) if reason]
    positives = _numbers(known, "positives")
    return {
        "trusted": trusted,
        "reason": None if trusted or not reasons else reasons[0],
        "positives": int(sum(positives)) if positives else None,
        **{name: _mean(_numbers(known, name)) for name in ("f1", "average_precision", "ece")},
    }


def _numbers(rows: list[Entry], name: str) -> list[float]:
    return [value for value in (row.number(name) for row in rows) if value is not None]


def provenance(sources: Sources, *, shown: int, explained: int) -> list[list[str]]:
    """Where the numbers come from: term and value, for people. Folder names, no places."""
    run = sources.run
    config = (run.get("config") or {}).get(run.get("estimator")) or run.get("config") or {}
    settings = ", ".join(f"{name} {value}" for name, value in config.items() if isinstance(value, int | float | str))
    quality = sources.qualities[0] if sources.qualities else {}
    rows = [
        ("Method", run.get("estimator")),
        ("Estimates", run.get("estimand")),
        ("Settings", settings),
        ("Seed", run.get("seed")),
        ("Sequences", f"{shown:,} shown of {explained:,} explained"),
        ("Results", sources.results.resolve().name),
        ("Dataset", _folder(run.get("dataset"))),
        ("Model", _folder(run.get("model"))),
        ("Model judged on", quality.get("evaluated_on")),
        ("Labels judged by", None if not quality else quality.get("judged_by", "F1 alone (an earlier version)")),
        ("Precision", run.get("precision")),
        ("OSCAR", (run.get("versions") or {}).get("oscar")),
        ("Fingerprint", run.get("fingerprint")),
    ]
    return [[term, str(value)] for term, value in rows if value not in (None, "", {})]


def _folder(told: dict[str, Any] | None) -> str:
    if not told:
        return ""
    return f"{Path(told.get('path') or '?').name}, digest {str(told.get('digest'))[:16]}"


def _mean(values: list[float]) -> float | None:
    return finite_or_none(sum(values) / len(values)) if values else None
