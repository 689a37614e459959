"""Readers for notebooks give the dataset that the command writes to disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from oscar_causal.data.importers import ImportOptions, import_tables
from oscar_causal.data.readers import read_long
from oscar_causal.data.sequences import read_dataset
from oscar_causal.errors import DataError

EVENTS = "vin,time,code,km\nb,0,X,1\na,7,Y,\nb,3,Y,2\n"
LABELS = "vin,label,time\nb,failed,9\n"


def test_the_same_as_on_disk(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text(EVENTS)
    (tmp_path / "labels.csv").write_text(LABELS)
    options = ImportOptions(labels=tmp_path / "labels.csv", channels=("km",))
    import_tables([tmp_path / "events.csv"], tmp_path / "out", options)
    disk, memory = read_dataset(tmp_path / "out"), read_long(str(tmp_path / "events.csv"), options)
    assert memory.info == disk.info
    assert memory.path is None
    assert memory.sequence_ids == disk.sequence_ids
    assert [memory.events_of(i) for i in range(2)] == [disk.events_of(i) for i in range(2)] == [["X", "Y"], ["Y"]]
    assert memory.times.tolist() == disk.times.tolist()
    assert memory.label_times() == pytest.approx(disk.label_times())
    assert memory.channel("km")[:2].tolist() == [1, 2]


def test_the_first_bad_row_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text(EVENTS + "a,soon,Y,\n")
    with pytest.raises(DataError, match=r"row 4, column 'time'.*soon"):
        read_long([tmp_path / "events.csv"])
    assert len(read_long([tmp_path / "events.csv"], ImportOptions(skip_bad_rows=True))) == 2
