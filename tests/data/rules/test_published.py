"""rules.json: round trips and one clear line for bad files."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oscar_causal.data.rules import Event, PublishedRule, format_rule, parse, read_rules, write_rules
from oscar_causal.errors import DataError, OscarError

MARCH, MAY = datetime(2024, 3, 1, tzinfo=UTC), datetime(2024, 5, 1, tzinfo=UTC)


def test_both_forms_are_read_and_written(tmp_path):
    path = tmp_path / "rules.json"
    rules = {
        "plain": PublishedRule(parse("A & (B | C) & !D")),
        "drifted": PublishedRule(parse("A then B within 1h"), MARCH, None),
        "bounded": PublishedRule(parse('"P0-1" >= 2'), MARCH, MAY + timedelta(microseconds=5)),
    }
    write_rules(path, rules)
    assert read_rules(path) == rules
    assert json.loads(path.read_text(encoding="utf-8")) == {
        "plain": "A & (B | C) & !D",
        "drifted": {"rule": "A then B within 3600s", "from": "2024-03-01T00:00:00Z", "to": None},
        "bounded": {"rule": '"P0-1" >= 2', "from": "2024-03-01T00:00:00Z", "to": "2024-05-01T00:00:00.000005Z"},
    }
    assert [entry.name for entry in tmp_path.iterdir()] == ["rules.json"]


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rules=st.dictionaries(names, names.map(Event).map(PublishedRule), max_size=5))
def test_any_label_and_any_event_name_survive(tmp_path, rules):
    write_rules(tmp_path / "rules.json", rules)
    assert read_rules(tmp_path / "rules.json") == rules


def test_bare_rules_can_be_written(tmp_path):
    write_rules(str(tmp_path / "rules.json"), {"x": parse("A")})
    assert read_rules(str(tmp_path / "rules.json")) == {"x": PublishedRule(parse("A"))}


def test_times_are_compared_in_utc():
    rule = PublishedRule(parse("A"), MARCH, MAY)
    assert PublishedRule(parse("A"), MARCH.astimezone(timezone(timedelta(hours=2))), MAY.replace(tzinfo=None)) == rule
    assert rule.in_force(MARCH)
    assert rule.in_force(MAY - timedelta(microseconds=1))
    assert not rule.in_force(MAY)
    assert not rule.in_force(MARCH - timedelta(microseconds=1))
    assert rule.in_force(None)
    assert PublishedRule(parse("A")).in_force(MARCH)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("[]", "expected a JSON object from labels to rules, got list"),
        ('{"x": "A"', "expected a JSON object of rules"),
        ('{"x": "A", "x": "B"}', 'the key "x" comes twice'),
        ('{"x": 3}', 'label "x": expected a rule as text'),
        ('{"x": "A & "}', 'label "x": rule, column 5: expected'),
        ('{"ü\\n": ""}', 'label "ü\\n": rule, column 1: expected'),
        ('{"x": {"rule": "A", "form": null}}', "expected only the keys 'rule', 'from', 'to', got \"form\""),
        ('{"x": {"from": null}}', "expected the key 'rule' with text, got NoneType"),
        ('{"x": {"rule": "A", "from": "yesterday"}}', "expected 'from' to be a time like"),
        ('{"x": {"rule": "A", "to": 5}}', "expected 'to' to be a time like"),
        ('{"x": {"rule": "A", "from": "2024-05-01", "to": "2024-03-01"}}', "expected 'from' before 'to'"),
        ("[" * 100_000, "cannot read it"),
    ],
)
def test_bad_files_give_one_line_with_the_place(tmp_path, content, expected):
    path = tmp_path / "rules.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(OscarError) as caught:
        read_rules(path)
    message = str(caught.value)
    assert str(path) in message
    assert expected in message
    assert "\n" not in message


def test_missing_file_wrong_encoding_and_folder(tmp_path):
    with pytest.raises(OscarError, match="missing"):
        read_rules(tmp_path / "rules.json")
    (tmp_path / "latin.json").write_bytes('{"x": "Ö"}'.encode("latin-1"))
    for path in (tmp_path / "latin.json", tmp_path):
        with pytest.raises(OscarError, match="cannot read it"):
            read_rules(path)


def test_what_is_no_published_rule_is_refused():
    with pytest.raises(DataError, match="expected a rule, got str"):
        PublishedRule("A")
    with pytest.raises(DataError, match="expected a datetime or None as start"):
        PublishedRule(parse("A"), "2024-01-01")
    assert format_rule(PublishedRule(parse("A")).rule) == "A"
