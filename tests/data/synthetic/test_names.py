"""Codes, labels and their descriptions."""

from __future__ import annotations

import re

import numpy as np
import pytest

from oscar_causal.data.rules import Event, format_rule
from oscar_causal.data.synthetic.names import event_codes, event_descriptions, label_descriptions, label_names


@pytest.mark.parametrize(("count", "digits"), [(1, 3), (29_100, 3), (65_536, 3), (70_000, 4)])
def test_codes_are_different_and_need_no_quotes_in_rules(count: int, digits: int) -> None:
    codes = event_codes(np.random.default_rng(0), count)
    assert len(set(codes)) == count
    assert all(re.fullmatch(f"[PCBU][0-3][0-9A-F]{{{digits}}}", code) for code in codes)
    assert all(format_rule(Event(code)) == code for code in codes[:100])


def test_descriptions_fit_the_letter() -> None:
    codes = event_codes(np.random.default_rng(0), 3000)
    texts = event_descriptions(np.random.default_rng(1), codes)
    assert set(texts) == set(codes)
    assert all(text[0].isupper() and ": " in text for text in texts.values())
    assert not any("bus" in text or "link" in text for code, text in texts.items() if code[0] == "P")
    assert len(set(texts.values())) > 1500


def test_labels_are_numbered() -> None:
    labels = label_names(np.random.default_rng(0), 474)
    assert len(set(labels)) == 474
    assert [int(label.rsplit(" ", 1)[1]) for label in labels] == list(range(474))
    assert label_descriptions(labels[:1]) == {labels[0]: f"Error pattern 0: {labels[0][:-4]}"}
