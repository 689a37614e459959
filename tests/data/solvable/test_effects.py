"""Direct, leave-out and total effects against literal enumeration, and what each example is there to show."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from oscar_causal.data.solvable import Effect, LabelLaw, SolvableConfig, SolvableProcess, example
from oscar_causal.errors import UsageError


def literal_context_probs(case, sequence, masked, rows):
    """E[P(Y | context)] with these types replaced, by writing down every combination of draws, (Y,)."""
    places = [i for i, x in enumerate(sequence) if x in masked]
    total = np.zeros(2)
    for drawn in itertools.product([x for x in case.literal.types if x not in masked], repeat=len(places)):
        context, weight = list(sequence), 1.0
        for i, x in zip(places, drawn, strict=True):
            context[i] = x
            weight *= rows[i][x] / sum(p for y, p in enumerate(rows[i]) if y not in masked)
        total += weight * case.literal.label(tuple(context))
    return total


def literal_tau(case, sequence, event, r, rows):
    others = sorted(set(sequence) - {event})
    effect = np.zeros(2)
    for pattern in itertools.product([False, True], repeat=len(others)):
        masked = {x for x, hit in zip(others, pattern, strict=True) if hit}
        weight = np.prod([r if hit else 1 - r for hit in pattern])
        kept = literal_context_probs(case, sequence, masked, rows)
        effect += weight * (kept - literal_context_probs(case, sequence, masked | {event}, rows))
    return effect


def sequences_of(case):
    """A few sequences with repeats that leave some type out, so that every mask has something to draw."""
    usable = [x for x in case.literal.sequences if len(set(x)) < len(case.literal.types)]
    return usable[3 :: len(usable) // 4]


@pytest.mark.parametrize("r", [0.1, 0.5])
def test_direct_effects_by_enumeration(case, r):
    for sequence in sequences_of(case):
        rows = [case.literal.next_event(sequence[:i]) for i in range(len(sequence))]
        types, effects = case.process.direct_effects(sequence, r)
        assert types.tolist() == sorted(set(sequence))
        for event, effect in zip(types.tolist(), effects, strict=True):
            np.testing.assert_allclose(effect, literal_tau(case, sequence, event, r, rows), atol=1e-12)
            assert case.process.direct_effect(1, sequence, event, r) == effect[1]


def test_direct_effects_under_a_law_of_the_users_own(case):
    sequence = sequences_of(case)[1]
    rows = np.random.default_rng(0).random((len(sequence), len(case.literal.types)))
    types, effects = case.process.direct_effects(sequence, 0.3, rows)
    for event, effect in zip(types.tolist(), effects, strict=True):
        np.testing.assert_allclose(effect, literal_tau(case, sequence, event, 0.3, rows), atol=1e-12)


def test_leave_one_out_and_pair_out_by_enumeration(case):
    for sequence in sequences_of(case):
        rows = [case.literal.next_event(sequence[:i]) for i in range(len(sequence))]
        intact = case.literal.label(sequence)
        for event in set(sequence):
            expected = intact - literal_context_probs(case, sequence, {event}, rows)
            found = [case.process.leave_one_out(label, sequence, event) for label in range(2)]
            np.testing.assert_allclose(found, expected, atol=1e-12)
        for pair in itertools.combinations(sorted(set(sequence)), 2):
            expected = intact - literal_context_probs(case, sequence, set(pair), rows)
            found = [case.process.pair_out(label, sequence, pair) for label in range(2)]
            np.testing.assert_allclose(found, expected, atol=1e-12)


def literal_do(case, position, law):
    """E[Y] when x_position is drawn from law(prefix, driver) and everything after follows the process, (Y,)."""
    literal, total = case.literal, np.zeros(2)
    for driver, share in enumerate(literal.drivers):
        for sequence in literal.sequences:
            chosen = law(sequence[:position], driver)[sequence[position]]
            if chosen:
                weight = share * chosen * literal.chain(sequence, driver, skip=position)
                total += weight * literal.mechanism(sequence, driver)
    return total


@pytest.mark.parametrize("position", [0, 2])
def test_total_effects_by_enumeration(case, position):
    literal, process = case.literal, case.process

    def only(event):
        return lambda prefix, driver: [float(x == event) for x in literal.types]

    def without(event):
        def law(prefix, driver):
            probs = [0.0 if x == event else p for x, p in enumerate(literal.law(prefix, driver))]
            return [p / sum(probs) for p in probs]

        return law

    for event in literal.types:
        present = literal_do(case, position, only(event))
        expected = present - literal_do(case, position, without(event))
        found = [process.total_effect(label, event, position) for label in range(2)]
        np.testing.assert_allclose(found, expected, atol=1e-12)
    last = literal.types[-1]
    expected = literal_do(case, position, only(0)) - literal_do(case, position, only(last))
    found = [process.total_effect(label, 0, position, reference=last) for label in range(2)]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    by_position = [process.total_effect(0, 0, i) for i in range(process.length)]
    assert process.total_effect(0, 0) == pytest.approx(np.mean(by_position), abs=1e-14)


def test_sampled_contexts_as_an_estimator_draws_them_agree():
    """All 103 types, masks and draws by a literal sampler that rejects masked types."""
    process = example("not")
    sequence = np.array([0, 50, 0, 2, 60, 50])
    r, count, rng = 0.3, 60_000, np.random.default_rng(21)
    types, effects = process.direct_effects(sequence, r)
    masks = rng.random((count, len(types))) < r
    contexts = np.tile(sequence, (count, 1))
    for i, row in enumerate(process.next_event_probs_along(sequence)):
        todo = np.flatnonzero(masks[:, types == sequence[i]][:, 0])
        while len(todo):
            contexts[todo, i] = rng.choice(len(row), size=len(todo), p=row)
            again = (masks[todo] & (contexts[todo, i, None] == types)).any(axis=1)
            todo = todo[again]
    probs = process.label_probs(contexts)[:, 0]
    for mask, effect in zip(masks.T, effects[:, 0], strict=True):
        kept, replaced = probs[~mask], probs[mask]
        error = np.sqrt(kept.var() / len(kept) + replaced.var() / len(replaced))
        assert abs(kept.mean() - replaced.mean() - effect) < 5 * error


def ids(process: SolvableProcess, *names: str) -> list[int]:
    return [process.event_names.index(name) for name in names]


def test_and_of_eight_among_a_hundred_inert_types_has_the_textbook_value():
    names = tuple("ABCDEFGH")
    label = LabelLaw("y", 0.02, (Effect(" & ".join(names), 0.9),))
    process = SolvableProcess(SolvableConfig(length=12, events=names, labels=(label,), inert=100, memory=0.5))
    types, effects = process.direct_effects([0, 1, 2, 3, 4, 5, 6, 7, 20, 30, 0, 40], 0.1)
    np.testing.assert_allclose(effects[:8, 0], 0.9 * 0.9**7, atol=1e-12)
    np.testing.assert_allclose(effects[8:, 0], 0, atol=1e-12)


def test_announcer_is_listed_by_eq4_and_has_no_direct_effect():
    process = example("announcer")
    a, n, b = ids(process, "A", "N", "B")
    sequence = [5, b, n, a, 7, 8]
    scores = process.eq4(0, sequence, c=1)
    assert scores[2] > 0.5 * scores[3]  # N moves the forecast more than half as much as the cause itself
    assert scores[3] > 0.1
    assert process.true_parents(0) == (a,)
    assert process.direct_effect(0, sequence, n, r=0.3) == pytest.approx(0, abs=1e-12)
    assert process.direct_effect(0, sequence, a, r=0.3) == pytest.approx(0.8, abs=1e-12)
    assert process.total_effect(0, n, 2, reference=5) > 0.2  # through A


def test_mediated_causes_have_a_total_but_no_direct_effect():
    process = example("mediator")
    a, m = ids(process, "A", "M")
    sequence = [5, a, m, 6, 7, 8]
    assert process.true_parents(0) == (m,)
    assert set(process.true_parents(1)) == {a, m}
    assert process.direct_effect(0, sequence, a, r=0.2) == pytest.approx(0, abs=1e-12)
    assert process.direct_effect(1, sequence, a, r=0.2) == pytest.approx(0.3, abs=1e-12)
    assert process.total_effect(0, a, 1, reference=5) > 0.15
    assert process.total_effect(1, a, 1, reference=5) > 0.15


def test_symptom_is_associated_without_any_effect():
    process = example("symptom")
    a, s, g = ids(process, "A", "S", "G")
    drawn = process.sample(20_000, np.random.default_rng(22))
    shows = (drawn.event_ids == s).any(axis=1)
    fault = drawn.labels[:, 0]
    assert fault[shows].mean() - fault[~shows].mean() > 0.05
    assert process.true_parents(0) == (a,)
    assert process.direct_effect(0, [5, g, a, s, 6, 7], s, r=0.2) == pytest.approx(0, abs=1e-12)
    for position in range(process.length):
        assert process.total_effect(0, s, position, reference=5) == pytest.approx(0, abs=1e-12)


def test_hidden_driver_makes_a_bystander_look_like_a_cause():
    process = example("hidden")
    a, d = ids(process, "A", "D")
    assert process.true_parents(0) == (a,)
    sequence = [5, a, d, 6, d, 7]
    assert process.direct_effect(0, sequence, d, r=0.2) > 0.1  # on the best possible model
    assert process.cmi(0, 0) > 0
    for position in range(process.length):
        assert process.total_effect(0, d, position, reference=5) == pytest.approx(0, abs=1e-12)
    drawn = process.sample(20_000, np.random.default_rng(23))
    shows = (drawn.event_ids == d).any(axis=1)
    assert drawn.labels[shows, 0].mean() - drawn.labels[~shows, 0].mean() > 0.1


def test_redundant_causes_need_to_be_left_out_together():
    process = example("redundant")
    sequence = [5, 0, 1, 6, 2, 7]
    for event in (0, 1):
        assert process.leave_one_out(0, sequence, event) == pytest.approx(0, abs=1e-12)
        assert process.direct_effect(0, sequence, event, r=0.2) == pytest.approx(0.9 * 0.2, abs=1e-12)
    assert process.pair_out(0, sequence, (0, 1)) == pytest.approx(0.9, abs=1e-12)


def test_graded_effects_come_out_as_graded():
    process = example("graded")
    _, effects = process.direct_effects([0, 1, 2, 3, 10, 10], r=0.2)
    np.testing.assert_allclose(effects[:, 0], [0, 0.005, 0.05, 0.5, 0], atol=1e-12)
    np.testing.assert_allclose(effects[:, 1], [0, -0.005, -0.05, 0.45, 0], atol=1e-12)


@pytest.mark.parametrize(("name", "sequence"), [("and", (0, 1, 40, 2, 50, 40)), ("xor", (40, 1, 0, 0, 50, 40))])
def test_inert_types_have_no_effect_where_all_parents_are_present(name, sequence):
    process = example(name)
    for inert in (40, 50):
        assert process.direct_effect(0, sequence, inert, r=0.3) == pytest.approx(0, abs=1e-12)
        assert process.leave_one_out(0, sequence, inert) == pytest.approx(0, abs=1e-12)
        assert process.total_effect(0, inert, 2, reference=60) == 0
    assert process.pair_out(0, sequence, (40, 50)) == pytest.approx(0, abs=1e-12)


def test_draws_that_insert_an_absent_cause_give_an_inert_type_a_negative_effect():
    process = example("or")
    sequence = [40, 2, 50, 2, 60, 70]
    assert process.direct_effect(0, sequence, 40, r=0.3) < -0.01
    only_inert = process.next_event_probs_along(sequence)
    only_inert[:, :3] = 0
    assert process.direct_effect(0, sequence, 40, 0.3, only_inert) == pytest.approx(0, abs=1e-12)


def test_bad_arguments_get_one_clear_line():
    process = example("and")
    sequence = [0, 1, 2, 3, 4, 5]
    only_a = np.eye(103)[[0] * 6]
    calls = [
        (lambda: process.direct_effect(0, sequence, 6, 0.2), "expected a type present in the sequence, got 6"),
        (lambda: process.direct_effect(0, sequence, 0, 1.0), "expected r strictly between 0 and 1, got 1.0"),
        (lambda: process.leave_one_out(0, sequence, 0, only_a), "position 0: expected some mass outside"),
        (lambda: process.leave_one_out(0, sequence, 0, only_a[:3]), "expected at least 6 rows of 103"),
        (lambda: process.total_effect(0, 103), "event: expected an id from 0 to 102, got 103"),
        (lambda: process.total_effect(0, 1, reference=-1), "event: expected an id from 0 to 102, got -1"),
    ]
    for call, words in calls:
        with pytest.raises(UsageError, match=words):
            call()
    long = SolvableProcess(SolvableConfig(length=17, events=("A",), labels=(LabelLaw("y", 0.5),), inert=20))
    with pytest.raises(UsageError, match="expected at most 16 distinct types in a sequence, got 17"):
        long.direct_effects(range(17), 0.1)
