"""Rows of `rule_drift.parquet` for the parts of a rule, and what they mean for the proposal of that rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from oscar_causal.data.rules import Rule, format_rule, parse
from oscar_causal.discovery.evidence import DAY_US
from oscar_causal.graph.drift import moment
from oscar_causal.graph.rules.changes import Dated, PartChange, deciding_parts, rule_among
from oscar_causal.graph.rules.expert import relation
from oscar_causal.graph.rules.proposal import Share
from oscar_causal.graph.rules.settings import RuleRecoveryConfig

Row = dict[str, Any]


def part_rows(dated: Dated, label: str, rule: str) -> list[Row]:
    """One row per part of the rule, with its `change`, before they are judged together."""
    came = dated.mined.with_label(label)
    end = moment(dated.start.max() / DAY_US)
    rows: list[Row] = []
    for part in deciding_parts(parse(rule), dated.mined):
        change = dated.change(part, came)
        rows.append(
            {
                "label": label,
                "rule": rule,
                "change": change,
                "from": moment(change.since / DAY_US),
                "to": end,
                "positives": int(came[dated.start >= change.since].sum()),
                "p_value": change.p_value,
                "part": format_rule(part.rule),
                "says": part.says,
                "until": moment(change.until / DAY_US) if change.before.of else None,
                "decided": change.after.of,
                "came": change.after.hits,
                "decided_elsewhere": change.before.of,
                "came_elsewhere": change.before.hits,
            }
        )
    return rows


def write_rules(dated: Dated, label: str, rows: Sequence[Row]) -> None:
    """Write the rule before and after into the rows of parts that changed; take out what no table holds."""
    changes: list[PartChange] = [row.pop("change") for row in rows]
    came = dated.mined.with_label(label)
    changed = [change.part for change, row in zip(changes, rows, strict=True) if row["changed"]]
    for change, row in zip(changes, rows, strict=True):
        if row["changed"]:
            rule, late = parse(row["rule"]), dated.start >= change.since
            here, there = (rule_among(rule, changed, came, among) for among in (late, ~late))
            row |= {"rule_here": _text(here), "rule_elsewhere": _text(there)}
            row["relation"] = None if here is None else relation(here, rule)


def _text(rule: Rule | None) -> str | None:
    return None if rule is None else format_rule(rule)


def doubts(table: pa.Table) -> dict[str, tuple[str, ...]]:
    """Label -> why its rule cannot be stated: on one side of a date a part of it clearly does not work.

    A part does not work where the rule's word on it is right in clearly less than the share that rules must explain.
    """
    found: dict[str, list[Row]] = {}
    for row in table.to_pylist():
        if row["changed"] and row["part"] is not None and _fails(row):
            found.setdefault(row["label"], []).append(row)
    return {label: tuple([*map(_sentence, rows), *_old_and_new(rows)]) for label, rows in found.items()}


def _fails(row: Row) -> bool:
    sides = ((row["came"], row["decided"]), (row["came_elsewhere"], row["decided_elsewhere"]))
    right = [Share(came if row["says"] else of - came, of) for came, of in sides]
    return any(share.interval[1] < RuleRecoveryConfig.explained for share in right)


def _sentence(row: Row) -> str:
    where = f"where {row['part']} alone {'decides' if row['says'] else 'is missing'}"
    before, after = (f"{row['came' + side]} of {row['decided' + side]}" for side in ("_elsewhere", ""))
    until, since = (f"{row[name]:%Y-%m-%d}" for name in ("until", "from"))
    return f"{where}, the label came in {before} sequences until {until} and in {after} from {since} on"


def _old_and_new(rows: Sequence[Row]) -> list[str]:
    """Both rules, by the part whose change is surest."""
    surest = min(rows, key=lambda row: row["p_value"])
    old, new = surest["rule_elsewhere"], surest["rule_here"]
    return [f"before it reads {old}, after {new}"] if old and new and old != new else []
