"""`fused`: what the fleet knows moves a verdict, what this sequence shows can veto it, and nobody judges himself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oscar_causal.data.rules import parse
from oscar_causal.data.sequences import from_records
from oscar_causal.data.subjects import pack_subjects
from oscar_causal.discovery import fused
from oscar_causal.discovery.boundary import EventEvidence
from oscar_causal.discovery.cells import CELLS, FIRST, LOOKED, RESPONSES
from oscar_causal.discovery.evidence import (
    CONTROL,
    FOLDS,
    GROUPS,
    FleetEvidence,
    empty_evidence,
    look_evidence,
    merge,
    subject_groups,
)
from oscar_causal.discovery.fleet_prior import Classical, FleetPrior, features_by_label, fit_prior, subject_fold
from oscar_causal.discovery.fused import CLASSICAL_FLAG, RULE_FLAG, FusedConfig
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.discovery.prior_files import prior_digest, read_prior, write_prior
from oscar_causal.discovery.reading import count_patterns
from oscar_causal.discovery.subject import prepare
from oscar_causal.errors import FolderError, UsageError

HIGH = FIRST[LOOKED] + 2 * RESPONSES
"""The first look cell with P(label) > 0.8; the response is added."""
SETTINGS = (InterventionConfig(contexts=48, redraws=200), FusedConfig(population="-"))


def looks(rows: list[tuple[str, int, int]], groups: Any = range(GROUPS)) -> FleetEvidence:
    """(event, response bin, how often) for the label `fault`, spread over groups of subjects."""
    spread = [(event, group, HIGH + bin_) for event, bin_, times in rows for group in groups for _ in range(times)]
    label = pa.array(["fault"] * len(spread))
    return look_evidence(label, pa.array([s[0] for s in spread]), [s[1] for s in spread], [s[2] for s in spread])


def fleet(*rows: tuple[str, int, int]) -> FleetPrior:
    """A prior from looks; controls never answer."""
    return fit_prior(looks([*rows, (CONTROL, 0, 2)]))


def explain(workshop: Any, rule: Any, prior: FleetPrior, subject: str = "car") -> dict[str, EventEvidence]:
    """A sequence of e0 ... e11 whose label is a rule of presence."""
    model = workshop.response(80, lambda present: np.where(rule(present), 0.95, 0.02)[:, None])
    seen = prepare(model, workshop.contexts(list(range(12))), sequence_id="s", seed=0, shuffle=False)
    names = [model.vocabulary.name(int(t)) for t in seen.types]
    (found,), _ = fused.explain(model, seen, np.array([0]), names, (prior, subject), SETTINGS)
    return {item.event: item for item in found.evidence}


def test_a_usual_cause_that_shows_itself_is_accepted_with_every_source(workshop: Any) -> None:
    prior = replace(fleet(("e0", 4, 1)), rules={"fault": parse("e0 & !e40")})
    found = explain(workshop, lambda present: present[:, 0], prior)["e0"]
    assert found.verdict == "cause"
    assert found.posterior is not None
    assert found.prior is not None
    assert found.log_ratio is not None
    odds = np.log(found.prior / (1 - found.prior)) + found.log_ratio
    assert found.posterior == pytest.approx(1 / (1 + np.exp(-odds)))
    assert (found.rule, found.classical, found.fleet_sequences) == (True, None, 0)
    assert found.response == pytest.approx(0.93 / 0.95, abs=0.01)


def test_a_cause_is_probably_one_and_the_fleet_expects_few_errors_among_its_like(workshop: Any) -> None:
    certain, doubtful = (np.full((FOLDS, 101), share) for share in (0.0, 0.06))
    prior = fleet(("e0", 4, 1))
    found = explain(workshop, lambda present: present[:, 0], replace(prior, errors=certain))
    assert found["e0"].q_value == 0.0
    assert {event for event, item in found.items() if item.verdict == "cause"} == {
        event for event, item in found.items() if (item.posterior or 0.0) >= 0.5
    }
    found = explain(workshop, lambda present: present[:, 0], replace(prior, errors=doubtful))
    assert found["e0"].posterior > 0.9
    assert found["e0"].verdict == "not resolvable"  # alpha is .05


def test_an_inhibitor_stays_one_whatever_the_fleet_says_of_causes() -> None:
    judge = fused._Judge(fleet(("e0", 4, 1)), "fault", 0, None, {}, 0.05)
    for verdict, chance, q, told in (
        ("inhibitor", 0.99, 0.001, "inhibitor"),
        ("cause", 0.99, 0.001, "cause"),
        ("no effect", 0.99, 0.001, "cause"),
        ("cause", 0.4, 0.001, "not resolvable"),
        ("cause", 0.99, 0.06, "not resolvable"),
        ("no effect", 0.4, 0.001, "no effect"),
    ):
        assert judge._verdict(EventEvidence("A", (0,), verdict, 0.1), chance, q) == told  # type: ignore[arg-type]


def test_of_candidates_two_are_the_fleets_and_one_is_a_finalist() -> None:
    assert fused._two_to_one([1, 2, 3, 4, 5], [11, 12]) == [1, 2, 11, 3, 4, 12, 5]
    assert fused._two_to_one([1], [11, 12]) == [1, 11, 12]


@pytest.mark.parametrize("times", [None, [0.0] * 12])
def test_contexts_are_those_that_the_model_was_asked(workshop: Any, times: list[float] | None) -> None:
    """With ties the sequence as it is was asked about twice more."""
    model = workshop.response(80, lambda present: np.where(present[:, [0]], 0.95, 0.02))
    seen = prepare(model, workshop.contexts(list(range(12)), times), sequence_id="s", seed=0, shuffle=True)
    names = [model.vocabulary.name(int(t)) for t in seen.types]
    prior = fleet(("e0", 4, 1))
    _, contexts = fused.explain(model, seen, np.array([0]), names, (prior, "car"), SETTINGS)
    assert contexts == sum(map(len, model.asked))


def test_usually_a_cause_is_not_a_cause_here(workshop: Any) -> None:
    prior = fleet(("e0", 4, 3), ("e5", 4, 3), ("e5", 0, 2))
    found = explain(workshop, lambda present: present[:, 0], prior)
    assert prior.rate("fault", "e5", 0) > 0.5
    assert found["e5"].verdict != "cause"
    assert found["e5"].posterior is not None
    assert found["e5"].posterior < 0.4
    assert found["e0"].verdict == "cause"


def test_a_cause_the_fleet_never_saw_is_found_by_its_own_evidence(workshop: Any) -> None:
    silent = [(f"e{k}", 0, 1) for k in range(20, 60)]
    found = explain(workshop, lambda present: present[:, 7], fleet(("e0", 4, 3), *silent))["e7"]
    assert found.prior is not None
    assert found.prior < 0.1
    assert found.verdict == "cause"


def test_where_the_model_is_blind_the_fleet_decides(workshop: Any) -> None:
    model_sees_nothing = lambda present: np.zeros(len(present), bool)  # noqa: E731
    found = explain(workshop, model_sees_nothing, fleet(("e0", 4, 3), ("e1", 0, 3)))
    assert found["e0"].posterior is not None
    assert found["e0"].posterior > 0.7
    assert (found["e1"].posterior or 0.0) < 0.1


def test_a_subject_is_left_out_of_its_own_prior() -> None:
    groups = subject_groups(pa.array([f"car {k}" for k in range(400)]))
    mine = int(groups[0])
    rest = [("e0", 0, 1), (CONTROL, 0, 2)]
    before = fit_prior(looks(rest))
    after = fit_prior(merge([looks(rest), looks([("e0", 4, 500)], groups=[mine])]))
    fold = subject_fold("car 0")
    assert fold == mine % FOLDS
    assert after.rate("fault", "e0", fold) == before.rate("fault", "e0", fold)
    assert (after.log_ratios[fold] == before.log_ratios[fold]).all()
    other = (fold + 1) % FOLDS
    assert after.rate("fault", "e0", other) > before.rate("fault", "e0", other) + 0.3


def test_classical_boundaries_raise_the_prior_and_are_flagged_where_they_saw_the_subject() -> None:
    packed = pack_subjects(pa.array(["car 1"]))
    known = Classical("iamb", {"fault": ("e3",)}, {"fault": 500}, packed)
    prior = fit_prior(empty_evidence(), known)
    assert prior.rate("fault", "e3", 0) > 5 * prior.rate("fault", "e4", 0)
    assert prior.candidates("fault", ["e4", "e3"], 0, None) == ["e3"]
    assert (prior.is_member("fault", "e3"), prior.is_member("fault", "e4"), prior.is_member("other", "e3")) == (
        True,
        False,
        None,
    )
    assert prior.classical_saw("car 1")
    assert not prior.classical_saw("car 2")
    assert replace(prior, classical=replace(known, subjects=None)).classical_saw("car 2")  # unknown counts as seen


KNOWN = Classical("iamb", {"fault": ("e1 then e2", "e6 then e7")}, {"fault": 500}, None)


def garage(number: int = 400) -> Any:
    """Cars whose fault comes by `e1 then e2` or by `e6 then e7`; both pairs are mostly there, in any order."""
    rng = np.random.default_rng(0)
    records = []
    for k in range(number):
        events = [f"e{e}" for e in rng.permutation(8) if e not in (1, 2, 6, 7) or rng.random() < 0.9]
        at = {event: place for place, event in enumerate(events)}
        came = any(at.get(a, 99) < at.get(b, -1) for a, b in (("e1", "e2"), ("e6", "e7")))
        times = list(range(len(events)))
        records.append({"sequence_id": f"s{k}", "events": events, "times": times, "labels": ["fault"] if came else []})
    return from_records(records)


def explain_order(workshop: Any, order: list[int], needed: list[int], subject: str = "car") -> dict[str, Any]:
    """A sequence of these events under a model that needs some of them, whatever their order."""
    prior = fit_prior(count_patterns(garage(), features_by_label(KNOWN)), KNOWN)
    prior = replace(prior, errors=np.zeros((FOLDS, 101)))  # nobody was looked at: let no errors be expected
    model = workshop.response(30, lambda present: np.where(present[:, needed].all(1), 0.9, 0.1)[:, None])
    seen = prepare(model, workshop.contexts(order), sequence_id="s", seed=0, shuffle=False)
    names = [model.vocabulary.name(int(t)) for t in seen.types]
    (found,), _ = fused.explain(model, seen, np.array([0]), names, (prior, subject), SETTINGS)
    return {item.event: item for item in found.evidence}


def test_an_order_that_does_not_hold_here_speaks_against_a_member(workshop: Any) -> None:
    """e6 then e7 brought it here, e2 came before e1; the model needs all four, because it never learnt the order."""
    found = explain_order(workshop, [2, 3, 1, 4, 6, 7], [1, 2, 6, 7])
    assert {event for event, item in found.items() if item.verdict == "cause"} == {"e6", "e7"}
    assert found["e6"].prior > 0.9
    assert found["e1"].prior < 0.1
    assert found["e1"].response > 0.8  # the model would have had it a cause


def test_the_parts_of_a_recovered_rule_are_read_too(workshop: Any) -> None:
    """No classical boundary: the rule's own parts are counted, and its order decides here."""
    rules = {"fault": parse("(e1 then e2) | (e6 then e7)")}
    prior = fit_prior(count_patterns(garage(), features_by_label(None, rules)), None, rules)
    model = workshop.response(30, lambda present: np.where(present[:, [1, 2, 6, 7]].all(1), 0.9, 0.1)[:, None])
    seen = prepare(model, workshop.contexts([2, 3, 1, 4, 6, 7]), sequence_id="s", seed=0, shuffle=False)
    names = [model.vocabulary.name(int(t)) for t in seen.types]
    flags = {}
    for subject, mined in (("car", ["car"]), ("other", ["car"])):
        known = replace(prior, rule_subjects=pack_subjects(pa.array(mined)))
        (found,), _ = fused.explain(model, seen, np.array([0]), names, (known, subject), SETTINGS)
        assert {item.event for item in found.evidence if item.verdict == "cause"} == {"e6", "e7"}
        flags[subject] = RULE_FLAG in found.flags
    assert flags == {"car": True, "other": False}


