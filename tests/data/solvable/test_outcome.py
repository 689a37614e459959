"""Parents, signs and rules: against literal blanking, and against the batch evaluator of the rule language."""

from __future__ import annotations

import numpy as np
import pytest

from oscar_causal.data.rules import EventIndex, evaluate, parse
from oscar_causal.data.solvable import EXAMPLES, Effect, LabelLaw, SolvableConfig, SolvableProcess, example
from oscar_causal.errors import DataError, UsageError


def test_parents_and_signs_by_blanking_every_sequence(case):
    literal = case.literal
    for label in range(2):
        expected = {}
        for event in literal.types:
            changes = []
            for driver in range(len(literal.drivers)):
                for sequence in literal.sequences:
                    blanked = [None if x == event else x for x in sequence]
                    change = literal.mechanism(sequence, driver) - literal.mechanism(blanked, driver)
                    changes.append(round(change[label], 12))
            if any(changes):
                expected[event] = int(max(changes) > 0) - int(min(changes) < 0)
        assert case.process.signs(label) == expected
        assert case.process.true_parents(label) == tuple(expected)


@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - {"hidden"}))
def test_label_probabilities_are_base_plus_the_effects_whose_rule_holds(name):
    process = example(name)
    drawn = process.sample(2_000, np.random.default_rng(41))
    ids = {event: t for t, event in enumerate(process.event_names)}
    offsets = np.arange(len(drawn.event_ids) + 1) * process.length
    index = EventIndex(offsets, drawn.event_ids.ravel(), drawn.times.ravel(), ids)
    for j, label in enumerate(process.config.labels):
        expected = np.full(len(drawn.event_ids), label.base)
        for effect in label.effects:
            expected += effect.size * evaluate(parse(effect.rule), index)
        assert len(np.unique(expected)) > 1
        np.testing.assert_allclose(process.label_probs(drawn.event_ids)[:, j], expected, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "signs"),
    [
        ("and", {"A": 1, "B": 1}),
        ("or", {"A": 1, "B": 1}),
        ("not", {"A": 1, "B": -1}),
        ("xor", {"A": 0, "B": 0}),
        ("order", {"A": 1, "B": 1}),
        ("count", {"A": 1}),
        ("graded", {"B": 1, "C": 1, "D": 1}),
        ("announcer", {"A": 1}),
        ("mediator", {"M": 1}),
        ("symptom", {"A": 1}),
        ("hidden", {"A": 1}),
        ("redundant", {"A": 1, "B": 1}),
        ("rare", {"A": 1, "B": 1}),
        ("ties", {"A": 1, "B": 1}),
    ],
)
def test_parents_of_the_examples(name, signs):
    process = example(name)
    assert {process.event_names[t]: sign for t, sign in process.signs(0).items()} == signs


def test_every_example_has_its_parents_tested():
    assert len(EXAMPLES) == 14


def test_an_event_that_a_rule_only_seems_to_ask_for_is_no_parent():
    label = LabelLaw("y", 0.1, (Effect("(A & B) | (A & !B)", 0.5), Effect("C", 0.2), Effect("C", -0.2)))
    process = SolvableProcess(SolvableConfig(length=4, events=("A", "B", "C"), labels=(label,)))
    assert process.signs(0) == {0: 1}


def _process(rule: str, size: float = 0.5, base: float = 0.1) -> SolvableProcess:
    labels = (LabelLaw("y", base, (Effect(rule, size),)),)
    return SolvableProcess(SolvableConfig(length=5, events=("A", "B"), labels=labels, inert=2))


@pytest.mark.parametrize(
    ("rule", "size", "error", "words"),
    [
        ("A & C", 0.5, UsageError, "label 'y', rule 'A & C': expected events among .*, got 'C'"),
        ("A & inert0", 0.5, UsageError, "got 'inert0'"),
        ("A then B within 5s", 0.5, UsageError, "expected no `within`"),
        ("A &", 0.5, DataError, "expected"),
        ("A", 0.95, UsageError, "label 'y': expected probabilities between 0 and 1, got 0.1 to 1.05"),
        ("A", -0.2, UsageError, "expected probabilities between 0 and 1, got -0.1 to 0.1"),
    ],
)
def test_bad_rules_get_one_clear_line(rule, size, error, words):
    with pytest.raises(error, match=words) as caught:
        _process(rule, size)
    assert "\n" not in str(caught.value)


def test_too_many_states_are_refused_before_memory_is():
    rule = " & ".join(f"{event} >= 8" for event in "ABCDEFGH")
    labels = (LabelLaw("y", 0.1, (Effect(rule, 0.5),)),)
    with pytest.raises(UsageError, match="at most 20,?000 states"):
        SolvableProcess(SolvableConfig(length=64, events=tuple("ABCDEFGH"), labels=labels))


def test_effects_that_just_reach_certainty_are_fine():
    probs = _process("A", 0.9, base=0.1).label_probs([[0, 1, 2, 3, 1], [1, 1, 2, 3, 1]])
    np.testing.assert_array_equal(probs[:, 0], [1.0, 0.1])
