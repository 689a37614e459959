"""What came in from any format goes out as long tables or MEDS and comes in again the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from oscar_causal.data.export import export_tables
from oscar_causal.data.importers import ImportOptions, import_tables
from oscar_causal.data.readers import read_meds
from oscar_causal.data.sequences import Dataset, read_dataset

SAMPLES = Path(__file__).parent / "samples"
XES, OCEL = SAMPLES / "clinic.xes", SAMPLES / "orders.json"
LOGS = {
    "xes": (
        [XES],
        ImportOptions(labels=XES, label_column="case:outcome", static=("case:age",), channels=("lactate",)),
    ),
    "ocel": ([OCEL], ImportOptions(object_type="order", labels=OCEL, label_column="object:status")),
    "easytpp": ([SAMPLES / "easytpp" / name for name in ("train.json", "dev.json")], ImportOptions()),
    "hf": ([SAMPLES / "hf_saved"], ImportOptions(labels=SAMPLES / "hf_saved", label_column="labels")),
}


@pytest.fixture(params=LOGS)
def imported(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    files, options = LOGS[request.param]
    assert import_tables(files, tmp_path / "one", options).events > 0
    assert read_dataset(tmp_path / "one").info["imported"]["format"] == request.param
    return tmp_path / "one"


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_through_long_tables(imported: Path, tmp_path: Path, form: str) -> None:
    tables = export_tables(imported, tmp_path / "tables", format=form)
    again = import_tables([tables.events], tmp_path / "two", tables.import_options)
    assert again.digest == read_dataset(imported).info["digest"]  # every value of every column


def test_through_meds(imported: Path, tmp_path: Path) -> None:
    """But for what docs/importing.md says is lost: starts that were missing, times of labels, unlabelled sequences."""
    pytest.importorskip("meds")
    from oscar_causal.data.export_meds import export_meds

    first = read_dataset(imported)
    export_meds(imported, tmp_path / "meds")
    second = read_meds(tmp_path / "meds")
    assert _events(second) == _events(first)
    if first.label_names:
        labelled = read_meds(tmp_path / "meds", labels=tmp_path / "meds" / "labels")
        wanted = [sorted(first.labels_of(k)) for k in range(len(first)) if first.labelled[k]]
        assert sorted(sorted(labelled.labels_of(k)) for k in range(len(labelled))) == sorted(wanted)


def _events(data: Dataset) -> list[tuple[list[str], list[float]]]:
    """Events of each sequence, and their times from the first of them."""
    bounds = zip(data.events.offsets[:-1], data.events.offsets[1:], strict=True)
    times = [(data.times[begin:end] - data.times[begin]).round(6).tolist() for begin, end in bounds]
    return sorted((data.events_of(k), times[k]) for k in range(len(data)))
