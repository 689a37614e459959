"""What the pages suppose a reader has at hand, made small: tables, logs, a fleet, a model that has learnt, results.

The comment before a block names what it needs (`with fleet, model`); a name is a function here, or a command line.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import torch

from oscar_causal.data.checksums import checksums
from oscar_causal.data.folders import write_json
from oscar_causal.data.stream import stream_tables
from oscar_causal.data.writer import write_dataset

HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden"
SAMPLES = HERE.parent / "data" / "importers" / "samples"
DOCS = HERE.parents[1] / "docs"


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def fleet_table() -> pa.Table:
    """The golden drives, named CAR-1200 and so on."""
    table = next(stream_tables(GOLDEN / "dataset-1"))
    ids = pa.array([f"CAR-{1200 + k}" for k in range(len(table))])
    return table.set_column(table.column_names.index("sequence_id"), "sequence_id", ids)


def fleet(place: Path) -> None:
    """The golden drives with their rules and reasons."""
    table = fleet_table()
    names = dict(zip(next(stream_tables(GOLDEN / "dataset-1"))["sequence_id"].to_pylist(),
                     table["sequence_id"].to_pylist(), strict=True))  # fmt: skip
    write_dataset(place, [table])
    shutil.copy(GOLDEN / "dataset-1" / "rules.json", place)
    (place / "why").mkdir()
    for part in (GOLDEN / "dataset-1" / "why").glob("*.parquet"):
        why = pq.read_table(part)
        renamed = pa.array([names[old] for old in why["sequence_id"].to_pylist()])
        pq.write_table(why.set_column(0, "sequence_id", renamed), place / "why" / part.name)
    write_json(place / "checksums.json", checksums(place))


def some_cars(first: int, last: int) -> Callable[[Path], None]:
    return lambda place: write_dataset(place, [fleet_table().slice(first, last - first)])


def codes_csv(place: Path) -> None:
    """One row per event of fifty cars."""
    begin = datetime(2026, 3, 1, 6)
    rows = [
        {"car": row["sequence_id"], "time": (begin + timedelta(seconds=time)).isoformat(), "code": code}
        for row in fleet_table().slice(0, 50).to_pylist()
        for time, code in zip(row["times"], row["events"], strict=True)
    ]
    pa.csv.write_csv(pa.Table.from_pylist(rows), place)


def patterns_csv(place: Path) -> None:
    """One row per outcome of the same cars."""
    rows = [
        {"car": row["sequence_id"], "label": label}
        for row in fleet_table().slice(0, 50).to_pylist()
        for label in row["labels"] or ()
    ]
    pa.csv.write_csv(pa.Table.from_pylist(rows), place)


def cohort(place: Path) -> None:
    """Three subjects of a MEDS dataset, with splits."""
    import meds

    day = datetime(2020, 1, 1)
    rows = [
        {"subject_id": subject, "time": day + timedelta(days=k), "code": code, "numeric_value": None}
        for subject in (1, 2, 3)
        for k, code in enumerate(("ADMISSION", "LAB//LACTATE", "DISCHARGE"))
    ]
    _write(place / "data" / "train" / "0.parquet", rows, meds.DataSchema)
    splits = [{"subject_id": s, "split": "train" if s < 3 else "held_out"} for s in (1, 2, 3)]
    _write(place / meds.subject_splits_filepath, splits, meds.SubjectSplitSchema)


def sepsis(place: Path) -> None:
    """A MEDS task about the first two of them."""
    import meds

    asked = [{"subject_id": s, "prediction_time": datetime(2020, 1, 2), "boolean_value": s == 1} for s in (1, 2)]
    _write(place / "0.parquet", asked, meds.LabelSchema)


def _write(path: Path, rows: list[dict[str, Any]], schema: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fields = pa.schema([schema.schema().field(name) for name in rows[0]])
    pq.write_table(pa.Table.from_pylist(rows, schema=fields), path)


def mine_py(place: Path) -> None:
    """The Python of the page about extensions, as a file."""
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / "extending.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
    place.write_text("\n".join(blocks), encoding="utf-8")


def copy_of(source: Path) -> Callable[[Path], None]:
    return lambda place: None if (shutil.copytree if source.is_dir() else shutil.copy)(source, place) else None


SUPPLIES: dict[str, Callable[[Path], None] | str] = {
    "fleet": fleet,
    "training-cars": some_cars(0, 80),
    "new-cars": some_cars(20, 50),
    "codes.csv": codes_csv,
    "patterns.csv": patterns_csv,
    "model": copy_of(GOLDEN / "model-1"),
    "other-model": copy_of(GOLDEN / "model-1"),
    "causes": "discover model fleet --held-out --contexts 48 --out causes",
    "seed-0": "discover model fleet --held-out --contexts 16 --seed 0 --out seed-0",
    "seed-1": "discover model fleet --held-out --contexts 16 --seed 1 --out seed-1",
    "seed-2": "discover model fleet --held-out --contexts 16 --seed 2 --out seed-2",
    "intervention": "discover model fleet --held-out --contexts 16 --out intervention",
    "prefix": "discover model fleet --held-out --contexts 4 --context 2 --estimator prefix --out prefix",
    "rules": "population causes --looks 1 --contexts 36 --no-rules --out rules",
    "cohort": cohort,
    "sepsis": sepsis,
    "log.xes": copy_of(SAMPLES / "clinic.xes"),
    "orders.json": copy_of(SAMPLES / "orders.json"),
    "train.json": copy_of(SAMPLES / "easytpp" / "train.json"),
    "dev.json": copy_of(SAMPLES / "easytpp" / "dev.json"),
    "saved_dataset": copy_of(SAMPLES / "hf_saved"),
    "mine.py": mine_py,
}


@pytest.fixture
def supply(oscar: Callable[..., Any]) -> Callable[[str], None]:
    """Put something into the current folder, in place of what is there under its name."""

    def put(name: str) -> None:
        place, how = Path(name), SUPPLIES[name]
        if place.is_dir():
            shutil.rmtree(place)
        if callable(how):
            how(place)
        else:
            ran = oscar(*how.split())
            assert ran.code == 0, ran.err

    return put
