"""`rules.json`: the published rule of each label, with the time from which and until which it was in force.

{"steering degraded": "C0051 & (U0126 | U0428) & !B1000",
 "pump worn": {"rule": "P0087 then P0191 within 3600s", "from": "2024-03-01T00:00:00Z", "to": null}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from oscar_causal.data.checksums import check_file
from oscar_causal.data.folders import parse_json, write_json
from oscar_causal.data.rules.parser import parse
from oscar_causal.data.rules.tree import Rule, format_rule
from oscar_causal.errors import DataError, FolderError

_KEYS = ("rule", "from", "to")


@dataclass(frozen=True, slots=True)
class PublishedRule:
    """A rule and the time it is in force: from `start` (included) to `end` (excluded), None = unbounded."""

    rule: Rule
    start: datetime | None = None
    end: datetime | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.rule, Rule):
            raise DataError(f"expected a rule, got {type(self.rule).__name__}")
        for name in ("start", "end"):
            moment = getattr(self, name)
            if moment is not None and not isinstance(moment, datetime):
                raise DataError(f"expected a datetime or None as {name}, got {type(moment).__name__}")
            if moment is not None:
                object.__setattr__(self, name, _utc(moment))
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise DataError(f"expected 'from' before 'to', got {_text(self.start)} and {_text(self.end)}")

    def in_force(self, moment: datetime | None) -> bool:
        """Whether the rule applies at this time; an unknown time (None) is taken to lie inside."""
        if moment is None:
            return True
        moment = _utc(moment)
        return (self.start is None or self.start <= moment) and (self.end is None or moment < self.end)


def read_rules(path: Path | str) -> dict[str, PublishedRule]:
    """Read a `rules.json`; a bad file is a FolderError or DataError of one line naming file, label and column."""
    path = Path(path)
    check_file(path)
    try:
        content = parse_json(path.read_text(encoding="utf-8"), pairs=_no_repeats)
    except FileNotFoundError as error:
        raise FolderError(f"{path}: missing") from error
    except (OSError, ValueError, RecursionError) as error:
        raise FolderError(f"{path}: expected a JSON object of rules, cannot read it: {error}") from error
    if not isinstance(content, dict):
        raise DataError(f"{path}: expected a JSON object from labels to rules, got {type(content).__name__}")
    rules = {}
    for label, entry in content.items():
        try:
            rules[label] = _from_json(entry)
        except DataError as error:
            raise DataError(f"{path}: label {json.dumps(label, ensure_ascii=False)}: {error}") from error
    return rules


def write_rules(path: Path | str, rules: Mapping[str, PublishedRule | Rule]) -> None:
    """Write a `rules.json` atomically, labels sorted; rules without bounds in time are written as plain text."""
    write_json(Path(path), {label: _to_json(rule) for label, rule in rules.items()})


def _from_json(entry: object) -> PublishedRule:
    if isinstance(entry, str):
        return PublishedRule(parse(entry))
    if not isinstance(entry, dict):
        raise DataError(f"expected a rule as text or an object with 'rule', 'from', 'to', got {type(entry).__name__}")
    for key in entry:
        if key not in _KEYS:
            raise DataError(f"expected only the keys 'rule', 'from', 'to', got {json.dumps(key, ensure_ascii=False)}")
    if not isinstance(entry.get("rule"), str):
        raise DataError(f"expected the key 'rule' with text, got {type(entry.get('rule')).__name__}")
    return PublishedRule(parse(entry["rule"]), _moment(entry, "from"), _moment(entry, "to"))


def _to_json(published: PublishedRule | Rule) -> str | dict[str, str | None]:
    if not isinstance(published, PublishedRule):
        return format_rule(published)
    text = format_rule(published.rule)
    if published.start is None and published.end is None:
        return text
    return {"rule": text, "from": _text(published.start), "to": _text(published.end)}


def _moment(entry: Mapping[str, Any], key: str) -> datetime | None:
    value = entry.get(key)
    if value is None:
        return None
    try:
        return _utc(datetime.fromisoformat(value))
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"expected {key!r} to be a time like 2024-03-01T00:00:00Z or null, got {value!r}") from error


def _utc(moment: datetime) -> datetime:
    """The same moment in UTC; one without a zone is taken to be UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {json.dumps(key, ensure_ascii=False)} comes twice")
        found[key] = value
    return found
