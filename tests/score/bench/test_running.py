"""Rows are chosen by name, added to what is there, and every file can be read after each of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from oscar_causal.data.folders import read_json, write_json
from oscar_causal.errors import OscarError, UsageError
from oscar_causal.score.bench import every, running
from oscar_causal.score.bench.ledger import add_row
from oscar_causal.score.bench.pages import page, percent, table
from oscar_causal.score.bench.place import Place, no_progress
from oscar_causal.score.bench.plots import bars, curves, save_plot
from oscar_causal.score.bench.running import Bench, Rows, at_work, choose_rows, say_nothing
from oscar_causal.score.bench.settings import BenchSettings, bench_settings

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(autouse=True)
def no_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Place, "explained_digest", "0123456789")


@dataclass(frozen=True)
class Fixed:
    """A row whose figures are known beforehand."""

    f1: float

    def measure(self, place: Place) -> dict[str, Any]:
        if self.f1 < 0:
            raise UsageError("this row fails")
        return {"f1": self.f1, "sequences": 3, "pairs": 4}


ROWS = {"first": Fixed(0.1), "second N=1": Fixed(0.2), "second N=2": Fixed(0.3), "bad": Fixed(-1)}


def to_page(measured: Rows) -> str:
    body = table(["row", "F1"], [[name, f"{figures['f1']}"] for name, figures in measured.items()])
    return page("table-1", "A title", body, measured, ("times",))


def plot(measured: Rows, path: Path) -> None:
    save_plot(path, lambda axis: axis.plot([figures["f1"] for figures in measured.values()]))


BENCH = Bench("fixed", lambda settings: ROWS, to_page, plot)


def settings_for(out: Path, rows: str, **given: Any) -> BenchSettings:
    return bench_settings(out, quick=True, rows=rows, work=out.with_name(f"{out.name}-work"), **given)


def test_rows_accumulate_in_the_order_of_the_table(tmp_path: Path) -> None:
    BENCH(settings_for(tmp_path, "second N=2", commit="abc"))
    found = BENCH(settings_for(tmp_path, "first"))
    assert found["measured"] == ["first"]
    ledger = read_json(Path(found["files"]["json"]))
    assert set(ledger["rows"]) == {"first", "second N=2"}
    assert ledger["rows"]["second N=2"]["provenance"]["commit"] == "abc"
    assert ledger["rows"]["first"]["provenance"]["bench"]["seed"] == 0
    text = Path(found["files"]["md"]).read_text()
    assert text.index("| first |") < text.index("| second N=2 |")
    assert "Numbers of the paper that do not fit together" in text
    assert "commit abc" in text
    assert Path(found["files"]["png"]).read_bytes().startswith(PNG)
    assert {path.name for path in tmp_path.iterdir()} == {f"fixed-demo-seed0.{kind}" for kind in ("json", "md", "png")}


def test_a_row_measured_again_replaces_the_old_one_and_seeds_have_files_of_their_own(tmp_path: Path) -> None:
    BENCH(settings_for(tmp_path, "first", commit="old"))
    BENCH(settings_for(tmp_path, "first", commit="new"))
    BENCH(settings_for(tmp_path, "first", seed=7))
    assert read_json(tmp_path / "fixed-demo-seed0.json")["rows"]["first"]["provenance"]["commit"] == "new"
    assert read_json(tmp_path / "fixed-demo-seed7.json")["rows"]["first"]["provenance"]["bench"]["seed"] == 7


def test_a_failing_row_leaves_the_others(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="this row fails"):
        BENCH(settings_for(tmp_path, "first,bad"))
    assert set(read_json(tmp_path / "fixed-demo-seed0.json")["rows"]) == {"first"}


def test_time_out_leaves_rows_out_and_the_next_call_measures_only_those(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(running.time, "monotonic", lambda: now[0])
    at_once = Fixed.measure

    def slow(row: Fixed, place: Place) -> dict[str, Any]:
        now[0] += 10
        return at_once(row, place)

    monkeypatch.setattr(Fixed, "measure", slow)
    found = BENCH(settings_for(tmp_path, "first,second*", until=15))
    assert found["measured"] == ["first", "second N=1"]  # the second began at 10 s
    assert found["left_out"] == ["second N=2"]
    assert set(found["rows"]) == {"first", "second N=1"}
    assert found["rows"]["first"]["provenance"]["whole_seconds"] == 10
    again = BENCH(settings_for(tmp_path, "first,second*", missing=True))
    assert again["kept"] == ["first", "second N=1"]
    assert again["measured"] == ["second N=2"]
    assert not again["left_out"]
    other = BENCH(settings_for(tmp_path, "first", missing=True, test=7))  # other settings: not the same row
    assert other["measured"] == ["first"]


def test_pages_are_made_anew_from_a_ledger_that_came_from_elsewhere(tmp_path: Path) -> None:
    BENCH(settings_for(tmp_path / "a", "first"))
    (tmp_path / "b").mkdir()
    shutil.copy(tmp_path / "a" / "fixed-demo-seed0.json", tmp_path / "b")
    found = BENCH(settings_for(tmp_path / "b", "second*", until=0))
    assert not found["measured"]
    assert found["left_out"] == ["second N=1", "second N=2"]
    for kind in ("md", "png", "json"):
        name = f"fixed-demo-seed0.{kind}"
        assert (tmp_path / "b" / name).read_bytes() == (tmp_path / "a" / name).read_bytes()
    assert BENCH(settings_for(tmp_path / "c", "first", until=0))["files"] == {}


def test_rows_on_other_sequences_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    BENCH(settings_for(tmp_path, "first"))
    BENCH(settings_for(tmp_path, "second N=1"))
    page_path = tmp_path / "fixed-demo-seed0.md"
    assert "not all measured on the same sequences" not in page_path.read_text()
    monkeypatch.setattr(Place, "explained_digest", "another one")
    BENCH(settings_for(tmp_path, "second N=2"))
    assert "not all measured on the same sequences" in page_path.read_text()


def test_missing_keeps_only_rows_of_the_same_sequences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    BENCH(settings_for(tmp_path, "first,second*"))
    assert BENCH(settings_for(tmp_path, "first", missing=True))["kept"] == ["first"]
    monkeypatch.setattr(Place, "explained_digest", "another one")
    late = BENCH(settings_for(tmp_path, "first", missing=True, until=0))
    assert (late["measured"], late["kept"]) == ([], ["first"])
    found = BENCH(settings_for(tmp_path, "first", missing=True))
    assert (found["measured"], found["kept"]) == (["first"], [])
    again = BENCH(settings_for(tmp_path, "first,second*", missing=True))
    assert (again["measured"], again["kept"]) == (["second N=1", "second N=2"], ["first"])
    monkeypatch.setattr(Place, "explained_digest", "a third one")
    monkeypatch.setattr(Place, "model", lambda self: None)
    monkeypatch.setattr(every, "BENCHES", (BENCH,))
    found = every.measure_all(settings_for(tmp_path, "first", missing=True))
    assert (found["fixed"]["measured"], found["fixed"]["kept"]) == (["first"], [])


def test_missing_keeps_only_rows_of_the_same_dataset_and_model(
    settings: Callable[..., BenchSettings], ready: Any, tmp_path: Path
) -> None:
    def kept(**given: Any) -> Any:
        return BENCH(settings(rows="first", missing=True, **given))["kept"]

    assert (kept(), kept()) == ([], ["first"])
    for name in ("fleet", "model"):
        shutil.copytree(getattr(ready, name), tmp_path / "same" / name)
        shutil.copytree(getattr(ready, name), tmp_path / "other" / name)
    same = {"dataset": tmp_path / "same" / "fleet", "model": tmp_path / "same" / "model"}
    assert kept(**same) == ["first"]
    info = read_json(tmp_path / "other" / "fleet" / "dataset.json")
    (tmp_path / "other" / "fleet" / "checksums.json").unlink()
    write_json(tmp_path / "other" / "fleet" / "dataset.json", {**info, "digest": "other"})
    assert kept(**same | {"dataset": tmp_path / "other" / "fleet"}) == []
    assert kept(**same) == []  # that row is now the other dataset's
    vocabulary = tmp_path / "other" / "model" / "vocabulary.json"
    vocabulary.write_text(vocabulary.read_text() + " ")
    assert kept(**same | {"model": tmp_path / "other" / "model"}) == []


def test_two_benches_do_not_work_in_one_folder(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, "first")
    with at_work(settings, no_progress, say_nothing), pytest.raises(UsageError, match="another run is benchmarking"):
        BENCH(settings)
    BENCH(settings)


def test_rows_added_at_once_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: add_row(path, "fixed", f"row {n}", {"f1": n}), range(24)))
    assert len(read_json(path)["rows"]) == 24


def test_all_measures_every_bench_fused_last_and_tells_failures_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Place, "model", lambda self: None)
    first = Bench("one", lambda settings: {"a": Fixed(0.1), "fused": Fixed(0.2)}, to_page, plot)
    second = Bench("two", lambda settings: {"b": Fixed(0.1), "bad": Fixed(-1)}, to_page, plot)
    monkeypatch.setattr(every, "BENCHES", (first, second))
    said: list[str] = []
    settings = bench_settings(tmp_path, quick=True)
    with pytest.raises(OscarError, match=r"1 of 4 rows failed; first two, bad: this row fails"):
        every.measure_all(settings, say=said.append)
    assert [line.split("] ")[1].split(":")[0] for line in said] == ["one, a", "two, b", "two, bad", "one, fused"]
    assert set(read_json(tmp_path / "one-demo-seed0.json")["rows"]) == {"a", "fused"}
    found = every.measure_all(bench_settings(tmp_path, quick=True, missing=True, rows="a,b,fused"))
    assert (found["one"]["kept"], found["two"]["kept"]) == (["a", "fused"], ["b"])
    found = every.measure_all(bench_settings(tmp_path, quick=True, until=0, rows="fused"))
    assert found["one"]["left_out"] == ["fused"]
    assert set(found["two"]["files"]) == {"json", "md", "png"}
    with pytest.raises(UsageError, match="a, fused, b, bad"):
        every.measure_all(bench_settings(tmp_path, quick=True, rows="c"))


def test_all_begins_with_the_papers_rows_and_ends_with_the_dearest() -> None:
    settings = bench_settings(Path("out"), preset="base")
    told = {bench.name: every.Told() for bench in every.BENCHES}
    names = [f"{bench.name} {row}" for bench, row in every.chosen_rows(settings, told)]
    assert names[0] == "table-1 prefix"
    first = next(k for k, name in enumerate(names) if "fused" in name)
    assert all("fused" in name for name in names[first:])
    assert names[first : first + 5] == [
        "table-1 fused",
        "length fused",
        "sampling fused",
        "contexts fused N=64",
        "nades large fused",
    ]
    assert set(names[first + 5 :]) == {
        "contexts fused N=128",
        "contexts fused N=256",
        "threshold fused",
        "nades small fused",
    }
    assert len(names) == len(set(names)) == sum(len(bench.rows(settings)) for bench in every.BENCHES)


def test_rows_by_pattern() -> None:
    assert choose_rows(ROWS, None) == list(ROWS)
    assert choose_rows(ROWS, "second*, first") == ["first", "second N=1", "second N=2"]
    for wanted in ("third", "first,th*", ",", ""):
        with pytest.raises(UsageError, match="first, second N=1"):
            choose_rows(ROWS, wanted)


def test_cells_and_tables() -> None:
    part = {"mean": {"micro": {"f1": 0.5}}, "sd": {"micro": {"f1": 0.01}}}
    assert percent(part, "micro", "f1") == "50.0 ± 1.0"
    assert percent({**part, "sd": None}, "micro", "f1") == "50.0"  # one run has no spread
    assert percent({}, "micro", "f1") == "–"
    assert table(["a", "b"], [["x|y", "1"]]) == ["| a | b |", "|---|---:|", "| x&#124;y | 1 |"]


def test_plots_with_gaps(tmp_path: Path) -> None:
    series = {"ours": [(1.0, 0.1), None], "paper: ours": [None, None]}
    save_plot(tmp_path / "bars.png", lambda axis: bars(axis, ["a", "b"], series))
    lines = {"one": [(1.0, 2.0, 0.1), (2.0, 3.0, 0.1)], "none": []}
    save_plot(tmp_path / "lines.png", lambda axes: curves(axes[1], lines, xlabel="x", ylabel="y", log=2), panels=2)
    for name in ("bars.png", "lines.png"):
        assert (tmp_path / name).read_bytes().startswith(PNG)
