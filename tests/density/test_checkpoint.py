"""Model folders: a round trip to the bit; damaged, foreign and newer ones are one line; no pickle in or out."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

import oscar_causal
from oscar_causal.data.sequences import Dataset
from oscar_causal.density.checkpoint import (
    CheckpointWriter,
    load_checkpoint,
    load_model,
    save_checkpoint,
    save_model,
    save_tensors,
)
from oscar_causal.density.folds import load_models
from oscar_causal.density.model import OscarModel, sequence_contexts
from oscar_causal.errors import FolderError

FILES = ("config.json", "model.safetensors", "vocabulary.json", "quality.json", "training.json")
JSONS = tuple(name for name in FILES if name.endswith(".json"))


@pytest.fixture
def copy(model_folder: Path, tmp_path: Path) -> Path:
    """Without checksums: whatever was changed is read."""
    shutil.copytree(model_folder, tmp_path / "copy")
    (tmp_path / "copy" / "checksums.json").unlink()
    return tmp_path / "copy"


def assert_refused(folder: Path, *words: str) -> None:
    with pytest.raises(FolderError) as caught:
        load_models(folder)
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def answers(model: OscarModel, fleet: Dataset) -> list[torch.Tensor]:
    contexts = sequence_contexts(model.encode(fleet), 3)
    return [model.event_probs(contexts), model.label_probs(contexts, torch.arange(2), torch.arange(7))]


def test_loading_and_asking_import_no_compiler(model_folder: Path) -> None:
    """Every command that asks a model would wait for it longer than for all the rest of its start."""
    code = """
import sys, torch
from oscar_causal.density.checkpoint import load_model
from oscar_causal.density.interface import Contexts
model = load_model(sys.argv[1])
assert model.network.shortlist is not None
contexts = Contexts(torch.full((2, 5), 3), torch.arange(5).double(), torch.zeros(5, len(model.channels)))
model.label_probs(contexts, torch.tensor([0]), torch.tensor([5]))
model.event_probs(contexts)
sys.exit("torch._dynamo" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code, model_folder], check=False).returncode == 0


@pytest.mark.bits
def test_round_trip(model_folder: Path, fleet: Dataset, tmp_path: Path) -> None:
    model = load_model(model_folder)
    save_model(model, tmp_path)
    for name in ("quality.json", "training.json"):
        shutil.copy(model_folder / name, tmp_path)
    again = load_model(tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(answers(model, fleet), answers(again, fleet), strict=True))
    assert again.vocabulary == model.vocabulary
    assert again.calibration == model.calibration
    assert model.calibration is not None


def test_the_calibration_is_applied(model_folder: Path, fleet: Dataset, copy: Path) -> None:
    quality = json.loads((copy / "quality.json").read_text())
    plain, moved = load_model(model_folder), None
    quality["calibration"] = {"slope": [2.0, 1.0], "shift": [0.5, -1.0]}
    (copy / "quality.json").write_text(json.dumps(quality))
    moved = load_model(copy)
    contexts = sequence_contexts(plain.encode(fleet), 0)
    labels, positions = torch.tensor([1, 0]), torch.tensor([3, 6])
    assert plain.calibration is not None
    slope, shift = (torch.tensor(x)[labels] for x in (plain.calibration.slope, plain.calibration.shift))
    raw = (plain.label_probs(contexts, labels, positions).logit() - shift) / slope
    expected = torch.sigmoid(raw * torch.tensor([1.0, 2.0]) + torch.tensor([-1.0, 0.5]))
    torch.testing.assert_close(moved.label_probs(contexts, labels, positions), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["deleted", "emptied", "a folder", "noise"])
def test_every_file_matters(copy: Path, name: str, damage: str) -> None:
    path = copy / name
    path.unlink()
    if damage == "emptied":
        path.write_bytes(b"")
    elif damage == "a folder":
        path.mkdir()
    elif damage == "noise":
        path.write_bytes(np.random.default_rng(0).bytes(500))
    assert_refused(copy, name)


@pytest.mark.parametrize("name", FILES)
@given(share=st.floats(0, 0.999))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_truncated_file_is_told(model_folder: Path, tmp_path: Path, name: str, share: float) -> None:
    copy = tmp_path / "copy"
    if not copy.exists():
        shutil.copytree(model_folder, copy)
        (copy / "checksums.json").unlink()
    whole = (model_folder / name).read_bytes()
    (copy / name).write_bytes(whole[: int(share * (len(whole.rstrip()) - 1))])
    assert_refused(copy, name)


@pytest.mark.parametrize("name", JSONS)
@pytest.mark.parametrize(
    "text", ["[]", "3", "null", "{}", '{"kind": "dataset", "format_version": 1}', "NaN", "{'a': 1}"]
)
def test_wrong_json_is_told(copy: Path, name: str, text: str) -> None:
    (copy / name).write_text(text)
    assert_refused(copy, name)