def test_a_route_outside_the_boundary_is_left_to_own_evidence(workshop: Any) -> None:
    """Neither order holds here, so something else brought the label: the prior of the others rises."""
    outside, explained = (explain_order(workshop, order, [4]) for order in ([2, 3, 1, 4, 7, 6], [1, 3, 2, 4, 7, 6]))
    assert outside["e4"].prior > 10 * explained["e4"].prior
    assert outside["e4"].verdict == "cause"
    assert explained["e1"].verdict == explained["e2"].verdict == "cause"


def test_controls_are_events_that_nothing_points_at(workshop: Any) -> None:
    model = workshop.response(60, lambda present: np.where(present[:, [0]], 0.9, 0.1))
    seen = prepare(model, workshop.contexts(list(range(20))), sequence_id="s", seed=0, shuffle=False)
    names = [model.vocabulary.name(int(t)) for t in seen.types]
    likely = [[f"e{k}" for k in range(16)]]  # more than can be looked at
    own = fused.one_shot(model, seen, np.array([0]), names, SETTINGS)
    measured = fused.measure(model, seen, np.array([0]), names, likely, own, looks=SETTINGS[1].looks, controls=3)
    tested = {e.event for e in measured.labels[0].evidence if e.p_value is not None}
    chosen = {names[int(t)] for t in measured.controls}
    assert 0 < len(chosen) <= 3
    assert not chosen & (tested | set(likely[0]))
    assert measured.look.responses[-len(chosen) :, 0] == pytest.approx(np.zeros(len(chosen)), abs=1e-6)


