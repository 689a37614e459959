"""The population folder: fleet-level boundaries, recovered rules, the sums they came from, and the prior of `fused`.

`statistics/` holds whole numbers only, so populations of shards merge into the population of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from oscar_causal.data.checksums import NAME as CHECKSUMS
from oscar_causal.data.checksums import check_file, checksums
from oscar_causal.data.folders import check_format, new_folder, read_json, write_json
from oscar_causal.discovery.evidence import LABEL_SUMS, ONE, SCHEMAS, FleetEvidence
from oscar_causal.discovery.fleet_prior import FleetPrior
from oscar_causal.discovery.prior_files import write_prior
from oscar_causal.errors import FolderError

FORMAT_VERSION = 2
"""1: `statistics/cells` in an alphabet without grades, which says nothing in this one."""
LABEL_SCHEMA = pa.schema(
    [
        ("label", pa.string()),
        ("sequences", pa.int64()),
        ("probability", pa.float64()),
        ("untrusted", pa.int64()),
        ("seen_in_training", pa.int64()),
        ("unlabelled", pa.int64()),
        ("absent", pa.int64()),
        ("causes", pa.list_(pa.string())),
        ("inhibitors", pa.list_(pa.string())),
    ]
)
"""`probability`: the mean P(label) where the label came; `untrusted`, `seen_in_training`: verdicts so marked;
`unlabelled`: of the sequences, those without recorded labels, where the model alone says that it came; `absent`:
further ones, explained although the label is recorded not to have come, and left out."""


@dataclass(frozen=True)
class Population:
    """What a fleet says about each label."""

    info: Mapping[str, Any]
    """How it came about: inputs, settings, versions; the content of `population.json`."""
    evidence: FleetEvidence
    boundaries: pa.Table
    labels: pa.Table
    prior: FleetPrior | None = None
    drift: pa.Table | None = None
    rule_drift: pa.Table | None = None
    rules: Mapping[str, str] = field(default_factory=dict)
    """Label -> proposed rule."""
    proposals: Sequence[Mapping[str, Any]] = ()
    """Everything rule recovery said, also of labels without a rule."""
    interplay: Mapping[str, Any] | None = None
    expert: Mapping[str, Any] | None = None
    """Proposed rules beside an expert's; None = there was no expert's rule to compare with."""


def label_table(evidence: FleetEvidence, boundaries: pa.Table) -> pa.Table:
    """One row per label: how often it was met, and its boundary, strongest event first."""
    met = evidence.labels.group_by("label", use_threads=False).aggregate([(name, "sum") for name in LABEL_SUMS])
    found: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for row in boundaries.select(["label", "event", "verdict", "effect"]).to_pylist():
        found.setdefault((row["label"], row["verdict"]), []).append((-abs(row["effect"]), row["event"]))
    rows = [
        {
            "label": row["label"],
            "sequences": row["sequences_sum"],
            "probability": row["probability_sum"] / ONE / row["sequences_sum"] if row["sequences_sum"] else None,
            "untrusted": row["untrusted_sum"],
            "seen_in_training": row["seen_sum"],
            "unlabelled": row["unlabelled_sum"],
            "absent": row["absent_sum"],
            "causes": [event for _, event in sorted(found.get((row["label"], "cause"), []))],
            "inhibitors": [event for _, event in sorted(found.get((row["label"], "inhibitor"), []))],
        }
        for row in met.to_pylist()
    ]
    return pa.Table.from_pylist(sorted(rows, key=lambda row: str(row["label"])), schema=LABEL_SCHEMA)


def write_population(out: Path | str, population: Population, *, force: bool = False) -> None:
    """Write the folder; it appears whole or not at all."""
    with new_folder(out, force=force) as folder:
        (folder / "statistics").mkdir()
        for name in SCHEMAS:
            _write(getattr(population.evidence, name), folder / "statistics" / f"{name}.parquet")
        _write(population.boundaries, folder / "boundaries.parquet")
        _write(population.labels, folder / "labels.parquet")
        for name, table in (("drift", population.drift), ("rule_drift", population.rule_drift)):
            if table is not None:
                _write(table, folder / f"{name}.parquet")
        if population.prior is not None:
            write_prior(folder, population.prior)
        write_json(folder / "rules.json", dict(population.rules))
        if population.proposals:
            write_json(folder / "proposals.json", {str(item["label"]): dict(item) for item in population.proposals})
        for name, content in (("interplay", population.interplay), ("expert", population.expert)):
            if content is not None:
                write_json(folder / f"{name}.json", dict(content))
        head = {"kind": "population", "format_version": FORMAT_VERSION}
        write_json(folder / "population.json", {**head, **population.info})
        write_json(folder / CHECKSUMS, checksums(folder))


def read_info(folder: Path | str) -> dict[str, Any]:
    """The `population.json` of a folder."""
    path = Path(folder) / "population.json"
    info = read_json(path)
    check_format(info, path, kind="population", newest=FORMAT_VERSION)
    for name, kind, words in (("inputs", list, "a list"), ("counted", list, "a list"), ("settings", dict, "an object")):
        value = info.setdefault(name, kind())
        if not isinstance(value, kind) or (kind is list and not all(isinstance(item, str) for item in value)):
            raise FolderError(f"{path}: expected {name} to be {words}{' of texts' * (kind is list)}, got {value!r}")
    return info


def read_part(folder: Path | str, name: str) -> pa.Table:
    """One table of a population folder."""
    path = Path(folder) / name
    check_file(path)
    try:
        table = pq.read_table(path, page_checksum_verification=True)
        table.validate(full=True)
        return table.select(table.column_names)  # a name may be damaged, or be there twice
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise FolderError(f"{path}: missing, damaged or no Parquet file") from error


def read_rows(folder: Path | str, part: str, schema: pa.Schema, *, needed: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of one table, with the columns of `schema` that it has; those `needed` are there and without a null."""
    table, path = read_part(folder, part), Path(folder) / part
    found = table.column_names
    for column in needed:
        if column not in found:
            raise FolderError(f"{path}: expected a column {column!r}, found {', '.join(found) or 'none'}")
    columns = {}
    for name, kind in ((item.name, item.type) for item in schema if item.name in found):
        try:
            columns[name] = table[name].cast(kind)
        except pa.ArrowException as error:
            raise FolderError(f"{path}: column {name!r}: expected {kind}, found {table[name].type}") from error
        if name in needed and columns[name].null_count:
            raise FolderError(f"{path}: column {name!r}: expected a value in every row, found a null")
        if pa.types.is_floating(kind):
            if pc.any(pc.is_inf(columns[name])).as_py():
                raise FolderError(f"{path}: column {name!r}: expected finite numbers, found infinity")
            columns[name] = pc.if_else(pc.is_nan(columns[name]), pa.scalar(None, kind), columns[name])
    return list(pa.table(columns).to_pylist())


def is_population(folder: Path | str) -> bool:
    """Does this look like a population folder (and not like results)?"""
    return (Path(folder) / "population.json").exists()


def candidates_by_label(boundaries: pa.Table, prior: FleetPrior | None, most: int = 16) -> dict[str, list[str]]:
    """Label -> events that a rule may be made of: causes, inhibitors, and likely ones by the prior; strongest first."""
    chosen: dict[str, list[str]] = {label: [] for label in sorted(set(boundaries["label"].to_pylist()))}
    ordered = boundaries.append_column("size", pc.abs(boundaries["effect"])).sort_by([("size", "descending")])
    for row in ordered.select(["label", "event", "verdict", "rate"]).to_pylist():
        likely = prior is not None and (row["rate"] or 0.0) >= 0.3
        if (row["verdict"] in ("cause", "inhibitor") or likely) and len(chosen[row["label"]]) < most:
            chosen[row["label"]].append(row["event"])
    return chosen


def _write(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, compression="zstd", compression_level=3, write_page_checksum=True)
