"""The intervention estimator through `discover`: what it finds, what it must not, and what it sends to the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch

from oscar_causal.data.sequences import from_records
from oscar_causal.data.vocabulary import SPECIAL_IDS, UNKNOWN_ID
from oscar_causal.discovery.boundary import Boundary, EventEvidence
from oscar_causal.discovery.intervention import InterventionConfig, measured_fall
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.discovery.subject import prepare, respond
from oscar_causal.errors import UsageError


def explain(model: Any, events: list[str], *, name: str = "s", **settings: Any) -> Boundary:
    """The boundary of the model's first label in one sequence; `times` as an option, else one event per second."""
    times = settings.pop("times", list(range(len(events))))
    seed = settings.pop("seed", 0)
    data = from_records([{"sequence_id": name, "events": events, "times": times, "labels": []}])
    config = DiscoveryConfig(
        intervention=InterventionConfig(**settings), labels=(model.vocabulary.labels[0],), seed=seed
    )
    ((boundary,),) = discover(model, data, config)
    return boundary


def accepted(boundary: Boundary) -> dict[str, str]:
    return {item.event: item.verdict for item in boundary.evidence if item.accepted}


def evidence(boundary: Boundary, event: str) -> EventEvidence:
    (item,) = (item for item in boundary.evidence if item.event == event)
    return item


def names(count: int) -> list[str]:
    return [f"e{k}" for k in range(count)]


