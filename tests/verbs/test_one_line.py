"""One line instead of a stack trace: sound files with a wrong schema, modules that raise, a lack of memory."""

from __future__ import annotations

import errno
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from oscar_causal import cli, errors

GOLDEN = Path(__file__).parents[1] / "golden"
PART = "sequences/part-00000.parquet"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dataset, a model and results, which find each other in the current folder."""
    for name in ("dataset-1", "model-1", "results-1"):
        shutil.copytree(GOLDEN / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def change_table(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(path)), path)


def change_json(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


READERS = {
    "inspect": ("inspect", "dataset-1"),
    "export": ("export", "dataset-1", "--out", "out"),
    "meds": ("export", "dataset-1", "--out", "out", "--format", "meds"),
    "select": ("select", "dataset-1", "--last", "3", "--out", "out"),
    "baseline": ("baseline", "iamb", "dataset-1", "--out", "out", "--workers", "1"),
    "check": ("check", "model-1", "dataset-1"),
    "discover": ("discover", "model-1", "dataset-1", "--out", "out"),
    "explain": ("explain", "model-1", "drive 003", "--dataset", "dataset-1"),
    "report": ("report", "results-1", "--out", "out.html", "--dataset", "dataset-1"),
    "score": ("score", "results-1", "--dataset", "dataset-1"),
}
STREAMED = ("inspect", "export", "meds", "select")


@pytest.mark.parametrize("verb", READERS)
def test_a_column_twice(world: Path, oscar: Callable[..., Any], verb: str) -> None:
    change_table(world / "dataset-1" / PART, lambda table: table.append_column("labels", table["labels"]))
    oscar(*READERS[verb]).refused("part-00000.parquet", "'labels'", "once", "2 times")
    assert not list(world.glob("out*"))


@pytest.mark.parametrize("verb", STREAMED)
def test_times_shorter_than_events(world: Path, oscar: Callable[..., Any], verb: str) -> None:
    def cut(table: pa.Table) -> pa.Table:
        times = [times[:-1] for times in table["times"].to_pylist()]
        return table.set_column(table.column_names.index("times"), "times", pa.array(times, pa.list_(pa.float64())))

    change_table(world / "dataset-1" / PART, cut)
    oscar(*READERS[verb]).refused(
        "part-00000.parquet", "drive 000" if verb != "select" else "drive", "one value per event"
    )


WRONG_TYPES = {
    "events": pa.array(range(160), pa.timestamp("us")),
    "times": pa.array([["a"]] * 160),
    "subject_id": pa.array([{"a": 1}] * 160),
    "static": pa.array([["a"]] * 160),
    "labels": pa.array(range(160)).cast(pa.decimal128(30, 2)),
    "label_times": pa.array(["soon"] * 160),
    "mileage": pa.array(["far"] * 160),
}


@pytest.mark.parametrize("column", WRONG_TYPES)
@pytest.mark.parametrize("verb", ["inspect", "export"])
def test_columns_of_another_type(world: Path, oscar: Callable[..., Any], verb: str, column: str) -> None:
    def retyped(table: pa.Table) -> pa.Table:
        return table.set_column(table.column_names.index(column), column, WRONG_TYPES[column])

    change_table(world / "dataset-1" / PART, retyped)
    oscar(*READERS[verb]).refused("part-00000.parquet", f"{column!r}", "expected")


@pytest.mark.parametrize("value", [float("nan"), -1.0])
def test_times_that_are_none(world: Path, oscar: Callable[..., Any], value: float) -> None:
    def broken(table: pa.Table) -> pa.Table:
        times = [[value] * len(times) for times in table["times"].to_pylist()]
        return table.set_column(table.column_names.index("times"), "times", pa.array(times, pa.list_(pa.float64())))

    change_table(world / "dataset-1" / PART, broken)
    oscar(*READERS["check"]).refused("part-00000.parquet", "'times'", "seconds from the start")


@pytest.mark.parametrize("channels", [5, "mileage", ["mileage", 5]])
@pytest.mark.parametrize("verb", ["inspect", "export", "select", "check"])
def test_channels_of_another_type(world: Path, oscar: Callable[..., Any], verb: str, channels: Any) -> None:
    change_json(world / "dataset-1" / "dataset.json", channels=channels)
    oscar(*READERS[verb]).refused("dataset.json", "channels", "list of names")


@pytest.mark.parametrize("name", ["names.json", "rules.json"])
@pytest.mark.parametrize("text", ["", '{"A": "a th', "[]"])
@pytest.mark.parametrize("verb", STREAMED)
def test_names_and_rules_that_were_cut_off(
    world: Path, oscar: Callable[..., Any], verb: str, name: str, text: str
) -> None:
    (world / "dataset-1" / name).write_text(text)
    oscar(*READERS[verb]).refused(name, "JSON object")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("config", "x"),
        ("config", {"intervention": 3}),
        ("config", {"replacement": ["a"]}),
        ("counts", [1]),
        ("counts", {"cut": "many"}),
        ("memory", 4),
        ("model", "x"),
        ("model", {"path": 3}),
        ("dataset", {"digest": 7}),
        ("estimator", ["prefix"]),
        ("versions", {"oscar": {}}),
        ("seed", True),
    ],
)
@pytest.mark.parametrize("verb", ["report", "explain-run"])
def test_a_run_of_another_shape(world: Path, oscar: Callable[..., Any], verb: str, key: str, value: Any) -> None:
    change_json(world / "results-1" / "run.json", **{key: value})
    words = ("report", "results-1", "--out", "out.html") if verb == "report" else (verb, "results-1")
    assert oscar(*words).refused("run.json", key, "expected").count("expected") == 1


@pytest.mark.parametrize(
    ("column", "value"), [("verdict", None), ("verdict", "perhaps"), ("event", None), ("indicator", float("inf"))]
)
def test_causes_that_are_none(world: Path, oscar: Callable[..., Any], column: str, value: Any) -> None:
    def broken(table: pa.Table) -> pa.Table:
        cells = [value, *table[column].to_pylist()[1:]]
        return table.set_column(table.column_names.index(column), column, pa.array(cells, table[column].type))

    change_table(world / "results-1" / "causes" / "part-00000.parquet", broken)
    oscar("graph", "results-1", "--out", "out.json").refused("part-00000.parquet", f"{column!r}")


@pytest.mark.parametrize("verb", ["graph", "report"])
def test_figures_of_a_fleet_that_are_none(world: Path, oscar: Callable[..., Any], verb: str) -> None:
    shutil.copytree(GOLDEN / "population-2", world / "fleet")

    def broken(table: pa.Table) -> pa.Table:
        cells = pa.array([float("inf")] * len(table))
        return table.set_column(table.column_names.index("accepted_share"), "accepted_share", cells)

    change_table(world / "fleet" / "boundaries.parquet", broken)
    words = ("graph", "fleet", "--population") if verb == "graph" else ("report", "results-1", "--population", "fleet")
    oscar(*words, "--out", "out.html" if verb == "report" else "out.csv").refused(
        "boundaries.parquet", "'accepted_share'", "finite"
    )


@pytest.fixture
def module(world: Path) -> Iterator[Callable[[str], str]]:
    """Write a module into the current folder; gives its name."""
    before, made = list(sys.path), []

    def write(text: str) -> str:
        made.append(f"own_estimator_{world.name}_{len(made)}".replace("-", "_"))
        (world / f"{made[-1]}.py").write_text(text)
        return made[-1]

    yield write
    sys.path[:] = before
    for name in made:
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("raise RuntimeError('not today')", "RuntimeError: not today"),
        ("def f(:", "SyntaxError"),
        ("import sys; sys.exit(0)", "SystemExit"),
        ("def f(*given):\n    raise SystemExit(0)", "sys.exit(0)"),
        ("g = 1", "no attribute 'f'"),
    ],
)
def test_estimators_that_cannot_be(world: Path, oscar: Callable[..., Any], module: Any, text: str, told: str) -> None:
    ran = oscar("discover", "model-1", "dataset-1", "--out", "out", "-q", "--estimator", f"{module(text)}:f")
    ran.refused("estimator", told)
    assert ran.code == errors.UsageError.exit_code
    assert not (world / "out").exists()


@pytest.mark.parametrize("name", [".x:y", "..:y", ":y", "x y:z"])
def test_names_that_are_no_module(world: Path, oscar: Callable[..., Any], name: str) -> None:
    oscar("discover", "model-1", "dataset-1", "--out", "out", "--estimator", name).refused(
        "estimator", "module:function"
    )


def test_the_current_folder_comes_last(world: Path, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file lying there does not stand in for a library that is imported later."""
    from oscar_causal.discovery.extensions import own_function

    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    (world / "colorsys.py").write_text("raise RuntimeError('the wrong one')")
    own_function(f"{module('def f(): pass')}:f", "estimator")
    import colorsys

    assert Path(colorsys.__file__).parent != world
    assert sys.path[-1] == str(world)