def test_controls_count_by_their_response_whatever_a_classical_boundary_says() -> None:
    label, event = pa.array(["fault"] * 2), pa.array([CONTROL] * 2)
    plain = fit_prior(look_evidence(label, event, [0, 1], [HIGH, HIGH + 4]))
    worded = fit_prior(look_evidence(label, event, [0, 1], [HIGH + CELLS, HIGH + 4 + 2 * CELLS]))
    assert (plain.log_ratios == worded.log_ratios).all()


def test_the_flag_is_on_the_boundary(workshop: Any) -> None:
    known = Classical("iamb", {"fault": ("e3",)}, {"fault": 500}, None)
    model = workshop.response(30, lambda present: np.where(present[:, [3]], 0.9, 0.1))
    seen = prepare(model, workshop.contexts([1, 2, 3]), sequence_id="s", seed=0, shuffle=False)
    names = [model.vocabulary.name(int(t)) for t in seen.types]
    (found,), _ = fused.explain(
        model, seen, np.array([0]), names, (fit_prior(empty_evidence(), known), "car"), SETTINGS
    )
    assert CLASSICAL_FLAG in found.flags


def test_the_prior_comes_back_from_disk(tmp_path: Path) -> None:
    known = Classical("iamb", {"fault": ("e3", "e0")}, {"fault": 5}, None)
    prior = fit_prior(looks([("e0", 4, 1), ("e1", 0, 1), (CONTROL, 1, 1)]), known)
    write_prior(tmp_path, prior)
    again = read_prior(tmp_path)
    for event in ("e0", "e1", "e3", "never met"):
        for fold in range(FOLDS):
            assert again.rate("fault", event, fold) == prior.rate("fault", event, fold)
            assert again.rate("other", event, fold) == prior.rate("other", event, fold)
    assert (again.log_ratios == prior.log_ratios).all()
    assert again.log_ratios.shape == (FOLDS, 3, CELLS)
    assert (again.errors == prior.errors).all()
    assert again.readings is None
    first = prior_digest(tmp_path)
    (tmp_path / "prior.json").write_text((tmp_path / "prior.json").read_text() + " ")
    assert prior_digest(tmp_path) != first
    info = json.loads((tmp_path / "prior.json").read_text())
    for name, wrong in (("errors", [[2.0] * 101] * FOLDS), ("log_ratios", [[[0.0]]]), ("errors", None)):
        (tmp_path / "prior.json").write_text(json.dumps(info | {name: wrong}))
        with pytest.raises(FolderError, match="damaged population"):
            read_prior(tmp_path)
    (tmp_path / "prior.json").write_text(json.dumps(info))
    (tmp_path / "prior.parquet").write_bytes(b"no parquet")
    with pytest.raises(FolderError, match="damaged population"):
        read_prior(tmp_path)
    with pytest.raises(FolderError, match=r"prior\.json"):
        prior_digest(tmp_path / "nowhere")