def needs(*columns: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda present: np.where(present[:, list(columns)].all(1), 0.95, 0.03)[:, None]


# --- what is accepted by its score ---


class SlopedModel:
    """A model with slopes that a test makes up: one number for each event type, the same at every share."""

    def __init__(self, inner: Any, slopes: dict[int, float]) -> None:
        self.inner, self.slopes = inner, slopes

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def label_slopes(self, sequence: Any, labels: torch.Tensor, law: torch.Tensor, shares: Any) -> torch.Tensor:
        values = [self.slopes.get(int(event) - SPECIAL_IDS, 0.0) for event in sequence.event_ids[0]]
        return torch.tensor(values)[None, :, None].expand(len(shares), -1, len(labels))


def doubted(present: np.ndarray) -> np.ndarray:
    """A label with P = .02 where e2 and e5 are both there, next to nothing without one of them, .016 without e13."""
    return np.where(present[:, [2, 5]].all(1), 0.016 + 0.004 * present[:, 13], 0.0002)[:, None]


def test_causes_of_a_label_that_the_model_doubts_are_accepted_by_their_score(workshop: Any) -> None:
    model = SlopedModel(workshop.response(40, doubted), {2: 1.0, 5: 0.8, 7: 0.9, 9: 0.41, 11: 0.39, 13: 0.7})
    boundary = explain(model, names(30))
    assert accepted(boundary) == {"e2": "cause", "e5": "cause"}  # e7 has a slope and no effect, e13 a small one
    item = evidence(boundary, "e5")
    assert (item.accepted_by, item.q_value is not None and item.q_value > 0.05) == ("score", True)
    assert item.share == pytest.approx(0.8)
    assert {part.event for part in boundary.evidence} == {"e2", "e5", "e7", "e9", "e13"}  # e11 is not worth a look
    assert accepted(explain(model, names(30), tested_only=True)) == {}


def sure(present: np.ndarray) -> np.ndarray:
    """A label that is next to sure while e2 or e5 is there, and likely without both; e7 speaks against it."""
    log_odds = 3.5 + 2.75 * (present[:, 2].astype(float) + present[:, 5]) - 0.5 * present[:, 7]
    return (1 / (1 + np.exp(-log_odds)))[:, None]


def test_causes_of_a_label_that_the_model_is_sure_of_are_accepted_by_the_odds(workshop: Any) -> None:
    model = SlopedModel(workshop.response(40, sure), {2: 2.75, 5: 2.0, 7: -1.5, 9: 1.5, 11: -0.5})
    boundary = explain(model, names(30))
    assert {e.event: e.accepted_by for e in boundary.causes} == {"e2": "score", "e5": "score"}
    shares = {e.event: e.share for e in boundary.evidence}  # what pulls away is looked at too, as far as it is strong
    assert shares == pytest.approx({"e2": 1.0, "e5": 2.0 / 2.75, "e7": -1.5 / 2.75, "e9": 1.5 / 2.75})


def test_an_inhibitor_that_pulls_away_is_found_by_test(workshop: Any) -> None:
    model = SlopedModel(workshop.response(40, lambda present: np.where(present[:, [3]], 0.1, 0.9)), {3: -1.0, 8: 0.05})
    boundary = explain(model, names(30))
    assert accepted(boundary) == {"e3": "inhibitor"}
    assert evidence(boundary, "e3").accepted_by == "test"


def test_where_everything_pulls_away_the_strongest_is_the_measure(workshop: Any) -> None:
    model = SlopedModel(workshop.response(40, doubted), {3: -1.0, 8: -0.5, 9: -0.1})
    boundary = explain(model, names(30))
    assert {e.event: e.share for e in boundary.evidence} == pytest.approx({"e3": -1.0, "e8": -0.5})
    assert accepted(boundary) == {}


def test_a_label_that_nothing_pulls_on_is_told_soon(workshop: Any) -> None:
    flat = SlopedModel(workshop.response(40, lambda present: np.full((len(present), 1), 0.3)), {})
    for times in (list(range(30)), [0.0] * 30):
        boundary = explain(flat, names(30), times=times)
        assert boundary.evidence == ()
        assert boundary.contexts < 40


def test_a_label_that_the_model_rules_out_has_no_cause_by_score(workshop: Any) -> None:
    never = SlopedModel(workshop.response(40, lambda present: np.zeros((len(present), 1))), {2: 1.0})
    assert accepted(explain(never, names(30))) == {}


def test_the_measured_fall_is_that_without_the_stand_in_where_there_is_one() -> None:
    def of_odds(before: float, after: float) -> float:
        return 1 - (after / (1 - after)) / (before / (1 - before))

    assert measured_fall(0.9, 0.0, 0.01, 0.6) == pytest.approx(of_odds(0.9, 0.3))
    assert measured_fall(0.9, 0.0, 0.3, 0.1) == pytest.approx(of_odds(0.9, 0.6))
    assert measured_fall(0.9, 0.2, None, None) == pytest.approx(of_odds(0.9, 0.7))


def two_sided(present: np.ndarray) -> np.ndarray:
    """Without e3 the label is a little less likely here, and all but sure in contexts where e5 or e7 is out too."""
    rest = present[:, [5, 7]].all(1)
    return np.where(rest, np.where(present[:, 3], 0.2, 0.12), np.where(present[:, 3], 0.05, 0.95))[:, None]


def test_no_score_makes_a_cause_of_what_a_test_calls_an_inhibitor(workshop: Any) -> None:
    boundary = explain(SlopedModel(workshop.response(40, two_sided), {3: 1.0, 5: -0.5, 7: -0.5}), names(30))
    item = evidence(boundary, "e3")
    assert item.q_value is not None
    assert item.alone is not None
    assert item.q_value < 0.05
    assert item.effect < -0.2
    assert item.alone == pytest.approx(0.08)  # the odds fall by 45 %
    assert (item.verdict, item.accepted_by) == ("not resolvable", None)


def test_what_a_test_has_shown_says_so(workshop: Any) -> None:
    boundary = explain(SlopedModel(workshop.response(40, needs(2, 5)), {2: 1.0, 5: 0.6, 7: 0.5}), names(30))
    assert {e.event: e.accepted_by for e in boundary.evidence} == {"e2": "test", "e5": "test", "e7": None}
    screened = explain(workshop.response(40, needs(2, 5)), names(30))
    assert {e.accepted_by for e in screened.evidence if e.accepted} == {"test"}
    assert {e.share for e in screened.evidence} == {None}


# --- what must be found ---


def test_it_does_not_list_the_announcer(workshop: Any) -> None:
    process, ids = workshop.announced()
    model = workshop.exact(process)
    events = [process.event_names[e] for e in ids]
    runs = [accepted(explain(model, events, seed=seed)) for seed in range(40)]
    assert all(run.get("A") == "cause" for run in runs)
    assert sum("N" in run for run in runs) <= scipy.stats.binom.ppf(1 - 1e-4, 40, 0.02)  # a null like any other


@pytest.mark.parametrize(("size", "least"), [(1, 0.95), (2, 0.9), (3, 0.75), (4, 0.5)])
def test_causes_needed_together_are_found_and_few_others(workshop: Any, size: int, least: float) -> None:
    """Floors under the measured recall (docs/results/error-rates.md); the false share is what q-values promise."""
    model = workshop.response(60, needs(*range(size)))
    runs = [set(accepted(explain(model, names(30), seed=seed))) for seed in range(30)]
    causes = set(names(size))
    assert sum(len(run & causes) for run in runs) >= least * 30 * size
    shares = [len(run - causes) / max(1, len(run)) for run in runs]
    assert np.mean(shares) <= 0.05 + 4 * np.std(shares) / 30**0.5


@pytest.mark.parametrize("size", [6, 8])
def test_larger_boundaries_are_found_with_more_contexts(workshop: Any, size: int) -> None:
    model = workshop.response(60, needs(*range(size)))
    runs = [accepted(explain(model, names(30), seed=seed, contexts=256)) for seed in range(5)]
    assert sum(f"e{k}" in run for run in runs for k in range(size)) >= 0.8 * 5 * size


@pytest.mark.parametrize(("contexts", "alpha"), [(64, 0.001), (128, 0.01), (256, 0.05), (256, 0.01), (800, 0.05)])
@pytest.mark.parametrize("raises", [True, False])
def test_one_event_alone_is_found_however_many_are_tested(
    workshop: Any, contexts: int, alpha: float, raises: bool
) -> None:
    """p-values are fine enough for the number of finalists, the share of the last look and alpha."""
    model = workshop.response(60, lambda present: np.where(present[:, [2]] == raises, 0.95, 0.02))
    boundary = explain(model, names(60), contexts=contexts, alpha=alpha)
    assert accepted(boundary) == {"e2": "cause" if raises else "inhibitor"}


def test_causes_that_stand_in_for_each_other_are_found(workshop: Any) -> None:
    model = workshop.response(40, lambda present: np.where(present[:, [2, 5]].any(1), 0.9, 0.05)[:, None])
    runs = [accepted(explain(model, names(20), seed=seed, contexts=128)) for seed in range(10)]
    assert sum(event in run for run in runs for event in ("e2", "e5")) >= 14


def test_an_inhibitor_is_one(workshop: Any) -> None:
    model = workshop.response(40, lambda present: np.where(present[:, 3] & ~present[:, 7], 0.9, 0.1)[:, None])
    for seed in range(5):
        boundary = explain(model, names(20), seed=seed, contexts=128)
        assert accepted(boundary)["e7"] == "inhibitor"
        item = evidence(boundary, "e7")
        assert item.indicator is not None
        assert item.indicator < -0.1


def test_every_label_gets_its_own_causes(workshop: Any) -> None:
    rules = [[0], [4, 5], [9]]
    answer = lambda present: np.stack([needs(*rule)(present)[:, 0] for rule in rules], axis=1)  # noqa: E731
    model = workshop.response(40, answer, ("x", "y", "z"))
    data = from_records(
        [{"sequence_id": "s", "events": names(20), "times": list(range(20)), "labels": ["x", "y", "z"]}]
    )
    (boundaries,) = discover(model, data, DiscoveryConfig(intervention=InterventionConfig(contexts=128)))
    assert [
        (b.label, {f"e{k}" for k in rule} <= set(accepted(b))) for b, rule in zip(boundaries, rules, strict=True)
    ] == [
        ("x", True),
        ("y", True),
        ("z", True),
    ]


@pytest.mark.parametrize("name", ["and", "not", "order", "mediator"])
def test_on_the_solvable_process_only_parents_are_accepted(workshop: Any, name: str) -> None:
    """With all parents present no draw can insert one, so every other type is an exact null."""
    process = workshop.process(name, length=10)
    model = workshop.exact(process)
    parents = set(process.true_parents(0))
    drawn = process.sample(400, np.random.default_rng(1)).event_ids
    full = [ids for ids in drawn if parents <= set(ids.tolist())][:25]
    assert len(full) == 25
    wrong = 0
    for k, ids in enumerate(full):
        found = accepted(explain(model, [process.event_names[e] for e in ids], name=f"s{k}"))
        wrong += bool(set(found) - {process.event_names[p] for p in parents})
    assert wrong <= scipy.stats.binom.ppf(1 - 1e-4, 25, 0.05 * 2)  # BH: the rate among discoveries, not of families


# --- error rate ---


def test_a_model_that_ignores_every_event_has_few_families_with_a_cause(workshop: Any) -> None:
    """P(label) is a coin that no event can move: screen, finalists, rates, tests and strengths included."""
    rng = np.random.default_rng(5)
    model = workshop.response(60, lambda present: (rng.random((len(present), 1)) < 0.5).astype(float))
    families = [accepted(explain(model, names(25), name=f"s{k}", alpha=0.1, delta=0.0)) for k in range(120)]
    assert sum(map(bool, families)) <= scipy.stats.binom.ppf(1 - 1e-4, 120, 0.1)


def test_a_constant_model_resolves_to_nothing(workshop: Any) -> None:
    model = workshop.response(30, lambda present: np.full((len(present), 1), 0.37))
    boundary = explain(model, names(15))
    assert accepted(boundary) == {}
    assert boundary.probability == pytest.approx(0.37, abs=1e-6)
    assert all(item.effect == pytest.approx(0.0, abs=1e-6) for item in boundary.evidence)


# --- what it estimates ---


def test_additive_effects_are_estimated_without_bias(workshop: Any) -> None:
    """With an additive model the mean difference is the same for every rate of replacement."""
    sizes = np.array([0.3, -0.2, 0.15])
    model = workshop.response(30, lambda present: 0.25 + present[:, :3] @ sizes[:, None])
    effects = []
    for seed in range(40):
        boundary = explain(model, names(8), seed=seed)
        effects.append([evidence(boundary, f"e{k}").effect for k in range(4)])
    mean, se = np.mean(effects, 0), np.std(effects, 0, ddof=1) / 40**0.5
    assert (np.abs(mean - [*sizes, 0.0]) <= 4 * se + 1e-9).all()
    assert se.max() < 0.05


def test_contexts_answer_as_enumeration_says(workshop: Any) -> None:
    """E[P(label) | mask] of drawn contexts against the exact sum over draws, for every mask of a short sequence."""
    process = workshop.process("or", length=5)
    model = workshop.exact(process)
    ids = np.array([4, 0, 7, 2, 4])
    subject = prepare(model, workshop.contexts(ids), sequence_id="s", seed=0, shuffle=True)
    law = subject.law.numpy()[:, SPECIAL_IDS:]
    for event in subject.types - SPECIAL_IDS:
        mask = np.tile(subject.types == event + SPECIAL_IDS, (4000, 1))
        outcome = respond(model, subject, mask, np.array([0]), f"test {event}")[:, 0]
        wanted = float(process.label_probs(ids)[0]) - process.leave_one_out(0, ids, int(event), law)
        assert outcome.mean() == pytest.approx(wanted, abs=4.5 * outcome.std() / 4000**0.5 + 1e-6)


# --- what it sends to the model ---


@pytest.mark.parametrize("contexts", [16, 32, 64, 100, 256])
def test_the_cap_on_contexts_is_kept_and_the_spent_number_reported(workshop: Any, contexts: int) -> None:
    model = workshop.response(60, needs(0, 1))
    boundary = explain(model, names(30), contexts=contexts)
    asked = sum(len(ids) for ids in model.asked)
    assert boundary.contexts == asked <= contexts


def test_a_context_keeps_or_replaces_whole_types_and_never_redraws_one(workshop: Any) -> None:
    """But for the last stage, which keeps one occurrence of a repeated type and changes nothing else."""
    model = workshop.response(12, needs(0, 1))
    events = ["e0", "e1", "e2", "e0", "e3", "e1", "e0"]
    explain(model, events)
    observed = np.array([model.vocabulary.event_ids[event] for event in events])
    for ids in np.concatenate(model.asked):
        assert ids.min() >= SPECIAL_IDS
        assert not np.isin(ids[ids != observed], observed).any()  # no present type slips in elsewhere
        parts = {event for event in observed if event in ids and not (ids[observed == event] == event).all()}
        if parts:
            (event,) = parts
            assert (ids == event).sum() == 1
            assert (ids[observed != event] == observed[observed != event]).all()


def test_where_every_type_is_present_replaced_ones_are_absent_all_the_same(workshop: Any) -> None:
    model = workshop.response(6, needs(0, 1))
    boundary = explain(model, names(6), contexts=128)
    assert set(accepted(boundary)) >= {"e0", "e1"}
    drawn = np.concatenate(model.asked)
    assert set(drawn[drawn < SPECIAL_IDS].tolist()) == {UNKNOWN_ID}
    for ids in drawn:
        real = ids[ids >= SPECIAL_IDS]
        assert len(set(real.tolist())) == len(real)


@pytest.mark.parametrize("events", [["e0"], ["e0"] * 5, ["e0", "e1"]])
def test_very_short_sequences_are_explained(workshop: Any, events: list[str]) -> None:
    boundary = explain(workshop.response(20, needs(0)), events)
    assert accepted(boundary) == {"e0": "cause"}
    assert evidence(boundary, "e0").positions == tuple(i for i, event in enumerate(events) if event == "e0")


# --- ties ---


class OrderModel:
    """P = 0.9 where e0 stands anywhere before e1, else 0.1."""

    max_length, min_context = 100, 1

    def __init__(self, workshop: Any) -> None:
        self.inner = workshop.response(20, needs(0))
        self.vocabulary = self.inner.vocabulary

    def event_probs(self, sequence: Any) -> torch.Tensor:
        return self.inner.event_probs(sequence)

    def label_probs(self, contexts: Any, labels: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        ids = contexts.event_ids.numpy()
        answers = []
        for p in positions.tolist():
            where = [
                np.where((ids[:, :p] == SPECIAL_IDS + k).any(1), (ids[:, :p] == SPECIAL_IDS + k).argmax(1), 99)
                for k in (0, 1)
            ]
            answers.append(np.where((where[0] < where[1]) & (where[1] < 99), 0.9, 0.1))
        return torch.as_tensor(np.stack(answers, axis=1)[:, :, None]).float()


def test_the_stored_order_of_tied_events_does_not_decide(workshop: Any) -> None:
    """e0 and e1 share a timestamp: whichever was stored first, both kinds of orders are tried."""
    model = OrderModel(workshop)
    rest = names(12)[2:]
    times = [0, 0, *range(1, 11)]
    effects = {order: [] for order in (("e0", "e1"), ("e1", "e0"))}
    for order, values in effects.items():
        for seed in range(40):
            boundary = explain(model, [*order, *rest], times=times, seed=seed)
            values.append(evidence(boundary, "e0").effect)
    first, second = effects.values()
    assert scipy.stats.ttest_ind(first, second).pvalue > 1e-3
    assert np.mean(first) == pytest.approx(0.4, abs=0.15)


def test_without_shuffling_the_stored_order_stands(workshop: Any) -> None:
    boundary = explain(OrderModel(workshop), names(12), times=[0, 0, *range(1, 11)], shuffle_ties=False)
    assert boundary.probability == pytest.approx(0.9)
    assert set(accepted(boundary)) >= {"e0", "e1"}


def test_the_reported_probability_is_that_of_the_sequence_as_it_is(workshop: Any) -> None:
    """Also with ties: the shuffled orders are contexts, not the sequence."""
    times = [0, 0, *range(1, 11)]
    probs = [explain(OrderModel(workshop), names(12), times=times, seed=seed).probability for seed in range(8)]
    assert probs == pytest.approx([0.9] * 8)


# --- settings ---


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"contexts": 15}, "contexts"),
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": 3}, "alpha"),
        ({"delta": -0.1}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"screen_rate": 0.0}, "screen_rate"),
        ({"finalists": 0}, "finalists"),
        ({"redraws": 0}, "redraws"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], word: str) -> None:
    with pytest.raises(UsageError, match=word):
        InterventionConfig(**settings)


