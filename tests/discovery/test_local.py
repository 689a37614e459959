"""Runs over folders: the same tables however the work is cut, and models that speak about each other's verdicts."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import oscar_causal
from oscar_causal.data.sequences import read_dataset
from oscar_causal.density.folds import load_models
from oscar_causal.discovery import local, results
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.knowledge import Knowledge
from oscar_causal.discovery.local import Job, ShardExplainer, discover_folder
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.discovery.ranks import Ranks
from oscar_causal.discovery.results import read_run, read_table
from oscar_causal.errors import OscarError, UsageError

CONFIG = DiscoveryConfig(intervention=InterventionConfig(contexts=48))
FEW = np.array([5, 6, 20, 25])
TORCH = torch.__version__
TABLES = ("verdicts", "evidence", "causes")


def stop(*_: int) -> None:
    """Ctrl-C at the first sign of progress."""
    raise KeyboardInterrupt


def table_hashes(folder: Path) -> dict[tuple[str, str], str]:
    """(table, sequence id) -> hash of all rows of the sequence, every digit included."""
    found = {}
    for name in TABLES:
        rows: dict[str, list[Any]] = {}
        for row in read_table(folder, name).to_pylist():
            rows.setdefault(row["sequence_id"], []).append(row)
        found |= {(name, key): hashlib.sha256(repr(value).encode()).hexdigest() for key, value in rows.items()}
    return found


@pytest.fixture(scope="module")
def whole(toy: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "whole"
    discover_folder(toy.model, toy.fleet, out, CONFIG)
    return out


@pytest.mark.bits
def test_a_batch_of_n_equals_n_singles(toy: Any, whole: Path, tmp_path: Path) -> None:
    singles: dict[tuple[str, str], str] = {}
    for i in range(0, 30, 4):
        discover_folder(toy.model, toy.fleet, tmp_path / f"{i}", CONFIG, indices=np.array([i]))
        singles |= table_hashes(tmp_path / f"{i}")
    every = table_hashes(whole)
    ids = {f"car {i}" for i in range(0, 30, 4)}
    assert singles == {key: value for key, value in every.items() if key[1] in ids}
    assert len(singles) > 5


@pytest.mark.bits
def test_the_order_of_sequences_changes_no_table(toy: Any, whole: Path, tmp_path: Path) -> None:
    order = np.random.default_rng(3).permutation(30)
    discover_folder(toy.model, toy.fleet, tmp_path / "r", CONFIG, indices=order)
    assert table_hashes(tmp_path / "r") == table_hashes(whole)
    assert (
        read_table(tmp_path / "r", "verdicts")["sequence_id"] != read_table(whole, "verdicts")["sequence_id"]
    )  # or this would test nothing


@pytest.mark.bits
def test_neither_shards_nor_processes_change_a_table(
    toy: Any, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "SHARD_SEQUENCES", 8)
    discover_folder(toy.model, toy.fleet, tmp_path / "shards", CONFIG)
    assert table_hashes(tmp_path / "shards") == table_hashes(whole)
    discover_folder(toy.model, toy.fleet, tmp_path / "processes", CONFIG, workers=2)
    for name in TABLES:
        files = [sorted((tmp_path / run / name).iterdir()) for run in ("shards", "processes")]
        assert len(files[0]) == 4
        assert [file.read_bytes() for file in files[0]] == [file.read_bytes() for file in files[1]]


@pytest.mark.bits
def test_shards_of_similar_length_change_no_table(
    toy: Any, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "SHARD_SEQUENCES", 8)
    monkeypatch.setattr(Job, "by_length", True)  # as on a GPU
    lengths = read_dataset(toy.fleet).lengths
    taken: list[int] = []
    explain = local.ShardExplainer.explain

    def explained(self: local.ShardExplainer, indices: local.Indices) -> Any:
        taken.extend(lengths[indices].tolist())
        return explain(self, indices)

    monkeypatch.setattr(local.ShardExplainer, "explain", explained)
    with pytest.raises(KeyboardInterrupt):
        discover_folder(toy.model, toy.fleet, tmp_path / "r", CONFIG, on_progress=stop)
    run = discover_folder(toy.model, toy.fleet, tmp_path / "r", CONFIG, resume=True)
    assert taken == sorted(lengths.tolist(), reverse=True) != lengths.tolist()
    assert table_hashes(tmp_path / "r") == table_hashes(whole)
    assert run["fingerprint"] != read_run(whole)["fingerprint"]  # another cut: not to be gone on with


def test_the_number_of_threads_has_no_say(toy: Any, whole: Path, tmp_path: Path) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        discover_folder(toy.model, toy.fleet, tmp_path / "r", CONFIG)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert table_hashes(tmp_path / "r") == table_hashes(whole)


@pytest.mark.parametrize("known", ["checksums", "digest", "nothing"])
def test_a_run_does_not_go_on_when_rows_have_changed_places(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: str
) -> None:
    """However little is known about the dataset: shards are cut by row numbers."""
    fleet, out = tmp_path / "fleet", tmp_path / "r"
    shutil.copytree(toy.fleet, fleet)
    if known != "checksums":
        (fleet / "checksums.json").unlink()
    if known == "nothing":
        info = json.loads((fleet / "dataset.json").read_text())
        (fleet / "dataset.json").write_text(json.dumps({key: info[key] for key in info if key != "digest"}))
    monkeypatch.setattr(local, "SHARD_SEQUENCES", 8)
    with pytest.raises(KeyboardInterrupt):
        discover_folder(toy.model, fleet, out, CONFIG, on_progress=stop)
    (part,) = (fleet / "sequences").iterdir()
    table = pq.read_table(part)
    part.unlink()
    pq.write_table(table.take(list(range(len(table)))[::-1]), part)
    words = {"checksums": "changed since it was written", "digest": "expected sequences with the digest"}
    with pytest.raises(OscarError, match=words.get(known, "--resume: that run had other settings, data or model")):
        discover_folder(toy.model, fleet, out, CONFIG, resume=True)
    assert not out.exists()


def test_what_people_edit_is_told_by_its_hash(toy: Any, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    shutil.copytree(toy.fleet, fleet)
    (fleet / "rules.json").write_text('{"x": "E0"}')
    run = discover_folder(toy.model, fleet, tmp_path / "r", CONFIG, indices=FEW[:1])
    assert run["dataset"]["edited_sha256"] == {"rules.json": hashlib.sha256(b'{"x": "E0"}').hexdigest()}
    quality = hashlib.sha256((toy.model / "quality.json").read_bytes()).hexdigest()
    assert run["model"]["edited_sha256"] == {"quality.json": quality}


def test_an_interrupted_run_keeps_its_counts(
    toy: Any, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "SHARD_SEQUENCES", 8)

    def stop(done: int, total: int) -> None:
        if done >= 16:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        discover_folder(toy.model, toy.fleet, tmp_path / "r", CONFIG, on_progress=stop)
    run = discover_folder(toy.model, toy.fleet, tmp_path / "r", CONFIG, resume=True)
    assert run["counts"] == read_run(whole)["counts"]
    assert table_hashes(tmp_path / "r") == table_hashes(whole)


# --- memory ---


@pytest.mark.bits
def test_a_cap_changes_pieces_is_recorded_and_moves_last_bits_only(toy: Any, whole: Path, tmp_path: Path) -> None:
    discover_folder(toy.model, toy.fleet, tmp_path / "r", CONFIG, memory=0.0008)
    run, plain = read_run(tmp_path / "r"), read_run(whole)
    assert plain["tokens_per_pass"] is None
    assert run["tokens_per_pass"] in (64, 128, 256, 512)
    assert run["memory"]["total_gib"] <= run["memory"]["cap_gib"] == pytest.approx(0.0008)
    assert run["fingerprint"] != plain["fingerprint"]
    assert {key: run[key] for key in ("config", "dataset", "model")} == {
        key: plain[key] for key in ("config", "dataset", "model")
    }
    ours, theirs = (read_table(folder, "evidence").to_pylist() for folder in (tmp_path / "r", whole))
    for mine, other in zip(ours, theirs, strict=True):
        assert mine["effect"] == pytest.approx(other["effect"], abs=1e-4)


def test_a_resumed_run_keeps_its_piece_size(toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "SHARD_SEQUENCES", 8)

    with pytest.raises(KeyboardInterrupt):
        discover_folder(toy.model, toy.fleet, tmp_path / "r", CONFIG, memory=0.0008, on_progress=stop)
    begun = json.loads((tmp_path / "r.partial" / "run.json").read_text())["tokens_per_pass"]
    with pytest.raises(UsageError, match="other settings"):
        discover_folder(toy.model, toy.fleet, tmp_path / "r", CONFIG, memory=1.0, resume=True)
    run = discover_folder(toy.model, toy.fleet, tmp_path / "r", CONFIG, resume=True)
    assert run["tokens_per_pass"] == begun is not None


def test_a_run_of_other_libraries_is_not_gone_on_with(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "SHARD_SEQUENCES", 8)

    with pytest.raises(KeyboardInterrupt):
        discover_folder(toy.model, toy.fleet, tmp_path / "r", CONFIG, on_progress=stop)
    marker = tmp_path / "r.partial" / "run.json"
    run = json.loads(marker.read_text())
    assert run["versions"] == {"oscar": oscar_causal.__version__, "torch": TORCH, "numpy": np.__version__}
    marker.write_text(json.dumps({**run, "versions": {**run["versions"], "torch": "1.0"}}))
    with pytest.raises(UsageError, match=re.escape(f"--resume: that run began with torch 1.0 and this is {TORCH}")):
        discover_folder(toy.model, toy.fleet, tmp_path / "r", CONFIG, resume=True)


def test_a_run_says_whether_its_model_was_calibrated(toy: Any, whole: Path, tmp_path: Path) -> None:
    assert read_run(whole)["calibrated"] is False
    shutil.copytree(toy.model, tmp_path / "model")
    quality = json.loads((tmp_path / "model" / "quality.json").read_text())
    quality["calibration"] = {"slope": [1.0, 1.0], "shift": [0.0, 0.0]}
    (tmp_path / "model" / "quality.json").write_text(json.dumps(quality))
    run = discover_folder(tmp_path / "model", toy.fleet, tmp_path / "r", CONFIG, indices=np.array([0]))
    assert run["calibrated"] is True


def test_the_plan_of_the_first_process_holds_for_those_that_join(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second process with all memory free takes the small pieces that the first one has planned."""
    monkeypatch.setattr(local, "SHARD_SEQUENCES", 8)

    with pytest.raises(KeyboardInterrupt):
        discover_folder(toy.model, toy.fleet, tmp_path / "r", CONFIG, memory=0.0008, on_progress=stop)
    begun = json.loads((tmp_path / "r.partial" / "run.json").read_text())["tokens_per_pass"]
    monkeypatch.setattr(local, "join_ranks", lambda: SecondOfTwo(1, 2))
    jobs: list[Job] = []
    monkeypatch.setattr(local, "_explain_shards", lambda engine, job, *_: jobs.append(job) or [])
    discover_folder(toy.model, toy.fleet, tmp_path / "r", CONFIG)
    assert [job.tokens_per_pass for job in jobs] == [begun] != [None]


