"""Scores of readings, and the best list, by hand."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

CAUSES = {("1", "y"): {"a", "b"}, ("2", "y"): {"a"}, ("3", "y"): {"c"}}


@pytest.fixture
def admit(script: Callable[[str], ModuleType]) -> Any:
    return script("admit_world")


def test_precision_and_recall_are_means_over_pairs_and_neutral_types_do_not_count(admit: Any) -> None:
    found = {("1", "y"): {"a", "x"}, ("2", "y"): {"a", "n"}}
    figures = admit.score(found, CAUSES, {("2", "y"): {"n"}})
    assert figures["precision"] == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert figures["recall"] == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert figures["f1"] == pytest.approx(1 / 2)
    assert admit.score({}, CAUSES, {}) == {"precision": 0, "recall": 0, "f1": 0}


def test_the_best_list_leaves_out_what_is_mostly_a_decoy(admit: Any) -> None:
    present = {(str(i), "y"): {"a", "d"} for i in range(9)} | {("9", "y"): {"d"}}
    causes = {(str(i), "y"): {"a"} for i in range(9)} | {("9", "y"): {"d"}}
    assert admit.best_lists(present, causes, {})["0", "y"] == {"a"}
    assert admit.best_lists(present, {("9", "y"): {"d"}}, {})["9", "y"] == {"d"}
