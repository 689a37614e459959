"""What the data say, against counting by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oscar_causal.data.rules import evaluate, parse
from oscar_causal.data.sequences import from_records
from oscar_causal.graph.rules.mining import Mined, agreement, pivotal


def data(*rows: tuple[str, str]) -> Mined:
    """Rows of (events, labels), one letter each, one second apart."""
    return Mined(
        from_records(
            {"sequence_id": str(k), "events": list(events), "times": list(range(len(events))), "labels": list(labels)}
            for k, (events, labels) in enumerate(rows)
        )
    )


def test_labels_patterns_and_ids() -> None:
    mined = data(("ab", "y"), ("b", ""), ("cba", "yz"))
    assert mined.with_label("y").tolist() == [True, False, True]
    assert mined.with_label("nobody").tolist() == [False, False, False]
    assert mined.patterns(["a", "b", "nobody"]).tolist() == [3, 2, 3]
    assert mined.ids(np.array([True, False, True])) == ("0", "2")


def test_places_are_those_among_the_positives_if_there_are_enough() -> None:
    rows = [("axxx", "y")] * 6 + [("xxxa", "")] * 6
    mined = data(*rows)
    assert mined.places("a", "y").tolist() == [0.125] * 6
    assert sorted(set(mined.places("a", "nobody").tolist())) == [0.125, 0.875]
    assert len(mined.places("nobody", "y")) == 0


@pytest.mark.parametrize("text", ["a & b", "a | b", "a & !b", "(a then b) | c", "(a >= 2) & (b | c)"])
def test_pivotal_sequences_are_those_where_turning_the_atom_turns_the_rule(garage: Any, text: str) -> None:
    rng = np.random.default_rng(0)
    mined = data(*[("".join(rng.choice(list("abcx"), 5)), "") for _ in range(200)])
    rule = parse(text)
    whole = evaluate(rule, mined.index)
    for atom, (held, failed) in pivotal(rule, mined.index).items():
        value = evaluate(atom, mined.index)
        assert not (held & ~value).any()
        assert not (failed & value).any()
        values = _values(rule, mined)
        for pattern in np.unique(values, axis=0):
            rows = (values == pattern).all(1)
            assert len(set(held[rows].tolist())) == 1  # decided by the atoms alone
        assert held.any() or failed.any()
        if text == "a & b":
            other = evaluate(parse("b" if atom == parse("a") else "a"), mined.index)
            assert (held == (value & other)).all()
            assert (failed == (~value & other)).all()
    assert whole.any()


def _values(rule: Any, mined: Mined) -> np.ndarray:
    from oscar_causal.data.rules import atoms

    return np.array([evaluate(atom, mined.index) for atom, _ in atoms(rule)]).T


def test_agreement_is_f1() -> None:
    from sklearn.metrics import f1_score

    mined = data(("a", "y"), ("a", ""), ("b", "y"), ("ab", "y"), ("c", ""))
    truth, said = [1, 0, 1, 1, 0], [1, 1, 0, 1, 0]
    assert agreement(parse("a"), "y", mined) == pytest.approx(f1_score(truth, said))
    assert agreement(parse("nobody"), "nothing", mined) == 0.0
