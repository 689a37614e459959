"""The results folder: verdicts for every explained (sequence, label), evidence for every tested event, causes.

Written in shards of a fixed number of sequences; a shard's verdict file is written last and marks it complete, so a
killed run goes on where it stopped and the files are the same as without the kill.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from oscar_causal.data.checksums import NAME as CHECKSUMS
from oscar_causal.data.checksums import check_file, checksums
from oscar_causal.data.folders import (
    LOCK,
    check_format,
    claim,
    empty,
    let_go,
    move_into_place,
    partial_of,
    read_json,
    refuse_existing,
    refuse_unfinished,
    remove_leftovers,
    write_json,
)
from oscar_causal.discovery.boundary import Boundary, EventEvidence, Verdict
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
        ("observed_logp", pa.float64()),
        ("contexts_logp", pa.float64()),
        ("ranked_by", pa.string()),
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
        ("share", pa.float64()),
        ("accepted_by", pa.string()),
        ("borderline", pa.bool_()),
        ("posterior", pa.float64()),
        ("prior", pa.float64()),
        ("log_ratio", pa.float64()),
        ("response", pa.float64()),
        ("fleet_sequences", pa.int64()),
        ("classical", pa.bool_()),
        ("rule", pa.bool_()),
    ]
)
"""The last seven are the sources of a verdict of `fused`, null for other estimators."""
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
        ("mattered", pa.list_(pa.int32())),
        ("partner", pa.string()),
        ("jointly", pa.float64()),
        ("borderline", pa.bool_()),
        ("source", pa.string()),
        ("agreement", pa.float64()),
        ("share", pa.float64()),
        ("accepted_by", pa.string()),
    ]
)
_TABLES = {"evidence": EVIDENCE_SCHEMA, "causes": CAUSE_SCHEMA, "verdicts": VERDICT_SCHEMA}  # verdicts last
_NEWER = ("ranked_by", "share", "accepted_by")
"""Columns that folders of earlier versions lack."""
_PARQUET: dict[str, Any] = {"compression": "zstd", "compression_level": 1, "write_page_checksum": True}


def fingerprint(what: Mapping[str, Any]) -> str:
    """A hash of everything that decides the results."""
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()


class ResultsWriter:
    """Collects boundaries into a results folder, shard by shard; `finish` makes it appear, once, in one process."""

    lock: IO[bytes]

    def __init__(
        self,
        out: Path | str,
        run: Mapping[str, Any],
        *,
        resume: bool = False,
        force: bool = False,
        joins: bool = False,
    ) -> None:
        """`joins`: another process of the same run has opened the folder and will finish it."""
        self.out, self.force, self._joins = Path(out), force, joins
        self.partial = partial_of(self.out)
        self.run = {"kind": "results", "format_version": FORMAT_VERSION, **run}
        if not joins:
            refuse_existing(self.out, force=force)
            self._open(resume)

    def _open(self, resume: bool) -> None:
        marker = self.partial / "run.json"
        if marker.exists() and not resume and not self.force:
            raise UsageError(
                f"{self.partial}: an unfinished run is there; say --resume to go on or --force to replace it"
            )
        if marker.exists() and resume and read_json(marker).get("fingerprint") != self.run["fingerprint"]:
            raise UsageError(f"{self.partial}: --resume: that run had other settings, data or model")
        with _writing(self.partial):
            self.lock = claim(self.partial, what="writing results")
            try:
                refuse_existing(self.out, force=self.force)  # another run may have ended in between
                if not marker.exists():
                    refuse_unfinished(self.partial, force=self.force, but=_TABLES)
                if not resume or not marker.exists():  # with --force also what an unfinished run has left
                    empty(self.partial)
                for name in _TABLES:
                    (self.partial / name).mkdir(exist_ok=True)
                if not marker.exists():
                    write_json(marker, self.run)
            except OSError:
                self.discard()
                raise
            except UsageError:
                let_go(self.partial)
                self.lock.close()
                raise

    def done(self, shard: int) -> bool:
        """Was this shard written before, and is it whole? One that is damaged counts as not written."""
        paths = {name: self.partial / name / _part(shard) for name in reversed(_TABLES)}
        return all(path.exists() for path in paths.values()) and all(
            _is_whole(path, _TABLES[name]) for name, path in paths.items()
        )

    def write_shard(self, shard: int, boundaries: Iterable[Boundary]) -> None:
        """Write one shard; its verdict file appears last."""
        rows = list(boundaries)
        for name, schema in _TABLES.items():
            table = _table(name, rows, schema)
            self._put(name, shard, lambda path, table=table: pq.write_table(table, path, **_PARQUET))  # type: ignore[misc]

    def write_files(self, shard: int, files: Mapping[str, bytes]) -> None:
        """Write one shard that `shard_files` made elsewhere: the same files as `write_shard` with its boundaries."""
        for name in _TABLES:
            self._put(name, shard, lambda path, name=name: path.write_bytes(files[name]))  # type: ignore[misc]

    def _put(self, name: str, shard: int, write: Callable[[Path], Any]) -> None:
        path = self.partial / name / _part(shard)
        waiting = path.with_name(path.name + ".partial")
        with _writing(path):
            try:
                write(waiting)
                waiting.replace(path)
            except OSError:
                waiting.unlink(missing_ok=True)  # on a full disk every byte counts
                raise

    def finish(self, **times: Any) -> None:
        """Write the run's times and the rows of its tables, and let the folder appear under its name."""
        with _writing(self.out):
            remove_leftovers(self.partial)
            rows = {name: _rows(_files(self.partial / name)) for name in _TABLES}
            write_json(self.partial / "run.json", {**self.run, **times, "rows": rows})
            whole = [path for path in self.partial.rglob("*") if path.is_file() and path.name != LOCK]
            names = [path.relative_to(self.partial).as_posix() for path in whole]
            write_json(self.partial / CHECKSUMS, checksums(self.partial, names))
            move_into_place(self.partial, self.out, force=self.force)
            (self.out / LOCK).unlink(missing_ok=True)
        self.lock.close()

    def discard(self) -> None:
        """Give up the lock (the unfinished folder stays for --resume)."""
        if self._joins:
            return
        if next((self.partial / "verdicts").glob("part-*.parquet"), None) is None:
            shutil.rmtree(self.partial, ignore_errors=True)
        self.lock.close()


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
    for key, kind in _RUN.items():
        for name, value in _values(run, key.split(".")):
            if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
                raise FolderError(f"{path}: expected {name} to be {_KINDS[kind]}, got {value!r}")
    return run