def change(name: str, *keys: str, value: object) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        place = content
        for key in keys[:-1]:
            place = place[key]
        if value is KeyError:
            del place[keys[-1]]
        else:
            place[keys[-1]] = value
        (folder / name).write_text(json.dumps(content))

    return apply


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (change("config.json", "format_version", value=2), ["newer OSCAR"]),
        (change("config.json", "format_version", value="1"), ["format_version"]),
        (change("config.json", "kind", value="results"), ["'results'"]),
        (change("config.json", "network", value=None), ["network"]),
        (change("config.json", "network", "width", value="64"), ["width"]),
        (change("config.json", "network", "width", value=63), ["width"]),
        (change("config.json", "network", "width", value=128), ["expected shape"]),
        (change("config.json", "network", "hidden", value=10**30), ["network"]),
        (change("config.json", "network", "layers", value=3), ["blocks.2"]),
        (change("config.json", "network", "colour", value=3), ["colour"]),
        (change("config.json", "network", "labels", value=3), ["differ in size"]),
        (change("config.json", "network", "label_form", value="both"), ["label_form"]),
        (change("config.json", "channels", value=["mileage", "more"]), ["channels"]),
        (change("config.json", "max_length", value=KeyError), ["max_length"]),
        (change("config.json", "min_context", value=-1), ["min_context"]),
        (change("vocabulary.json", "events", value=["A", "A"]), ["repeats"]),
        (change("vocabulary.json", "events", value=["A"]), ["differ in size"]),
        (change("vocabulary.json", "labels", value="fault"), ["labels"]),
        (change("quality.json", "format_version", value=7), ["newer OSCAR"]),
        (change("quality.json", "per_label", value=[]), ["per_label"]),
        (change("quality.json", "per_label", "fault", value={}), ["per_label"]),
        (change("quality.json", "calibration", value=[1]), ["calibration"]),
        (change("quality.json", "calibration", "slope", value=[1.0]), ["calibration"]),
        (change("quality.json", "calibration", "shift", value=["a", "b"]), ["calibration"]),
        (change("training.json", "subjects", value=KeyError), ["subjects"]),
    ],
)
def test_wrong_content_is_told(copy: Path, damage: Callable[[Path], None], words: list[str]) -> None:
    damage(copy)
    assert_refused(copy, *words)


def test_foreign_weights_are_told(copy: Path) -> None:
    tensors = {name: part.clone() for name, part in load_file(copy / "model.safetensors").items()}  # no longer mapped
    save_file({"transformer.wte.weight": torch.zeros(3, 3)}, copy / "model.safetensors")
    assert_refused(copy, "model.safetensors", "got nothing")
    tensors["label_head.bias"] = torch.zeros(7)
    save_file(tensors, copy / "model.safetensors")
    assert_refused(copy, "label_head.bias", "(2,)", "(7,)")


@pytest.mark.parametrize("damage", [lambda ids: ids - 100, lambda ids: ids + 10**6, lambda ids: ids * torch.nan])
def test_shortlists_of_events_that_are_not_there_are_told(copy: Path, damage: Callable[..., torch.Tensor]) -> None:
    tensors = {name: part.clone() for name, part in load_file(copy / "model.safetensors").items()}
    tensors["shortlist.types"] = damage(tensors["shortlist.types"])
    save_file(tensors, copy / "model.safetensors")
    assert_refused(copy, "model.safetensors", "shortlist.types", "event ids")


@pytest.mark.parametrize("value", [0.0, -1.0, torch.nan, torch.inf])
def test_windows_that_are_no_lengths_of_time_are_told(copy: Path, value: float) -> None:
    tensors = {name: part.clone() for name, part in load_file(copy / "model.safetensors").items()}
    tensors["shortlist.windows"][2] = value
    save_file(tensors, copy / "model.safetensors")
    assert_refused(copy, "model.safetensors", "shortlist.windows", "above 0")


def test_a_dataset_is_no_model(fleet_folder: Path) -> None:
    assert_refused(fleet_folder, "expected a model folder (with config.json or folds.json), found a dataset")


def test_other_channels_are_told(model_folder: Path, fleet: Dataset, draw: Callable[..., Dataset]) -> None:
    from dataclasses import replace

    from oscar_causal.errors import UsageError

    with pytest.raises(UsageError, match="channel 'mileage'"):
        load_model(model_folder).encode(replace(fleet, channels=()))


