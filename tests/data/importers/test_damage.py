"""Whatever the bytes of a log are: an error of one line that names the file, or a dataset that can be read."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import meds
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oscar_causal.data.importers import ImportOptions, import_tables
from oscar_causal.data.sequences import read_dataset
from oscar_causal.errors import OscarError

SAMPLES = Path(__file__).parent / "samples"
LOGS = {
    "clinic.xes": ImportOptions(labels=Path("clinic.xes"), label_column="case:outcome"),
    "orders.xml": ImportOptions(format="ocel", object_type="order"),
    "orders.json": ImportOptions(format="ocel", object_type="order"),
    "easytpp/train.json": ImportOptions(format="easytpp"),
    "hf_saved/train/data-00000-of-00001.arrow": ImportOptions(format="hf"),
    "hf_saved/train/state.json": ImportOptions(format="hf"),
    "meds/data/0.parquet": ImportOptions(format="meds"),
    "meds/metadata/subject_splits.parquet": ImportOptions(format="meds"),
}


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The samples and a MEDS dataset of the same size."""
    place = tmp_path_factory.mktemp("originals") / "samples"
    shutil.copytree(SAMPLES, place)
    rows = {"subject_id": [1, 1, 2], "time": pa.array([None, 5, 7], pa.timestamp("us")), "code": ["S", "A", "B"]}
    for name, table in (
        ("data/0.parquet", pa.table({**rows, "numeric_value": pa.array([1.0, None, 2.0], pa.float32())})),
        (meds.subject_splits_filepath, pa.table({"subject_id": [1, 2], "split": ["train", "train"]})),
    ):
        (place / "meds" / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, place / "meds" / name)
    return place


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(name=st.sampled_from(sorted(LOGS)), data=st.data())
def test_damage_anywhere(name: str, data: st.DataObject, originals: Path) -> None:
    whole = (originals / name).read_bytes()
    at = data.draw(st.integers(0, len(whole)))
    kind = data.draw(st.sampled_from(["cut", "flip", "insert", "drop"]))
    noise = data.draw(st.binary(min_size=1, max_size=8))
    damaged = {
        "cut": whole[:at],
        "flip": whole[:at] + bytes(byte ^ 0x55 for byte in whole[at : at + 3]) + whole[at + 3 :],
        "insert": whole[:at] + noise + whole[at:],
        "drop": whole[:at] + whole[at + len(noise) :],
    }[kind]
    options = LOGS[name]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        top = name.split("/")[0]
        copy = shutil.copytree if (originals / top).is_dir() else shutil.copyfile
        copy(originals / top, place / top)
        (place / name).write_bytes(damaged)
        source = place / (name if options.format == "easytpp" else top)
        given = {**vars(options), "skip_bad_rows": data.draw(st.booleans())}
        given["labels"] = source if options.labels else None
        line = None
        try:
            import_tables([source], place / "out", ImportOptions(**given))
        except OscarError as error:
            line = str(error)
        if line is None:
            assert len(read_dataset(place / "out")) > 0
        else:
            assert top in line
            assert "\n" not in line
            assert not (place / "out").exists()
