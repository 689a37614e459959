"""Label tables, long and wide, with and without times, against a slow reading."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oscar_causal.data.importers import ImportOptions, import_tables, pipeline
from oscar_causal.data.sequences import read_dataset
from oscar_causal.errors import DataError, UsageError

QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
IDS = ["s0", "s1", "s2", "s3"]
LABELS = ["y", "z,z", 'q"q']


def write(path: Path, rows: list[list[Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


def labels_of(path: Path) -> dict[str, list[tuple[str, float | None]] | None]:
    """Sequence -> its labels with their times; None = unlabelled."""
    data = read_dataset(path)
    times = data.label_times()
    found: dict[str, list[tuple[str, float | None]] | None] = {}
    for i, name in enumerate(data.sequence_ids.to_pylist()):
        at = data.labels.offsets[i]
        when = [None if times is None or np.isnan(t) else t for t in (times[at:] if times is not None else [])]
        names = data.labels_of(i)
        found[name] = (
            [(label, when[k] if when else None) for k, label in enumerate(names)] if data.labelled[i] else None
        )
    return found


event_rows = st.lists(
    st.tuples(st.sampled_from(IDS), st.integers(0, 20), st.sampled_from("AB")), min_size=1, max_size=20
)
label_rows = st.lists(
    st.tuples(st.sampled_from([*IDS, "ghost"]), st.sampled_from([*LABELS, ""]), st.integers(-2, 25) | st.none()),
    max_size=12,
)


@QUICK
@given(events=event_rows, labels=label_rows, partitions=st.sampled_from([1, 5]))
def test_long_tables(events: list[Any], labels: list[Any], partitions: int) -> None:
    zero = {name: min(t for n, t, _ in events if n == name) for name, _, _ in events}
    kept: dict[str, dict[str, float | None]] = {name: {} for name in zero}
    bad = []
    for number, (name, label, time) in enumerate(labels, 1):
        if name not in kept or label in kept[name]:
            bad.append(number)
        elif label:
            kept[name][label] = None if time is None else float(time - zero[name])
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "_partitions", lambda files, chunk_mb: partitions)
        files = [write(Path(folder) / "events.csv", [["id", "t", "code"], *map(list, events)])]
        table = write(Path(folder) / "labels.csv", [["id", "label", "t"], *map(list, labels)])
        summary = import_tables(files, Path(folder) / "out", ImportOptions(labels=table, skip_bad_rows=True))
        assert labels_of(Path(folder) / "out") == {name: list(found.items()) for name, found in kept.items()}
        assert summary.rejected == len(bad)
        assert [row.row for row in summary.first_rejected] == bad[:3]
        if bad:
            with pytest.raises(DataError, match=rf"labels\.csv: row {bad[0]}, column"):
                import_tables(files, Path(folder) / "strict", ImportOptions(labels=table))
            assert not (Path(folder) / "strict").exists()


@QUICK
@given(events=event_rows, labels=label_rows, gap=st.sampled_from([0.0, 1.0, 3.0, 100.0]))
def test_gap_leaves_out_what_stands_too_near(events: list[Any], labels: list[Any], gap: float) -> None:
    names = {name for name, _, _ in events}
    labels = list({(name, label): (name, label, time or 0) for name, label, time in labels if name in names}.values())
    outcome: dict[str, int] = {}
    for name, label, time in labels:
        if label:
            outcome[name] = min(time, outcome.get(name, time))
    kept = [(n, t, e) for n, t, e in events if n not in outcome or (t < outcome[n] and outcome[n] - t >= gap)]
    with tempfile.TemporaryDirectory() as folder:
        files = [write(Path(folder) / "events.csv", [["id", "t", "code"], *map(list, events)])]
        table = write(Path(folder) / "labels.csv", [["id", "label", "t"], *map(list, labels)])
        options = ImportOptions(labels=table, gap=gap)
        if not kept:
            with pytest.raises(DataError, match="at least one sequence"):
                import_tables(files, Path(folder) / "out", options)
            return
        summary = import_tables(files, Path(folder) / "out", options)
        data = read_dataset(Path(folder) / "out")
        zero = {name: min(t for n, t, _ in events if n == name) for name in names}
        found = {
            name: list(zip(data.events_of(i), _times(data, i), strict=True))
            for i, name in enumerate(data.sequence_ids.to_pylist())
        }
        wanted = {
            name: sorted(((e, float(t - zero[n])) for n, t, e in kept if n == name), key=lambda x: x[1])
            for name, _, _ in kept
        }
        assert found == wanted
        assert summary.events_left_out == len(events) - len(kept)
        dropped = names - {name for name, _, _ in kept}
        assert (summary.dropped_by_gap, summary.rejected) == (len(dropped), 0)
        if dropped:
            with (Path(folder) / "out" / "rejected.csv").open(newline="") as text:
                assert {row["text"] for row in csv.DictReader(text)} == dropped


def _times(data: Any, i: int) -> list[float]:
    return list(data.times[data.events.offsets[i] : data.events.offsets[i + 1]])


@QUICK
@given(
    events=event_rows,
    labels=st.lists(
        st.tuples(st.sampled_from([*IDS, "ghost"]), *[st.sampled_from(["0", "1", "true", "0.0", "", "2"])] * 3),
        max_size=8,
    ),
)
def test_wide_tables(events: list[Any], labels: list[Any]) -> None:
    wanted: dict[str, Any] = dict.fromkeys(name for name, _, _ in events)
    bad = []
    for number, (name, *flags) in enumerate(labels, 1):
        wrong_cell = any(flag in ("", "2") for flag in flags)
        if wrong_cell or name not in wanted or wanted[name] is not None:
            bad.append(number)
        else:
            wanted[name] = [(label, None) for label, flag in zip(LABELS, flags, strict=True) if flag in ("1", "true")]
    with tempfile.TemporaryDirectory() as folder:
        files = [write(Path(folder) / "events.csv", [["id", "t", "code"], *map(list, events)])]
        table = write(Path(folder) / "labels.csv", [["id", *LABELS], *map(list, labels)])
        options = ImportOptions(labels=table, label_columns=("*",), skip_bad_rows=True)
        summary = import_tables(files, Path(folder) / "out", options)
        assert labels_of(Path(folder) / "out") == wanted
        assert summary.rejected == len(bad)
        with (Path(folder) / "out" / "rejected.csv").open(newline="") if bad else table.open() as text:
            assert not bad or sorted(int(row["row"]) for row in csv.DictReader(text)) == bad


EVENTS = [["id", "t", "code"], ["s0", 0, "A"], ["s0", 5, "B"], ["s1", 0, "A"]]


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        ([["id", "y"], ["s0", "2"]], {}, ["row 1", "'y'", "expected 0 or 1", '"2"', "--label-columns"]),
        ([["id", "label"], ["s0", "1"], ["s1", "0"]], {}, ["'label'", "only 0 and 1", "--label-columns label"]),
        ([["id", "label"], ["ghost", "y"]], {}, ["row 1", "'id'", "a sequence that has events", '"ghost"']),
        ([["id", "label"], ["s0", "y"], ["s0", "y"]], {}, ["row 2", "'label'", "once", '"y"', '"s0"']),
        ([["id", "y"], ["s0", "1"], ["s0", "1"]], {}, ["row 2", "'id'", "once", '"s0"']),
        ([["id", "label", "t"], ["s0", "y", "soon"]], {}, ["row 1", "'t'", "a number of seconds", '"soon"']),
        ([["id", "label", "t"], ["s0", "y", "inf"]], {}, ["row 1", "'t'", '"inf"']),
        ([["id", "label", "t"], ["s0", "y", ""]], {"gap": 1.0}, ["row 1", "'t'", "a time for the label", "nothing"]),
        ([["id", "label"], ["", "y"]], {}, ["row 1", "'id'", "nothing"]),
        ([["id", "label", "labelled"], ["s0", "y", "0"]], {}, ["row 1", "'labelled'", '"0"']),
        ([["id", "label", "labelled"], ["s0", "y", "1"], ["s0", "", "0"]], {}, ["row 2", "'labelled'", "has labels"]),
        ([["id"]], {}, ["expected a column 'label' or one 0/1 column per label"]),
        ([["name", "label"], ["s0", "y"]], {}, ["expected a column for the sequence", "'name', 'label'"]),
        ([["id", "label", "outcome"], ["s0", "y", "y"]], {"label_column": "gone"}, ["expected a column 'gone'"]),
    ],
)
def test_bad_label_tables(tmp_path: Path, rows: list[Any], options: dict[str, Any], words: list[str]) -> None:
    files = [write(tmp_path / "events.csv", EVENTS)]
    table = write(tmp_path / "labels.csv", rows)
    with pytest.raises(DataError) as error:
        import_tables(files, tmp_path / "out", ImportOptions(labels=table, **options))
    line = str(error.value)
    assert all(word in line for word in ["labels.csv", *words]), line
    assert sorted(item.name for item in tmp_path.iterdir()) == ["events.csv", "labels.csv"]


def test_a_sequence_that_is_not_mentioned(tmp_path: Path) -> None:
    files = [write(tmp_path / "events.csv", EVENTS)]
    long = write(tmp_path / "long.csv", [["id", "label"], ["s0", "y"]])
    wide = write(tmp_path / "wide.csv", [["id", "y"], ["s0", 0]])
    known = write(tmp_path / "known.csv", [["id", "label", "labelled"], ["s1", "", 0]])
    for table in (long, wide, known):
        import_tables(files, tmp_path / "out", ImportOptions(labels=table), force=True)
        table.with_suffix(".txt").write_text(repr(labels_of(tmp_path / "out")))
    assert long.with_suffix(".txt").read_text() == "{'s0': [('y', None)], 's1': []}"
    assert wide.with_suffix(".txt").read_text() == "{'s0': [], 's1': None}"
    assert known.with_suffix(".txt").read_text() == "{'s0': [], 's1': None}"


def test_one_time_for_all_labels_of_a_wide_row(tmp_path: Path) -> None:
    files = [write(tmp_path / "events.csv", EVENTS)]
    table = write(tmp_path / "wide.csv", [["id", "y", "z", "time"], ["s0", 1, 1, 4], ["s1", 0, 0, ""]])
    import_tables(files, tmp_path / "out", ImportOptions(labels=table))
    assert labels_of(tmp_path / "out") == {"s0": [("y", 4.0), ("z", 4.0)], "s1": []}


def test_gap_needs_label_times(tmp_path: Path) -> None:
    files = [write(tmp_path / "events.csv", EVENTS)]
    table = write(tmp_path / "labels.csv", [["id", "label"], ["s0", "y"]])
    with pytest.raises(UsageError, match="--gap: expected a label table with times"):
        import_tables(files, tmp_path / "out", ImportOptions(labels=table, gap=1))
    with pytest.raises(UsageError, match="--gap: expected together with --labels"):
        ImportOptions(gap=1)


def test_label_times_on_a_clock_of_timestamps(tmp_path: Path) -> None:
    events = [["id", "t", "code"], *(["s0", f"2024-01-01T00:0{m}:00", f"E{m}"] for m in range(4))]
    files = [write(tmp_path / "events.csv", events)]
    table = write(tmp_path / "labels.csv", [["id", "label", "label_time"], ["s0", "y", "2024-01-01T01:03:00+01:00"]])
    import_tables(files, tmp_path / "out", ImportOptions(labels=table, gap=120))
    assert labels_of(tmp_path / "out") == {"s0": [("y", 180.0)]}
    assert read_dataset(tmp_path / "out").events_of(0) == ["E0", "E1"]
