"""Folds: every subject meets a model that never saw it; new subjects meet the mean."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from oscar_causal.data.sequences import Dataset
from oscar_causal.density.folds import MEAN, MeanModel, load_models
from oscar_causal.density.interface import EventDensity, LabelDensity
from oscar_causal.density.model import OscarModel, sequence_contexts
from oscar_causal.errors import FolderError, UsageError


def fold_of(subject: str, seed: int, count: int) -> int:
    """The contract, spelled out: little-endian 64-bit blake2b of "seed:name", modulo the number of folds."""
    return int.from_bytes(hashlib.blake2b(f"{seed}:{subject}".encode(), digest_size=8).digest(), "little") % count


def test_every_subject_is_judged_by_a_model_that_never_saw_it(folds_folder: Path, fleet: Dataset) -> None:
    models = load_models(folds_folder)
    subjects = sorted(set(fleet.subject_ids.to_pylist()))
    used = set()
    for subject in subjects:
        model = models.for_sequence(subject)
        assert isinstance(model, OscarModel)
        index = next(k for k, one in enumerate(models.models) if one is model)
        assert index == fold_of(subject, 0, 3)
        mine = int.from_bytes(hashlib.blake2b(f"0:{subject}".encode(), digest_size=8).digest(), "little")
        assert mine not in models.subjects[index].tolist()
        assert all(mine in models.subjects[k].tolist() for k in range(3) if k != index)
        used.add(index)
    assert used == {0, 1, 2}
    assert not models.seen_in_training(fleet.subject_ids).any()


def test_new_subjects_meet_the_mean(folds_folder: Path, fleet: Dataset) -> None:
    models = load_models(folds_folder)
    mean = models.for_sequence("somebody else")
    assert isinstance(mean, MeanModel)
    assert isinstance(mean, LabelDensity)
    assert isinstance(mean, EventDensity)
    assert models.routes(pa.array(["somebody else", "subject 0"])).tolist() == [MEAN, fold_of("subject 0", 0, 3)]
    contexts = sequence_contexts(models.models[0].encode(fleet), 0)
    labels, positions = torch.tensor([1, 0]), torch.tensor([2, 6])
    parts = [model.label_probs(contexts, labels, positions).numpy() for model in models.models]
    assert np.ptp(parts, axis=0).max() > 1e-4  # the folds differ, or their mean would tell nothing
    np.testing.assert_allclose(mean.label_probs(contexts, labels, positions), np.mean(parts, axis=0), rtol=1e-6)
    laws = [model.event_probs(contexts).numpy() for model in models.models]
    np.testing.assert_allclose(mean.event_probs(contexts), np.mean(laws, axis=0), rtol=1e-5)
    np.testing.assert_allclose(mean.event_probs(contexts).sum(-1), 1, rtol=1e-5)


def test_a_plain_model_knows_whom_it_saw(model_folder: Path, fleet: Dataset) -> None:
    models = load_models(model_folder)
    seen = models.seen_in_training(fleet.subject_ids)
    threshold = 0.1 * 2**64
    hashes = [hashlib.blake2b(f"0:{name}".encode(), digest_size=8).digest() for name in fleet.subject_ids.to_pylist()]
    expected = [int.from_bytes(h, "little") >= threshold for h in hashes]
    assert seen.tolist() == expected
    assert 0 < seen.sum() < len(seen)
    assert not models.seen_in_training(pa.array(["somebody else"]))[0]
    assert models.for_sequence("somebody else") is models.models[0]


def test_trust_is_a_majority(folds_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(folds_folder, folder)
    for votes in range(4):
        for k in range(3):
            path = folder / f"fold-{k}" / "quality.json"
            quality = json.loads(path.read_text())
            quality["per_label"]["fault"]["trusted"] = k < votes
            path.write_text(json.dumps(quality))
        assert load_models(folder).trusted("fault") is (votes >= 2)
    with pytest.raises(UsageError, match="does not know 'ghost'"):
        load_models(folder).trusted("ghost")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: (f / "folds.json").write_text("{}"), "kind"),
        (lambda f: (f / "folds.json").write_text('{"kind": "folds", "format_version": 9}'), "newer OSCAR"),
        (lambda f: (f / "folds.json").write_text('{"kind": "folds", "format_version": 1, "folds": 1, "seed": 0}'), "2"),
        (lambda f: shutil.rmtree(f / "fold-1"), "fold-1"),
        (lambda f: (f / "fold-2" / "training.json").unlink(), "training.json: missing"),
        (lambda f: (f / "fold-2" / "training.json").write_text('{"subjects": "???"}'), "base64"),
        (lambda f: (f / "fold-2" / "training.json").write_text('{"subjects": 3}'), "base64"),
    ],
)
def test_damage_is_one_line(folds_folder: Path, tmp_path: Path, change: object, words: str) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(folds_folder, folder)
    for path in folder.rglob("checksums.json"):  # as older folders are
        path.unlink()
    change(folder)  # type: ignore[operator]
    with pytest.raises(FolderError, match=words) as caught:
        load_models(folder)
    assert "\n" not in str(caught.value)


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="expected a model folder, found nothing"):
        load_models(tmp_path / "none")
    (tmp_path / "file").write_text("x")
    with pytest.raises(FolderError, match="found a file"):
        load_models(tmp_path / "file")