class SecondOfTwo(Ranks):
    """Without a first process to wait for; two real ones are in tests/faults."""

    def _told(self, stop: bool) -> bool:
        return stop

    def wait(self) -> None:
        return


@pytest.mark.parametrize("memory", [None, 0.001])
def test_processes_of_torchrun_share_what_is_free_and_a_cap_is_for_each(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: float | None
) -> None:
    monkeypatch.setattr("oscar_causal.density.memory.free_bytes", lambda device: 2**30)
    monkeypatch.setattr(local, "join_ranks", lambda: Ranks(0, 1, 0, local_world=4))
    run = discover_folder(toy.model, toy.fleet, tmp_path / "r", CONFIG, memory=memory, indices=np.array([0]))
    assert run["memory"]["cap_gib"] == pytest.approx(0.7 / 4 if memory is None else memory)


def test_a_device_short_of_memory_gets_smaller_pieces_and_a_flag(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = load_models(toy.model).models[0], read_dataset(toy.fleet)
    (plain,) = discover(model, data, CONFIG, indices=[5])
    real = model.network.embedding.forward

    def crowded(tokens: Any, *rest: Any) -> Any:
        if len(tokens.event_ids) > 3:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return real(tokens, *rest)

    monkeypatch.setattr(model.network.embedding, "forward", crowded)
    (first,), (again,) = (discover(model, data, CONFIG, indices=[5]) for _ in range(2))
    assert first == again
    for before, after in zip(plain, first, strict=True):
        (flag,) = set(after.flags) - set(before.flags)
        assert flag.startswith("memory was short: pieces of ")
        assert int(flag.split()[-2]) <= 3
        for mine, other in zip(after.evidence, before.evidence, strict=True):
            assert mine.effect == pytest.approx(other.effect, abs=1e-5)
    monkeypatch.undo()
    assert next(iter(discover(model, data, CONFIG, indices=[5]))) == plain  # the next sequence starts afresh


def test_a_device_without_room_for_one_context_is_one_clear_line(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = load_models(toy.model).models[0], read_dataset(toy.fleet)

    def full(*_: Any) -> Any:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(model.network.embedding, "forward", full)
    with pytest.raises(UsageError, match="car 5: the device ran out of memory"):
        list(discover(model, data, CONFIG, indices=[5]))


# --- several models ---


def test_agreement_over_models_is_recorded(toy: Any, whole: Path, tmp_path: Path) -> None:
    run = discover_folder(toy.model, toy.fleet, tmp_path / "r", CONFIG, also=[toy.other])
    assert [Path(part["path"]).name for part in run["also"]] == ["other"]
    assert run["fingerprint"] != read_run(whole)["fingerprint"]
    alone, agreed = read_table(whole, "causes"), read_table(tmp_path / "r", "causes")
    assert alone.drop(["agreement"]) == agreed.drop(["agreement"])
    assert set(agreed["agreement"].to_pylist()) <= {0.5, 1.0}
    assert set(alone["agreement"].to_pylist()) == {None}
    flags = read_table(tmp_path / "r", "verdicts")["flags"].to_pylist()
    assert any(flag.startswith("models disagree") for row in flags for flag in row)


def test_a_model_agrees_with_itself(toy: Any, tmp_path: Path) -> None:
    discover_folder(toy.model, toy.fleet, tmp_path / "r", CONFIG, also=[toy.model] * 2, indices=FEW)
    assert set(read_table(tmp_path / "r", "causes")["agreement"].to_pylist()) == {1.0}


def test_folds_that_do_not_know_a_subject_judge_by_their_mean_and_say_how_far_they_agree(toy: Any) -> None:
    explain = ShardExplainer(Job(str(toy.folds), str(toy.fleet), CONFIG, "cpu"))
    found = explain.explain(FEW)
    models, data = load_models(toy.folds), read_dataset(toy.fleet)
    expected = [item for part in discover(models.mean, data, CONFIG, indices=FEW, also=models.models) for item in part]
    stripped = [replace(item, trusted=None, seen_in_training=None) for item in found]
    assert stripped == expected
    shares = {item.agreement for boundary in found for item in boundary.causes}
    assert shares <= {1 / 3, 2 / 3, 1.0}
    assert shares


# --- replacement and knowledge through folders ---


def test_borrowed_laws_come_from_the_whole_dataset(toy: Any, tmp_path: Path) -> None:
    """A shard of one sequence and a run over all must see the same frequencies."""
    config = replace(CONFIG, replacement="donors")
    discover_folder(toy.model, toy.fleet, tmp_path / "all", config, indices=FEW)
    discover_folder(toy.model, toy.fleet, tmp_path / "one", config, indices=np.array([5]))
    every = table_hashes(tmp_path / "all")
    assert table_hashes(tmp_path / "one") == {key: value for key, value in every.items() if key[1] == "car 5"}


def test_a_required_event_without_figures_is_null_in_the_tables(toy: Any, tmp_path: Path) -> None:
    """More events are required than are looked at closely: those left out have no figures."""
    events = {name for name in read_dataset(toy.fleet).events_of(5) if int(name[1:]) < 20}
    assert len(events) > CONFIG.intervention.finalist_count
    config = replace(CONFIG, knowledge=Knowledge(required=tuple(events)))
    discover_folder(toy.model, toy.fleet, tmp_path / "r", config, indices=np.array([5]))
    rows = read_table(tmp_path / "r", "causes").to_pylist()
    assert {row["event"] for row in rows} == events
    silent = [row for row in rows if row["indicator"] is None]
    assert silent
    assert {(row["source"], row["verdict"]) for row in silent} == {("background knowledge", "cause")}
    names = {(row["label"], row["event"]) for row in silent}
    tested = read_table(tmp_path / "r", "evidence").to_pylist()
    assert {row["effect"] for row in tested if (row["label"], row["event"]) in names} == {None}


# --- what is refused ---


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"device": "tpu"}, "--device: expected cpu or cuda, got 'tpu'"),
        ({"device": "cuda"}, "GPUs that torch finds here"),
        ({"device": "cuda:99"}, "GPUs that torch finds here"),
        ({"device": "cuda:x"}, "--device"),
        ({"engine": "steam", "device": "auto"}, "--engine"),
        ({"workers": 0}, "--workers"),
        ({"memory": -1.0}, "--memory"),
        ({"memory": 1e-6}, "expected at least"),
        ({"config": replace(CONFIG, excluded=("typo",))}, "typo"),
        ({"also": ["nowhere"]}, "nowhere"),
    ],
)
def test_mistakes_leave_nothing_behind(toy: Any, tmp_path: Path, options: dict[str, Any], words: str) -> None:
    if options.get("device") == "cuda" and torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(Exception, match=words) as told:
        discover_folder(toy.model, toy.fleet, tmp_path / "r", **{"config": CONFIG, **options})
    assert isinstance(told.value, UsageError) or "nowhere" in words
    assert not list(tmp_path.iterdir())


def test_a_nan_is_null_and_nothing_else_is() -> None:
    table = results._table("verdicts", [], results.VERDICT_SCHEMA)
    assert table.schema.equals(results.VERDICT_SCHEMA)
    assert pa.types.is_float64(results.EVIDENCE_SCHEMA.field("effect").type)
    assert [results._null_for_nan(value) for value in (float("nan"), 0.0, None, False)] == [None, 0.0, None, False]