def test_readings_come_back_from_disk_and_leave_the_own_fold_out(tmp_path: Path) -> None:
    data = garage()
    prior = fit_prior(count_patterns(data, features_by_label(KNOWN)), KNOWN)
    write_prior(tmp_path, prior)
    again = read_prior(tmp_path)
    assert prior.readings is not None
    assert again.readings is not None
    for fold in range(FOLDS):
        rest = data.take(subject_groups(data.subject_ids) % FOLDS != fold)
        alone = fit_prior(count_patterns(rest, features_by_label(KNOWN)), KNOWN).readings
        assert alone is not None
        for pattern in range(4):
            mine = prior.readings.of_pattern("fault", pattern, fold)
            assert mine == again.readings.of_pattern("fault", pattern, fold)
            assert mine == alone.of_pattern("fault", pattern, fold)
        assert prior.readings.log_likelihood("fault") == again.readings.log_likelihood("fault")
    (tmp_path / "readings.json").write_text('{"fault": {"raising": ["e1 then e2"]}}')
    with pytest.raises(FolderError, match="damaged population"):
        read_prior(tmp_path)


@pytest.mark.parametrize(
    ("changes", "columns"),
    [
        ({"rule_subjects": 7}, None),
        ({"rule_subjects": "no base 64"}, None),
        ({"classical": {"method": "iamb", "features": {}, "positives": {}, "subjects": [1]}}, None),
        ({}, {"label": ["fault"], "rates": [[0.5] * FOLDS]}),
        ({}, {"label": ["fault"], "event": ["e0"], "sequences": ["many"], "rates": [[0.5] * FOLDS]}),
        ({}, {"label": ["fault"], "event": ["e0"], "sequences": [3], "rates": [[2.0] * FOLDS]}),
        ({}, {"label": ["fault"], "event": ["e0"], "sequences": [3], "rates": [[None] * FOLDS]}),
    ],
)
def test_an_odd_prior_is_told(tmp_path: Path, changes: dict[str, Any], columns: dict[str, Any] | None) -> None:
    write_prior(tmp_path, fleet(("e0", 4, 3)))
    info = json.loads((tmp_path / "prior.json").read_text())
    (tmp_path / "prior.json").write_text(json.dumps(info | changes))
    if columns is not None:
        pq.write_table(pa.table(columns), tmp_path / "prior.parquet")
    with pytest.raises(FolderError, match="damaged population"):
        read_prior(tmp_path)


