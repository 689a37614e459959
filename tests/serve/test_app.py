"""Every route through a real socket: the library's numbers, jobs with events, one clear line for what goes wrong."""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import httpx
import numpy as np
import pytest
import torch

from oscar_causal.data.sequences import Dataset
from oscar_causal.density.folds import ModelSet
from oscar_causal.density.model import sequence_contexts
from oscar_causal.discovery.boundary import Boundary
from oscar_causal.discovery.finalists import WORTH
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.serve.answers import LabelBoundary
from oscar_causal.serve.app import one_line
from oscar_causal.serve.limits import Limits

Start = Callable[..., AbstractContextManager[Any]]
AsDataset = Callable[[dict[str, Any]], Dataset]
SETTINGS = {"contexts": 32, "seed": 9}


def pick(client: httpx.Client, sequence_id: str) -> dict[str, Any]:
    return dict(client.get("/sequences/one", params={"id": sequence_id}).raise_for_status().json())


@pytest.fixture(scope="module")
def faulty(fleet: Dataset) -> list[int]:
    """Sequences with both labels that the model was not trained on."""
    found = [k for k in range(300, 400) if len(fleet.labels[k]) == 2]
    assert len(found) >= 5
    return found


def library_probs(models: ModelSet, data: Dataset) -> np.ndarray:
    """P(every label) at the end by the model itself."""
    encoded = models.models[0].encode(data)
    every = torch.arange(len(models.vocabulary.labels))
    length = int(encoded.events.lengths[0])
    return models.models[0].label_probs(sequence_contexts(encoded, 0), every, torch.tensor([length]))[0, 0].numpy()


def as_json(models: ModelSet, item: Boundary, *, evidence: bool) -> dict[str, Any]:
    """A boundary as the service must send it."""
    told = json.loads(json.dumps(dataclasses.asdict(item)))
    accepted = [cause.event for cause in item.causes]
    by_event = {row["event"]: row for row in told["evidence"]}
    trusted = models.trusted(item.label)
    why = models.models[0].info["quality"]["per_label"][item.label]["reason"]
    return {
        **{name: value for name, value in told.items() if name != "sequence_id"},
        "trusted": trusted,
        "trust_reason": None if trusted else why,
        "seen_in_training": False,
        "causes": [by_event[event] for event in accepted],
        "evidence": told["evidence"] if evidence else None,
    }


@pytest.mark.parametrize("evidence", [True, False])
def test_explain_is_discover(
    client: httpx.Client, models: ModelSet, fleet: Dataset, as_dataset: AsDataset, faulty: list[int], evidence: bool
) -> None:
    sent = pick(client, f"car {faulty[0]}")
    told = client.post("/explain", json={"sequence": sent, "settings": SETTINGS, "evidence": evidence})
    assert told.status_code == 200
    config = DiscoveryConfig(intervention=InterventionConfig(contexts=32), seed=9)
    [from_sent] = discover(models.models[0], as_dataset(sent), config)
    [from_fleet] = discover(models.models[0], fleet.take([faulty[0]]), config)
    assert from_sent == from_fleet
    assert told.json()["boundaries"] == [as_json(models, item, evidence=evidence) for item in from_fleet]
    assert len(told.json()["boundaries"]) == 2


def test_what_acceptance_rests_on_is_told_and_scores_can_be_left_out(client: httpx.Client, faulty: list[int]) -> None:
    """At so small an alpha no test of 20 contexts can show anything."""
    sent = pick(client, f"car {faulty[0]}")

    def told(**settings: Any) -> dict[str, Any]:
        asked = {**SETTINGS, "labels": ["common"], **settings}
        answer = client.post("/explain", json={"sequence": sent, "settings": asked, "evidence": True}).json()
        assert answer["settings"]["tested_only"] is settings.get("tested_only", False)
        return dict(answer["boundaries"][0])

    plain, hard, only = told(), told(alpha=0.0005, contexts=20), told(alpha=0.0005, contexts=20, tested_only=True)
    assert "test" in [cause["accepted_by"] for cause in plain["causes"]]
    assert {cause["accepted_by"] for cause in hard["causes"]} == {"score"}
    assert all(cause["share"] >= WORTH for cause in hard["causes"])
    assert only["causes"] == []
    assert [row["share"] for row in only["evidence"]] == [row["share"] for row in hard["evidence"]]
    assert {row["accepted_by"] for row in only["evidence"]} == {None}