_KINDS: dict[type, str] = {dict: "a JSON object", list: "a list", str: "text", int: "a whole number"}
_RUN: dict[str, type] = {
    **dict.fromkeys(("config", "counts", "dataset", "memory", "model", "rows", "unknown", "versions"), dict),
    **dict.fromkeys(("estimand", "estimator", "fingerprint", "precision"), str),
    **dict.fromkeys(("seed", "sequences", "counts.*", "rows.*"), int),
    **dict.fromkeys(("dataset.path", "dataset.digest", "model.path", "model.digest", "versions.*"), str),
    **dict.fromkeys(("config.fused", "config.intervention", "config.knowledge", "config.prefix", "config.tests"), dict),
    **dict.fromkeys(("config.estimator", "config.replacement"), str),
    **dict.fromkeys(("also", "config.excluded", "config.knowledge.excluded"), list),
}
"""What `run.json` holds, as far as readers make use of it; each may be absent or null. Parents come first."""


def _values(value: Any, path: list[str]) -> Iterator[tuple[str, Any]]:
    """The values at a path with their names; `*` stands for every key."""
    if not path:
        yield "", value
    elif isinstance(value, dict):
        for name in value if path[0] == "*" else path[:1]:
            for rest, found in _values(value.get(name), path[1:]):
                yield f"{name}.{rest}" if rest else name, found


def read_table(folder: Path | str, name: str) -> pa.Table:
    """All rows of `verdicts`, `evidence` or `causes`; lost parts and foreign ones are told."""
    return pa.concat_tables([*read_parts(folder, name), _TABLES[name].empty_table()], promote_options="default")


def read_parts(folder: Path | str, name: str) -> Iterator[pa.Table]:
    """The same one part after the other, in the order of their numbers."""
    for path in part_files(folder, name):
        yield _read_part(path, _TABLES[name])


