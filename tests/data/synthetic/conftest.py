"""Small fleets on disk and a slow, literal judge of rules that shares no code with the evaluator."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from oscar_causal.data.rules import And, AtLeast, Event, Not, Or, PublishedRule, Rule, Then, parse, read_rules
from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.synthetic import FleetConfig, preset, write_fleet

SMALL = {"event_types": 700, "labels": 24, "sequences": 1500, "mean_length": 60.0, "sd_length": 25.0, "label_tail": 0.5}


def holds(rule: Rule, events: list[str], times: list[float]) -> bool:
    """Whether a rule holds in one sequence, by the words of the rule language."""
    match rule:
        case Event(name):
            return name in events
        case Not(item):
            return not holds(item, events, times)
        case And(items):
            return all(holds(item, events, times) for item in items)
        case Or(items):
            return any(holds(item, events, times) for item in items)
        case AtLeast(event, count):
            return events.count(event.name) >= count
        case Then(Event(first), Event(second), within):
            gaps = [
                times[j] - times[i]
                for i, a in enumerate(events)
                if a == first
                for j, b in enumerate(events)
                if b == second
            ]
            return any(0 < gap <= (float("inf") if within is None else within) for gap in gaps)
    raise AssertionError(f"a form the fleets do not use: {rule}")


@dataclass(frozen=True)
class Fleet:
    """A written fleet, read back with plain tools."""

    config: FleetConfig
    path: Path
    holds = staticmethod(holds)

    @cached_property
    def info(self) -> dict[str, Any]:
        return json.loads((self.path / "dataset.json").read_text())

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        return pq.read_table(self.path / "sequences").to_pylist()

    @cached_property
    def why(self) -> dict[tuple[str, str], list[dict[str, Any]]]:
        found: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for row in pq.read_table(self.path / "why").to_pylist():
            found.setdefault((row["sequence_id"], row["label"]), []).append(row)
        return found

    @cached_property
    def published(self) -> dict[str, PublishedRule]:
        return read_rules(self.path / "rules.json")

    @cached_property
    def graded(self) -> dict[str, Any]:
        return self.info["generator"]["graded_labels"]

    @cached_property
    def every_rule(self) -> list[tuple[str, PublishedRule]]:
        """Published and hidden rules together."""
        hidden = [
            (item["label"], PublishedRule(parse(item["rule"]), moment(item["from"]), moment(item["to"])))
            for item in self.info["generator"]["hidden_rules"]
        ]
        return sorted([*self.published.items(), *hidden], key=lambda pair: pair[0])

    def rule_at(self, label: str, start: datetime) -> Rule:
        """The true rule of a label for a sequence that begins then."""
        (rule,) = [item.rule for name, item in self.every_rule if name == label and item.in_force(start)]
        return rule

    def verdicts(self) -> Iterator[tuple[dict[str, Any], str, bool]]:
        """(sequence, label, does its rule hold) for every label without chance and every sequence."""
        for label, item in self.every_rule:
            if label in self.graded:
                continue
            for row in self.rows:
                if item.in_force(row["start"]):
                    yield row, label, holds(item.rule, row["events"], row["times"])


def moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


@pytest.fixture(scope="session")
def make_fleet(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Fleet]:
    """Write a fleet, once per session and config."""
    known: dict[FleetConfig, Fleet] = {}

    def make(name: str, **knobs: Any) -> Fleet:
        config = preset(name, **{**SMALL, **knobs})
        if config not in known:
            out = tmp_path_factory.mktemp("fleet") / "fleet"
            write_fleet(config, 5, out, workers=1)
            read_dataset(out)  # the format's own reader accepts it
            known[config] = Fleet(config, out)
        return known[config]

    return make


@pytest.fixture(scope="session")
def hard(make_fleet: Callable[..., Fleet]) -> Fleet:
    """All that a boolean fleet can have, noisier than the preset so that rates can be measured."""
    return make_fleet("hard", lost_labels=0.1, false_labels=0.2, drift=0.25, probabilistic_labels=0.2)


@pytest.fixture(scope="session")
def temporal(make_fleet: Callable[..., Fleet]) -> Fleet:
    """The temporal preset at a small size."""
    return make_fleet("temporal")
