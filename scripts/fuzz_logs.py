"""Fuzzed imports of logs that others write: XES, OCEL, EasyTPP and MEDS."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from fuzz_target import Target, importer, inside, use_dataset

_EVENT = '<event><string key="concept:name" value="{name}"/><date key="time:timestamp" value="{time}"/></event>'
_MOMENT = "2024-05-0{day}T10:00:00Z"


def log_targets(folder: Path) -> list[Target]:
    """The readers; they work in `folder`."""
    log, order = ocel(), {"format": "ocel", "object_type": "order"}
    meds = make_meds(folder / "whole" / "meds")
    return [
        importer(folder, "log.xes", [xes().encode()], 2),
        importer(folder, "log.jsonocel", [json.dumps(log).encode()], 2, "json", **order),
        importer(folder, "log.xmlocel", [ocel_xml(log).encode()], 2, **order),
        importer(folder, "easytpp.json", [json.dumps(easytpp()).encode()], 2, "json", format="easytpp"),
        inside(folder, meds, "data/0.parquet", "parquet", 2, _import_meds, _read_meds),
        inside(folder, meds, "metadata/subject_splits.parquet", "parquet", 1, _import_meds, _read_meds),
    ]


NAMES = (
    "import log.xes", "import log.jsonocel", "import log.xmlocel", "import easytpp.json", "meds/data/0.parquet",
    "meds/metadata/subject_splits.parquet",
)  # fmt: skip


def xes() -> str:
    events = [_EVENT.format(name=name, time=_MOMENT.format(day=day)) for day, name in enumerate("AB", 1)]
    case = '<trace><string key="concept:name" value="{name}"/><int key="age" value="71"/>{events}</trace>'
    return f"<log>{''.join(case.format(name=name, events=''.join(events)) for name in ('one', 'two'))}</log>"


def ocel() -> dict[str, Any]:
    told = {"name": "channel", "type": "string"}
    return {
        "objectTypes": [{"name": "order", "attributes": [told]}],
        "eventTypes": [{"name": name, "attributes": [told]} for name in ("place", "send")],
        "objects": [{"id": name, "type": "order"} for name in ("o1", "o2")],
        "events": [
            {
                "id": f"e{day}",
                "type": kind,
                "time": _MOMENT.format(day=day),
                "attributes": [{"name": "channel", "value": "web"}],
                "relationships": [{"objectId": name, "qualifier": "of"} for name in ("o1", "o2")],
            }
            for day, kind in enumerate(("place", "send"), 1)
        ],
    }


def ocel_xml(log: dict[str, Any]) -> str:
    def links(item: dict[str, Any]) -> str:
        ends = (f'<relationship object-id="{to["objectId"]}" qualifier="of"/>' for to in item["relationships"])
        return f"<objects>{''.join(ends)}</objects>"

    objects = (f'<object id="{item["id"]}" type="order"/>' for item in log["objects"])
    events = (f'<event id="{e["id"]}" type="{e["type"]}" time="{e["time"]}">{links(e)}</event>' for e in log["events"])
    kinds = '<object-types><object-type name="order"/></object-types>'
    return f"<log>{kinds}<objects>{''.join(objects)}</objects><events>{''.join(events)}</events></log>"


def easytpp() -> list[dict[str, Any]]:
    first = {"time_since_start": [0, 1.5, 4.0], "time_since_last_event": [0, 1.5, 2.5], "type_event": [2, 0, 2]}
    second = {"time_since_start": [0.25], "time_since_last_event": [0.25], "type_event": [1]}
    return [
        {"dim_process": 3, "seq_len": len(part["type_event"]), "seq_idx": k, **part}
        for k, part in enumerate((first, second))
    ]


def make_meds(folder: Path) -> Path:
    rows = {"subject_id": [1, 1, 2], "time": pa.array([None, 5, 7], pa.timestamp("us")), "code": ["S", "A", "B"]}
    for name, table in (
        ("data/0.parquet", pa.table({**rows, "numeric_value": pa.array([1.0, None, 2.0], pa.float32())})),
        ("metadata/subject_splits.parquet", pa.table({"subject_id": [1, 2], "split": ["train", "train"]})),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, folder / name)
    return folder


def _import_meds(path: Path) -> None:
    from oscar_causal.data.importers import ImportOptions, import_tables

    out = path.with_name(f"{path.name}-out")
    try:
        import_tables([path], out, ImportOptions(format="meds"), force=True)
        use_dataset(out)
    finally:
        shutil.rmtree(out, ignore_errors=True)


def _read_meds(path: Path) -> None:
    from oscar_causal.data.importers import ImportOptions
    from oscar_causal.data.importers.formats import open_source

    for table in open_source([path], ImportOptions(format="meds")).tables:
        for _ in table.batches(table.header):
            pass