def test_nothing_but_safetensors_json_and_a_card(model_folder: Path, folds_folder: Path) -> None:
    expected = {*FILES, "checksums.json", "README.md"}
    assert {path.name for path in model_folder.iterdir()} == expected
    assert {path.name for path in folds_folder.iterdir()} == {
        "checksums.json",
        "folds.json",
        "fold-0",
        "fold-1",
        "fold-2",
    }
    assert all({path.name for path in folds_folder.glob(f"fold-{k}/*")} == expected for k in range(3))


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_weights_are_readable_to_whom_the_umask_allows(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        save_tensors(tmp_path / "a.safetensors", {"a": torch.zeros(2)})
    finally:
        os.umask(before)
    assert (tmp_path / "a.safetensors").stat().st_mode & 0o777 == 0o666 & ~umask


def test_the_code_never_pickles() -> None:
    forbidden = re.compile(
        r"\bpickle\b|\btorch\.(save|load)\b|\bjoblib\b|save_state\(|load_state\(|allow_pickle=True|shelve"
    )
    for file in Path(oscar_causal.__file__).parent.rglob("*.py"):
        code = re.sub(r'""".*?"""|#.*', "", file.read_text(encoding="utf-8"), flags=re.S)
        assert not forbidden.search(code), file


def test_checkpoints_are_complete_or_not_there(tmp_path: Path) -> None:
    assert load_checkpoint(tmp_path) is None
    save_checkpoint(tmp_path, 3, {"a": torch.arange(3.0)}, {"run": {}})
    save_checkpoint(tmp_path, 12, {"a": torch.arange(4.0)}, {"run": {}})
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-000000012"]
    assert {path.name for path in tmp_path.glob("*/*")} == {"checksums.json", "state.json", "state.safetensors"}
    (tmp_path / "checkpoint-000000020.partial").mkdir()  # killed while writing
    found = load_checkpoint(tmp_path)
    assert found is not None
    assert found[0]["a"].tolist() == [0, 1, 2, 3]
    (tmp_path / "checkpoint-000000012" / "state.safetensors").write_bytes(b"x")
    for damage in ("changed since it was written", "damaged weights"):
        with pytest.raises(FolderError, match=damage):
            load_checkpoint(tmp_path)
        (tmp_path / "checkpoint-000000012" / "checksums.json").unlink(missing_ok=True)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "training.json", "vocabulary.json"])
@pytest.mark.parametrize("share", [0.01, 0.5, 0.9, 0.999])
def test_one_flipped_bit_is_refused(model_folder: Path, tmp_path: Path, name: str, share: float) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(model_folder, folder)
    content = bytearray((folder / name).read_bytes())
    content[int(share * len(content))] ^= 1
    (folder / name).write_bytes(content)
    assert_refused(folder, name, "damaged or changed since it was written: expected SHA-256")


def test_what_was_trained_is_listed_with_its_sha256(model_folder: Path, folds_folder: Path) -> None:
    for folder, names in ((model_folder, FILES), (folds_folder / "fold-1", FILES), (folds_folder, ("folds.json",))):
        listed = json.loads((folder / "checksums.json").read_text())["files"]
        assert listed == {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


def test_an_edited_quality_is_used_and_noted(
    model_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(model_folder, tmp_path / "copy")
    path = tmp_path / "copy" / "quality.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "evaluated_on": "my desk"}))
    with caplog.at_level(logging.INFO, logger="oscar_causal.data.checksums"):
        assert load_model(tmp_path / "copy").info["quality"]["evaluated_on"] == "my desk"
    assert [record.getMessage().split(" (")[0] for record in caplog.records] == [
        f"{path}: edited since the folder was written"
    ]


def test_a_checkpoint_is_of_the_moment_it_was_taken(tmp_path: Path) -> None:
    weights, state = torch.arange(3.0), {"run": {"history": [1]}}
    with CheckpointWriter(tmp_path) as writer:
        writer.save(3, {"a": weights}, state)
        weights += 1  # training goes on
        state["run"]["history"].append(2)
        writer.save(5, {"a": weights}, state)
        weights.zero_()
    found = load_checkpoint(tmp_path)
    assert found is not None
    assert (found[0]["a"].tolist(), found[1]["run"]) == ([1, 2, 3], {"history": [1, 2]})


def test_what_goes_wrong_while_writing_is_told(tmp_path: Path) -> None:
    def train(saves: int, error: str = "") -> None:
        with CheckpointWriter(tmp_path / "gone") as writer:
            for step in range(saves):
                writer.save(step, {"a": torch.zeros(1)}, {})
            if error:
                raise ValueError(error)

    for saves in (1, 2):  # at the end of the block, or when the next one is due
        with pytest.raises(OSError, match="gone"):
            train(saves)
    with pytest.raises(ValueError, match="mine"):  # an error of the training itself is the one that counts
        train(1, "mine")
