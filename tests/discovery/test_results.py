"""The results folder: every column comes back, a killed run goes on to the same bytes, nothing foreign is mixed in."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oscar_causal.discovery import results as module
from oscar_causal.discovery.boundary import Boundary, EventEvidence
from oscar_causal.discovery.results import (
    CAUSE_SCHEMA,
    EVIDENCE_SCHEMA,
    VERDICT_SCHEMA,
    ResultsWriter,
    fingerprint,
    read_run,
    read_table,
)
from oscar_causal.errors import FolderError, OscarError, UsageError

CAUSE = EventEvidence("A", (0, 4), "cause", 0.5, 0.1, 40, 24, 0.001, 0.004, 5.5, 0.7, 0.2, 0.05, 0.3, 0.8, 0.25)
BLOCKER = EventEvidence("B", (1,), "inhibitor", -0.25, None, 50, 14, 0.01, 0.02, 3.0, -0.3)
QUIET = EventEvidence("C", (2, 3), "no effect", 0.0, 0.01, 30, 34)
OPEN = EventEvidence("D\n", (5,), "not resolvable", 0.05)
FULL = Boundary("s 1", "fault", True, 0.9, (QUIET, BLOCKER, OPEN, CAUSE), True, False, 64, ("one", "two"))
EMPTY = Boundary("s 2", "é", None, None, ())
RUN = {"fingerprint": fingerprint({"seed": 0}), "estimator": "intervention"}


def shard(k: int) -> list[Boundary]:
    return [replace(FULL, sequence_id=f"s{k}"), replace(EMPTY, sequence_id=f"t{k}")]


def write(out: Path, shards: int, **options: Any) -> None:
    writer = ResultsWriter(out, RUN, **options)
    for k in range(shards):
        if not writer.done(k):
            writer.write_shard(k, shard(k))
    writer.finish(seconds=1.0)


def content(folder: Path) -> dict[str, bytes]:
    """Every file but run.json, which alone holds times."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(p.relative_to(folder)): p.read_bytes() for p in files if p.name not in ("run.json", "checksums.json")}


def test_every_column_comes_back(tmp_path: Path) -> None:
    writer = ResultsWriter(tmp_path / "r", RUN)
    writer.write_shard(0, [FULL, EMPTY])
    writer.finish(seconds=2.5)
    tables = {name: read_table(tmp_path / "r", name) for name in ("verdicts", "evidence", "causes")}
    assert tables["verdicts"].schema.equals(VERDICT_SCHEMA)
    assert tables["evidence"].schema.equals(EVIDENCE_SCHEMA)
    assert tables["causes"].schema.equals(CAUSE_SCHEMA)
    for row, item in zip(tables["verdicts"].to_pylist(), (FULL, EMPTY), strict=True):
        assert row == {name: plain(getattr(item, name)) for name in VERDICT_SCHEMA.names}
    own = {"sequence_id": "s 1", "label": "fault"}
    for name, events in (("evidence", FULL.evidence), ("causes", (CAUSE, BLOCKER))):
        rows = tables[name].to_pylist()
        columns = [column for column in tables[name].column_names if column not in own]
        assert rows == [{**own, **{column: plain(getattr(item, column)) for column in columns}} for item in events]
    run = read_run(tmp_path / "r")
    assert (run["kind"], run["seconds"], run["fingerprint"]) == ("results", 2.5, RUN["fingerprint"])


def plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def test_the_format_has_the_columns_it_promises() -> None:
    assert {"observed", "probability", "trusted", "seen_in_training", "contexts", "flags"} < set(VERDICT_SCHEMA.names)
    assert {"event", "effect", "se", "n_kept", "n_replaced", "p_value"} < set(EVIDENCE_SCHEMA.names)
    numbers = ["indicator", "indicator_sd", "indicator_se", "ci_low", "ci_high", "cmi_nats", "p_value", "q_value"]
    first = ["sequence_id", "label", "event", "verdict", "positions", *numbers, "alone"]
    assert CAUSE_SCHEMA.names[: len(first)] == first
    assert {"borderline", "source", "agreement"} < set(CAUSE_SCHEMA.names)
    assert {"observed_logp", "contexts_logp"} < set(VERDICT_SCHEMA.names)
    assert "borderline" in EVIDENCE_SCHEMA.names


def test_a_run_that_explained_nothing_has_empty_tables(tmp_path: Path) -> None:
    ResultsWriter(tmp_path / "r", RUN).finish()
    assert [read_table(tmp_path / "r", name).num_rows for name in ("verdicts", "evidence", "causes")] == [0, 0, 0]


