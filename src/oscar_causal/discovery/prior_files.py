"""The prior of `fused` on disk: `prior.json`, `prior.parquet` and, where observed labels were counted, `patterns`."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from oscar_causal.data.checksums import check_file
from oscar_causal.data.folders import check_format, read_json, write_json
from oscar_causal.data.rules import read_rules
from oscar_causal.data.subjects import seen_subjects
from oscar_causal.discovery.cells import CELLS, OLD_CELLS, without_grades
from oscar_causal.discovery.evidence import FOLDS
from oscar_causal.discovery.fleet_prior import Classical, FleetPrior
from oscar_causal.discovery.reading import Features, Readings
from oscar_causal.discovery.two_groups import CLASSES, GROUPS
from oscar_causal.errors import FolderError, UsageError

FORMAT_VERSION = 3
"""1: no readings; the classical boundary's word in a sequence was a part of the tables and is no longer used. 2: no
table of its own for bystanders of a boundary that was read, no grades, no expected errors."""
FILES = ("prior.json", "prior.parquet", "readings.json", "rules.json")
NEEDED = ("prior.json", "prior.parquet")
PAIRS = pa.schema([("label", pa.string()), ("event", pa.string()), ("sequences", pa.int64())])


def write_prior(folder: Path, prior: FleetPrior) -> None:
    """Write the prior into a folder."""
    rates = {"rates": prior.rates, "outside": prior.outside}
    columns = {
        **{name: prior.pairs[name] for name in PAIRS.names},
        **{name: pa.FixedSizeListArray.from_arrays(pa.array(v.ravel()), FOLDS) for name, v in rates.items()},
    }
    pq.write_table(pa.table(columns), folder / "prior.parquet", compression="zstd", write_page_checksum=True)
    if prior.readings is not None:
        write_json(folder / "readings.json", _counts(prior.readings))
    write_json(
        folder / "prior.json",
        {
            "kind": "prior",
            "format_version": FORMAT_VERSION,
            "log_ratios": prior.log_ratios.tolist(),
            "class_means": prior.class_means.tolist(),
            "rare": sorted(prior.rare),
            "errors": prior.errors.tolist(),
            "rule_subjects": prior.rule_subjects,
            "never_without": {label: dict(part) for label, part in prior.never_without.items()},
            "classical": None if prior.classical is None else _classical_json(prior.classical),
        },
    )


def _counts(readings: Readings) -> dict[str, Any]:
    """Label -> its features, and pattern -> sequences by fold, and those with the label by fold."""
    return {
        label: {
            "raising": list(readings.features[label].raising),
            "lowering": list(readings.features[label].lowering),
            "patterns": {f"{pattern:x}": sums.tolist() for pattern, sums in patterns.items()},
        }
        for label, patterns in readings.counts.items()
    }


def _classical_json(known: Classical) -> dict[str, Any]:
    return {
        "method": known.method,
        "features": {label: list(texts) for label, texts in known.features.items()},
        "lowering": {label: list(texts) for label, texts in known.lowering.items()},
        "positives": dict(known.positives),
        "subjects": known.subjects,
    }


def prior_digest(population: Path | str) -> str:
    """A hash of the prior of a population folder."""
    digest = hashlib.sha256()
    for name in FILES:
        path = Path(population) / name
        if name in NEEDED and not path.exists():
            raise FolderError(f"{path}: missing; expected a population folder made with a model (its prior)")
        digest.update(path.read_bytes() if path.exists() else b"")
    return digest.hexdigest()


@lru_cache(1)
def opened_prior(population: str) -> FleetPrior:
    """`read_prior`, kept open: every sequence of a run asks the same one."""
    return read_prior(population)


def refuse_foreign(population: str, labels: Collection[str]) -> None:
    """Refuse a population that knows none of these labels: its prior would say nothing, and nobody would be told."""
    known = opened_prior(population).labels
    if known.isdisjoint(labels):
        some = ", ".join(map(repr, sorted(known)[:3]))
        raise UsageError(
            f"{population}: expected a population that knows one of the {len(labels)} labels of the run, "
            f"got one of another fleet ({len(known)} labels: {some}{', …' if len(known) > 3 else ''})"
        )


def read_prior(population: Path | str) -> FleetPrior:
    """The prior of a population folder, with its recovered rules where it has any."""
    folder = Path(population)
    path = folder / "prior.json"
    info = read_json(path)
    check_format(info, path, kind="prior", newest=FORMAT_VERSION)
    check_file(folder / "prior.parquet")
    try:
        table = pq.read_table(folder / "prior.parquet", page_checksum_verification=True)
        pairs = _without_nulls(table.select(PAIRS.names).cast(PAIRS))
        rates = _rates(table, "rates")
        outside = _rates(table, "outside") if "outside" in table.column_names else rates
        ratios, means, errors = _tables(info)
        classical, rare = _classical(info["classical"]), frozenset(info["rare"])
        readings = _readings(folder / "readings.json")
        never = {label: {e: tuple(o) for e, o in part.items()} for label, part in info.get("never_without", {}).items()}
        subjects = _packed(info.get("rule_subjects"))
    except (pa.ArrowException, OSError, AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
        raise FolderError(f"{folder}: damaged population: {path.name} or prior.parquet cannot be read") from error
    rules = folder / "rules.json"
    published = read_rules(rules) if rules.exists() else {}
    known = {label: item.rule for label, item in published.items()}
    return FleetPrior(pairs, rates, outside, ratios, means, rare, errors, classical, readings, known, subjects, never)


def _rates(table: pa.Table, name: str) -> Any:
    rates = pc.list_flatten(table[name]).to_numpy().astype(float).reshape(len(table), FOLDS)
    if not ((rates >= 0) & (rates <= 1)).all():
        raise ValueError("rates")
    return rates


def _without_nulls(table: pa.Table) -> pa.Table:
    if any(column.null_count for column in table.columns):
        raise ValueError("nulls")
    return table


def _packed(subjects: str | None) -> str | None:
    """Packed subjects, if they can be unpacked."""
    seen_subjects(pa.array([], pa.string()), [] if subjects is None else [subjects])
    return subjects


def _tables(info: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    ratios, means = np.array(info["log_ratios"], float), np.array(info["class_means"], float)
    version = info["format_version"]
    if version == 1:
        ratios, means = np.stack([ratios[:, :OLD_CELLS]] * 2, axis=1), np.stack([means] * 2, axis=1)
    if version < 3:
        ratios = ratios[:, [0, 1, 0]][:, :, without_grades()]
    errors = np.array(info["errors"], float) if version >= 3 else np.stack([1 - np.arange(101) / 100] * FOLDS)
    shapes = ((FOLDS, len(GROUPS), CELLS), (FOLDS, 2, len(CLASSES)), (FOLDS, 101))
    if (ratios.shape, means.shape, errors.shape) != shapes:
        raise ValueError("sizes")
    if not (np.isfinite(ratios).all() and ((errors >= 0) & (errors <= 1)).all()):
        raise ValueError("numbers")
    return ratios, means, errors


def _classical(info: Mapping[str, Any] | None) -> Classical | None:
    if info is None:
        return None
    features, lowering = (
        {label: tuple(texts) for label, texts in info.get(name, {}).items()} for name in ("features", "lowering")
    )
    return Classical(info["method"], features, info["positives"], _packed(info["subjects"]), lowering)


def _readings(path: Path) -> Readings | None:
    if not path.exists():
        return None
    told = read_json(path)
    features = {label: Features(tuple(item["raising"]), tuple(item["lowering"])) for label, item in told.items()}
    counts = {
        label: {int(text, 16): np.array(sums, np.int64).reshape(2, FOLDS) for text, sums in item["patterns"].items()}
        for label, item in told.items()
    }
    if not all(counts.values()):
        raise ValueError("no patterns")
    return Readings(features, counts)
