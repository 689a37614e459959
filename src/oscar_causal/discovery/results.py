"""The results folder: verdicts for every explained (sequence, label), evidence for every tested event, causes.

Written in shards of a fixed number of sequences; a shard's verdict file is written last and marks it complete, so a
killed run goes on where it stopped and the files are the same as without the kill.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from oscar_causal.data.folders import check_format, exclusive, move_into_place, read_json, refuse_existing, write_json
from oscar_causal.discovery.boundary import Boundary, EventEvidence
from oscar_causal.errors import FolderError, UsageError

FORMAT_VERSION = 1
SHARD_SEQUENCES = 256

_KEYS = [("sequence_id", pa.string()), ("label", pa.string())]
VERDICT_SCHEMA = pa.schema(
    [
        *_KEYS,
        ("observed", pa.bool_()),
        ("probability", pa.float64()),
        ("trusted", pa.bool_()),
        ("seen_in_training", pa.bool_()),
        ("contexts", pa.int32()),
        ("flags", pa.list_(pa.string())),
    ]
)
EVIDENCE_SCHEMA = pa.schema(
    [
        *_KEYS,
        ("event", pa.string()),
        ("verdict", pa.string()),
        ("effect", pa.float64()),
        ("se", pa.float64()),
        ("n_kept", pa.int32()),
        ("n_replaced", pa.int32()),
        ("p_value", pa.float64()),
        ("score", pa.float64()),
    ]
)
CAUSE_SCHEMA = pa.schema(
    [
        *_KEYS,
        ("event", pa.string()),
        ("verdict", pa.string()),
        ("positions", pa.list_(pa.int32())),
        ("indicator", pa.float64()),
        ("indicator_sd", pa.float64()),
        ("indicator_se", pa.float64()),
        ("ci_low", pa.float64()),
        ("ci_high", pa.float64()),
        ("cmi_nats", pa.float64()),
        ("p_value", pa.float64()),
        ("q_value", pa.float64()),
        ("alone", pa.float64()),
    ]
)
_TABLES = {"evidence": EVIDENCE_SCHEMA, "causes": CAUSE_SCHEMA, "verdicts": VERDICT_SCHEMA}  # verdicts last


def fingerprint(what: Mapping[str, Any]) -> str:
    """A hash of everything that decides the results."""
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()


class ResultsWriter:
    """Collects boundaries into a results folder, shard by shard; `finish` makes it appear."""

    def __init__(self, out: Path | str, run: Mapping[str, Any], *, resume: bool = False, force: bool = False) -> None:
        self.out, self.force = Path(out), force
        refuse_existing(self.out, force=force)
        self.partial = self.out.with_name(f"{self.out.name}.partial")
        self.run = {"kind": "results", "format_version": FORMAT_VERSION, **run}
        self._open(resume)

    def _open(self, resume: bool) -> None:
        marker = self.partial / "run.json"
        if marker.exists() and not resume:
            raise UsageError(f"{self.partial}: an unfinished run is there; say --resume to go on or remove it")
        if marker.exists() and read_json(marker).get("fingerprint") != self.run["fingerprint"]:
            raise UsageError(f"{self.partial}: --resume: that run had other settings, data or model")
        with _writing(self.partial):
            for name in _TABLES:
                (self.partial / name).mkdir(parents=True, exist_ok=True)
            self.lock = exclusive(self.partial / "lock", what="writing results")
            if not marker.exists():
                write_json(marker, self.run)

    def done(self, shard: int) -> bool:
        """Was this shard written before?"""
        return (self.partial / "verdicts" / _part(shard)).exists()

    def write_shard(self, shard: int, boundaries: Iterable[Boundary]) -> None:
        """Write one shard; its verdict file appears last."""
        rows = list(boundaries)
        for name, schema in _TABLES.items():
            path = self.partial / name / _part(shard)
            waiting = path.with_name(path.name + ".partial")
            with _writing(path):
                pq.write_table(_table(name, rows, schema), waiting, compression="zstd", compression_level=1)
                waiting.replace(path)

    def finish(self, **times: Any) -> None:
        """Write the run's times and let the folder appear under its name."""
        write_json(self.partial / "run.json", {**self.run, **times})
        self.lock.close()
        (self.partial / "lock").unlink(missing_ok=True)
        move_into_place(self.partial, self.out, force=self.force)

    def discard(self) -> None:
        """Give up the lock (the unfinished folder stays for --resume)."""
        self.lock.close()
        if not any((self.partial / "verdicts").iterdir()):
            shutil.rmtree(self.partial, ignore_errors=True)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """A full disk or a forbidden place is told in one line."""
    try:
        yield
    except OSError as error:
        raise FolderError(f"{path}: cannot be written: {error.strerror or error}") from error


def read_run(folder: Path | str) -> dict[str, Any]:
    """The `run.json` of a results folder."""
    path = Path(folder) / "run.json"
    run = read_json(path)
    check_format(run, path, kind="results", newest=FORMAT_VERSION)
    return run


def read_table(folder: Path | str, name: str) -> pa.Table:
    """All rows of `verdicts`, `evidence` or `causes`."""
    if name not in _TABLES:
        raise UsageError(f"results: expected one of {', '.join(_TABLES)}, got {name!r}")
    if not (Path(folder) / name).is_dir():
        raise FolderError(f"{folder}: expected a results folder with {name}/, found none")
    return pa.concat_tables([*_parts(Path(folder) / name), _TABLES[name].empty_table()], promote_options="default")


def _parts(folder: Path) -> Iterator[pa.Table]:
    for path in sorted(folder.glob("part-*.parquet")):
        try:
            yield pq.read_table(path)
        except (pa.ArrowException, OSError) as error:
            raise FolderError(f"{path}: damaged or no Parquet file") from error


def _part(shard: int) -> str:
    return f"part-{shard:05d}.parquet"


def _table(name: str, boundaries: list[Boundary], schema: pa.Schema) -> pa.Table:
    if name == "verdicts":
        rows = [{**vars(item), "flags": list(item.flags)} for item in boundaries]
    else:
        pairs = [(item, event) for item in boundaries for event in _events(item, name)]
        rows = [{"sequence_id": b.sequence_id, "label": b.label, **vars(event)} for b, event in pairs]
    columns = {field.name: [row[field.name] for row in rows] for field in schema}
    return pa.table(columns, schema=schema)


def _events(boundary: Boundary, name: str) -> Iterable[EventEvidence]:
    return boundary.causes if name == "causes" else boundary.evidence
