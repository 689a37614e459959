"""Rule cards: what a population proposes for each label, what speaks against it, and what an expert says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oscar_causal.data.folders import read_json
from oscar_causal.graph.rules.twins import Twin
from oscar_causal.report.entries import Entry

SHARES = {
    "precision": "label where the rule holds",
    "recall": "rule where the label came",
    "model": "model agrees with the rule",
}
"""Share of `fidelity` -> what it says, for people."""


def rule_cards(population: Path | str, published: Mapping[str, str]) -> list[dict[str, Any]]:
    """Rules a population folder proposes: from `proposals.json`, else `rules.json`; beside them, the expert's.

    The expert's rule is that of `expert.json`, and where the folder has none the `published` one.
    """
    folder = Path(population)
    experts = _experts(folder / "expert.json")
    if (folder / "proposals.json").exists():
        entries = dict(Entry.of(read_json(folder / "proposals.json"), str(folder / "proposals.json")).items())
    elif (folder / "rules.json").exists():
        texts = Entry.of(read_json(folder / "rules.json"), str(folder / "rules.json"))
        entries = {label: Entry({"rule": texts.named(label)}, texts.where) for label in texts.fields}
    else:
        return []
    return [
        {**_card(label, entry), "published": published.get(label), "expert": experts.get(label)}
        for label, entry in entries.items()
    ]


def _card(label: str, entry: Entry) -> dict[str, Any]:
    twins = [_twin(item) for item in entry.entries("twins")]
    said = {twin.sentence() for twin in twins}
    return {
        "label": label,
        "rule": entry.text("rule"),
        "status": entry.text("status"),
        "figures": [*_figures(entry), *_shares(entry.entry("fidelity"))],
        "reasons": [reason for reason in entry.texts("reasons") if reason not in said],
        "twins": [[twin.part, twin.stand_in, twin.for_part, twin.for_stand_in] for twin in twins],
        "rule_without_label": entry.texts("rule_without_label"),
        "label_without_rule": entry.texts("label_without_rule"),
    }


def _twin(item: Entry) -> Twin:
    counts = [int(item.number(name) or 0) for name in ("for_part", "for_stand_in")]
    return Twin(item.named("part"), item.named("stand_in"), *counts)


def _figures(entry: Entry) -> list[list[Any]]:
    told: dict[str, Any] = {name: entry.number(name) for name in ("confidence", "positives")}
    return [[name, value] for name, value in {**told, "method": entry.text("method")}.items() if value is not None]


def _shares(fidelity: Entry | None) -> list[list[str]]:
    """Shares on held-out sequences; agreement over all of them is near 1 for any rare label and is left out."""
    found = []
    for name, share in [] if fidelity is None else fidelity.items():
        value, low, high = (share.number(part) for part in ("share", "low", "high"))
        if name in SHARES and share.number("of") and value is not None:
            limits = "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
            found.append([SHARES[name], f"{value:.2f}{limits}"])
    return found


def _experts(path: Path) -> dict[str, dict[str, Any]]:
    """Label -> the expert's rule, what the proposal is beside it, and the sequences that tell them apart."""
    if not path.exists():
        return {}
    rules = Entry.of(read_json(path), str(path)).entry("rules")
    return {} if rules is None else {label: _expert(item) for label, item in rules.items()}


def _expert(item: Entry) -> dict[str, Any]:
    return {
        "rule": item.named("expert"),
        "relation": item.named("relation"),
        "sentence": item.named("sentence"),
        "from": item.text("from"),
        "to": item.text("to"),
        "only_proposed": item.texts("only_proposed_ids"),
        "only_expert": item.texts("only_expert_ids"),
    }
