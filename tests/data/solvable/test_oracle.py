"""Conditional laws against literal enumeration, and the perturbed oracle against its promises."""

from __future__ import annotations

import numpy as np
import pytest

from oscar_causal.data.solvable import EXAMPLES, ExactOracle, example
from oscar_causal.errors import UsageError


def test_the_literal_process_sums_to_one(case):
    assert sum(case.literal.joint.values()) == pytest.approx(1, abs=1e-12)


def test_next_event_law(case):
    for length in range(case.process.length):
        prefixes = case.literal.prefixes(length)
        expected = np.array([case.literal.next_event(prefix) for prefix in prefixes])
        found = case.process.next_event_probs(np.array(prefixes, dtype=int).reshape(len(prefixes), length))
        np.testing.assert_allclose(found, expected, atol=1e-13)
        assert (found > 0).all()


def test_label_law_of_every_prefix(case):
    for length in range(case.process.length + 1):
        prefixes = case.literal.prefixes(length)
        expected = np.array([case.literal.label(prefix) for prefix in prefixes])
        found = case.process.label_probs_prefix(np.array(prefixes, dtype=int).reshape(len(prefixes), length))
        np.testing.assert_allclose(found, expected, atol=1e-13)
    np.testing.assert_array_equal(case.process.label_probs(prefixes), found)


def test_sequence_probability_and_two_sided_law(case):
    sequences = np.array(case.literal.sequences)
    probs = np.array([case.literal.prob(tuple(x)) for x in case.literal.sequences])
    np.testing.assert_allclose(np.exp(case.process.sequence_logp(sequences)), probs, rtol=1e-11)
    sequence = case.literal.sequences[len(probs) // 3]
    two_sided = case.process.two_sided_probs(sequence)
    for i in range(len(sequence)):
        rivals = [case.literal.prob((*sequence[:i], x, *sequence[i + 1 :])) for x in case.literal.types]
        np.testing.assert_allclose(two_sided[i], np.array(rivals) / sum(rivals), atol=1e-12)


def test_order_inside_a_tie_carries_no_information(case):
    sequences = np.array(case.literal.sequences)
    for position in case.process.config.tied:
        swapped = sequences.copy()
        swapped[:, [position - 1, position]] = sequences[:, [position, position - 1]]
        logp, swapped_logp = case.process.sequence_logp(sequences), case.process.sequence_logp(swapped)
        np.testing.assert_allclose(swapped_logp, logp, atol=1e-12)
        np.testing.assert_array_equal(case.process.label_probs(swapped), case.process.label_probs(sequences))


@pytest.mark.parametrize("name", EXAMPLES)
def test_laws_are_normalised_and_label_probabilities_are_a_martingale(name):
    process = example(name)
    types = np.arange(len(process.event_names))
    drawn = process.sample(40, np.random.default_rng(1)).event_ids
    for length in range(process.length):
        prefix = drawn[:, :length]
        law = process.next_event_probs(prefix)  # (40, V)
        np.testing.assert_allclose(law.sum(axis=1), 1, atol=1e-13)
        assert (law > 0).all()
        longer = np.concatenate(
            [np.repeat(prefix[:, None], len(types), 1), np.broadcast_to(types[:, None], (len(drawn), len(types), 1))],
            axis=2,
        )
        after = process.label_probs_prefix(longer)  # (40, V, Y)
        assert after.shape == (len(drawn), len(types), len(process.label_names))
        np.testing.assert_allclose(np.einsum("nv,nvy->ny", law, after), process.label_probs_prefix(prefix), atol=1e-13)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_one_sided_law_is_of_order_two_and_not_the_two_sided_one(name):
    process = example(name)
    differs = [
        not np.allclose(process.next_event_probs([a, 1, 1]), process.next_event_probs([b, 1, 1]))
        for a, b in [(0, 1), (0, 2), (1, 2)]
    ]
    if name != "hidden":  # there the count of driven events matters at any distance
        assert not any(differs)
    pairs = [(a, b) for a in range(4) for b in range(a) if "D" not in (process.event_names[a], process.event_names[b])]
    assert any(
        not np.allclose(process.next_event_probs([0, a, 1]), process.next_event_probs([0, b, 1])) for a, b in pairs
    )
    sequence = process.sample(1, np.random.default_rng(2)).event_ids[0]
    one_sided, two_sided = process.next_event_probs_along(sequence), process.two_sided_probs(sequence)
    assert np.abs(one_sided - two_sided).max() > 1e-3


def test_along_equals_prefix_by_prefix_for_any_leading_shape():
    process = example("hidden")
    drawn = process.sample(6, np.random.default_rng(3)).event_ids.reshape(2, 3, -1)
    events, labels = process.next_event_probs_along(drawn), process.label_probs_along(drawn)
    assert events.shape == (2, 3, process.length, len(process.event_names))
    assert labels.shape == (2, 3, process.length + 1, 1)
    for i in range(process.length):
        np.testing.assert_array_equal(events[:, :, i], process.next_event_probs(drawn[..., :i]))
        np.testing.assert_array_equal(labels[:, :, i], process.label_probs_prefix(drawn[..., :i]))
        np.testing.assert_array_equal(events[1, 2, i], process.next_event_probs(drawn[1, 2, :i]))
    np.testing.assert_array_equal(labels[:, :, -1], process.label_probs(drawn))


def test_inert_types_are_exchangeable():
    process = example("graded")
    relevant = len(process.config.events)
    drawn = process.sample(200, np.random.default_rng(4)).event_ids
    shuffled = np.where(drawn >= relevant, relevant + (drawn - relevant + 17) % process.config.inert, drawn)
    assert (shuffled != drawn).any()
    np.testing.assert_array_equal(process.label_probs_along(shuffled), process.label_probs_along(drawn))
    law = process.next_event_probs_along(shuffled)
    np.testing.assert_array_equal(law, process.next_event_probs_along(drawn))
    shares = law[..., relevant:] / law[..., relevant:].sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(shares - shares[0, 0], 0, atol=1e-14)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda p: p.label_probs([0, 1]), "expected 6 to 6 events, got 2"),
        (lambda p: p.next_event_probs([0] * 6), "expected 0 to 5 events, got 6"),
        (lambda p: p.label_probs_prefix([0, 103]), "expected 0 to 102, got 0 to 103"),
        (lambda p: p.label_probs_prefix([-1]), "expected 0 to 102"),
        (lambda p: p.label_probs_prefix([0.5]), "expected an integer array"),
        (lambda p: p.two_sided_probs([[0] * 6]), "expected one sequence"),
        (lambda p: p.perturbed(-1.0), "expected a finite error"),
        (lambda p: p.sample(-1, np.random.default_rng(0)), "expected a count from 0"),
    ],
)
def test_bad_event_ids_get_one_clear_line(call, words):
    with pytest.raises(UsageError, match=words) as caught:
        call(example("and"))
    assert "\n" not in str(caught.value)


