"""The two-groups model on fleets drawn from a two-groups model: rates, tables and posteriors are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oscar_causal.discovery.cells import (
    CELLS,
    FIRST,
    GRADES,
    LOOKED,
    OLD_CELLS,
    P_VALUES,
    RANGES,
    RESPONSES,
    cells_of,
    grade_of,
    grades,
    is_looked,
    is_tested,
    p_value_bins,
    ranges,
    response_bins,
    without_grades,
)
from oscar_causal.discovery.two_groups import (
    CLASSES,
    MEMBER,
    NO_MEMBER,
    NOT_READ,
    PairCells,
    Said,
    came_from_outside,
    e_values,
    either,
    expected_errors,
    fit,
    log_odds,
    null_responses,
    posterior,
)

NULL = np.array([0.93, 0.04, 0.02, 0.005, 0.005])
CAUSE = np.array([0.1, 0.05, 0.1, 0.15, 0.6])


def test_cells_are_told_apart_by_all_they_know() -> None:
    shape = (RANGES, P_VALUES, GRADES - 1, RESPONSES)
    at, small, strong, large = (axis.ravel() for axis in np.indices(shape))
    probability = np.array([0.1, 0.5, 0.9])[at]
    p_value = np.array([0.7, 0.3, 0.05, 0.01, 0.002, 0.0005])[small]
    response = np.array([0.0, 0.1, 0.2, 0.5, 0.9])[large]
    both = cells_of(probability, p_value, response, strong + 1)
    assert sorted(both.tolist()) == list(range(FIRST[2], CELLS))
    none, untested = np.full(len(both), np.nan), np.zeros(len(both), np.int64)
    tested, looked = cells_of(probability, p_value, none, strong + 1), cells_of(probability, none, response, untested)
    assert sorted(set(tested.tolist())) == list(range(FIRST[LOOKED]))
    assert sorted(set(looked.tolist())) == list(range(FIRST[LOOKED], FIRST[2]))
    assert (cells_of(probability, none, none, untested) == -1).all()
    for cells in (both, looked):
        assert (ranges()[cells] == at).all()
        assert (response_bins()[cells] == large).all()
        assert is_looked()[cells].all()
    for cells in (both, tested):
        assert (p_value_bins()[cells] == small).all()
        assert (grades()[cells] == strong + 1).all()
        assert is_tested()[cells].all()
    assert not is_tested()[looked].any()
    assert (grades()[looked] == 0).all()


def test_cells_of_the_older_alphabet_differ_in_grades_alone() -> None:
    old = without_grades()
    assert sorted(set(old.tolist())) == list(range(OLD_CELLS))
    told = np.stack([ranges(), p_value_bins(), response_bins(), is_tested(), is_looked()], 1)
    assert len({(cell, *row) for cell, row in zip(old.tolist(), told.tolist(), strict=True)}) == OLD_CELLS


@pytest.mark.parametrize(
    ("p_value", "share", "fall", "grade"),
    [
        (None, None, 0.0, 0),
        (0.5, 0.5, 0.34, 1),  # the odds do not fall enough
        (0.001, -0.9, 0.9, 1),  # it pulls away from the label
        (0.5, 0.5, 0.36, 2),
        (0.5, 0.8, 0.36, 3),
        (0.5, 1.0, 0.36, 4),
        (0.001, None, 0.9, 2),  # no slopes: the test stands in
        (0.2, None, 0.9, 1),
    ],
)
def test_grades_are_those_of_acceptance_by_score(
    p_value: float | None, share: float | None, fall: float, grade: int
) -> None:
    assert grade_of(p_value, share, fall) == grade


def test_e_values_never_overstate_a_valid_p_value() -> None:
    edges = np.array([1.0, 0.5, 0.1, 0.025, 0.005, 0.001, 0.0])
    assert (-np.diff(edges) @ e_values()) == pytest.approx(1.0)  # uniform p-values
    assert (np.diff(e_values()) > 0).all()


@pytest.fixture(scope="module")
def drawn() -> tuple[PairCells, np.ndarray, np.ndarray, np.ndarray]:
    """300 pairs with rates 0, 0.5 or 1, 30 looks each, at P(label) > 0.8; controls from the null."""
    rng = np.random.default_rng(0)
    rates = np.repeat([0.0, 0.5, 1.0], 100)
    pair = np.repeat(np.arange(300), 30)
    truth = rng.random(len(pair)) < rates[pair]
    response = np.where(truth, rng.choice(RESPONSES, len(pair), p=CAUSE), rng.choice(RESPONSES, len(pair), p=NULL))
    first = FIRST[LOOKED] + 2 * RESPONSES
    controls = np.bincount(first + rng.choice(RESPONSES, 3000, p=NULL), minlength=CELLS).astype(float)
    cells = PairCells(pair, first + response, np.ones(len(pair)), np.repeat([8, 10, 6], 100), controls)
    return cells, truth, rates, response


def test_rates_and_tables_are_recovered_without_any_truth(
    drawn: tuple[PairCells, np.ndarray, np.ndarray, np.ndarray],
) -> None:
    cells, _, rates, _ = drawn
    found = fit(cells)
    for rate in (0.0, 0.5, 1.0):
        assert found.rates[rates == rate].mean() == pytest.approx(rate, abs=0.07)
    first = FIRST[LOOKED] + 2 * RESPONSES
    expected = np.log(CAUSE / NULL)
    assert found.log_ratios[0, first : first + RESPONSES] == pytest.approx(expected, abs=0.8)
    assert found.class_means[8] < 0.07 < 0.4 < found.class_means[10] < found.class_means[6]


def test_posteriors_are_calibrated_and_no_response_vetoes_a_usual_cause(
    drawn: tuple[PairCells, np.ndarray, np.ndarray, np.ndarray],
) -> None:
    cells, truth, rates, response = drawn
    found = fit(cells)
    probs = posterior(log_odds(found.rates)[cells.pair], found.log_ratios[0, cells.cell])
    for low, high in ((0, 0.1), (0.1, 0.5), (0.5, 0.95), (0.95, 1.01)):
        inside = (probs >= low) & (probs < high)
        assert truth[inside].mean() == pytest.approx(probs[inside].mean(), abs=0.12)
    usual = (rates == 0.5) & (found.rates > 0.4)
    silent = usual[cells.pair] & (response == 0)
    assert probs[silent].max() < 0.5


@pytest.mark.parametrize("loud", [0.0, 500.0])
def test_a_larger_response_never_speaks_less_for_a_cause(loud: float) -> None:
    """Not even where many controls answer most loudly."""
    rng = np.random.default_rng(1)
    cell = rng.integers(FIRST[LOOKED], CELLS, 400)
    controls = np.where(response_bins() == RESPONSES - 1, loud, 0.0)
    found = fit(PairCells(rng.integers(0, 40, 400), cell, np.ones(400), np.zeros(40, np.int64), controls))
    rows = found.log_ratios[0, FIRST[LOOKED] : CELLS].reshape(-1, RESPONSES)
    assert (np.diff(rows, axis=1) >= -1e-9).all()


def test_no_fleet_is_large_enough_for_certainty() -> None:
    """A billion controls that never answer, and events that always do: odds of exp(7), not of a billion."""
    first = FIRST[LOOKED] + 2 * RESPONSES
    controls = np.zeros(CELLS)
    controls[first] = 1e9
    cell = np.full(50, first + RESPONSES - 1)
    found = fit(PairCells(np.zeros(50, np.int64), cell, np.ones(50), np.zeros(1, np.int64), controls))
    assert found.log_ratios[0, first + RESPONSES - 1] == 7.0
    assert np.abs(found.log_ratios).max() == 7.0


def test_either_of_two_independent_things() -> None:
    rng = np.random.default_rng(9)
    first, second = rng.random((2, 5))
    both = first * second
    assert either(first, second) == pytest.approx(first + second - both)


def test_a_half_learnt_model_is_found_out_by_what_observed_labels_say() -> None:
    """Members mostly answer although they are no causes; observed labels know which is which."""
    rng = np.random.default_rng(4)
    pair = np.repeat(np.arange(40), 40)
    truth = rng.random(len(pair)) < 0.5
    loud = np.array([0.3, 0.1, 0.15, 0.15, 0.3])
    response = np.where(truth, rng.choice(RESPONSES, len(pair), p=CAUSE), rng.choice(RESPONSES, len(pair), p=loud))
    first = FIRST[LOOKED] + 2 * RESPONSES
    said = Said(np.where(truth, 0.94, 0.0), np.full(len(pair), 0.011), np.full(40, 0), np.full(40, MEMBER))
    controls = np.zeros(CELLS)
    controls[first] = 1000.0
    cells = PairCells(pair, first + response, np.ones(len(pair)), np.full(40, 4), controls, said)
    found = fit(cells)
    assert found.log_ratios[1, first + 4] == pytest.approx(np.log(CAUSE[4] / loud[4]), abs=0.5)
    assert found.rates.mean() == pytest.approx(0.5, abs=0.05)
    assert found.outside.mean() < 0.15  # causes are explained by the boundary
    blind = fit(replace(cells, said=None))
    assert blind.rates.mean() > 0.6  # without them every answer is a cause


@pytest.mark.parametrize("grade", range(1, GRADES))
def test_rates_from_outside_are_rates(grade: int) -> None:
    """Hardly any label comes from outside (1 %), yet an event speaks up each time: it is a cause there, and no more.

    A thousand looks at others show that they do not."""
    said = Said(np.zeros(1060), np.full(1060, 0.011), np.zeros(4, np.int64), np.full(4, NO_MEMBER))
    strong = np.where(np.arange(1060) < 60, grade, 1)
    cell = cells_of(np.full(1060, 0.9), np.full(1060, 0.2), np.full(1060, np.nan), strong)
    pair = np.repeat([0, 1, 2], [50, 10, 1000])
    found = fit(PairCells(pair, cell, np.ones(1060), np.zeros(4, np.int64), np.zeros(CELLS), said))
    assert ((found.outside > 0) & (found.outside <= 1)).all()
    assert found.outside[3] == found.outside_means[0] == pytest.approx(0.1)  # never met: nothing is learnt of it
    if grade == GRADES - 1:
        assert found.outside[0] > found.outside[1] > 0.1
    if grade == 1:
        assert found.outside[0] < 0.1


def test_the_chance_of_outside_is_that_of_bayes_rule() -> None:
    """Over all four cases of (came from outside, was a cause there), weighed by how often the event was a cause."""
    for outside, rate, cause in ((0.01, 0.3, 0.2), (0.5, 0.9, 0.0), (0.9, 0.1, 0.7), (1.0, 0.5, 0.4)):
        silent = outside * (1 - rate) / (outside * (1 - rate) + (1 - outside))
        found = came_from_outside(np.array([cause]), np.array([rate]), np.array([outside]))
        assert found[0] == pytest.approx(cause + (1 - cause) * silent)


def test_without_a_reading_both_rates_are_one() -> None:
    rng = np.random.default_rng(5)
    cell = rng.integers(FIRST[LOOKED], CELLS, 300)
    found = fit(PairCells(rng.integers(0, 30, 300), cell, np.ones(300), rng.integers(0, 12, 30), np.zeros(CELLS)))
    assert found.outside == pytest.approx(found.rates)
    assert found.outside_means == pytest.approx(found.class_means)


def test_a_blind_model_neither_convicts_nor_acquits() -> None:
    """P(label) < 0.2 throughout: hundreds of silent looks leave a pair at the mean of its class."""
    cell = np.full(600, FIRST[LOOKED])
    found = fit(PairCells(np.repeat([0, 1], 300), cell, np.ones(600), np.array([4, 10]), np.zeros(CELLS)))
    assert found.rates[0] == pytest.approx(0.3, abs=0.02)
    assert found.rates[1] == pytest.approx(0.4, abs=0.02)


def test_controls_set_the_null() -> None:
    quiet = null_responses(np.zeros(CELLS))
    noisy = np.zeros(CELLS)
    noisy[FIRST[LOOKED] : FIRST[2]] = 1000.0
    assert null_responses(noisy)[2, 4] == pytest.approx(0.2, abs=0.01)
    assert quiet[2, 4] < 0.02
    assert quiet.sum(1) == pytest.approx(np.ones(RANGES))


def test_bystanders_that_speak_up_are_no_news_and_do_not_convict_themselves() -> None:
    """Members act as observed labels say; every tenth bystander is graded as highly as a cause."""
    rng = np.random.default_rng(6)
    member = np.repeat([True, False], [20, 200])
    pair = np.repeat(np.arange(220), 20)
    loud = np.where(member[pair], True, rng.random(len(pair)) < 0.1)
    size = len(pair)
    cell = cells_of(np.full(size, 0.9), np.full(size, 0.2), np.full(size, 0.9), np.where(loud, 4, 1))
    said = Said(
        np.where(member[pair], 0.998, 0.0),
        np.full(size, 0.011),
        np.full(220, 8),
        np.where(member, MEMBER, NO_MEMBER),
    )
    found = fit(PairCells(pair, cell, np.ones(size), np.full(220, 8), np.zeros(CELLS), said))
    high, low = (grades() == grade for grade in (4, 1))
    seen = ranges() == 2
    for group in (NO_MEMBER, NOT_READ):
        assert found.log_ratios[group][high & seen] == pytest.approx(np.log(1 / 0.1), abs=0.4)
        assert (found.log_ratios[group][low & seen] < -2).all()
    assert found.outside[~member].max() < 0.1
    assert (found.log_ratios[:, ranges() == 0] == 0).all()


def test_labels_that_were_not_read_teach_nothing() -> None:
    """A thousand looks at a label without a boundary leave the tables of the others as they are."""
    pair = np.repeat([0, 1], 50)
    cell = cells_of(np.full(100, 0.9), np.full(100, 0.2), np.full(100, 0.9), np.where(pair == 0, 4, 1))
    said = Said(np.where(pair == 0, 0.998, 0.0), np.full(100, 0.011), np.full(2, 8), np.array([MEMBER, NO_MEMBER]))
    alone = PairCells(pair, cell, np.ones(100), np.full(2, 8), np.zeros(CELLS), said)
    more = PairCells(
        np.append(pair, 2),
        np.append(cell, cell[-1]),
        np.append(np.ones(100), 1000.0),
        np.array([8, 8, 0]),
        np.zeros(CELLS),
        Said(
            np.append(said.acted, 0.0),
            np.append(said.outside, 1.0),
            np.array([8, 8, 0]),
            np.array([MEMBER, NO_MEMBER, 0]),
        ),
    )
    shown = is_looked() & is_tested()
    assert fit(more).log_ratios[:, shown] == pytest.approx(fit(alone).log_ratios[:, shown])


def test_where_all_three_ask_one_model_the_p_value_counts_half() -> None:
    one = np.zeros(1, np.int64)
    said = Said(np.zeros(1), np.ones(1), one, np.array([MEMBER]))
    cells = PairCells(one, np.array([FIRST[LOOKED]]), np.ones(1), one, np.zeros(CELLS))
    for given, share in ((cells, 1.0), (replace(cells, said=said), 0.5)):
        found = fit(given).log_ratios[MEMBER]
        tested = found[: FIRST[LOOKED]].reshape(RANGES, P_VALUES, GRADES - 1)
        both = found[FIRST[2] :].reshape(RANGES, P_VALUES, GRADES - 1, RESPONSES)
        for grade in range(GRADES - 1):
            assert tested[2, :, grade] == pytest.approx(np.log(e_values()), abs=1e-4)
            assert np.diff(both[2, :, grade, 1]) == pytest.approx(share * np.diff(np.log(e_values())), abs=2e-4)


def test_expected_errors_are_means_over_all_that_are_as_probable() -> None:
    rng = np.random.default_rng(2)
    probs, counts = rng.random(300), rng.integers(1, 5, 300).astype(float)
    found = expected_errors(probs, counts)
    for k in (0, 17, 50, 93):
        better = probs >= k / 100
        assert found[k] == pytest.approx(np.average(1 - probs[better], weights=counts[better]), abs=1e-6)
    assert (np.diff(found[:90]) <= 1e-12).all()
    assert expected_errors(np.zeros(0), np.zeros(0)) == pytest.approx(1 - np.arange(101) / 100)


def test_there_is_a_first_guess_for_every_class() -> None:
    empty = np.zeros(0, np.int64)
    found = fit(PairCells(empty, empty, np.zeros(0), np.arange(len(CLASSES)), np.zeros(CELLS)))
    assert found.rates.shape == (len(CLASSES),)
    assert ((found.rates > 0) & (found.rates < 1)).all()