@pytest.mark.parametrize("breaks_at", range(9))  # three files in each of three shards
def test_a_run_killed_at_any_file_goes_on_to_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks_at: int
) -> None:
    write(tmp_path / "whole", 3)
    real, calls = pq.write_table, []

    def breaking(table: Any, where: Path, **options: Any) -> None:
        calls.append(where)
        if len(calls) > breaks_at:
            Path(where).write_bytes(b"half a fi")
            raise KeyboardInterrupt
        real(table, where, **options)

    monkeypatch.setattr(module.pq, "write_table", breaking)
    writer = ResultsWriter(tmp_path / "r", RUN)
    with pytest.raises(KeyboardInterrupt):
        [writer.write_shard(k, shard(k)) for k in range(3)]
    writer.lock.close()  # what the end of a process does
    monkeypatch.undo()
    assert not (tmp_path / "r").exists()
    again = ResultsWriter(tmp_path / "r", RUN, resume=True)
    assert [again.done(k) for k in range(3)] == [k < breaks_at // 3 for k in range(3)]
    again.lock.close()
    write(tmp_path / "r", 3, resume=True)
    assert content(tmp_path / "r") == content(tmp_path / "whole")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r", "whole"]


_KILLED = """
import os, signal, sys
from pathlib import Path
from oscar_causal.discovery.boundary import Boundary
from oscar_causal.discovery.results import ResultsWriter
writer = ResultsWriter(Path(sys.argv[1]), {"fingerprint": sys.argv[2], "estimator": "intervention"})
writer.write_shard(0, [Boundary("s", "y", True, 0.5, ())])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_really_killed_process_leaves_a_folder_that_can_be_resumed(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path / "r"), RUN["fingerprint"]], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert [p.name for p in tmp_path.iterdir()] == ["r.partial"]
    writer = ResultsWriter(tmp_path / "r", RUN, resume=True)
    assert writer.done(0)
    writer.finish()
    assert read_table(tmp_path / "r", "verdicts").num_rows == 1


@pytest.mark.parametrize("name", ["verdicts", "evidence", "causes"])
def test_a_damaged_shard_counts_as_not_written(tmp_path: Path, name: str) -> None:
    """Half a file never counts; with one bit flipped anywhere, a shard counts only if it reads the same."""
    writer = ResultsWriter(tmp_path / "r", RUN)
    writer.write_shard(0, shard(0))
    path = tmp_path / "r.partial" / name / "part-00000.parquet"
    sound, table = path.read_bytes(), pq.read_table(path)
    assert writer.done(0)
    for damaged in (b"", sound[: len(sound) // 2], sound[:-1]):
        path.write_bytes(damaged)
        assert not writer.done(0)
    noticed = 0
    for at in range(0, len(sound), len(sound) // 40):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 16]) + sound[at + 1 :])
        whole = writer.done(0)
        noticed += not whole
        assert not whole or pq.read_table(path).equals(table)
    assert noticed > 10
    path.unlink()
    assert not writer.done(0)
    writer.discard()


def test_an_unfinished_run_is_not_touched_without_resume(tmp_path: Path) -> None:
    writer = ResultsWriter(tmp_path / "r", RUN)
    writer.write_shard(0, shard(0))
    writer.discard()
    with pytest.raises(UsageError, match="--resume"):
        ResultsWriter(tmp_path / "r", RUN)
    assert (tmp_path / "r.partial" / "verdicts").exists()


def test_force_replaces_an_unfinished_run(tmp_path: Path) -> None:
    writer = ResultsWriter(tmp_path / "r", RUN)
    for k in range(3):
        writer.write_shard(k, shard(k))
    writer.discard()
    other = {**RUN, "fingerprint": fingerprint({"seed": 1})}
    again = ResultsWriter(tmp_path / "r", other, force=True)
    assert not again.done(0)
    again.write_shard(0, shard(7))
    again.finish(seconds=1.0)
    assert read_run(tmp_path / "r")["fingerprint"] == other["fingerprint"]
    assert set(read_table(tmp_path / "r", "verdicts")["sequence_id"].to_pylist()) == {"s7", "t7"}


def test_another_fingerprint_is_refused(tmp_path: Path) -> None:
    writer = ResultsWriter(tmp_path / "r", RUN)
    writer.write_shard(0, shard(0))
    writer.discard()
    other = {**RUN, "fingerprint": fingerprint({"seed": 1})}
    with pytest.raises(UsageError, match="other settings, data or model"):
        ResultsWriter(tmp_path / "r", other, resume=True)
    write(tmp_path / "r", 1, resume=True)  # the refused one broke nothing


def test_two_runs_cannot_write_one_folder(tmp_path: Path) -> None:
    first = ResultsWriter(tmp_path / "r", RUN)
    with pytest.raises(UsageError):
        ResultsWriter(tmp_path / "r", RUN)
    with pytest.raises(UsageError, match="another run"):
        ResultsWriter(tmp_path / "r", RUN, resume=True)
    first.write_shard(0, shard(0))
    first.finish()
    assert read_table(tmp_path / "r", "verdicts").num_rows == 2


def test_existing_results_are_refused_and_replaced_only_by_force(tmp_path: Path) -> None:
    write(tmp_path / "r", 2)
    with pytest.raises(UsageError, match="exists already"):
        ResultsWriter(tmp_path / "r", RUN)
    with pytest.raises(UsageError, match="exists already"):
        ResultsWriter(tmp_path / "r", RUN, resume=True)
    writer = ResultsWriter(tmp_path / "r", RUN, force=True)
    assert read_table(tmp_path / "r", "verdicts").num_rows == 4  # the old ones stay until the new ones are whole
    writer.write_shard(0, shard(0))
    writer.finish()
    assert read_table(tmp_path / "r", "verdicts").num_rows == 2
    assert [p.name for p in tmp_path.iterdir()] == ["r"]


def test_giving_up_before_the_first_shard_leaves_nothing(tmp_path: Path) -> None:
    ResultsWriter(tmp_path / "r", RUN).discard()
    assert list(tmp_path.iterdir()) == []


def test_the_order_of_shards_does_not_matter(tmp_path: Path) -> None:
    write(tmp_path / "a", 3)
    writer = ResultsWriter(tmp_path / "b", RUN)
    for k in (2, 0, 1):
        writer.write_shard(k, shard(k))
    writer.finish()
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_what_is_no_results_folder_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "r", 1)
    with pytest.raises(UsageError, match="expected one of"):
        read_table(tmp_path / "r", "verdict")
    with pytest.raises(FolderError):
        read_table(tmp_path / "nowhere", "causes")
    with pytest.raises(FolderError):
        read_run(tmp_path / "nowhere")
    (tmp_path / "r" / "causes" / "part-00000.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(FolderError, match="damaged"):
        read_table(tmp_path / "r", "causes")
    (tmp_path / "r" / "checksums.json").unlink()
    (tmp_path / "r" / "run.json").write_text(json.dumps({"kind": "dataset", "format_version": 1}))
    with pytest.raises(FolderError, match="results"):
        read_run(tmp_path / "r")


@pytest.mark.parametrize("name", ["verdicts", "evidence", "causes"])
def test_a_lost_or_foreign_part_is_told(tmp_path: Path, name: str) -> None:
    write(tmp_path / "r", 3)
    assert read_run(tmp_path / "r")["rows"] == {"verdicts": 6, "evidence": 12, "causes": 6}
    part = tmp_path / "r" / name / "part-00001.parquet"
    whole = pq.read_table(part)
    part.unlink()
    with pytest.raises(FolderError, match=r"part-00001\.parquet: missing"):
        read_table(tmp_path / "r", name)
    (tmp_path / "r" / "checksums.json").unlink()
    rows = read_run(tmp_path / "r")["rows"][name]
    with pytest.raises(FolderError, match=f"{name}: expected {rows} rows as run.json says, found {rows * 2 // 3}"):
        read_table(tmp_path / "r", name)
    pq.write_table(pa.concat_tables([whole, whole]), part)  # of another run
    with pytest.raises(FolderError, match=f"expected {rows} rows"):
        read_table(tmp_path / "r", name)
    pq.write_table(pa.table({"x": range(len(whole))}), part)
    with pytest.raises(FolderError, match="part-00001.* no 'sequence_id'"):
        read_table(tmp_path / "r", name)
    pq.write_table(whole.set_column(1, "label", pa.array([7] * len(whole))), part)
    with pytest.raises(FolderError, match="part-00001.*'label' as string, got int64"):
        read_table(tmp_path / "r", name)
    pq.write_table(whole.append_column("label", whole["label"]), part)
    with pytest.raises(FolderError, match="part-00001.*damaged"):
        read_table(tmp_path / "r", name)


def test_folders_that_tell_no_rows_are_read_as_before(tmp_path: Path) -> None:
    write(tmp_path / "r", 2)
    run = read_run(tmp_path / "r")
    (tmp_path / "r" / "checksums.json").unlink()
    for told in (run["rows"] | {"causes": "4"}, [], 7, {}):
        (tmp_path / "r" / "run.json").write_text(json.dumps({**run, "rows": told}))
        with pytest.raises(FolderError, match="rows as run.json says|expected rows"):
            read_table(tmp_path / "r", "causes")
    del run["rows"]
    (tmp_path / "r" / "run.json").write_text(json.dumps(run))
    part = tmp_path / "r" / "verdicts" / "part-00000.parquet"
    pq.write_table(pq.read_table(part).drop_columns("ranked_by"), part)
    assert read_table(tmp_path / "r", "verdicts").num_rows == 4


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OscarError, match="file"):
        ResultsWriter(tmp_path / "file" / "r", RUN)


def test_the_fingerprint_sees_every_setting_and_no_order() -> None:
    assert fingerprint({"a": 1, "b": [1, 2]}) == fingerprint({"b": [1, 2], "a": 1})
    assert len({fingerprint(what) for what in ({"a": 1}, {"a": 2}, {"a": "1"}, {"b": 1}, {"a": [1]}, {})}) == 6


def test_results_import_no_torch() -> None:
    """Reading a results folder stays light: verbs that only read it answer at once."""
    code = "import sys, oscar_causal.discovery.results; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, env=dict(os.environ)).returncode == 0


def test_a_full_disk_is_one_clear_error_and_the_run_can_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = ResultsWriter(tmp_path / "r", RUN)
    writer.write_shard(0, shard(0))

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.pq, "write_table", full)
    with pytest.raises(FolderError, match="part-00001.*No space left"):
        writer.write_shard(1, shard(1))
    monkeypatch.undo()
    writer.discard()
    write(tmp_path / "r", 2, resume=True)
    assert read_table(tmp_path / "r", "verdicts").num_rows == 4