def test_another_seed_or_id_is_another_draw(client: httpx.Client, faulty: list[int]) -> None:
    sent = pick(client, f"car {faulty[0]}")

    def effects(sequence: dict[str, Any], seed: int) -> Any:
        body = {"sequence": sequence, "settings": {**SETTINGS, "seed": seed}, "evidence": True}
        return [e["effect"] for e in client.post("/explain", json=body).json()["boundaries"][0]["evidence"]]

    assert effects(sent, 1) == effects(sent, 1)
    assert effects(sent, 1) != effects(sent, 2)
    assert effects(sent, 1) != effects({**sent, "sequence_id": "another"}, 1)


def test_nothing_to_explain_is_said(client: httpx.Client) -> None:
    body = {"sequence": {"events": ["A"], "labels": ["unheard of"]}, "settings": SETTINGS}
    told = client.post("/explain", json=body).json()
    assert told["boundaries"] == []
    assert "'unheard of'" in told["notes"][0]
    assert "no label to explain" in told["notes"][1]


def test_predict_at_the_end_and_after_each_event(
    client: httpx.Client, models: ModelSet, as_dataset: AsDataset, faulty: list[int]
) -> None:
    sent = pick(client, f"car {faulty[1]}")
    told = client.post("/predict", json={"sequence": sent, "after": "each event"}).json()
    assert told["labels"] == list(models.vocabulary.labels)
    assert told["after"] == [1, 2, 3, 4, 5, 6]
    for count, row in zip(told["after"], told["probabilities"], strict=True):
        cut = {**sent, "events": sent["events"][:count], "times": sent["times"][:count]}
        cut["channels"] = {name: values[:count] for name, values in sent["channels"].items()}
        np.testing.assert_allclose(row, library_probs(models, as_dataset(cut)), atol=2e-6)
    end = client.post("/predict", json={"sequence": sent}).json()
    assert end["after"] == [6]
    np.testing.assert_allclose(end["probabilities"][0], told["probabilities"][-1], atol=2e-6)
    assert told["names"].get("A", "the first letter") == "the first letter"


def test_positions_are_counted_from_the_first_event_sent(client: httpx.Client) -> None:
    body = {"sequence": {"events": ["A"] * 30}, "after": "each event"}
    told = client.post("/predict", json=body).json()
    assert told["after"] == list(range(7, 31))
    assert told["flags"] == ["the oldest 6 events are not read"]


def test_what_if_is_the_library_on_the_edited_sequence(
    client: httpx.Client, models: ModelSet, as_dataset: AsDataset, faulty: list[int]
) -> None:
    sent = pick(client, f"car {faulty[2]}")
    body = {
        "sequence": sent,
        "edits": [{"op": "remove", "positions": [1]}, {"op": "replace", "position": 0, "event": "A"}],
        "boundary": True,
        "settings": {**SETTINGS, "labels": list(models.vocabulary.labels)},
    }
    told = client.post("/what-if", json=body).json()
    keep = [0, 2, 3, 4, 5]
    edited = {
        **sent,
        "events": ["A", *[sent["events"][k] for k in keep[1:]]],
        "times": [sent["times"][k] for k in keep],
    }
    edited["channels"] = {name: [values[k] for k in keep] for name, values in sent["channels"].items()}
    assert told["sequence"] == edited
    before, after = library_probs(models, as_dataset(sent)), library_probs(models, as_dataset(edited))
    np.testing.assert_allclose([row["before"] for row in told["changes"]], before, atol=2e-6)
    np.testing.assert_allclose([row["after"] for row in told["changes"]], after, atol=2e-6)
    config = DiscoveryConfig(intervention=InterventionConfig(contexts=32), labels=models.vocabulary.labels, seed=9)
    for side, data in (("before", sent), ("after", edited)):
        [wanted] = discover(models.models[0], as_dataset(data), config)
        assert told["boundary"][side] == [as_json(models, item, evidence=False) for item in wanted]


def test_the_cause_taken_out_lowers_the_probability(client: httpx.Client, models: ModelSet) -> None:
    """D is the strong cause of both labels of the process."""
    cause = '<img src=x onerror="window.hacked=1">'
    sent = {"events": [cause, "A", "A"], "labels": []}
    told = client.post("/what-if", json={"sequence": sent, "edits": [{"op": "remove", "positions": [0]}]}).json()
    assert all(row["after"] < row["before"] - 0.05 for row in told["changes"])
    assert told["sentences"][0].startswith(f"without {cause} the probability of '")
    assert " falls from " in told["sentences"][0]
    assert told["boundary"] is None


