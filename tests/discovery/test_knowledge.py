"""Background knowledge: read strictly, obeyed strictly, and used to skip work."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.data.vocabulary import Vocabulary
from oscar_causal.discovery.boundary import Boundary
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.knowledge import Knowledge, LabelKnowledge, read_knowledge
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.discovery.prefix import PrefixConfig
from oscar_causal.errors import DataError, OscarError, UsageError

CONFIG = DiscoveryConfig(intervention=InterventionConfig(contexts=64))
PREFIX = DiscoveryConfig(estimator="prefix", prefix=PrefixConfig(context=2, contexts=8, threshold=1.0))


def both(present: np.ndarray) -> np.ndarray:
    """Label x hangs on e3, label y on e4."""
    return np.where(present[:, [3, 4]], 0.9, 0.1)


@pytest.fixture
def model(workshop: Any) -> Any:
    return workshop.response(40, both, ("x", "y"))


@pytest.fixture(scope="module")
def data() -> Dataset:
    events = [f"e{k}" for k in range(9)] + ["e5"]
    return from_records(
        [{"sequence_id": "a", "events": events, "times": list(range(10)), "labels": ["x", "y"]}],
    )


def explain(model: Any, data: Dataset, config: DiscoveryConfig, known: Knowledge) -> dict[str, Boundary]:
    (found,) = discover(model, data, replace(config, knowledge=known))
    return {item.label: item for item in found}


def causes(boundary: Boundary) -> set[str]:
    return {item.event for item in boundary.causes}


def test_without_knowledge_both_are_found(model: Any, data: Dataset) -> None:
    found = explain(model, data, CONFIG, Knowledge())
    assert (causes(found["x"]), causes(found["y"])) == ({"e3"}, {"e4"})
    assert {item.source for item in found["x"].evidence} == {"evidence"}


def test_what_is_forbidden_for_one_label_is_tested_for_the_other(model: Any, data: Dataset) -> None:
    found = explain(model, data, CONFIG, Knowledge(labels={"x": LabelKnowledge(forbidden=("e3", "e4"))}))
    assert causes(found["x"]) == set()
    assert not {"e3", "e4"} & {item.event for item in found["x"].evidence}
    assert causes(found["y"]) == {"e4"}
    assert "e3" in {item.event for item in found["y"].evidence}


@pytest.mark.parametrize(
    "known",
    [
        Knowledge(excluded=("e4",)),
        Knowledge(forbidden=("e4",)),
        Knowledge(labels={label: LabelKnowledge(forbidden=("e4",)) for label in ("x", "y")}),
    ],
)
def test_what_no_label_may_be_tested_on_is_never_replaced(model: Any, data: Dataset, known: Knowledge) -> None:
    found = explain(model, data, CONFIG, known)
    assert all("e4" not in {item.event for item in boundary.evidence} for boundary in found.values())
    asked = np.concatenate(model.asked)
    assert (asked[:, 4] == model.vocabulary.event_ids["e4"]).all()
    assert (asked[:, 3] != model.vocabulary.event_ids["e3"]).any()


def test_a_forbidden_event_is_no_finalist(model: Any, data: Dataset) -> None:
    """Its place goes to another event: as many are tested as without knowledge."""
    tested = {}
    for name, known in (("free", Knowledge()), ("x", Knowledge(labels={"x": LabelKnowledge(forbidden=("e3",))}))):
        found = explain(model, data, CONFIG, known)["x"]
        tested[name] = {item.event for item in found.evidence if item.p_value is not None}
    assert "e3" in tested["free"]
    assert "e3" not in tested["x"]
    assert len(tested["x"]) == len(tested["free"]) > 1


def test_a_required_event_is_in_the_boundary_with_its_evidence_beside(model: Any, data: Dataset) -> None:
    free = explain(model, data, CONFIG, Knowledge())["x"]
    known = Knowledge(labels={"x": LabelKnowledge(required=("e3", "e5", "e30"))})
    found = explain(model, data, CONFIG, known)
    assert causes(found["x"]) == {"e3", "e5"}  # e30 is not there
    assert causes(found["y"]) == {"e4"}
    sources = {item.event: item.source for item in found["x"].causes}
    assert sources == {"e3": "both", "e5": "background knowledge"}
    before, after = (next(i for i in b.evidence if i.event == "e5") for b in (free, found["x"]))
    assert before.verdict != "cause"
    assert after == replace(before, verdict="cause", source="background knowledge")
    assert f"e5: required by background knowledge; evidence: {before.verdict}" in found["x"].flags
    assert "e3: required by background knowledge; evidence: cause" in found["x"].flags


def test_a_measured_inhibitor_stays_one(workshop: Any, data: Dataset) -> None:
    model = workshop.response(40, lambda present: np.where(present[:, [3]], 0.1, 0.9), ("x",))
    found = explain(model, data, CONFIG, Knowledge(required=("e3",)))["x"]
    assert [(item.event, item.verdict, item.source) for item in found.causes] == [("e3", "inhibitor", "both")]


def test_a_required_event_nothing_was_measured_about_has_no_figures(model: Any, data: Dataset) -> None:
    """For `prefix` e0, one of the c first events; e5 comes later."""
    found = explain(model, data, PREFIX, Knowledge(required=("e5", "e0")))["x"]
    items = {item.event: item for item in found.causes}
    assert items["e0"].positions == (0,)
    assert (items["e0"].verdict, items["e0"].source) == ("cause", "background knowledge")
    assert math.isnan(items["e0"].effect)
    assert items["e0"].p_value is None
    assert not math.isnan(items["e5"].effect)
    assert "e0: required by background knowledge; evidence: none" in found.flags


def test_prefix_obeys_too(model: Any, data: Dataset) -> None:
    free = explain(model, data, PREFIX, Knowledge())
    assert "e3" in causes(free["x"])
    known = Knowledge(excluded=("e6",), labels={"x": LabelKnowledge(forbidden=("e3",), required=("e7",))})
    found = explain(model, data, PREFIX, known)
    assert causes(found["x"]) == {"e7"}
    assert causes(found["y"]) == causes(free["y"])
    assert not {"e3", "e6"} & {item.event for item in found["x"].evidence}


def test_knowledge_decides_the_results_and_is_recorded() -> None:
    known = Knowledge(forbidden=("e1",), labels={"x": LabelKnowledge(required=("e2",))})
    assert replace(CONFIG, knowledge=known).to_json()["knowledge"] == {
        "excluded": (),
        "forbidden": ("e1",),
        "required": (),
        "labels": {"x": {"forbidden": (), "required": ("e2",)}},
    }


# --- what is refused ---


@pytest.mark.parametrize(
    ("known", "word"),
    [
        (Knowledge(excluded=("typo",)), "typo"),
        (Knowledge(forbidden=("typo",)), "typo"),
        (Knowledge(labels={"x": LabelKnowledge(required=("typo",))}), "typo"),
        (Knowledge(labels={"no label": LabelKnowledge()}), "no label"),
    ],
)
def test_names_the_model_does_not_know_are_refused(model: Any, data: Dataset, known: Knowledge, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        explain(model, data, CONFIG, known)


def test_excluded_names_are_checked_too(model: Any, data: Dataset) -> None:
    with pytest.raises(UsageError, match="typo"):
        list(discover(model, data, replace(CONFIG, excluded=("typo",))))


def test_forbidden_and_required_at_once_is_refused() -> None:
    with pytest.raises(UsageError, match="'a' is both forbidden and required"):
        Knowledge(forbidden=("a",), required=("a",))
    with pytest.raises(UsageError, match="label 'x'"):
        Knowledge(forbidden=("a",), labels={"x": LabelKnowledge(required=("a",))})
    with pytest.raises(UsageError, match="label 'x'"):
        Knowledge(required=("a",), labels={"x": LabelKnowledge(forbidden=("a",))})


def test_excluded_and_required_at_once_is_refused() -> None:
    with pytest.raises(UsageError, match="'a' is both excluded and required"):
        Knowledge(excluded=("a",), required=("a",))
    with pytest.raises(UsageError, match="'a' is both excluded and required for label 'x'"):
        Knowledge(excluded=("a",), labels={"x": LabelKnowledge(required=("a",))})
    with pytest.raises(UsageError, match="'a' is both excluded and required"):
        DiscoveryConfig(excluded=("a",), knowledge=Knowledge(required=("a",)))


def test_a_file_comes_back_as_it_was_meant(tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    path.write_text(
        json.dumps({"excluded": ["a"], "required": ["é"], "labels": {"x": {"forbidden": ["b"]}, "y": {}}}),
        encoding="utf-8",
    )
    assert read_knowledge(path) == Knowledge(
        excluded=("a",), required=("é",), labels={"x": LabelKnowledge(forbidden=("b",)), "y": LabelKnowledge()}
    )
    path.write_text("{}")
    assert read_knowledge(path) == Knowledge()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "JSON"),
        ("[]", "object"),
        ('{"forbiden": []}', "forbiden"),
        ('{"excluded": "A"}', "excluded"),
        ('{"excluded": [1]}', "excluded"),
        ('{"labels": ["x"]}', "labels"),
        ('{"labels": {"x": ["A"]}}', "'x'"),
        ('{"labels": {"x": {"excluded": ["A"]}}}', "excluded"),
        ('{"labels": {"x": {"required": {"A": 1}}}}', "required"),
        ('{"forbidden": ["A"], "required": ["A"]}', "both forbidden and required"),
        ("[" * 100_000, "JSON"),
    ],
)
def test_a_bad_file_is_one_clear_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "known.json"
    path.write_text(text)
    with pytest.raises(DataError, match=words) as told:
        read_knowledge(path)
    assert str(path) in str(told.value)
    assert "\n" not in str(told.value)


def test_a_missing_file_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(OscarError, match=r"nowhere\.json"):
        read_knowledge(tmp_path / "nowhere.json")


def test_a_mask_over_labels_and_events() -> None:
    known = Knowledge(forbidden=("a",), labels={"y": LabelKnowledge(forbidden=("c",))})
    mask = known.forbidden_mask(["x", "y"], ["a", "b", "c"])
    assert mask.tolist() == [[True, False, False], [True, False, True]]
    assert known.forbidden_mask([], []).shape == (0, 0)
    known.check(Vocabulary(("a", "b", "c"), ("x", "y")))
