"""Laws and worlds: shares met exactly, boundaries like the published ones, rules that say what the law says."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from oscar_causal.data.rules import event_names, format_rule, negated_names
from oscar_causal.data.synthetic import make_world, preset
from oscar_causal.data.synthetic.config import PUBLISHED_SIZES, PUBLISHED_TAIL
from oscar_causal.data.synthetic.laws import Law, Part, exchange, rule_of
from oscar_causal.errors import UsageError

NAMES = tuple("ABCDEFGH")


@pytest.mark.parametrize(
    ("law", "text"),
    [
        (Law(((Part("any", (0,)),),)), "A"),
        (Law(((Part("any", (0,)), Part("any", (1, 2))),), (3,)), "A & (B | C) & !D"),
        (Law(((Part("order", (0, 1)),), (Part("window", (2, 3), 600),))), "(A then B) | (C then D within 600s)"),
        (Law(((Part("count", (0,), count=3), Part("any", (1,))), (Part("order", (2, 3)),)), (4,)),
         "(((A >= 3) & B) | (C then D)) & !E"),
        (Law(((Part("any", (0,)),), (Part("any", (1,)),)), (2,), (0.9, 0.5), (0.6,)), "(A | B) & !C"),
    ],
)  # fmt: skip
def test_a_law_as_a_rule(law: Law, text: str) -> None:
    assert format_rule(rule_of(law, NAMES)) == text


def test_exchange_replaces_one_event_everywhere() -> None:
    law = Law(((Part("any", (0, 1)),), (Part("order", (2, 0)),)), (3,))
    assert format_rule(rule_of(exchange(law, 0, 7), NAMES)) == "(H | B | (C then H)) & !D"


def test_paper_size_world_resembles_the_published_boundaries() -> None:
    world = make_world(preset("paper", probabilistic_labels=0.0, missing_rules=0.0), seed=3)
    sizes = Counter(len(event_names(rule)) for rule in world.rules)
    weights = dict(PUBLISHED_SIZES + PUBLISHED_TAIL)
    for size, weight in weights.items():
        assert abs(sizes[size] - 474 * weight / sum(weights.values())) <= 1
    assert np.mean(list(sizes.elements())) == pytest.approx(4.4, abs=0.1)
    uses = Counter(name for rule in world.rules for name in event_names(rule))
    assert 14 <= max(uses.values()) <= 18
    assert 0.55 <= len(uses) / sum(uses.values()) <= 0.72  # published: 650 of 1,047
    clauses = [len(law.routes[0]) for law in world.laws]
    assert max(clauses) == 5
    assert len(set(map(format_rule, world.rules))) == 474


def test_shares_are_met_exactly() -> None:
    config = preset("paper", temporal_labels=0.2, probabilistic_labels=0.1, drift=0.05)
    world = make_world(config, seed=1)
    laws = world.laws[:474]
    assert sum(law.temporal for law in laws) == round(0.2 * 474)
    assert sum(law.graded for law in laws) == round(0.1 * 474)
    assert world.drifting.sum() == round(0.05 * 474) == len(world.laws) - 474
    assert (world.published == -1).sum() == round(0.12 * 474)
    assert len(world.published_rules()) == 474 - round(0.12 * 474)
    assert not any(law.graded for law, drifting in zip(laws, world.drifting, strict=True) if drifting)


def test_or_and_not_shares() -> None:
    for share in (0.0, 0.5, 1.0):
        config = preset("demo", labels=60, event_types=900, boundary_sizes=((3, 1.0),), or_share=share, not_share=share)
        laws = make_world(config, seed=2).laws
        assert sum(bool(law.blockers) for law in laws) == 60 * share
        assert sum(any(len(part.events) > 1 for part in law.routes[0]) for law in laws) == 60 * share


def test_temporal_laws_have_routes_of_two_causes() -> None:
    world = make_world(preset("temporal", temporal_labels=1.0, probabilistic_labels=0.0), seed=0)
    routes = Counter(len(law.routes) for law in world.laws)
    assert set(routes) == {2, 3}
    assert routes[3] / 474 == pytest.approx(0.25, abs=0.07)
    for law in world.laws:
        for route in law.routes:
            assert sum(len(part.events) for part in route) >= 2
            assert [part.kind for part in route][0] in ("order", "window", "count")
            assert all(part.kind == "any" for part in route[1:])


def test_events_that_bring_a_label_alone_serve_no_other_label() -> None:
    world = make_world(preset("hard"), seed=4)
    uses = Counter(event for law in world.laws[:474] for event in {*law.causes, *law.blockers})
    solo = [law for law in world.laws[:474] if law.solo]
    assert len(solo) > 50
    assert all(uses[event] == 1 for law in solo for event in law.causes)


def test_no_event_with_another_role_is_a_cause() -> None:
    world = make_world(preset("hard"), seed=4)
    causes = {event for law in world.laws for event in (*law.causes, *law.blockers)}
    precursors = set(world.roles.precursor_of[world.roles.precursor_of >= 0].tolist())
    symptoms, driven = set(world.roles.symptoms.ids.tolist()), set(world.roles.driven.tolist())
    assert len(driven) == round(0.2 * 474)
    groups = [causes, precursors, symptoms, driven]
    assert sum(map(len, groups)) == len(set().union(*groups))
    assert len(precursors) == len({event for law in world.laws for event in law.causes})


def test_the_world_depends_on_neither_sequences_nor_null() -> None:
    one, other = (make_world(preset("demo", **knobs), seed=9) for knobs in ({}, {"sequences": 5, "null": True}))
    assert one.rules == other.rules
    assert one.event_names == other.event_names
    assert np.array_equal(one.background, other.background)
    assert make_world(preset("demo"), seed=10).rules != one.rules


def test_published_rules_of_drifting_labels_carry_a_date() -> None:
    world = make_world(preset("hard", drift=0.5), seed=1)
    for name, item in world.published_rules().items():
        label = world.label_names.index(name)
        assert ((item.start is None) != (item.end is None)) == bool(world.drifting[label])
    dated = [item for item in world.published_rules().values() if item.start or item.end]
    assert {bool(item.start) for item in dated} == {True, False}
    hidden, shown = world.hidden_rules(), world.published_rules()
    assert len(hidden) + len(shown) == len(world.laws)


def test_blockers_are_negated() -> None:
    world = make_world(preset("small"), seed=1)
    for law, rule in zip(world.laws, world.rules, strict=True):
        assert negated_names(rule) == tuple(world.event_names[event] for event in law.blockers)
        assert not set(law.blockers) & set(law.causes)


def test_too_few_event_types_for_the_roles() -> None:
    complaints = {types: complaint(types) for types in range(30, 120)}
    for types, text in complaints.items():
        assert text is None or (text.startswith("event_types: expected") and text.endswith(f"got {types}"))
    assert all(complaints[types] for types in range(30, 60))
    assert not any(complaints[types] for types in range(110, 120))
    assert len({text.split(",")[0] for text in complaints.values() if text}) > 1  # in the laws, or in the background


def complaint(types: int) -> str | None:
    try:
        make_world(preset("demo", event_types=types), seed=0)
    except UsageError as error:
        return str(error)
    return None


@pytest.mark.parametrize("seed", [-1, 1.5, True, "x"])
def test_bad_seeds(seed: object) -> None:
    with pytest.raises(UsageError, match="seed: expected"):
        make_world(preset("demo"), seed=seed)  # type: ignore[arg-type]