# --- the intervals that users read ---


@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_the_interval_of_a_sure_cause_is_that_of_two_coins_at_level_one_minus_alpha(
    workshop: Any, alpha: float
) -> None:
    """Heads wherever e2 stays, tails wherever it goes: scipy's exact limits of both means, joined by square and add."""
    model = workshop.response(40, lambda present: present[:, [2]].astype(float))
    item = evidence(explain(model, names(30), alpha=alpha), "e2")
    assert item.n_kept is not None
    assert item.n_replaced is not None
    kept = scipy.stats.binomtest(item.n_kept, item.n_kept).proportion_ci(1 - alpha, "exact")
    lost = scipy.stats.binomtest(0, item.n_replaced).proportion_ci(1 - alpha, "exact")
    assert item.effect == 1.0
    assert item.ci_low == pytest.approx(1 - np.hypot(1 - kept.low, lost.high))
    assert item.ci_high == 1.0


@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_intervals_hold_no_effect_as_often_as_they_promise(workshop: Any, alpha: float) -> None:
    """A model that tosses a coin in every context: no event has an effect, so at most alpha of the intervals miss 0."""
    rng = np.random.default_rng(11)
    model = workshop.response(40, lambda present: (rng.random((len(present), 1)) < 0.5).astype(float))
    found = [explain(model, names(12), name=f"s{k}", alpha=alpha) for k in range(60)]
    misses = [not item.ci_low <= 0 <= item.ci_high for b in found for item in b.evidence if item.ci_low is not None]
    assert len(misses) > 300
    assert 0 < np.mean(misses) <= alpha
