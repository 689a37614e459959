"""CMI, Eq. 4 and the indicator against literal enumeration; the mathematical facts that the docstring states."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import rel_entr
from scipy.stats import entropy

from oscar_causal.data.solvable import bernoulli_entropy, bernoulli_kl, example, truncate
from oscar_causal.errors import UsageError


def literal_kl(after: float, before: float) -> float:
    return float(rel_entr(after, before) + rel_entr(1 - after, 1 - before))


def test_kl_and_entropy_agree_with_scipy_also_at_the_ends():
    grid = np.array([0.0, 1e-9, 0.2, 0.5, 0.999, 1.0])
    after, before = (side.ravel() for side in np.meshgrid(grid, grid))
    expected = [literal_kl(a, b) for a, b in zip(after, before, strict=True)]
    np.testing.assert_allclose(bernoulli_kl(after, before), expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(bernoulli_entropy(grid), [entropy([p, 1 - p]) for p in grid], atol=1e-15)


def test_cmi_is_the_drop_of_conditional_entropy(case):
    literal = case.literal

    def conditional_entropy(label: int, length: int) -> float:
        found = [(literal.prob(z), literal.label(z)[label]) for z in literal.prefixes(length)]
        return sum(weight * entropy([p, 1 - p]) for weight, p in found)

    for label in range(2):
        entropies = [conditional_entropy(label, length) for length in range(case.process.length + 1)]
        for i in range(case.process.length):
            assert case.process.cmi(label, i) == pytest.approx(entropies[i] - entropies[i + 1], abs=1e-12)


def literal_contexts(case, sequence, c, rows):
    """Every context with its probability: first c positions drawn one by one, the rest as observed."""
    for drawn in itertools.product(case.literal.types, repeat=c):
        weight = float(np.prod([rows[i][x] for i, x in enumerate(drawn)]))
        if weight > 0:
            yield weight, (*drawn, *sequence[c:])


@pytest.mark.parametrize("c", [0, 1, 3])
@pytest.mark.parametrize("truncation", [{}, {"top_k": 2}, {"top_p": 0.7}])
def test_eq4_and_indicator_by_enumerating_contexts(case, c, truncation):
    literal, process = case.literal, case.process
    sequence = literal.sequences[57]
    rows = [
        literal_truncate(literal.next_event(sequence[:i]), **truncation) for i in range(process.length)
    ]  # each given the observed past
    np.testing.assert_allclose(process.proposal(sequence, **truncation), rows, atol=1e-12)
    moments = np.zeros((3, process.length, 2))
    for weight, context in literal_contexts(case, sequence, c, rows):
        probs = [literal.label(context[:i]) for i in range(process.length + 1)]
        for i in range(process.length):
            shift = probs[i + 1] - probs[i]
            kl = [literal_kl(after, before) for after, before in zip(probs[i + 1], probs[i], strict=True)]
            moments[:, i] += weight * np.array([kl, shift, shift**2])
    for label in range(2):
        found = process.eq4(label, sequence, c, np.array(rows)) if truncation else process.eq4(label, sequence, c)
        np.testing.assert_allclose(found, moments[0, :, label], atol=1e-11)
        mean, sd = process.indicator(label, sequence, c, np.array(rows))
        np.testing.assert_allclose(mean, moments[1, :, label], atol=1e-12)
        np.testing.assert_allclose(sd**2 + mean**2, moments[2, :, label], atol=1e-12)


def literal_truncate(probs, top_k=None, top_p=None):
    order = sorted(range(len(probs)), key=lambda x: (-probs[x], x))[:top_k]
    kept, mass = [order[0]], probs[order[0]]
    for x in order[1:]:
        mass += probs[x]
        if top_p is not None and mass > top_p:
            break
        kept.append(x)
    total = sum(probs[x] for x in kept)
    return [probs[x] / total if x in kept else 0.0 for x in range(len(probs))]


def test_truncate_keeps_everything_when_told_so_and_one_type_at_least():
    probs = np.random.default_rng(0).dirichlet(np.ones(7), size=5)
    np.testing.assert_allclose(truncate(probs, top_k=7, top_p=1.0), probs, atol=1e-15)
    np.testing.assert_array_equal(truncate(probs, top_p=1e-9) > 0, probs == probs.max(axis=1, keepdims=True))
    np.testing.assert_array_equal((truncate(probs, top_k=3) > 0).sum(axis=1), 3)
    for bad in ({"top_k": 0}, {"top_p": 0.0}, {"top_p": 1.5}):
        with pytest.raises(UsageError, match="expected"):
            truncate(probs, **bad)


def test_a_truncated_proposal_moves_eq4():
    process = example("and")
    sequence = [5, 0, 3, 2, 7, 1]
    true, truncated = process.eq4(0, sequence, 3), process.eq4(0, sequence, 3, process.proposal(sequence, top_k=1))
    assert np.abs(true[3:] - truncated[3:]).max() > 0.01


def test_eq4_under_sampled_contexts_as_an_estimator_would_do_it():
    process = example("not")
    rng = np.random.default_rng(11)
    sequence = np.array([3, 0, 2, 50, 0, 1])
    c, count = 3, 40_000
    contexts = np.tile(sequence, (count, 1))
    for i, row in enumerate(process.proposal(sequence)[:c]):
        contexts[:, i] = rng.choice(len(row), size=count, p=row)
    probs = process.label_probs_along(contexts)[..., 0]  # (N, L+1)
    gains = bernoulli_kl(probs[:, 1:], probs[:, :-1])
    error = gains.std(axis=0) / np.sqrt(count)
    assert (np.abs(gains.mean(axis=0) - process.eq4(0, sequence, c)) < 5 * error + 1e-12).all()
    mean, sd = process.indicator(0, sequence, c)
    np.testing.assert_allclose(np.diff(probs, axis=1).mean(axis=0), mean, atol=5 * sd.max() / np.sqrt(count))
    np.testing.assert_allclose(np.diff(probs, axis=1).std(axis=0), sd, atol=0.005)


def test_pointwise_gain_is_not_the_entropy_drop_but_their_means_agree():
    process = example("rare")
    prefix = [0, 2]  # A, then C: the next event decides
    law = process.next_event_probs(prefix)
    gains = np.array([process.information_gain(0, [*prefix, x]) for x in range(len(law))])
    drops = np.array([process.entropy_drop(0, [*prefix, x]) for x in range(len(law))])
    assert drops.min() < -0.01  # some events leave us less certain: no divergence can do that
    assert (gains >= 0).all()
    assert np.abs(gains - drops).max() > 0.5
    assert law @ gains == pytest.approx(law @ drops, abs=1e-12)


def test_pointwise_gain_exceeds_the_entropy_of_the_label_and_one_bit():
    process = example("rare")
    marginal = float(process.label_probs_prefix([])[0])
    label_entropy = float(bernoulli_entropy(np.array(marginal)))
    gain = process.information_gain(0, [2, 2, 2, 2, 0, 1])
    assert gain > 10 * label_entropy
    assert gain > np.log(2)
    certain = process.eq4(0, [2, 2, 2, 2, 0, 1], c=0)
    assert certain[-1] == pytest.approx(gain, abs=1e-12)


def test_the_mean_of_eq4_over_the_process_is_the_cmi():
    process = example("xor")
    drawn = process.sample(20_000, np.random.default_rng(12)).event_ids
    probs = process.label_probs_along(drawn)[..., 0]
    gains = bernoulli_kl(probs[:, 1:], probs[:, :-1])  # Eq. 4 with c = 0, one term per sequence
    expected = [process.cmi(0, i) for i in range(process.length)]
    assert (np.abs(gains.mean(axis=0) - expected) < 5 * gains.std(axis=0) / np.sqrt(len(drawn))).all()


def test_cmi_adds_up_to_the_information_of_the_whole_sequence():
    process = example("graded")
    drawn = process.sample(50_000, np.random.default_rng(13)).event_ids
    for label in range(2):
        total = sum(process.cmi(label, i) for i in range(process.length))
        marginal = bernoulli_entropy(process.label_probs_prefix([])[label])
        left = bernoulli_entropy(process.label_probs(drawn)[:, label])
        assert total == pytest.approx(float(marginal - left.mean()), abs=5 * left.std() / np.sqrt(len(drawn)))


def test_bad_arguments_get_one_clear_line():
    process = example("and")
    sequence = [0, 1, 2, 3, 4, 5]
    calls = [
        (lambda: process.eq4(0, sequence, 7), "expected 0 to 6 drawn positions, got 7"),
        (lambda: process.eq4(1, sequence, 2), "label: expected an id from 0 to 0, got 1"),
        (lambda: process.eq4(0, sequence, 2, np.ones((1, 103))), "expected at least 2 rows of 103"),
        (lambda: process.eq4(0, sequence, 2, -np.ones((2, 103))), "expected rows of finite numbers"),
        (lambda: process.cmi(0, 6), "position: expected 0 to 5, got 6"),
        (lambda: process.information_gain(0, []), "expected one prefix of at least one event"),
    ]
    for call, words in calls:
        with pytest.raises(UsageError, match=words):
            call()
