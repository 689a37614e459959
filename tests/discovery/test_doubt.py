"""Doubt about verdicts: near a threshold, disputed between models, asked in contexts unlike real sequences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.data.vocabulary import SPECIAL_IDS, Vocabulary
from oscar_causal.density.interface import Contexts
from oscar_causal.discovery.boundary import Boundary, EventEvidence
from oscar_causal.discovery.doubt import CONTEXTS, near_decision, plausibility, screen_contexts, with_agreement
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.discovery.prefix import PrefixConfig
from oscar_causal.discovery.subject import prepare

CONFIG = DiscoveryConfig(intervention=InterventionConfig(contexts=64))


def one(count: int = 9, **changes: Any) -> Dataset:
    record = {"sequence_id": "a", "events": [f"e{k}" for k in range(count)], "times": list(range(count))}
    return from_records([{**record, "labels": ["fault"], **changes}])


# --- near a threshold ---


@pytest.mark.parametrize(
    ("q", "effect", "alone", "expected"),
    [
        (0.001, 0.5, 0.6, False),
        (0.024, 0.5, 0.6, False),
        (0.026, 0.5, 0.6, True),  # accepted, within a factor of two
        (0.099, 0.5, 0.6, True),  # not accepted, within a factor of two
        (0.101, 0.5, 0.6, False),
        (0.001, 0.11, 0.05, True),  # delta = 0.1
        (0.001, 0.09, None, True),
        (0.001, -0.11, None, True),
        (0.001, 0.13, 0.02, False),
        (0.001, 0.05, 0.3, False),  # what stands in for it hides the one, not the other
        (0.5, 0.1, None, False),  # far from significance: delta decides nothing
        (None, 0.1, None, False),
    ],
)
def test_near_alpha_or_delta(q: float | None, effect: float, alone: float | None, expected: bool) -> None:
    item = EventEvidence("A", (0,), "cause", effect, q_value=q, alone=alone)
    assert near_decision(item, alpha=0.05, delta=0.1) is expected


def test_acceptance_by_score_is_near_its_own_threshold() -> None:
    item = EventEvidence("A", (0,), "cause", 0.5, q_value=0.9, share=0.45, accepted_by="score")
    assert near_decision(item, alpha=0.05, delta=0.05)
    assert not near_decision(replace(item, share=0.6), alpha=0.05, delta=0.05)


@pytest.mark.parametrize(
    ("posterior", "q", "expected"),
    [(0.95, 0.01, False), (0.55, 0.01, True), (0.42, 0.02, True), (0.3, 0.03, False), (0.9, 0.04, True)],
)
def test_posteriors_are_near_one_half_or_the_level_of_the_fleet(posterior: float, q: float, expected: bool) -> None:
    item = EventEvidence("A", (0,), "not resolvable", 0.5, q_value=q, posterior=posterior)
    assert near_decision(item, alpha=0.05, delta=0.05) is expected


def test_verdicts_near_alpha_are_marked_and_named(workshop: Any) -> None:
    """Over a range of alphas the same event is clearly no cause, nearly one, barely one, clearly one."""
    noise = np.random.default_rng(0).integers(0, 2, (40, 1))
    model = workshop.response(40, lambda present: 0.1 + 0.25 * present[:, [3]] + 0.5 * (present @ noise % 2))
    seen = set()
    for alpha in (0.0005, *np.geomspace(0.001, 0.3, 16).tolist()):
        config = replace(CONFIG, intervention=InterventionConfig(contexts=64, alpha=alpha, redraws=2000))
        ((boundary,),) = discover(model, one(), config)
        for item in boundary.evidence:
            assert item.borderline is (item.q_value is not None and alpha / 2 <= item.q_value <= 2 * alpha)
        item = next(item for item in boundary.evidence if item.event == "e3")
        named = [flag for flag in boundary.flags if flag.startswith("borderline: ")]
        assert item.borderline is any("e3" in flag for flag in named)
        seen.add((item.accepted, item.borderline))
    assert seen >= {(True, False), (True, True)}


def test_prefix_marks_what_misses_its_threshold_by_little(workshop: Any) -> None:
    model = workshop.response(40, lambda present: 0.1 + 0.3 * present[:, [3]] + 0.3 * present[:, [6]])
    config = DiscoveryConfig(estimator="prefix", prefix=PrefixConfig(context=2, contexts=4, threshold=0.0))
    data = one(14)

    def go(k: float) -> Boundary:
        ((boundary,),) = discover(model, data, replace(config, prefix=replace(config.prefix, threshold=k)))
        return boundary

    gains = {item.event: item.score or 0.0 for item in go(0.0).evidence}
    values = np.array(list(gains.values()))
    for wanted in (0.9, 1.1, 2.0, 0.5):  # theta as a multiple of the gain of e3
        k = (wanted * gains["e3"] - values.mean()) / values.std(ddof=1)
        boundary = go(k)
        item = next(item for item in boundary.evidence if item.event == "e3")
        assert item.borderline is (abs(1 - 1 / wanted) <= 0.2)
        assert item.accepted is (wanted < 1)


# --- agreement ---


def boundary(**verdicts: Any) -> Boundary:
    items = tuple(EventEvidence(event, (0,), verdict, 0.5) for event, verdict in verdicts.items())
    return Boundary("s", "fault", True, 0.9, items, flags=("first",))


def test_agreement_is_the_share_of_models_that_accept_with_the_same_sign() -> None:
    mine = boundary(A="cause", B="cause", C="inhibitor", D="no effect", E="not resolvable")
    others = [
        boundary(A="cause", B="inhibitor", C="inhibitor", D="cause", E="no effect"),
        boundary(A="cause", B="not resolvable", C="no effect", D="no effect"),
        boundary(A="cause", B="cause", C="inhibitor"),
    ]
    found = with_agreement(mine, others)
    assert {item.event: item.agreement for item in found.evidence} == {
        "A": 1.0, "B": 0.5, "C": 0.75, "D": 0.25, "E": 0.0,
    }  # fmt: skip
    assert [item.verdict for item in found.evidence] == [item.verdict for item in mine.evidence]
    assert found.flags == ("first", "models disagree; accepted by: B (2 of 4), C (3 of 4), D (1 of 4)")


def test_one_model_has_nobody_to_agree_with(workshop: Any) -> None:
    mine = boundary(A="cause")
    assert with_agreement(mine, []) == mine
    agreed = with_agreement(mine, [boundary(A="cause")])
    assert agreed.flags == ("first",)
    ((found,),) = discover(workshop.response(40, lambda p: np.where(p[:, [3]], 0.9, 0.1)), one(), CONFIG)
    assert {item.agreement for item in found.evidence} == {None}


def test_several_models_are_asked_about_the_same_labels(workshop: Any) -> None:
    """The second model hangs on e4 too, the third on another event and does not know one of the labels."""
    answers = [
        lambda p: np.where(p[:, [3, 3]] & p[:, [4, 4]], 0.9, 0.1),
        lambda p: np.where(p[:, [3, 3]], 0.9, 0.1),
    ]
    first, second = (workshop.response(40, answer, ("fault", "smell")) for answer in answers)
    third = workshop.response(40, lambda p: np.where(p[:, [5]], 0.9, 0.1), ("fault",))
    data = one(labels=[])
    config = replace(CONFIG, labels="predicted")
    (alone,) = discover(first, data, config)
    (found,) = discover(first, data, config, also=[second, third])
    assert [item.label for item in found] == ["fault", "smell"]
    shares = [{item.event: item.agreement for item in b.causes} for b in found]
    assert shares == [{"e3": pytest.approx(2 / 3), "e4": pytest.approx(1 / 3)}, {"e3": 1.0, "e4": 0.5}]
    assert "e5 (1 of 3)" in found[0].flags[-1]
    for before, after in zip(alone, found, strict=True):  # nothing but agreement is added
        stripped = tuple(replace(item, agreement=None) for item in after.evidence)
        assert replace(after, evidence=stripped, flags=before.flags) == before


# --- plausibility ---


class Chain:
    """Event k + 1 follows event k with probability 0.7; all others share the rest. Labels do not matter."""

    vocabulary = Vocabulary(tuple(f"e{k}" for k in range(30)), ("fault",))
    max_length, min_context = 100, 1

    def event_probs(self, sequence: Contexts) -> torch.Tensor:
        length, size = sequence.event_ids.shape[1], self.vocabulary.size
        law = torch.full((length, size), 0.3 / 29)
        law[:, :SPECIAL_IDS] = 0.0
        before = [SPECIAL_IDS - 1, *sequence.event_ids[0, :-1].tolist()]
        for i, event in enumerate(before):
            law[i, event + 1 if event + 1 < size else SPECIAL_IDS] = 0.7
        return law

    def label_probs(self, contexts: Contexts, labels: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return torch.full((len(contexts.event_ids), len(positions), len(labels)), 0.5)


def by_hand(ids: list[int]) -> float:
    follows = [b == a + 1 for a, b in zip([SPECIAL_IDS - 1, *ids[:-1]], ids, strict=True)]
    return float(np.mean([np.log(0.7 if yes else 0.3 / 29) for yes in follows]))


def test_plausibility_is_the_mean_log_probability_of_an_event() -> None:
    model, ids = Chain(), [SPECIAL_IDS + k for k in range(6)]
    contexts = np.array([ids, [*ids[:2], 20, *ids[3:]], [9, *ids[1:]]])
    sequence = Contexts(torch.tensor([ids]), torch.arange(6).double(), torch.zeros(6, 0))
    observed, strayed = plausibility(model, sequence, torch.as_tensor(contexts))
    assert observed == pytest.approx(np.log(0.7), rel=1e-6)
    assert strayed == pytest.approx(np.mean([by_hand(list(row)) for row in contexts]), rel=1e-6)


def test_only_the_first_few_contexts_count_and_nothing_is_minus_infinity() -> None:
    model, ids = Chain(), [SPECIAL_IDS + k for k in range(6)]
    sequence = Contexts(torch.tensor([ids]), torch.arange(6).double(), torch.zeros(6, 0))
    impossible = np.array([[1] * 6])  # unknown events have no probability at all
    contexts = np.concatenate([np.repeat([ids], CONTEXTS, axis=0), impossible])
    assert plausibility(model, sequence, torch.as_tensor(contexts))[1] == pytest.approx(np.log(0.7), rel=1e-6)
    assert plausibility(model, sequence, torch.as_tensor(impossible))[1] == pytest.approx(-30)


@pytest.mark.parametrize("estimator", ["intervention", "prefix"])
def test_contexts_that_tear_a_chain_apart_are_less_plausible(estimator: str) -> None:
    pasts = PrefixConfig(context=4, contexts=8, top_k=None, top_p=None)
    config = CONFIG if estimator == "intervention" else DiscoveryConfig(estimator=estimator, prefix=pasts)
    ((found,),) = discover(Chain(), one(20), config)
    assert found.observed_logp == pytest.approx(np.log(0.7), rel=1e-6)
    assert found.contexts_logp is not None
    assert found.contexts_logp < np.log(0.7) - 0.1


def test_contexts_are_of_the_screening_kind(workshop: Any) -> None:
    model = workshop.response(40, lambda present: np.full((len(present), 1), 0.5))
    sequence = workshop.contexts([0, 1, 2, 3, 4, 5, 1, 7])
    subject = prepare(model, sequence, sequence_id="s", seed=0, shuffle=False, excluded=frozenset({SPECIAL_IDS + 5}))
    ids, observed = screen_contexts(subject, 0.5).numpy(), sequence.event_ids[0].numpy()
    assert ids.shape == (CONTEXTS, 8)
    replaced = ids != observed
    assert replaced.any()
    assert not replaced[:, 5].any()  # excluded
    assert (replaced[:, 1] == replaced[:, 6]).all()  # one type, all its occurrences
    assert not np.isin(ids[replaced], observed).any()
    assert (screen_contexts(subject, 0.5).numpy() == ids).all()


def test_a_model_without_tf_x_has_no_plausibility(workshop: Any) -> None:
    whole = workshop.response(40, lambda p: np.where(p[:, [3]], 0.9, 0.1))

    class LabelsOnly:
        vocabulary, max_length, min_context = whole.vocabulary, 100, 1
        label_probs = staticmethod(whole.label_probs)

    ((found,),) = discover(LabelsOnly(), one(), replace(CONFIG, replacement="marginal"))
    assert (found.observed_logp, found.contexts_logp) == (None, None)