def test_check_update_on_a_full_disk(world: Path, oscar: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("oscar_causal.density.checking.write_json", full)
    monkeypatch.setattr(
        "oscar_causal.density.folds.ModelSet.seen_in_training", lambda self, ids: np.zeros(len(ids), bool)
    )
    ran = oscar("check", "model-1", "dataset-1", "--update")
    ran.refused("quality.json", "cannot be written", "No space left")
    assert ran.code == errors.FolderError.exit_code


def _blamed() -> None:
    try:
        pa.allocate_buffer(1 << 60)
    except pa.ArrowException as error:
        raise errors.DataError("innocent.csv: cannot be read as CSV") from error


def _mapped() -> None:
    raise ImportError("libtorch_cpu.so: failed to map segment from shared object")


@pytest.mark.parametrize("ask", [lambda: torch.empty(1 << 60), lambda: np.empty(1 << 59), _blamed, _mapped])
def test_a_lack_of_memory(oscar: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, ask: Callable[[], Any]) -> None:
    """What the libraries raise when there is none, also where a reader has blamed its file."""
    monkeypatch.setattr("oscar_causal.data.inspect.inspect_dataset", lambda *given, **more: ask())
    ran = oscar("inspect", "innocent.csv")
    assert "innocent" not in ran.refused("not enough memory")
    assert ran.code == cli.NO_MEMORY


def test_other_errors_of_the_system(oscar: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: Any, **more: Any) -> None:
        raise OSError(errno.EIO, "Input/output error", "disk/file")

    monkeypatch.setattr("oscar_causal.data.inspect.inspect_dataset", broken)
    ran = oscar("inspect", "x")
    ran.refused("disk/file: Input/output error")
    assert ran.code == errors.FolderError.exit_code


def test_lines_are_printable_and_not_too_long(world: Path, oscar: Callable[..., Any]) -> None:
    line = oscar("inspect", "\x1b[31mred\x07" + "x" * 200).refused("\\x1b[31mred\\x07")
    assert line[:-1].isprintable()
    change_json(world / "dataset-1" / "dataset.json", kind="k" * 100_000 + "end")
    line = oscar("inspect", "dataset-1").refused("dataset.json", " … ", "end'")
    assert len(line) == len("oscar: \n") + cli.LONGEST_LINE


@pytest.mark.parametrize("split", ["../elsewhere", "..", "/etc", "a/b", ""])
def test_splits_outside_their_folder(tmp_path: Path, oscar: Callable[..., Any], split: str) -> None:
    samples = Path(__file__).parents[1] / "data" / "importers" / "samples" / "hf_saved"
    shutil.copytree(samples, tmp_path / "saved")
    shutil.copytree(samples / "train", tmp_path / "elsewhere")
    (tmp_path / "saved" / "dataset_dict.json").write_text(json.dumps({"splits": [split]}))
    oscar("import", tmp_path / "saved", "--out", tmp_path / "out").refused("dataset_dict.json", "splits", repr(split))


def test_damage_that_the_campaign_of_wrong_inputs_found(world: Path, oscar: Callable[..., Any]) -> None:
    """Each was a stack trace: cut-off tables of results, foreign verdicts, no room for events, odd file names."""
    part = world / "results-1" / "evidence" / "part-00000.parquet"
    before = part.read_bytes()
    part.write_bytes(before[:-100])
    oscar("report", "results-1", "--out", "out.html").refused("part-00000.parquet")
    part.write_bytes(before)
    change_table(
        part,
        lambda table: table.set_column(
            table.column_names.index("verdict"), "verdict", pa.array(["maybe"] * len(table), pa.string())
        ),
    )
    oscar("report", "results-1", "--out", "out.html").refused("part-00000.parquet", "'verdict'", "no effect")
    config = world / "model-1" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"max_length": 0}))
    oscar("check", "model-1", "dataset-1").refused("config.json", "max_length")
    (world / "saved").mkdir()
    (world / "saved" / "state.json").write_text(json.dumps({"_data_files": [{"filename": "a\ud800.arrow"}]}))
    oscar("import", "saved", "--out", "out").refused("state.json", "names of data files")


def test_names_that_are_no_text_are_told_with_their_bytes(world: Path, oscar: Callable[..., Any]) -> None:
    names = pa.array([b"a", b"b\xff"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"sequence_id": names, "time": [0.0, 1.0], "event": ["A", "B"]}), world / "odd.parquet")
    oscar("import", "odd.parquet", "--out", "out").refused("odd.parquet", "UTF-8")


def test_events_that_are_lost_or_have_no_name(world: Path, oscar: Callable[..., Any]) -> None:
    part = world / "dataset-1" / PART
    before = part.read_bytes()
    words = ("discover", "model-1", "dataset-1", "--out", "out", "--contexts", 36)
    change_table(part, lambda table: table.drop_columns("events"))
    oscar(*words).refused("part-00000.parquet", "'events'")
    part.write_bytes(before)

    def unnamed(table: pa.Table) -> pa.Table:
        rows = [[None, *events[1:]] for events in table["events"].to_pylist()]
        return table.set_column(table.column_names.index("events"), "events", pa.array(rows, pa.list_(pa.string())))

    change_table(part, unnamed)
    oscar(*words).refused("part-00000.parquet", "'events'", "null")
