"""Parts of a rule where they decide, and the test of a change: against brute force and enumeration."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import hypergeom

from oscar_causal.data.rules import And, Event, Not, Or, Rule, evaluate, event_names, format_rule, parse
from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.graph.rules.changes import Dated, Part, deciding_parts, fixed, likeliest_change, rule_among
from oscar_causal.graph.rules.mining import Mined

BEGIN = datetime(2023, 1, 1, tzinfo=UTC)
NAMES = "ABCD"


def cars(count: int, seed: int = 0, *, subjects: int | None = None) -> Dataset:
    """One sequence a day, with random events."""
    rng = np.random.default_rng(seed)
    drawn = [[name for name in NAMES if rng.random() < 0.5] or ["Z"] for _ in range(count)]
    return from_records(
        {
            "sequence_id": f"s{k}",
            "subject_id": f"car {k % (subjects or count)}",
            "events": events,
            "times": [0.0] * len(events),
            "labels": [],
            "start": BEGIN + timedelta(days=k),
        }
        for k, events in enumerate(drawn)
    )


def random_rule(rng: np.random.Generator, depth: int = 2) -> Rule:
    if depth == 0 or rng.random() < 0.2:
        event = Event(str(rng.choice(list(NAMES))))
        return Not(event) if rng.random() < 0.3 else event
    items = tuple(random_rule(rng, depth - 1) for _ in range(2))
    return And(items) if rng.random() < 0.5 else Or(items)


def truth(rule: Rule, present: set[str]) -> bool:
    match rule:
        case Not(item):
            return not truth(item, present)
        case And(items):
            return all(truth(item, present) for item in items)
        case Or(items):
            return any(truth(item, present) for item in items)
    assert isinstance(rule, Event)
    return rule.name in present


def test_parts_decide_exactly_where_turning_one_event_round_turns_the_rule_round() -> None:
    data, rng = cars(60), np.random.default_rng(1)
    mined = Mined(data)
    for _ in range(40):
        rule = random_rule(rng)
        expected: dict[tuple[bool, tuple[int, ...]], set[tuple[str, bool]]] = {}
        for name in NAMES:
            for says in (True, False):
                for held in (True, False):
                    rows = tuple(
                        k
                        for k in range(len(data))
                        for present in [set(data.events_of(k))]
                        if truth(rule, present) == says
                        and (name in present) == held
                        and truth(rule, present ^ {name}) != says
                    )
                    if rows:
                        expected.setdefault((says, rows), set()).add((name, held))
        found = {}
        for part in deciding_parts(rule, mined):
            literals = part.rule.items if isinstance(part.rule, And | Or) else (part.rule,)
            names = {(event_names(item)[0], isinstance(item, Not) != part.says) for item in literals}
            found[part.says, tuple(part.rows.tolist())] = names
        assert found == expected


def test_fixing_an_atom_means_what_it_says() -> None:
    rng = np.random.default_rng(2)
    for _ in range(60):
        rule, name, value = random_rule(rng, 3), str(rng.choice(list(NAMES))), bool(rng.random() < 0.5)
        left = fixed(rule, Event(name), value)
        for size in range(len(NAMES) + 1):
            for present in map(set, combinations(NAMES, size)):
                forced = present | {name} if value else present - {name}
                assert (left if isinstance(left, bool) else truth(left, present)) == truth(rule, forced)


def part_of(data: Dataset) -> Part:
    return Part(Event("A"), True, np.arange(len(data)), Event("A"), True)


def test_the_test_is_exact_for_the_best_of_all_dates() -> None:
    """Under no change every arrangement of the labels is as likely: p <= a in at most a share a of them."""
    data = cars(12)
    dated, part = Dated(data), part_of(cars(12))
    p_values = []
    for hits in combinations(range(12), 6):
        came = np.zeros(12, bool)
        came[list(hits)] = True
        p_values.append(dated.change(part, came).p_value)
    assert min(p_values) < 0.05  # it can reject
    for level in sorted(set(p_values)):
        assert np.mean(np.array(p_values) <= level) <= level + 1e-12


def test_p_value_and_counts_by_hand() -> None:
    dated, came = Dated(cars(20)), np.arange(20) < 8
    came[15] = True
    change = dated.change(part_of(dated.data), came)
    assert (change.before.hits, change.before.of, change.after.hits, change.after.of) == (8, 8, 1, 12)
    assert BEGIN + timedelta(microseconds=change.since - int(dated.start[0])) == BEGIN + timedelta(days=8)
    chances = hypergeom.pmf(np.arange(10), 20, 9, 8)  # of hits among the first 8
    assert change.p_value == pytest.approx(19 * chances[chances <= chances[8] * (1 + 1e-9)].sum())


def test_a_subject_counts_once() -> None:
    many, few = Dated(cars(60)), Dated(cars(60, subjects=4))
    came = np.arange(60) < 30
    assert many.change(part_of(many.data), came).p_value < 1e-9
    assert few.change(part_of(few.data), came).p_value > 0.3
    chosen = few.one_of_each_subject(np.arange(60))
    assert sorted(chosen % 4) == [0, 1, 2, 3]


@pytest.mark.parametrize("seed", range(5))
def test_the_likeliest_date_is_the_one_of_the_largest_likelihood(seed: int) -> None:
    rng = np.random.default_rng(seed)
    start, came = rng.integers(0, 20, 30), rng.random(30) < 0.5

    def likelihood(date: int) -> float:
        total = 0.0
        for side in (came[start < date], came[start >= date]):
            share = side.mean()
            total += sum(np.log(share if hit else 1 - share) for hit in side)
        return total

    dates = sorted(set(start.tolist()))[1:]
    assert likelihood(likeliest_change(start, came)[1]) == pytest.approx(max(map(likelihood, dates)))


def test_nothing_to_tell() -> None:
    assert likeliest_change(np.array([3, 3]), np.array([True, False])) == (3, 3)
    dated = Dated(cars(5))
    for came in (np.zeros(5, bool), np.ones(5, bool)):
        change = dated.change(part_of(dated.data), came)
        assert (change.before.of, change.after.of, change.difference, change.p_value) == (0, 5, 0.0, 1.0)


@pytest.mark.parametrize(
    ("listed", "true"),
    [
        ("A | B | C", "A | C"),
        ("(A & B) | C", "C"),
        ("A & (B | C)", "A"),
        ("A & !B", "A"),
        ("(A & !B) | C", "A | C"),
    ],
)
def test_undoing_the_parts_that_fail_gives_the_rule_of_the_time(listed: str, true: str) -> None:
    mined = Mined(cars(200))
    came, rule = evaluate(parse(true), mined.index), parse(listed)
    parts = deciding_parts(rule, mined)
    found = rule_among(rule, parts, came, np.ones(len(came), bool))
    assert found is not None
    assert format_rule(found) == true