def part_files(folder: Path | str, name: str) -> list[Path]:
    """The files of a table, if they hold as many rows as `run.json` says (in folders of earlier versions it is silent).

    Only the ends of the files are read.
    """
    if name not in _TABLES:
        raise UsageError(f"results: expected one of {', '.join(_TABLES)}, got {name!r}")
    place = Path(folder) / name
    if not place.is_dir():
        raise FolderError(f"{folder}: expected a results folder with {name}/, found none")
    files, told = _files(place), read_run(folder).get("rows")
    if told is not None:
        wanted, found = told.get(name), _rows(files)
        if found != wanted:
            raise FolderError(
                f"{place}: expected {wanted!r} rows as run.json says, found {found}: parts are lost or foreign"
            )
    return files


def boundary_table(boundaries: Iterable[Boundary], name: str) -> pa.Table:
    """Boundaries in memory as the table `verdicts`, `evidence` or `causes` that a results folder would hold."""
    return _table(name, list(boundaries), _TABLES[name])


def shard_files(boundaries: Iterable[Boundary]) -> dict[str, bytes]:
    """The files of one shard as bytes, by the name of their table, for a writer in another process."""
    rows, files = list(boundaries), {}
    for name, schema in _TABLES.items():
        sink = pa.BufferOutputStream()
        pq.write_table(_table(name, rows, schema), sink, **_PARQUET)
        files[name] = sink.getvalue().to_pybytes()
    return files


def _files(place: Path) -> list[Path]:
    return sorted(place.glob("part-*.parquet"))


def _rows(files: list[Path]) -> int:
    return sum(_rows_of(path) for path in files)


def _rows_of(path: Path) -> int:
    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FolderError(f"{path}: damaged or no Parquet file") from error


def _read_part(path: Path, schema: pa.Schema) -> pa.Table:
    """One part in the columns of the schema; newer ones may be missing, others are left out."""
    check_file(path)
    try:
        table = pq.read_table(path, page_checksum_verification=True)
        table.validate(full=True)
        names = [name for name in schema.names if name in table.column_names]
        lost = [name for name in schema.names if name not in (*names, *_NEWER)]
        kept = table.select(names)
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:  # names may be damaged, or be there twice
        raise FolderError(f"{path}: damaged or no Parquet file") from error
    if lost:
        raise FolderError(f"{path}: expected the columns of a results folder, found no {lost[0]!r}")
    for field in kept.schema:
        wanted = schema.field(field.name).type
        if field.type != wanted:
            raise FolderError(f"{path}: expected the column {field.name!r} as {wanted}, got {field.type}")
        expected = _unmet(field.name, kept[field.name])
        if expected:
            raise FolderError(f"{path}: column {field.name!r}: expected {expected}, got something else")
    allowed = ("cause", "inhibitor") if schema is CAUSE_SCHEMA else get_args(Verdict)
    if "verdict" in kept.column_names and set(kept["verdict"].unique().to_pylist()).difference(allowed):
        raise FolderError(f"{path}: column 'verdict': expected {' or '.join(allowed)}, got something else")
    return kept


def _unmet(name: str, column: pa.ChunkedArray) -> str:
    """What is expected of the values of a column and does not hold; nothing where all is well."""
    if name in ("sequence_id", "label", "event", "verdict") and column.null_count:
        return "a name in every row"
    if pa.types.is_floating(column.type) and not pc.all(pc.is_finite(column), min_count=0).as_py():
        return "finite numbers or null"
    if pa.types.is_list(column.type) and pc.list_flatten(column).null_count:
        return "lists without null"
    return ""


def _is_whole(path: Path, schema: pa.Schema) -> bool:
    try:
        return bool(pq.read_table(path, page_checksum_verification=True).schema.equals(schema))
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return False


def _part(shard: int) -> str:
    return f"part-{shard:05d}.parquet"


def _table(name: str, boundaries: list[Boundary], schema: pa.Schema) -> pa.Table:
    if name == "verdicts":
        rows = [{**vars(item), "flags": list(item.flags)} for item in boundaries]
    else:
        pairs = [(item, event) for item in boundaries for event in _events(item, name)]
        rows = [{"sequence_id": b.sequence_id, "label": b.label, **vars(event)} for b, event in pairs]
    columns = {field.name: [_null_for_nan(row[field.name]) for row in rows] for field in schema}
    return pa.table(columns, schema=schema)


def _null_for_nan(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _events(boundary: Boundary, name: str) -> Iterable[EventEvidence]:
    return boundary.causes if name == "causes" else boundary.evidence
