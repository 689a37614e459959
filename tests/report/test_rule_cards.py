"""Rule cards from whatever a population folder holds; what is odd in it is one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from oscar_causal.data.folders import write_json
from oscar_causal.errors import FolderError
from oscar_causal.report.rule_cards import rule_cards


def test_cards_from_proposals_or_from_rules(tmp_path: Path) -> None:
    assert rule_cards(tmp_path, {}) == []
    write_json(tmp_path / "rules.json", {"worn": "A & B"})
    [card] = rule_cards(tmp_path, {"worn": "A"})
    assert (card["label"], card["rule"], card["published"], card["expert"]) == ("worn", "A & B", "A", None)
    share = {"share": 0.5, "low": 0.25, "high": 0.75, "hits": 5, "of": 10}
    nothing = {**share, "of": 0}
    told = {"status": "proposed", "rule": None, "confidence": 0.9, "fidelity": {"recall": share, "model": nothing}}
    write_json(tmp_path / "proposals.json", {"worn": {**told, "reasons": ["too few"]}})
    [card] = rule_cards(tmp_path, {})
    assert (card["rule"], card["status"]) == (None, "proposed")
    assert card["figures"] == [["confidence", 0.9], ["rule where the label came", "0.50 (0.25 to 0.75)"]]
    assert card["reasons"] == ["too few"]


def test_a_card_has_what_speaks_against_the_rule(population: Path) -> None:
    cards = {card["label"]: card for card in rule_cards(population, {"<b>brakes</b>": "A"})}
    assert cards["engine"]["rule_without_label"] == ["car 3", "gone"]
    guess = cards["<b>brakes</b>"]
    assert guess["twins"] == [["A", "<i>B</i>", 3, 2]]
    assert guess["reasons"] == ["no sequence lacks A alone"]  # what twins say is not said twice
    assert (guess["expert"], guess["published"]) == (None, "A")
    beside = cards["engine"]["expert"]
    assert (beside["relation"], beside["rule"], beside["only_proposed"]) == ("looser", "A & B", ["car 5"])
    assert beside["sentence"].startswith("your rule lacks")
    assert (beside["from"], beside["to"][:10]) == (None, "2024-02-01")


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("proposals.json", {"worn": "A & B"}, "proposals.json: worn: expected a JSON object, found 'A & B'"),
        ("proposals.json", {"worn": None}, "worn: expected a JSON object, found None"),
        ("proposals.json", {"worn": {"rule": 5}}, "worn: rule: expected text, found 5"),
        ("proposals.json", {"worn": {"fidelity": [1]}}, "worn: fidelity: expected a JSON object"),
        ("proposals.json", {"worn": {"fidelity": {"recall": {"of": 3, "share": "x"}}}}, "share: expected a number"),
        ("proposals.json", {"worn": {"fidelity": {"recall": 0.5}}}, "recall: expected a JSON object, found 0.5"),
        ("proposals.json", {"worn": {"reasons": "many"}}, "reasons: expected a list, found 'many'"),
        ("proposals.json", {"worn": {"reasons": [1]}}, "reasons: expected a list of texts, found 1"),
        ("proposals.json", {"worn": {"twins": [{"part": "A"}]}}, "stand_in: expected text, found None"),
        ("proposals.json", {"worn": {"confidence": True}}, "confidence: expected a number, found True"),
        ("rules.json", {"worn": ["A"]}, "rules.json: worn: expected text"),
        ("expert.json", {"rules": {"worn": {"expert": "A"}}}, "relation: expected text, found None"),
        ("expert.json", {"rules": []}, "rules: expected a JSON object, found []"),
    ],
)
def test_odd_files_are_one_line(tmp_path: Path, file: str, content: Any, expected: str) -> None:
    write_json(tmp_path / "rules.json", {"worn": "A"})
    (tmp_path / file).write_text(json.dumps(content))
    with pytest.raises(FolderError) as told:
        rule_cards(tmp_path, {})
    assert expected in str(told.value)
    assert "\n" not in str(told.value)


def test_a_share_without_a_value_is_left_out(tmp_path: Path) -> None:
    entry = {"rule": "A", "fidelity": {"recall": {"of": 3, "share": None}, "precision": {"of": 3, "share": 0.5}}}
    write_json(tmp_path / "proposals.json", {"worn": entry})
    [card] = rule_cards(tmp_path, {})
    assert card["figures"] == [["label where the rule holds", "0.50"]]
