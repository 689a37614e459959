"""An estimator or a replacement law of one's own: asked as documented, checked, counted, recorded."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from oscar_causal.data.sequences import Dataset, from_records
from oscar_causal.data.vocabulary import SPECIAL_IDS
from oscar_causal.density.interface import Contexts
from oscar_causal.discovery.boundary import EventEvidence
from oscar_causal.discovery.contexts import Stream
from oscar_causal.discovery.local import discover_folder
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.discovery.results import read_run, read_table
from oscar_causal.discovery.subject import Variants, prepare
from oscar_causal.errors import UsageError
from oscar_causal.score.bench.settings import BenchSettings
from oscar_causal.score.bench.table_1 import rows as table_1_rows

MINE = '''
from oscar_causal import EventEvidence


def loudest(model, sequence, labels, stream):
    """the first event, if its number says so"""
    name = model.vocabulary.name(int(sequence.event_ids[0, 0]))
    number = float(stream.uniforms(1, 1)[0, 0])
    verdict = "cause" if number > {threshold} else "no effect"
    return [[EventEvidence(name, (0,), verdict, number)] for _ in labels]


def flat(model, sequence):
    import torch
    return torch.ones(sequence.event_ids.shape[1], model.vocabulary.size)


NUMBER = 3
'''


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], str]:
    """A module in the current folder, under a new name each time; returns it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    made: list[str] = []

    def write(threshold: float) -> str:
        name = f"mine_{tmp_path.name}_{len(made)}".replace("-", "_")
        (tmp_path / f"{name}.py").write_text(MINE.replace("{threshold}", str(threshold)))
        made.append(name)
        return name

    return write


def sequences(*rows: list[str]) -> Dataset:
    records = (
        {"sequence_id": f"s{k}", "events": events, "times": list(range(len(events))), "labels": ["fault"]}
        for k, events in enumerate(rows)
    )
    return from_records(records)


def found_by(answer: Any) -> Callable[..., Any]:
    return lambda model, sequence, labels, stream: answer


def test_it_gets_what_the_page_promises(workshop: Any) -> None:
    model = workshop.response(6, lambda present: np.where(present[:, :1], 0.9, 0.1))
    got: list[Any] = []

    def spy(model: Any, sequence: Contexts, labels: Any, stream: Stream) -> list[list[EventEvidence]]:
        got.append((sequence.event_ids.tolist(), labels.tolist(), stream.uniforms(2, 2).tolist()))
        law = model.event_probs(sequence)
        assert tuple(law.shape) == (sequence.event_ids.shape[1], model.vocabulary.size)
        three = Contexts(sequence.event_ids.repeat(3, 1), sequence.times, sequence.channels)
        model.label_probs(three, torch.as_tensor(labels), torch.tensor([1, 2]))
        return [[EventEvidence("e1", (1,), "cause", 0.5)]]

    data = sequences(["e0", "e1"], ["e1", "e2"])
    config = DiscoveryConfig(estimator=spy, seed=5)
    both = [part[0] for part in discover(model, data, config)]
    assert [item.contexts for item in both] == [4, 4]  # three of its own, and the sequence as it is
    assert [round(item.probability or 0, 3) for item in both] == [0.9, 0.1]
    assert [item.causes[0].event for item in both] == ["e1", "e1"]
    assert got[0][0] == [[SPECIAL_IDS, SPECIAL_IDS + 1]]
    assert got[0][2] != got[1][2]  # numbers of its own for every sequence
    again = next(discover(model, data.take([1]), config))[0]
    assert got[2] == got[1]  # whatever was explained before
    assert again == both[1]


def test_every_way_to_ask_the_model_is_counted(workshop: Any) -> None:
    """Slopes are worth three passes each, and contexts that the model builds itself (as on a GPU) count like others."""

    class Builds:
        """Also answers variants, and slopes."""

        def __init__(self, model: Any) -> None:
            self.model = model

        def __getattr__(self, name: str) -> Any:
            return getattr(self.model, name)

        def responses(self, variants: Variants, labels: torch.Tensor) -> torch.Tensor:
            return torch.zeros(len(variants.masks), 1, len(labels))

        def label_slopes(self, sequence: Contexts, labels: Any, law: Any, shares: Any) -> torch.Tensor:
            return torch.zeros(len(shares), sequence.event_ids.shape[1], len(labels))

    def asks(model: Any, sequence: Contexts, labels: Any, stream: Stream) -> list[list[EventEvidence]]:
        subject = prepare(model, sequence, sequence_id="s", seed=0, shuffle=False)
        model.responses(Variants(subject, np.zeros((5, 2), bool), "mine"), torch.as_tensor(labels))
        model.label_slopes(sequence, torch.as_tensor(labels), subject.law, (0.0, 0.4))
        return [[]]

    model = Builds(workshop.response(6, lambda present: np.where(present[:, :1], 0.9, 0.1)))
    ((found,),) = discover(model, sequences(["e0", "e1"]), DiscoveryConfig(estimator=asks))
    assert found.contexts == 1 + 5 + 3 * 2