def test_both_sides_explain_the_same_labels(client: httpx.Client, models: ModelSet) -> None:
    sent = {"events": ["A", "A", '<img src=x onerror="window.hacked=1">'], "labels": ["common", "unheard of"]}
    body = {"sequence": sent, "edits": [{"op": "remove", "positions": [2]}], "boundary": True, "settings": SETTINGS}
    told = client.post("/what-if", json=body).json()
    high = {row["label"] for row in told["changes"] if max(row["before"], row["after"]) > 0.5}
    for side in ("before", "after"):
        assert {item["label"] for item in told["boundary"][side]} == high | {"common"}


def events_of(client: httpx.Client, path: str, **headers: str) -> list[tuple[str, int, Any]]:
    found = []
    with client.stream("GET", path, headers=headers) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        for line in stream.iter_lines():
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif fields:
                found.append((fields["event"], int(fields["id"]), json.loads(fields["data"])))
                fields = {}
    return found


def test_a_batch_tells_its_progress(client: httpx.Client, faulty: list[int]) -> None:
    sequences = [pick(client, f"car {k}") for k in faulty[:3]]
    begun = client.post("/explain/batch", json={"sequences": sequences, "settings": SETTINGS})
    assert begun.status_code == 202
    job = begun.json()["job_id"]
    heard = events_of(client, f"/jobs/{job}/events")
    assert heard[-1][0] == "end"
    assert heard[-1][2]["state"] == "done"
    explained = [item for kind, _, item in heard if kind == "explanation"]
    single = [client.post("/explain", json={"sequence": s, "settings": SETTINGS}).json() for s in sequences]
    assert explained == single
    done = [item["contexts_done"] for kind, _, item in heard if kind != "explanation"]
    assert done == sorted(done)
    again = events_of(client, f"/jobs/{job}/events", **{"last-event-id": "2"})
    assert [(kind, number) for kind, number, _ in again] == [("explanation", 3), ("end", 3)]
    assert client.get(f"/jobs/{job}", params={"offset": 1, "limit": 1}).json()["explanations"] == explained[1:2]


def test_a_batch_can_be_cancelled(client: httpx.Client) -> None:
    body = {"sequences": [{"events": ["A"] * 20}] * 500, "settings": {"contexts": 64, "labels": ["common"]}}
    job = client.post("/explain/batch", json=body).json()["job_id"]
    told = client.delete(f"/jobs/{job}").json()
    assert told["state"] == "cancelled"
    assert told["sequences_done"] < 500
    assert events_of(client, f"/jobs/{job}/events")[-1][0] == "end"
    assert client.get(f"/jobs/{job}").json()["state"] == "cancelled"


def test_a_bad_sequence_of_a_batch_is_named(client: httpx.Client) -> None:
    body = {"sequences": [{"events": ["A"]}, {"events": ["A"], "times": [1.0, 2.0]}]}
    told = client.post("/explain/batch", json=body)
    assert told.status_code == 422
    assert told.json()["error"].startswith("sequences[1]: ")
    many = client.post("/explain/batch", json={"sequences": [{"events": ["A"]}] * 21, "evidence": True})
    assert (many.status_code, "evidence" in many.json()["error"]) == (422, True)


def test_the_model_and_its_labels(client: httpx.Client, models: ModelSet, model_folder: Any) -> None:
    told = client.get("/model")
    info = told.json()
    assert [row["label"] for row in info["labels"]] == list(models.vocabulary.labels)
    assert [row["trusted"] for row in info["labels"]] == [models.trusted(n) for n in models.vocabulary.labels]
    assert all((row["reason"] is None) == row["trusted"] for row in info["labels"])
    assert (info["max_length"], info["min_context"], info["channels"]) == (24, 2, ["mileage"])
    assert str(model_folder) not in told.text


def test_sequences_are_searched_and_picked(client: httpx.Client, fleet: Dataset) -> None:
    everything = client.get("/sequences", params={"limit": 5, "offset": 2}).json()
    assert everything["total"] == 400
    assert [row["sequence_id"] for row in everything["sequences"]] == [f"car {k}" for k in range(2, 7)]
    assert [row["seen_in_training"] for row in everything["sequences"]].count(True) >= 1
    by_id = client.get("/sequences", params={"search": "CAR 39", "limit": 100}).json()
    assert {row["sequence_id"] for row in by_id["sequences"]} == {"car 39", *(f"car {k}" for k in range(390, 400))}
    by_label = client.get("/sequences", params={"search": "Degraded", "limit": 100}).json()
    wanted = [k for k in range(400) if "steering <b>degraded</b>" in fleet.labels_of(k)]
    assert by_label["total"] == len(wanted)
    assert [row["sequence_id"] for row in by_label["sequences"]] == [f"car {k}" for k in wanted[:100]]
    unseen = client.get("/sequences", params={"unseen": True, "limit": 100}).json()
    assert 100 <= unseen["total"] < 400
    assert not any(row["seen_in_training"] for row in unseen["sequences"])
    one = pick(client, "car 7")
    assert one["events"] == fleet.events_of(7)
    assert one["subject_id"] == "owner 3"
    assert client.get("/sequences/one", params={"id": "nobody"}).status_code == 404


