"""OCEL 2.0 logs: JSON, XML and SQLite give the same sequences, one per object of the chosen type."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from oscar_causal.data.importers import ImportOptions, import_tables
from oscar_causal.data.readers import read_long

SAMPLES = Path(__file__).parent / "samples"


def as_sqlite(path: Path) -> Path:
    """The JSON sample in the tables of the SQLite form."""
    log = json.loads((SAMPLES / "orders.json").read_text())
    with closing(sqlite3.connect(path)) as base:
        for what in ("event", "object"):
            base.execute(f"CREATE TABLE {what} (ocel_id TEXT, ocel_type TEXT)")
            base.execute(f"CREATE TABLE {what}_map_type (ocel_type TEXT, ocel_type_map TEXT)")
            for kind in log[f"{what}Types"]:
                base.execute(f"INSERT INTO {what}_map_type VALUES (?, ?)", (kind["name"], kind["name"].title()))
                columns = "".join(f", {attribute['name']} TEXT" for attribute in kind["attributes"])
                changed = ", ocel_changed_field TEXT" if what == "object" else ""
                base.execute(
                    f'CREATE TABLE "{what}_{kind["name"].title()}" (ocel_id TEXT, ocel_time TEXT{columns}{changed})'
                )
        base.execute("CREATE TABLE event_object (ocel_event_id TEXT, ocel_object_id TEXT, ocel_qualifier TEXT)")
        for item in log["events"]:
            base.execute("INSERT INTO event VALUES (?, ?)", (item["id"], item["type"]))
            values = [item["id"], item["time"], *(a["value"] for a in item["attributes"])]
            marks = ", ".join("?" * len(values))
            base.execute(f'INSERT INTO "event_{item["type"].title()}" VALUES ({marks})', values)
            for relation in item["relationships"]:
                base.execute(
                    "INSERT INTO event_object VALUES (?, ?, ?)",
                    (item["id"], relation["objectId"], relation["qualifier"]),
                )
        for item in log["objects"]:
            base.execute("INSERT INTO object VALUES (?, ?)", (item["id"], item["type"]))
            for change in item.get("attributes", []):
                first = change["time"].startswith("1970")
                row = (item["id"], change["time"], change["value"], None if first else change["name"])
                base.execute('INSERT INTO "object_Order" VALUES (?, ?, ?, ?)', row)
        base.commit()
    return path


@pytest.mark.parametrize("form", ["json", "xml", "sqlite"])
def test_the_life_of_an_order(tmp_path: Path, form: str) -> None:
    log = as_sqlite(tmp_path / "orders.sqlite") if form == "sqlite" else SAMPLES / f"orders.{form}"
    options = ImportOptions(
        object_type="order", labels=log, label_column="object:status", static=("object:status", "event:channel")
    )
    data = read_long(log, options)
    assert data.sequence_ids.to_pylist() == ["o1", "o2"]
    assert [data.events_of(i) for i in range(2)] == [["place order", "send parcel"]] * 2
    assert data.times.tolist() == [0, 23 * 3600, 0, 22 * 3600]
    known = [{"object:status": "new", "event:channel": channel} for channel in ("web", "phone")]
    assert data.static() == known  # at the start
    assert [data.labels_of(i) for i in range(2)] == [["returned"], ["new"]]  # what became of it
    assert data.info["imported"]["rows"] == 4


def test_another_type_gives_other_sequences() -> None:
    data = read_long(SAMPLES / "orders.json", ImportOptions(object_type="item"))
    assert {data.sequence_ids[i].as_py(): data.events_of(i) for i in range(len(data))} == {
        "i1": ["place order", "pick item", "send parcel"],
        "i2": ["place order", "send parcel"],
    }


def test_a_type_must_be_chosen_among_several(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    oscar("import", SAMPLES / "orders.json", "--out", tmp_path / "o").refused("--object-type", "item, order")
    oscar("import", SAMPLES / "orders.json", "--object-type", "truck", "--out", tmp_path / "o").refused("'truck'")
    (tmp_path / "a.csv").write_text("id,t,code\ns,0,A\n")
    oscar("import", tmp_path / "a.csv", "--object-type", "order", "--out", tmp_path / "o").refused("--object-type")


def changed(tmp_path: Path, change: Callable[[Any], None]) -> Path:
    log = json.loads((SAMPLES / "orders.json").read_text())
    change(log)
    (tmp_path / "log.json").write_text(json.dumps(log))
    return tmp_path / "log.json"


BAD = {
    "a time that is none": (lambda log: log["events"][1].update(time="zebra"), ("row 2", "'time'", '"zebra"')),
    "no type": (lambda log: log["events"][1].pop("type"), ("row 2", "'event'", "nothing")),
    "an unknown object": (
        lambda log: log["events"][1]["relationships"][0].update(objectId="o9"),
        ("row 2", "'object_id'", '"o9"'),
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_events_have_a_row(tmp_path: Path, oscar: Callable[..., Any], case: str) -> None:
    change, words = BAD[case]
    file = changed(tmp_path, change)
    oscar("import", file, "--object-type", "item", "--out", tmp_path / "o").refused("log.json", *words)
    options = ImportOptions(object_type="item", skip_bad_rows=True)
    summary = import_tables([file], tmp_path / "o", options)
    assert (summary.events, summary.rejected, summary.first_rejected[0].row) == (4, 1, 2)


def test_files_that_are_refused(tmp_path: Path, oscar: Callable[..., Any]) -> None:
    cut = (SAMPLES / "orders.json").read_text()[:-200]
    for name, text, words in (
        ("a.jsonocel", cut, ("OCEL 2.0",)),
        ("b.jsonocel", '{"objects": []}', ("'events' is missing",)),
        ("c.jsonocel", '{"objects": [3], "events": []}', ("OCEL 2.0",)),
        ("d.jsonocel", '{"objects": [], "events": []}', ("objects with a type",)),
        ("e.xmlocel", "<log><objects/>", ("whole XML document",)),
        ("f.xmlocel", "<html/>", ("OCEL 2.0",)),
        ("g.sqlite", "SQLite format 3\0 and then nonsense", ("SQLite",)),
    ):
        (tmp_path / name).write_text(text)
        oscar("import", tmp_path / name, "--out", tmp_path / "o").refused(name, *words)