def test_background_knowledge_holds_for_it_too(workshop: Any) -> None:
    model = workshop.response(6, lambda present: np.full((len(present), 1), 0.5))
    own = found_by([[EventEvidence(name, (0,), "cause", 0.5) for name in ("e0", "e1")]])
    part = next(discover(model, sequences(["e0", "e1"]), DiscoveryConfig(estimator=own, excluded=("e0",))))
    assert [item.event for item in part[0].causes] == ["e1"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "got NoneType"),
        ([], "got 0 of them"),
        ([["e0"]], "expected EventEvidence, got str"),
        ([[EventEvidence("e5", (0,), "cause", 0.5)]], "'e5' which is not in it"),
        ([[EventEvidence("e0", (0,), "cause", 0.5)] * 2], "'e0' again"),
    ],
)
def test_answers_of_another_shape(workshop: Any, answer: Any, words: str) -> None:
    model = workshop.response(6, lambda present: np.full((len(present), 1), 0.5))
    with pytest.raises(UsageError, match=words):
        next(discover(model, sequences(["e0"]), DiscoveryConfig(estimator=found_by(answer))))


def test_replacements_come_from_the_law(workshop: Any) -> None:
    model = workshop.response(6, lambda present: np.where(present[:, :1], 0.9, 0.1))

    def only_e5(model: Any, sequence: Contexts) -> torch.Tensor:
        law = torch.zeros(sequence.event_ids.shape[1], model.vocabulary.size)
        law[:, SPECIAL_IDS + 5] = 2.0
        law[:, SPECIAL_IDS] = 1.0  # present in the sequence: taken out of the law
        return law

    part = next(discover(model, sequences(["e0", "e1", "e2"]), DiscoveryConfig(replacement=only_e5)))
    met = {int(event) - SPECIAL_IDS for ids in model.asked for event in np.unique(ids)}
    assert met == {0, 1, 2, 5}
    assert [item.event for item in part[0].causes] == ["e0"]


@pytest.mark.parametrize(
    ("law", "words"),
    [
        (torch.ones(2, 3), r"shape \(1, 9\), got \(2, 3\)"),
        (torch.full((1, 9), -1.0), "0 or more"),
        (torch.full((1, 9), torch.nan), "finite"),
        (torch.zeros(1, 9), "not all 0"),
    ],
)
def test_laws_of_another_shape(workshop: Any, law: torch.Tensor, words: str) -> None:
    model = workshop.response(6, lambda present: np.full((len(present), 1), 0.5))
    config = DiscoveryConfig(replacement=lambda model, sequence: law)
    with pytest.raises(UsageError, match=words):
        next(discover(model, sequences(["e0"]), config))


def test_by_name_in_several_processes_and_recorded(toy: Any, mine: Callable[[float], str], tmp_path: Path) -> None:
    name = mine(0.5)
    config = DiscoveryConfig(estimator=f"{name}:loudest", replacement=f"{name}:flat")
    run = discover_folder(toy.model, toy.fleet, tmp_path / "one", config)
    discover_folder(toy.model, toy.fleet, tmp_path / "two", config, workers=2)
    assert read_table(tmp_path / "one", "evidence") == read_table(tmp_path / "two", "evidence")
    assert 0 < len(read_table(tmp_path / "one", "causes")) < len(read_table(tmp_path / "one", "evidence"))
    assert read_run(tmp_path / "one")["estimator"] == f"{name}:loudest"
    assert run["estimand"] == "the first event, if its number says so"
    other = DiscoveryConfig(estimator=f"{mine(0.6)}:loudest").to_json()["functions"]["estimator"]
    assert other != config.to_json()["functions"]["estimator"]  # another source is another run
    json.dumps(config.to_json())


def test_by_the_command(toy: Any, mine: Callable[[float], str], oscar: Callable[..., Any], tmp_path: Path) -> None:
    name = mine(0.5)
    words = ["discover", toy.model, toy.fleet, "--out", tmp_path / "out", "--estimator"]
    oscar(*words, f"{name}:quietest").refused("estimator", f"{name}:quietest")
    oscar(*words, "no_such_module:f").refused("estimator", "no_such_module")
    oscar(*words, f"{name}:NUMBER").refused("expected a function", "int")
    oscar(*words, "loudest").refused("estimator", "module:function")
    oscar(*words, f"{name}:loudest", "--contexts", 99).refused("--contexts", "itself")
    oscar(*words, "intervention", "--replacement", "nothing").refused("replacement", "module:function")
    ran = oscar(*words, f"{name}:loudest", "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["estimand"] == "the first event, if its number says so"


def test_a_row_of_table_1(mine: Callable[[float], str], tmp_path: Path) -> None:
    name = f"{mine(0.5)}:loudest"
    found = table_1_rows(BenchSettings(tmp_path, estimator=name))
    assert found[name].config.estimator_name == name  # type: ignore[attr-defined]
    assert name not in table_1_rows(BenchSettings(tmp_path))
