"""Parts of a dataset, chosen by place, by name and by subject."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oscar_causal.data import writer
from oscar_causal.data.schema import WHY_SCHEMA
from oscar_causal.data.select import Selection, read_ids, select_sequences
from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.stream import stream_why
from oscar_causal.data.subjects import held_out, subject_hashes
from oscar_causal.errors import DataError, UsageError

COUNT = 60


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sixty sequences of twenty subjects in row groups of seven, with names, rules and reasons."""
    monkeypatch.setattr(
        writer.PartWriter.__init__, "__kwdefaults__", {**writer.PartWriter.__init__.__kwdefaults__, "group_rows": 7}
    )
    ids = [f"q{i}" for i in range(COUNT)]
    table = pa.table(
        {
            "sequence_id": ids,
            "subject_id": [f"car {i % 20}" for i in range(COUNT)],
            "events": [["A"] * (i % 5 + 1) for i in range(COUNT)],
            "times": [[float(t) for t in range(i % 5 + 1)] for i in range(COUNT)],
            "labels": [["y"] if i % 2 else [] for i in range(COUNT)],
        }
    )
    why = [
        {"sequence_id": name, "label": "y", "event": "A", "positions": [0], "role": "cause", "necessary": True}
        for name in ids[1::2]
    ]
    with writer.dataset_writer(tmp_path / "fleet") as out:
        out.write(table)
        out.write_why(pa.Table.from_pylist(why, schema=WHY_SCHEMA))
        out.write_names({"A": "first"})
        (out.folder / "rules.json").write_text('{"y": "A"}')
        out.describe(generator={"seed": 5})
    return tmp_path / "fleet"


def chosen(source: Path, selection: Selection) -> list[str]:
    """Select, check what must hold for every selection, and return the ids."""
    out = source.with_name("part")
    info = select_sequences(source, out, selection, force=True)
    whole, part = read_dataset(source), read_dataset(out)
    ids: list[str] = part.sequence_ids.to_pylist()
    rows = [int(name[1:]) for name in ids]
    assert rows == sorted(rows)
    assert [part.events_of(i) for i in range(len(part))] == [whole.events_of(r) for r in rows]
    assert [part.labels_of(i) for i in range(len(part))] == [whole.labels_of(r) for r in rows]
    assert part.subject_ids.to_pylist() == [f"car {r % 20}" for r in rows]
    reasons = [name for table in stream_why(out) for name in table["sequence_id"].to_pylist()]
    assert reasons == [name for name, r in zip(ids, rows, strict=True) if r % 2]
    for name in ("names.json", "rules.json"):
        assert (out / name).read_bytes() == (source / name).read_bytes()
    assert info["selected_from"]["generator"] == {"seed": 5}
    assert info["selected_from"]["digest"] == whole.info["digest"]
    assert info["selection"] == selection.to_json()
    return ids


@pytest.mark.parametrize("last", [1, 6, 7, 8, 59, 60])
def test_last(fleet: Path, last: int) -> None:
    assert chosen(fleet, Selection(last=last)) == [f"q{i}" for i in range(COUNT - last, COUNT)]


def test_ids(fleet: Path) -> None:
    assert chosen(fleet, Selection(ids=("q40", "q3", "q3", "q0"))) == ["q0", "q3", "q40"]


@pytest.mark.parametrize(("fraction", "seed"), [(0.3, 0), (0.3, 1), (0.9, 2), (1.0, 0)])
def test_fraction_never_cuts_a_subject(fleet: Path, fraction: float, seed: int) -> None:
    ids = chosen(fleet, Selection(fraction=fraction, seed=seed))
    cars = pa.array([f"select:car {i}" for i in range(20)])
    kept = np.flatnonzero(subject_hashes(cars, seed=seed) / 2.0**64 < fraction)
    assert ids == [f"q{i}" for i in range(COUNT) if i % 20 in kept]


@pytest.mark.parametrize("fraction", [0.1, 0.15])
def test_a_selection_leaves_the_split_of_training_alone(tmp_path: Path, fraction: float) -> None:
    """About that share is taken, and with the same seed a tenth of it is held out: not all, and not none."""
    cars = [f"car {i}" for i in range(20_000)]
    columns = {"sequence_id": cars, "events": [["A"]] * len(cars), "times": [[0.0]] * len(cars)}
    writer.write_dataset(tmp_path / "fleet", [pa.table(columns)])
    info = select_sequences(tmp_path / "fleet", tmp_path / "part", Selection(fraction=fraction))
    assert info["sequences"] / len(cars) == pytest.approx(fraction, abs=0.01)
    outside = held_out(read_dataset(tmp_path / "part").subject_ids, 0.1, seed=0)
    assert outside.mean() == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "got none"),
        (("--last", 3, "--fraction", 0.5), "--last and --fraction"),
        (("--last", 0), "at least 1"),
        (("--last", 61), "at most 60"),
        (("--fraction", 0), "more than 0"),
        (("--fraction", "nan"), "more than 0"),
        (("--fraction", 1e-12), "at least one sequence"),
        (("--ids", "gone.txt"), "gone.txt"),
    ],
)
def test_bad_requests(fleet: Path, oscar: Callable[..., Any], words: tuple[Any, ...], expected: str) -> None:
    oscar("select", fleet, "--out", fleet.with_name("part"), *words).refused(expected)
    assert [item.name for item in fleet.parent.iterdir()] == ["fleet"]


def test_unknown_ids(fleet: Path, oscar: Callable[..., Any]) -> None:
    names = fleet.with_name("ids.txt")
    names.write_text("q1\nghost\nother\n")
    oscar("select", fleet, "--out", fleet.with_name("part"), "--ids", names).refused("'ghost' and 1 more", "not in it")
    assert not fleet.with_name("part").exists()


def test_files_of_ids(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("\ufeffone\r\n\r\n two \n".encode())
    assert read_ids(tmp_path / "a.txt") == ("one", " two ")
    (tmp_path / "a.json").write_text(json.dumps(["two\nlines", "x"]))
    assert read_ids(tmp_path / "a.json") == ("two\nlines", "x")
    for name, content in (("b.json", "{}"), ("c.json", "[1]"), ("d.json", "["), ("e.txt", "\n"), ("f.txt", b"\xff")):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(DataError, match=name):
            read_ids(tmp_path / name)


def test_one_and_only_one_way_to_choose() -> None:
    with pytest.raises(UsageError, match="expected one of"):
        Selection()


def test_summary(fleet: Path, oscar: Callable[..., Any]) -> None:
    ran = oscar("select", fleet, "--last", 2, "--out", fleet.with_name("part"))
    assert ran.out == f"{fleet.with_name('part')}: 2 of 60 sequences, 9 events\n"
    ran = oscar("select", fleet, "--last", 2, "--out", fleet.with_name("part"), "--force", "--json")
    assert json.loads(ran.out)["sequences"] == 2
