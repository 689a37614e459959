"""The report's fleet tables: labels with the model's quality, edges counted over sequences, rules, provenance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import networkx as nx

from oscar_causal.data.folders import finite_or_none, read_json
from oscar_causal.discovery.boundary import Boundary
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
    found = [quality.get("per_label", {}).get(label) for quality in sources.qualities]
    known = [row for row in found if row is not None]
    if not known:
        return dict.fromkeys(("trusted", "reason", "positives", "f1", "average_precision", "ece"))
    trusted = 2 * sum(bool(row["trusted"]) for row in known) > len(known)
    reasons = [row["reason"] for row in known if row.get("reason")]
    scores = {name: _mean([row[name] for row in known if row.get(name) is not None])
              for name in ("f1", "average_precision", "ece")}  # fmt: skip
    return {
        "trusted": trusted,
        "reason": None if trusted or not reasons else reasons[0],
        "positives": sum(row["positives"] for row in known),
        **scores,
    }


def fleet_rows(graph: nx.DiGraph) -> list[dict[str, Any]]:
    """Edges of a population graph as the page wants them, found most often first."""
    from oscar_causal.graph.boundary_graph import edges_of

    return [
        {
            "event": edge["cause"],
            "label": edge["effect"],
            "inhibits": int(edge["verdict"] == "inhibitor"),
            "found": edge.get("found", 0),
            "of": edge.get("of", 0),
            "mean": edge.get("strength"),
            "sd": edge.get("sd"),
        }
        for edge in edges_of(graph)
    ]


def rule_cards(population: Path | str, published: Mapping[str, str]) -> list[dict[str, Any]]:
    """Rules a population folder proposes, beside the published ones: from `proposals.json`, else `rules.json`."""
    folder = Path(population)
    if (folder / "proposals.json").exists():
        entries = read_json(folder / "proposals.json")
    elif (folder / "rules.json").exists():
        entries = {label: {"rule": rule} for label, rule in read_json(folder / "rules.json").items()}
    else:
        return []
    return [_card(label, entry, published.get(label)) for label, entry in entries.items()]


def _card(label: str, entry: Mapping[str, Any], published: str | None) -> dict[str, Any]:
    figures = [[name, entry[name]] for name in ("status", "confidence", "positives", "method") if name in entry]
    for name, share in (entry.get("fidelity") or {}).items():
        if share.get("of"):
            text = f"{share['share']:.3f} ({share['low']:.3f} to {share['high']:.3f})"
            figures.append([f"{name}, held out", text])
    rule, reasons = entry.get("rule"), [str(reason) for reason in entry.get("reasons") or ()]
    return {"label": label, "rule": rule, "published": published, "figures": figures, "reasons": reasons}


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