def test_events_are_searched_by_name_and_description(client: httpx.Client) -> None:
    told = client.get("/events", params={"search": "FIRST letter"}).json()
    assert told == {"total": 1, "events": [{"event": "A", "description": "the first letter"}]}
    assert client.get("/events", params={"search": "inert", "limit": 3}).json()["total"] > 3


def test_without_a_dataset_there_is_nothing_to_pick(start_service: Start) -> None:
    with start_service(dataset=False) as running, running.client() as client:
        for path in ("/sequences", "/sequences/one?id=x"):
            told = client.get(path)
            assert told.status_code == 404
            assert "--dataset" in told.json()["error"]
        assert client.get("/model").json()["dataset"] is False


def test_a_client_that_goes_away_frees_the_model(running: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def endless(models: Any, prepared: Any, config: Any, on_pass: Callable[[int], None]) -> Any:
        try:
            while True:
                on_pass(1)
                time.sleep(0.01)
        finally:
            ended.set()

    monkeypatch.setattr("oscar_causal.serve.routes.explain", endless)
    with pytest.raises(httpx.ReadTimeout), running.client() as client:
        client.post("/explain", json={"sequence": {"events": ["A"]}}, timeout=0.3)
    assert ended.wait(5)


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Explanations that make pass after pass until the event is set."""
    enough = threading.Event()

    def long(models: Any, prepared: Any, config: Any, on_pass: Callable[[int], None]) -> list[Boundary]:
        while not enough.wait(0.005):
            on_pass(1)
        return []

    monkeypatch.setattr("oscar_causal.serve.routes.explain", long)
    yield enough
    enough.set()


def test_under_load_predictions_get_through_and_the_queue_is_bounded(start_service: Start, busy: Any) -> None:
    body = {"sequence": {"events": ["A"]}}
    with start_service(Limits(queue=1)) as running, running.client() as client:
        answers: list[httpx.Response] = []
        threads = [
            threading.Thread(target=lambda: answers.append(client.post("/explain", json=body))) for _ in range(2)
        ]
        threads[0].start()
        while not running.service.worker.working:
            time.sleep(0.01)
        threads[1].start()
        while running.service.worker.waiting < 1:
            time.sleep(0.01)
        refused = client.post("/explain", json=body)
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1
        assert client.post("/predict", json=body).status_code == 200
        assert client.get("/healthz").json() == {"status": "ok", "waiting": 1}
        busy.set()
        for thread in threads:
            thread.join()
        assert [answer.status_code for answer in answers] == [200, 200]


def test_what_takes_too_long_is_given_up(start_service: Start, busy: Any) -> None:
    body = {"sequence": {"events": ["A"]}}
    with start_service(Limits(deadline=0.3)) as running, running.client() as client:
        late = client.post("/explain", json=body)
        assert late.status_code == 503
        assert int(late.headers["retry-after"]) >= 1
        assert "0.3 s" in late.json()["error"]
        busy.set()
        assert client.post("/explain", json=body).status_code == 200


def test_a_defect_tells_nothing(
    running: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*words: Any, **more: Any) -> Any:
        raise ZeroDivisionError("a secret of /home/somebody")

    monkeypatch.setattr("oscar_causal.serve.routes.explain", broken)
    with running.client() as client:
        told = client.post("/explain", json={"sequence": {"events": ["A"]}})
    assert told.status_code == 500
    assert told.json() == {"error": "the service failed; the reason is in its log"}


def test_answers_carry_every_field_of_the_library() -> None:
    fields = {field.name for field in dataclasses.fields(Boundary)} - {"sequence_id"}
    assert set(LabelBoundary.model_fields) == fields | {"trust_reason", "causes"}


def test_errors_are_one_printable_line() -> None:
    assert one_line("two\nlines \ud800 and \x00") == "two lines   and  "
    assert len(one_line("x" * 5000)) == 400


def test_the_description_is_there_and_needs_nothing_from_elsewhere(client: httpx.Client) -> None:
    described = client.get("/openapi.json").json()
    paths = {"/explain", "/explain/batch", "/predict", "/what-if", "/model", "/healthz", "/sequences"}
    assert paths <= set(described["paths"])
    for path in ("/docs", "/redoc"):
        assert client.get(path).status_code == 404
