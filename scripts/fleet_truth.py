"""The truth of a synthetic fleet as `bench_fleet.py` needs it: causes, rules, the last route of each label."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from oscar_causal.data.rules import Or, Rule, event_names, parse, read_rules
from oscar_causal.data.sequences import Dataset
from oscar_causal.score.matching import Sets, why_roles

Lost = dict[str, frozenset[str]]
"""Label -> the events of a route that is kept back."""


def causes_of(data: Dataset) -> Sets:
    """Every (sequence, label) of the fleet that has causes, with them."""
    ids = data.sequence_ids.to_pylist()
    roles = why_roles(data, [(ids[k], label) for k in range(len(data)) for label in data.labels_of(k)]) or {}
    causes = {pair: frozenset(e for e, (role, _) in told.items() if role == "cause") for pair, told in roles.items()}
    return {pair: events for pair, events in causes.items() if events}


def true_rules(folder: Path) -> dict[str, list[Rule]]:
    """Every rule of each label, hidden and drifted ones included; graded labels by their causes."""
    rules = {label: [item.rule] for label, item in read_rules(folder / "rules.json").items()}
    for hidden in json.loads((folder / "dataset.json").read_text())["generator"]["hidden_rules"]:
        rules.setdefault(hidden["label"], []).append(parse(hidden["rule"]))
    return rules


def last_routes(rules: dict[str, list[Rule]]) -> Lost:
    """For labels with several routes: the events that only the last route has."""
    lost = {}
    for label, (rule, *_) in rules.items():
        if isinstance(rule, Or):
            known = {name for part in rule.items[:-1] for name in event_names(part)}
            lost[label] = frozenset(event_names(rule.items[-1])) - known
    return {label: events for label, events in lost.items() if events}


def fired_last_routes(rules: dict[str, list[Rule]], causes: Sets) -> frozenset[str]:
    """The sequences in which a last route fired."""
    lost = last_routes(rules)
    return frozenset(s for (s, label), events in causes.items() if events & lost.get(label, frozenset()))


def where_present(causes: Mapping[str, set[str]], data: Dataset) -> Sets:
    return {
        (data.sequence_ids[k].as_py(), label): frozenset(causes.get(label, set()) & set(data.events_of(k)))
        for k in range(len(data))
        for label in data.labels_of(k)
    }
