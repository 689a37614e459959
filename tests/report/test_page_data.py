"""What a page holds is what the results hold, and its curves are what the model says about cut sequences."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch

from oscar_causal.data.batches import encode
from oscar_causal.data.sequences import from_records, read_dataset
from oscar_causal.density.folds import load_models
from oscar_causal.density.model import sequence_contexts
from oscar_causal.discovery.boundary import Boundary
from oscar_causal.errors import UsageError
from oscar_causal.report.page_data import VERDICTS, ReportConfig, page_data
from oscar_causal.report.sources import open_sources


@pytest.fixture(scope="module")
def data(place: Path) -> dict[str, Any]:
    return page_data(open_sources(place / "results"))


def decoded(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Pairs with their causes, read as the page reads them."""
    names, pairs, causes = data["names"], data["pairs"], data["causes"]
    rows = []
    for row in range(len(pairs["label"])):
        own = [k for k, pair in enumerate(causes["pair"]) if pair == row]
        tested = pairs["tested"][row]
        rows.append(
            {
                "sequence_id": data["sequences"]["id"][pairs["sequence"][row]],
                "label": names[pairs["label"][row]],
                "flags": tuple(names[flag] for flag in pairs["flags"][row]),
                "causes": [
                    (names[causes["event"][k]], tuple(causes["positions"][k]), causes["indicator"][k]) for k in own
                ],
                "tested": [(names[e], VERDICTS[v]) for e, v in zip(tested["event"], tested["verdict"], strict=True)],
            }
        )
    return rows


def test_pairs_and_causes_are_those_of_the_results(data: dict[str, Any], found: list[Boundary]) -> None:
    for row, item in zip(decoded(data), found, strict=True):
        assert (row["sequence_id"], row["label"], row["flags"]) == (item.sequence_id, item.label, item.flags)
        assert [cause[:2] for cause in row["causes"]] == [(e.event, e.positions) for e in item.causes]
        assert [cause[2] for cause in row["causes"]] == pytest.approx([e.indicator for e in item.causes], abs=1e-4)
        assert row["tested"] == [(e.event, e.verdict) for e in item.evidence]
    causes = [event for item in found for event in item.causes]
    assert data["causes"]["borderline"] == [event.borderline for event in causes]
    assert data["causes"]["agreement"] == [event.agreement for event in causes]
    sources = [None if k is None else data["names"][k] for k in data["causes"]["source"]]
    assert sources == [None if event.source == "evidence" else event.source for event in causes]
    assert "both" in sources
    for name, attribute in (("observed", "observed"), ("trusted", "trusted"), ("seen", "seen_in_training")):
        assert data["pairs"][name] == [getattr(item, attribute) for item in found]


def test_sequences_are_those_of_the_dataset(data: dict[str, Any], place: Path) -> None:
    fleet = read_dataset(place / "fleet")
    for row, name in enumerate(data["sequences"]["id"]):
        index = int(fleet.index_of([name])[0])
        assert [data["names"][event] for event in data["sequences"]["events"][row]] == fleet.events_of(index)
        begin, end = fleet.events.offsets[index : index + 2]
        assert data["sequences"]["times"][row] == fleet.times[begin:end].tolist()
    assert data["sequences"]["facts"][0] == [["variant", "<i>van</i>"]]
    assert data["told"] == {
        "</script><script>alert(1)</script>": "<u>described</u>",
        "engine": "the engine & its <parts>",
    }


