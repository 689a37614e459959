"""`oscar train` and `oscar check`: JSON, one clear line for what cannot be, nothing half-written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oscar_causal.data.folders import exclusive
from oscar_causal.data.subjects import held_out
from oscar_causal.data.writer import write_dataset

Oscar = Callable[..., Any]
GOLDEN = Path(__file__).parents[1] / "golden"
QUICK = ("--steps", 3, "--batch-tokens", 128, "--min-context", 2, "--max-length", 8)


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Several workers share the cores."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 sequences with names that break careless programs; the label comes with B."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(60):
        events = rng.choice(["A", "B", "two\nlines", "</script>"], 7).tolist()
        labels = ["broken\nlabel"] if "B" in events else []
        rows.append(
            {
                "sequence_id": f"s{i}",
                "subject_id": f"car {i // 2}",
                "events": events,
                "times": np.sort(rng.integers(0, 9, 7)).astype(float).tolist(),
                "labels": labels + (["rare"] if i == 7 else []),
            }
        )
    out = tmp_path_factory.mktemp("verbs") / "fleet"
    write_dataset(out, [pa.Table.from_pylist(rows)])
    return out


@pytest.fixture(scope="module")
def model(fleet: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from oscar_causal.data.sequences import read_dataset
    from oscar_causal.density.fitting import train
    from oscar_causal.density.settings import TrainConfig

    out = tmp_path_factory.mktemp("verbs") / "model"
    train(read_dataset(fleet), out, TrainConfig(steps=3, batch_tokens=128, min_context=2, max_length=8, validation=0.3))
    return out


def test_train_tells_json_alone_on_stdout(oscar: Oscar, fleet: Path, tmp_path: Path) -> None:
    ran = oscar("train", fleet, "--out", tmp_path / "model", *QUICK, "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert 0 <= told["labels"]["weighted"]["f1"] <= 1
    assert "held out label loss" in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_both_tell_their_memory_before_they_begin(
    oscar: Oscar, fleet: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oscar_causal.verbs.output.TOLD_FROM", 0)
    for words in (("train", fleet, "--out", tmp_path / "model", *QUICK), ("check", model, fleet)):
        ran = oscar(*words, "--memory", 4, "--json")
        assert ran.code == 0, ran.err
        assert ran.err.startswith("memory: about 0.")
        assert "at most 4.00" in ran.err.splitlines()[0]
        told = json.loads(ran.out)["memory"]
        assert (told["cap_gib"], told["smaller"]) == (4.0, {})
        assert 0 < told["weights_gib"] < told["total_gib"]


@pytest.mark.parametrize("memory", ["0", "0.00001"])
def test_too_little_memory_is_one_line_before_anything_is_done(
    oscar: Oscar, fleet: Path, model: Path, tmp_path: Path, memory: str
) -> None:
    for words in (("train", fleet, "--out", tmp_path / "model", *QUICK), ("check", model, fleet)):
        ran = oscar(*words, "--memory", memory)
        assert ran.code == 2
        assert len(ran.err.splitlines()) == 1
        assert "--memory: expected a" in ran.err
    assert not list(tmp_path.iterdir())


def test_a_selection_can_be_trained_on(oscar: Oscar, fleet: Path, tmp_path: Path) -> None:
    assert oscar("select", fleet, "--fraction", 0.1, "--out", tmp_path / "part").code == 0
    ran = oscar("train", tmp_path / "part", "--out", tmp_path / "model", *QUICK)
    assert ran.code == 0, ran.err


def test_what_the_model_will_not_know_is_told(oscar: Oscar, tmp_path: Path) -> None:
    """The one car with label `lonely` and event `odd` is among the held-out ones; `few` is rare."""
    cars = [f"car {i}" for i in range(40)]
    outside = held_out(pa.array(cars), 0.1, seed=0).tolist()
    alone = outside.index(True)
    rows: list[dict[str, Any]] = [
        {"sequence_id": car, "events": ["A", "B"], "times": [0.0, 1.0], "labels": ["y"] if i % 2 else []}
        for i, car in enumerate(cars)
    ]
    rows[alone] |= {"events": ["A", "odd"], "labels": ["lonely"]}
    rows[outside.index(False)]["events"] = ["A", "few"]
    write_dataset(tmp_path / "fleet", [pa.Table.from_pylist(rows)])
    ran = oscar("train", tmp_path / "fleet", "--out", tmp_path / "model", *QUICK, "--min-count", 2)
    assert "1 labels occur in held-out sequences only, the model does not know them: lonely\n" in ran.out
    assert "2 event types are read as unknown" in ran.out
    assert ran.out.endswith(": few, odd\n")
    folds = oscar("train", tmp_path / "fleet", "--out", tmp_path / "folds", *QUICK, "--folds", 2, "--json")
    assert json.loads(folds.out)["left_out"] == {"labels": [], "events": []}
    oscar("train", tmp_path / "fleet", "--out", tmp_path / "none", "--min-count", 100).refused(
        "min_count: expected event types seen at least 100 times, found none"
    )


def test_resume_without_a_run_says_so(oscar: Oscar, fleet: Path, tmp_path: Path) -> None:
    ran = oscar("train", fleet, "--out", tmp_path / "model", *QUICK, "--resume")
    assert ran.code == 0, ran.err
    assert "no unfinished run to go on from, starting afresh" in ran.err
    assert "held-out label F1" in ran.out


def test_folds_from_the_command_line(oscar: Oscar, fleet: Path, tmp_path: Path) -> None:
    assert oscar("train", fleet, "--out", tmp_path / "model", *QUICK, "--folds", 2).code == 0
    told = json.loads(oscar("check", tmp_path / "model", fleet, "--json").out)
    assert told["folds"] == 2
    assert told["sequences"] == 60


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--preset", "huge"], ["preset", "tiny, base, paper", "'huge'"]),
        (["--steps", 0], ["steps", "got 0"]),
        (["--steps", "many"], ["--steps"]),
        (["--learning-rate", 7], ["learning_rate", "got 7"]),
        (["--label-form", "both"], ["label_form", "shared, cross"]),
        (["--scheme", "none"], ["scheme", "two-stage"]),
        (["--lost-labels", 1], ["lost_labels", "got 1"]),
        (["--seed", -1], ["seed", "got -1"]),
        (["--folds", 1], ["folds", "at least 2"]),
        (["--folds", 100], ["fold", "no subject"]),
    ],
)
def test_bad_settings_are_one_line(
    oscar: Oscar, fleet: Path, tmp_path: Path, options: list[Any], words: list[str]
) -> None:
    oscar("train", fleet, "--out", tmp_path / "model", *options).refused(*words)
    assert list(tmp_path.iterdir()) == []


def test_places_that_are_taken(oscar: Oscar, fleet: Path, tmp_path: Path) -> None:
    oscar("train", tmp_path / "nothing", "--out", tmp_path / "model").refused("nothing")
    (tmp_path / "model").mkdir()
    oscar("train", fleet, "--out", tmp_path / "model").refused("exists already", "--force")
    (tmp_path / "other.partial").mkdir()
    with exclusive(tmp_path / "other.partial" / "lock", what="training"):
        oscar("train", fleet, "--out", tmp_path / "other").refused("another run is training here")
    (tmp_path / "file").write_text("x")
    oscar("train", fleet, "--out", tmp_path / "file" / "model").refused("file")


def test_check_json_contract(oscar: Oscar, model: Path, fleet: Path) -> None:
    ran = oscar("check", model, fleet, "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    for average in ("micro", "macro", "weighted"):
        assert 0 <= told["labels"][average]["f1"] <= 1
    assert told["evaluated_on"].endswith("sequences of subjects not seen in training")
    assert told["not_trusted"]["rare"].startswith("only ")
    assert [item["assumption"] for item in told["assumptions"]][:4] == ["A1", "A2", "A3", "A4"]
    assert told["updated"] == []


def test_check_is_for_people(oscar: Oscar, model: Path, fleet: Path) -> None:
    ran = oscar("check", model, fleet)
    assert ran.code == 0, ran.err
    for words in ("evaluated on", "weighted", "reliability", "after a prefix", "not to be trusted", "A3 causal suff"):
        assert words in ran.out
    lines = ran.out.splitlines()
    page = lines[lines.index("assumptions:") + 1 :]
    assert len(page) == 7
    assert all(line.startswith("- ") for line in page)


def test_details_show_every_label(oscar: Oscar, model: Path, fleet: Path) -> None:
    told = json.loads(oscar("check", model, fleet, "--json").out)
    assert "every label" not in oscar("check", model, fleet).out
    out = oscar("check", model, fleet, "--details").out
    table = out[out.index("every label") :]
    for name, row in told["per_label"].items():
        (line,) = [line for line in table.splitlines() if line.startswith(f"│ {' '.join(name.split())} ")]
        for value in (row["f1"], row["ece"]):
            assert f"{value:.3f}" in line
        assert sum(part["count"] for part in row["reliability"]) == told["sequences"]
        assert sum(part["count"] * part["observed"] for part in row["reliability"]) == pytest.approx(row["positives"])


def test_check_refuses_in_one_line(oscar: Oscar, model: Path, fleet: Path, tmp_path: Path) -> None:
    oscar("check", tmp_path / "none", fleet).refused("expected a model folder")
    oscar("check", fleet, fleet).refused("config.json")
    oscar("check", model, model).refused("dataset.json")
    (tmp_path / "copy").mkdir()
    for path in model.iterdir():
        (tmp_path / "copy" / path.name).write_bytes(path.read_bytes())
    (tmp_path / "copy" / "model.safetensors").write_bytes(b"")
    oscar("check", tmp_path / "copy", fleet).refused("model.safetensors")


def test_check_update(oscar: Oscar, model: Path, fleet: Path, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    for path in model.iterdir():
        (tmp_path / "copy" / path.name).write_bytes(path.read_bytes())
    ran = oscar("check", tmp_path / "copy", fleet, "--update")
    assert ran.code == 0, ran.err
    assert f"rewritten: {tmp_path / 'copy' / 'quality.json'}" in ran.out
    assert "not seen in training" in json.loads((tmp_path / "copy" / "quality.json").read_text())["evaluated_on"]


def test_the_table_shows_each_label_beside_the_simplest_predictors(oscar: Oscar, model: Path, fleet: Path) -> None:
    told = json.loads(oscar("check", model, fleet, "--json").out)
    lines = oscar("check", model, fleet).out.splitlines()
    for name, row in told["per_label"].items():
        (at,) = [k for k, line in enumerate(lines) if line.startswith(f"│ {' '.join(name.split())} ")]
        always, base, logistic, ours = ([cell.strip() for cell in lines[at + k].split("│")[2:-1]] for k in range(4))
        assert always[3] == f"{row['always_yes']['f1']:.3f}"
        assert base[:3] == [f"base rate {row['base_rate']['rate']:.4f}", *_shown(row["base_rate"])]
        assert logistic[1:4] == _shown(row["logistic"])
        assert ours[1:] == [*_shown(row), "yes" if row["trusted"] else "no"]
    assert told["judged_by"] == told["stored_judged_by"] == "skill"
    assert told["base_rates_from"] == "training"


def _shown(row: dict[str, Any]) -> list[str]:
    values = [row[key] for key in ("log_loss", "average_precision", "f1_own") if key in row]
    return ["-" if value is None else f"{value:.3f}" for value in values]


def test_an_older_model_is_judged_anew_and_said_to_be_older(oscar: Oscar, tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "model-1", tmp_path / "model")
    ran = oscar("check", tmp_path / "model", GOLDEN / "dataset-1", "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert (told["judged_by"], told["stored_judged_by"]) == ("skill", "F1 alone")
    assert told["base_rates_from"] != "training"
    assert "judged by F1 alone" in oscar("check", tmp_path / "model", GOLDEN / "dataset-1").out