class TestPerturbed:
    def test_log_odds_move_by_at_most_the_error_and_do_move(self):
        process = example("rare")
        oracle = process.perturbed(0.3, seed=1)
        assert isinstance(oracle, ExactOracle)
        drawn = process.sample(500, np.random.default_rng(5)).event_ids
        exact, moved = process.label_probs_along(drawn), oracle.label_probs_along(drawn)
        shift = np.log(moved / (1 - moved)) - np.log(exact / (1 - exact))
        assert np.abs(shift).max() <= 0.3 + 1e-9
        assert np.abs(shift).max() > 0.25
        _, first = np.unique(drawn, axis=0, return_index=True)
        assert np.abs(shift[first, -1].mean()) < 5 * 0.3 / np.sqrt(3 * len(first))  # uniform: sd = error / sqrt(3)
        assert np.abs(moved - exact).max() <= 0.3 / 4

    def test_next_event_law_stays_a_law_near_the_exact_one(self):
        process = example("and")
        drawn = process.sample(100, np.random.default_rng(6)).event_ids
        exact = process.next_event_probs_along(drawn)
        moved = process.perturbed(0.2).next_event_probs_along(drawn)
        np.testing.assert_allclose(moved.sum(axis=-1), 1, atol=1e-12)
        assert np.abs(np.log(moved / exact)).max() <= 0.4
        assert np.abs(np.log(moved / exact)).max() > 0.15

    def test_the_error_is_a_function_of_seed_and_prefix(self):
        process = example("and")
        oracle = process.perturbed(0.2, seed=7)
        drawn = process.sample(50, np.random.default_rng(7)).event_ids
        np.testing.assert_array_equal(
            oracle.label_probs(drawn)[::-1], process.perturbed(0.2, 7).label_probs(drawn[::-1])
        )
        np.testing.assert_array_equal(oracle.label_probs_along(drawn)[:, 3], oracle.label_probs_prefix(drawn[:, :3]))
        assert (oracle.label_probs(drawn) != process.perturbed(0.2, 8).label_probs(drawn)).all()
        np.testing.assert_allclose(process.perturbed(0.0).label_probs(drawn), process.label_probs(drawn), atol=1e-15)

    def test_even_inert_types_move_it(self):
        oracle = example("and").perturbed(0.2)
        inert = np.array([[0, 1, 2, 2, 2, 5], [0, 1, 2, 2, 2, 6]])
        assert oracle.label_probs(inert)[0] != oracle.label_probs(inert)[1]

    def test_sure_labels_stay_sure(self, case):
        sequences = np.array(case.literal.sequences)
        exact, moved = case.process.label_probs(sequences), case.process.perturbed(0.5).label_probs(sequences)
        np.testing.assert_array_equal(moved[exact == 0], 0)
        np.testing.assert_array_equal(moved[exact == 1], 1)