def test_curves_are_the_models_words_about_cut_sequences(data: dict[str, Any], place: Path) -> None:
    """Each value again from a dataset that ends there; the long sequence is cut at the model's 100 events."""
    models = load_models(place / "model")
    fleet = read_dataset(place / "fleet")
    pairs = data["pairs"]
    for row in (0, 1, 2, 5):
        name = data["sequences"]["id"][pairs["sequence"][row]]
        index = int(fleet.index_of([name])[0])
        events, begin = fleet.events_of(index), int(fleet.events.offsets[index])
        first = pairs["forecast_from"][row]
        length = len(events)
        assert first == max(0, length - 100) + 5
        assert len(pairs["forecast"][row]) == length - first + 1
        judge = models.for_sequence(fleet.subject_ids[index].as_py())
        label = judge.vocabulary.label_ids[data["names"][pairs["label"][row]]]
        for count in {first, (first + length) // 2, length}:
            low = max(0, length - 100)
            times = (fleet.times[begin + low : begin + count] - 0.0).tolist()
            cut = from_records([{"sequence_id": "x", "events": events[low:count], "times": times, "labels": []}])
            encoded = encode(cut, judge.vocabulary, max_length=judge.max_length, channels=judge.channels)
            contexts = sequence_contexts(encoded, 0)
            probs = judge.label_probs(contexts, torch.tensor([label]), torch.tensor([count - low]))
            assert pairs["forecast"][row][count - first] == pytest.approx(float(probs[0, 0, 0]), abs=6e-4)


def test_labels_count_what_a_loop_counts(data: dict[str, Any], found: list[Boundary], place: Path) -> None:
    quality = json.loads((place / "model" / "quality.json").read_text())["per_label"]
    counts = Counter(item.label for item in found)
    assert [row["explained"] for row in data["labels"]] == sorted(counts.values(), reverse=True)
    for row in data["labels"]:
        mine = [item for item in found if item.label == row["label"]]
        assert row["with_causes"] == sum(any(e.accepted for e in item.evidence) for item in mine)
        assert row["trusted"] == quality[row["label"]]["trusted"]
        assert row["reason"] == quality[row["label"]]["reason"]
        assert row["positives"] == quality[row["label"]]["positives"]
    assert {row["label"]: row["rule"] for row in data["labels"]}["engine"] == 'A & !"a,b"'


def test_known_reasons_are_marked(place: Path, found: list[Boundary]) -> None:
    truth = {(found[1].sequence_id, found[1].label): frozenset({found[1].causes[0].event})}
    data = page_data(open_sources(place / "results"), truth=truth)
    marks = [(pair, known) for pair, known in zip(data["causes"]["pair"], data["causes"]["known"], strict=True)]
    assert {known for pair, known in marks if pair != 1} == {None}
    expected = [None if e.verdict == "inhibitor" else int(e.event == found[1].causes[0].event) for e in found[1].causes]
    assert [known for pair, known in marks if pair == 1] == expected
    assert 1 in expected or found[1].causes[0].verdict == "inhibitor"


def test_a_limit_shows_fewer_and_counts_all(place: Path, data: dict[str, Any], found: list[Boundary]) -> None:
    short = page_data(open_sources(place / "results"), ReportConfig(limit=3))
    assert short["sequences"]["id"] == data["sequences"]["id"][:3]
    assert short["labels"] == data["labels"]
    assert len(short["fleet"]["event"]) == len(data["fleet"]["event"])
    assert dict(map(tuple, short["provenance"]))["Sequences"] == "3 shown of 30 explained"
    chosen = page_data(open_sources(place / "results"), ReportConfig(sequences=("car 7", "car 2")))
    assert chosen["sequences"]["id"] == ["car 7", "car 2"]
    with pytest.raises(UsageError, match="nobody"):
        page_data(open_sources(place / "results"), ReportConfig(sequences=("nobody",)))
    with pytest.raises(UsageError, match="limit"):
        ReportConfig(limit=0)


def test_without_dataset_and_model_the_page_says_so(moved: Path, found: list[Boundary]) -> None:
    sources = open_sources(moved)
    data = page_data(sources)
    assert data["sequences"]["events"] is None
    assert set(data["pairs"]["forecast"]) == {None}
    assert [row["causes"] for row in decoded(data)] != []
    assert len(data["missing"]) == 2
    assert "--dataset" in data["missing"][0]
    assert "--model" in data["missing"][1]
    assert all(row["trusted"] is None for row in data["labels"])


def test_no_place_on_this_machine_is_told(data: dict[str, Any], place: Path) -> None:
    assert str(place) not in json.dumps(data)


def test_what_acceptance_rests_on(scored: tuple[Path, list[Boundary]], data: dict[str, Any], tmp_path: Path) -> None:
    folder, boundaries = scored
    causes = page_data(open_sources(folder))
    events = [event for item in boundaries for event in item.causes]
    told = [None if k is None else causes["names"][k] for k in causes["causes"]["accepted_by"]]
    assert told == [event.accepted_by for event in events]
    assert set(told) == {"test", "score"}
    assert causes["causes"]["share"] == [event.share for event in events]
    older = shutil.copytree(folder, tmp_path / "older")
    (older / "checksums.json").unlink()
    for file in [*(older / "causes").iterdir(), *(older / "evidence").iterdir()]:  # before there were such columns
        pq.write_table(pq.read_table(file).drop_columns(["accepted_by", "share"]), file)
    for silent in (data, page_data(open_sources(older))):
        assert set(silent["causes"]["accepted_by"]) == set(silent["causes"]["share"]) == {None}
