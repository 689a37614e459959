"""Definitions that cannot be are refused in one line that names the field."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from oscar_causal.data.solvable import (
    EXAMPLES,
    Effect,
    HiddenDriver,
    LabelLaw,
    Pull,
    SolvableConfig,
    SolvableProcess,
    example,
)
from oscar_causal.errors import UsageError

_GOOD = SolvableConfig(length=4, events=("A", "B"), labels=(LabelLaw("y", 0.5),), inert=2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"length": 0}, "length: expected 1 to 64 events, got 0"),
        ({"events": ()}, "events: expected 1 to 8 relevant types, got 0"),
        ({"events": tuple("ABCDEFGHI")}, "got 9"),
        ({"events": ("A", "A")}, "expected distinct names"),
        ({"events": ("A", "inert1")}, "expected distinct names"),
        ({"events": ("inert",)}, "expected distinct names"),
        ({"events": ("A",), "inert": 0}, "at least two types"),
        ({"inert": 101}, "inert: expected 0 to 100 inert types, got 101"),
        ({"labels": ()}, "labels: expected at least one"),
        ({"labels": (LabelLaw("y", 0.5), LabelLaw("y", 0.1))}, "distinct names"),
        ({"labels": (LabelLaw("y", 1.5),)}, "label 'y', base: expected a probability, got 1.5"),
        ({"labels": (LabelLaw("y", 0.5, hidden=0.1),)}, "0 without a hidden driver, got 0.1"),
        ({"tied": (0,)}, "tied: expected distinct positions 1 to L-1"),
        ({"tied": (4,)}, "tied: expected"),
        ({"tied": (2, 2)}, "tied: expected"),
        ({"weights": (1.0,)}, "weights: expected one per relevant type"),
        ({"weights": (1.0, float("nan"))}, "weights: expected finite numbers"),
        ({"pulls": (Pull("A", "Z", 1.0),)}, "pulls: expected names among"),
        ({"pulls": (Pull("A", "B", 1.0, lag=3),)}, "pulls: expected lag 1 or 2"),
        ({"seed": -1}, "seed: expected"),
        ({"hidden": HiddenDriver(0.3, "Z", 0.1, 0.2)}, "hidden event: expected a name among"),
        ({"hidden": HiddenDriver(0.3, "A", 0.0, 0.2)}, "strictly between 0 and 1"),
    ],
)
def test_bad_definitions(changes, words):
    with pytest.raises(UsageError, match=words) as caught:
        dataclasses.replace(_GOOD, **changes)
    assert "\n" not in str(caught.value)


def test_a_type_that_could_never_occur_is_refused():
    with pytest.raises(UsageError, match="positive probability"):
        SolvableProcess(dataclasses.replace(_GOOD, weights=(0.0, -2000.0)))


def test_tables_too_large_are_refused():
    rare = LabelLaw("rare", 0.1, (Effect(" & ".join("ABCDEFGH"), 0.5),))
    labels = (rare, *(LabelLaw(f"y{j}", 0.5) for j in range(300)))
    with pytest.raises(UsageError, match="expected tables of at most 40,000,000 cells, got"):
        SolvableProcess(SolvableConfig(length=7, events=tuple("ABCDEFGH"), labels=labels, inert=100))


def test_pulls_may_name_the_lump():
    process = SolvableProcess(
        dataclasses.replace(_GOOD, pulls=(Pull("inert", "A", 2.0), Pull("A", "inert", 1.0, lag=2)))
    )
    assert process.next_event_probs([2])[0] > process.next_event_probs([1])[0]
    assert process.next_event_probs([0, 1])[2:].sum() > process.next_event_probs([1, 1])[2:].sum()


def test_unknown_examples_are_named_with_the_known_ones():
    with pytest.raises(UsageError, match="expected one of and, or, .*, got 'nand'"):
        example("nand")
    assert all(isinstance(example(name), SolvableProcess) for name in EXAMPLES)


def test_importing_does_not_import_torch():
    code = "import sys, oscar_causal.data.solvable; sys.exit('torch' in sys.modules or 'sympy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
