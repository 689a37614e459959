"""Knobs: every one is documented, checked at birth, and can be given as text."""

from __future__ import annotations

from dataclasses import fields

import pytest

from oscar_causal.data.synthetic import PRESETS, FleetConfig, knob_help, parse_settings, preset
from oscar_causal.errors import UsageError


def test_every_knob_is_documented() -> None:
    texts = knob_help()
    assert list(texts) == [field.name for field in fields(FleetConfig)]
    assert all(len(text) > 15 and text.endswith(".") for text in texts.values())
    assert len(set(texts.values())) == len(texts)


@pytest.mark.parametrize("name", [field.name for field in fields(FleetConfig)])
def test_a_value_that_cannot_be_names_its_knob(name: str) -> None:
    for bad in (-1, "many", None, float("nan")):
        with pytest.raises(UsageError, match=name) as refused:
            preset("demo", **{name: bad})
        assert "\n" not in str(refused.value)


def test_knobs_that_do_not_go_together() -> None:
    with pytest.raises(UsageError, match="repeats \\+ cascades"):
        FleetConfig(repeats=0.5, cascades=0.5)
    with pytest.raises(UsageError, match="temporal_labels \\+ probabilistic_labels"):
        FleetConfig(temporal_labels=0.7, probabilistic_labels=0.7)
    with pytest.raises(UsageError, match="weight above 0"):
        FleetConfig(temporal_labels=1.0, orders=0, windows=0, counts=0)
    with pytest.raises(UsageError, match="each size once"):
        FleetConfig(boundary_sizes=((1, 1), (1, 2)))
    with pytest.raises(UsageError, match="weight above 0"):
        FleetConfig(boundary_sizes=((1, 0),))


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UsageError, match="demo, small, paper, hard, temporal"):
        preset("huge")
    with pytest.raises(UsageError, match="'symptom'"):
        preset("demo", symptom=0.5)


def test_presets_have_the_promised_sizes() -> None:
    assert set(PRESETS) == {"demo", "small", "hard", "temporal", "paper"}
    for name in ("hard", "temporal", "paper"):
        fleet = PRESETS[name]
        assert (fleet.event_types, fleet.labels, fleet.mean_length, fleet.sd_length) == (29_100, 474, 150, 90)
        assert fleet.missing_rules == 0.12
    demo = PRESETS["demo"]
    assert demo.event_types >= 300
    assert demo.labels >= 12
    assert min(demo.symptoms, demo.precursors, demo.near_misses) > 0
    hard = PRESETS["hard"]
    for knob in ("lost_labels", "false_labels", "drift", "hidden_driver", "redundant_causes", "probabilistic_labels"):
        assert getattr(hard, knob) > 0, knob


def test_settings_are_read_as_the_type_of_their_knob() -> None:
    values = parse_settings(["sequences=1_000", "symptoms=1", "null=yes", "boundary-sizes=2:1,3:0.5"])
    assert values == {"sequences": 1000, "symptoms": 1.0, "null": True, "boundary_sizes": ((2, 1.0), (3, 0.5))}
    assert isinstance(values["symptoms"], float)


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("symptoms", "KEY=VALUE"),
        ("symptom=1", "a knob among"),
        ("symptoms=lots", "a number"),
        ("labels=1.5", "a whole number"),
        ("null=perhaps", "true or false"),
        ("boundary_sizes=1:2:3", "SIZE:WEIGHT"),
    ],
)
def test_settings_that_cannot_be_read(setting: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        parse_settings([setting])


def test_a_setting_given_twice() -> None:
    with pytest.raises(UsageError, match="twice"):
        parse_settings(["drift=0.1", "drift=0.2"])