def test_a_population_of_another_fleet_is_refused(workshop: Any, tmp_path: Path) -> None:
    known = Classical("iamb", {"other": ("e3",), "third": ()}, {"other": 5}, None)
    write_prior(tmp_path, fit_prior(empty_evidence(), known))
    model = workshop.response(40, lambda present: np.where(present[:, [0]], 0.9, 0.1))
    data = from_records([{"sequence_id": "s", "events": ["e0", "e1"], "times": [0, 1], "labels": ["fault"]}])
    config = DiscoveryConfig(estimator="fused", fused=FusedConfig(population=str(tmp_path)))
    words = "expected a population that knows one of the 1 labels.*another fleet \\(2 labels: 'other', 'third'\\)"
    with pytest.raises(UsageError, match=words):
        list(discover(model, data, config))


def test_discover_with_a_population(workshop: Any, tmp_path: Path) -> None:
    write_prior(tmp_path, fleet(("e0", 4, 3), ("e1", 0, 3)))
    model = workshop.response(40, lambda present: np.where(present[:, [0]], 0.9, 0.1))
    data = from_records(
        {
            "sequence_id": f"s{k}",
            "events": [f"e{(3 * k + j) % 30}" for j in range(6)] + ["e0"],
            "times": list(range(7)),
            "labels": ["fault"],
        }
        for k in range(3)
    )
    config = DiscoveryConfig("fused", SETTINGS[0], fused=FusedConfig(population=str(tmp_path)))
    whole = list(discover(model, data, config))
    assert [[cause.event for cause in boundary.causes] for (boundary,) in whole] == [["e0"]] * 3
    assert whole[0][0].contexts <= SETTINGS[0].contexts + 4
    assert [list(discover(model, data.take([k]), config))[0] for k in (2, 1, 0)] == whole[::-1]
    assert "digest" in config.to_json()["fused"]
    assert "prefix" not in config.to_json()


def test_settings_that_cannot_be_are_refused(workshop: Any) -> None:
    with pytest.raises(UsageError, match="population"):
        DiscoveryConfig("fused")
    with pytest.raises(UsageError, match="population"):
        DiscoveryConfig(fused=FusedConfig(population="somewhere"))
    with pytest.raises(UsageError, match="looks"):
        FusedConfig(looks=1)
    model = workshop.response(30, lambda present: np.where(present[:, [3]], 0.9, 0.1))
    seen = prepare(model, workshop.contexts([1, 2, 3]), sequence_id="s", seed=0, shuffle=False)
    few = (InterventionConfig(contexts=20), FusedConfig(population="-"))
    with pytest.raises(UsageError, match="at least 36"):
        fused.one_shot(model, seen, np.array([0]), ["e1", "e2", "e3"], few)
