"""`oscar bench outside`: every set that is there, every rival at its default and tuned: JSON, Markdown and a plot."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from oscar_causal.data.digest import ContentDigest
from oscar_causal.data.folders import write_text
from oscar_causal.data.schema import conform
from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.data.subjects import held_out
from oscar_causal.data.synthetic.worlds import FIRST_RECORDED_SEED
from oscar_causal.data.writer import write_dataset
from oscar_causal.errors import UsageError
from oscar_causal.score.bench.ledger import add_row, provenance, read_ledger
from oscar_causal.score.bench.outside import bpic, causrca, fault_trees, fines, telecom
from oscar_causal.score.bench.outside.interface import Answer, OutsideSet, Truth
from oscar_causal.score.bench.outside.rivals import PERFECT, RIVALS, Cut, Rival, decide, perfect_boundary
from oscar_causal.score.bench.outside.scoring import our_figures
from oscar_causal.score.bench.pages import table
from oscar_causal.score.bench.place import ShowProgress, no_progress
from oscar_causal.score.bench.plots import bars, save_plot
from oscar_causal.score.bench.running import Say, choose_rows, say_nothing
from oscar_causal.score.bench.settings import BenchSettings
from oscar_causal.score.matching import Pair

SETS: Mapping[str, ModuleType] = {
    "telecom": telecom,
    "fines": fines,
    "bpic2011": bpic,
    "causrca": causrca,
    "fault trees": fault_trees,
}
"""Name -> its adapter: `FOLDER` and `FILES` under the data folder, `load(folder, seed, sequences)`."""
DEFAULTS: Mapping[str, Any] = {"sequences": 12_000}
"""Sequences that are simulated from the fault trees."""
VALIDATION = 0.25
"""Share of the training subjects on which settings and cuts are chosen."""
TUNED = " (tuned)"
ROWS = (
    *(rival.name + end for rival in RIVALS for end in (("", TUNED) if rival.tunable else ("",))),
    PERFECT,
)
OURS = ("precision", "recall", "f1_of_means", "micro_f1")
NAME = "outside"


@dataclass(frozen=True)
class Ready:
    """A set on disk, read back: what rows are measured on."""

    outside: OutsideSet
    data: Dataset

    @cached_property
    def digest(self) -> str:
        """Of the sequences."""
        return str(self.data.info["digest"])

    @cached_property
    def scored(self) -> Truth:
        """The truth of the tested sequences."""
        tested = set(self.data.take(self.outside.fold >= 0).sequence_ids.to_pylist())
        return {pair: reasons for pair, reasons in self.outside.truth.items() if pair[0] in tested}

    def parts(self) -> Iterator[tuple[Dataset, Dataset]]:
        """(training, test) of each fold; test: sequences with a scored pair."""
        known = {name for name, _ in self.outside.truth}
        asked = np.array([name in known for name in self.data.sequence_ids.to_pylist()], bool)
        for fold in sorted(set(self.outside.fold.tolist()) - {-1}):
            inside = self.outside.fold == fold
            if (inside & asked).any():
                yield self.data.take(~inside), self.data.take(inside & asked)


def missing_files(adapter: ModuleType, folder: Path) -> list[str]:
    """Which of the files a set needs are not there."""
    return [name for name in adapter.FILES if not any(folder.glob(name))]


def prepare(name: str, settings: BenchSettings) -> Ready:
    """Raw files to a dataset folder in the work folder (named by content) and its truth."""
    adapter = SETS[name]
    outside: OutsideSet = adapter.load(settings.data / adapter.FOLDER, settings.seed, settings.sequences)
    digest = ContentDigest()
    digest.update(conform(outside.sequences))
    folder = settings.work_folder / f"{NAME}-{_file_name(name)}-{digest.hexdigest()[:12]}"
    if not folder.exists():
        write_dataset(folder, [outside.sequences])
    return Ready(outside, read_dataset(folder))


def choose(rival: Rival, train: Dataset, ready: Ready, seed: int) -> tuple[Any, Cut, bool]:
    """Setting and cut with the best F1 on held-out subjects of the training part; False: there was nothing to go by."""
    held = held_out(train.subject_ids, VALIDATION, seed=seed + 1)
    learn, judge = train.take(~held), train.take(held)
    names = set(judge.sequence_ids.to_pylist())
    truth = {pair: reasons for pair, reasons in ready.outside.truth.items() if pair[0] in names}
    if not truth or not len(learn.labels.ids):
        return rival.settings[0], rival.cuts[0], False
    found = []
    for setting in rival.settings:
        scored = rival.scored(learn, judge, setting)
        for cut in rival.cuts:
            figures = our_figures(decide(scored, cut), truth, ready.outside.unit)
            found.append((figures["f1_of_means"], setting, cut))
    best = max(figure for figure, *_ in found)
    setting, cut = next((setting, cut) for figure, setting, cut in found if figure == best)
    return setting, cut, True


def measure(ready: Ready, rival: Rival, seed: int, *, tuned: bool) -> dict[str, Any]:
    """Explain every tested pair by what was learnt outside its fold, and score."""
    begun, answers, chosen = time.monotonic(), dict[Pair, Answer](), list[dict[str, Any]]()
    for train, test in ready.parts():
        setting, cut, known = choose(rival, train, ready, seed) if tuned else (rival.settings[0], rival.cuts[0], True)
        answers |= decide(rival.scored(train, test, setting), cut)
        chosen.append({"setting": str(setting), "least": cut.least, "top": cut.top, "by_validation": tuned and known})
    return {
        **our_figures(answers, ready.scored, ready.outside.unit),
        "own": dict(ready.outside.own(answers, ready.scored)),
        "chosen": chosen,
        "seconds": time.monotonic() - begun,
    }


def bench_outside(
    settings: BenchSettings, show: ShowProgress = no_progress, say: Say = say_nothing
) -> dict[str, dict[str, Any]]:
    """Measure the chosen rows (`SET: METHOD`) of the sets that are there; the others are told and left out."""
    if settings.seed >= FIRST_RECORDED_SEED:
        raise UsageError(f"seed {settings.seed}: is kept for the record; expected one below {FIRST_RECORDED_SEED}")
    names = choose_rows([f"{name}: {row}" for name in SETS for row in ROWS], settings.rows)
    rows = {name: [row for row in ROWS if f"{name}: {row}" in names] for name in SETS}
    begun, found = time.monotonic(), dict[str, dict[str, Any]]()
    for name, wanted in rows.items():
        folder = settings.data / SETS[name].FOLDER
        missing = missing_files(SETS[name], folder)
        if wanted and missing:
            say(f"{name}: skipped, there is no {missing[0]} in {folder}")
        elif wanted:
            late = _lateness(settings, begun)
            found[name] = _measure_set(prepare(name, settings), wanted, settings, show, late)
    if not found and settings.rows is None:
        say(f"nothing measured: no outside set in {settings.data} (--data)")
    return found


def _lateness(settings: BenchSettings, begun: float) -> Callable[[], bool]:
    return lambda: settings.until is not None and time.monotonic() - begun >= settings.until


def _measure_set(
    ready: Ready, wanted: list[str], settings: BenchSettings, show: ShowProgress, late: Callable[[], bool]
) -> dict[str, Any]:
    path = settings.out / f"{NAME}-{_file_name(ready.outside.name)}-seed{settings.seed}.json"
    made = _provenance(settings, ready)
    rivals = {rival.name: rival for rival in (*RIVALS, perfect_boundary(ready.outside))}
    there = read_ledger(path, NAME)["rows"]
    kept = [row for row in wanted if settings.missing and row in there and _same(there[row], made)]
    waiting, measured = [row for row in wanted if row not in kept], list[str]()
    with show(ready.outside.name, "rows") as progress:
        for row in waiting:
            if late():
                break
            figures = measure(ready, rivals[row.removesuffix(TUNED)], settings.seed, tuned=row.endswith(TUNED))
            add_row(path, NAME, row, {**figures, "provenance": made})
            measured.append(row)
            progress(len(measured), len(waiting))
    ledger, files = read_ledger(path, NAME), dict[str, str]()
    if ledger["rows"]:
        files = draw(ready, ledger["rows"], path)
    return {**ledger, "measured": measured, "kept": kept, "left_out": waiting[len(measured) :], "files": files}


def _provenance(settings: BenchSettings, ready: Ready) -> dict[str, Any]:
    bench = {"set": ready.outside.name, "seed": settings.seed, "sequences": len(ready.data)}
    return {**provenance(settings), "bench": bench, "dataset": ready.digest}


def _same(row: Mapping[str, Any], made: Mapping[str, Any]) -> bool:
    return all(row["provenance"].get(key) == made[key] for key in ("bench", "dataset", "commit"))


def _file_name(name: str) -> str:
    return name.replace(" ", "-")


def draw(ready: Ready, rows: Mapping[str, Mapping[str, Any]], path: Path) -> dict[str, str]:
    """Page and plot of the rows that are there; the files."""
    there = {name: rows[name] for name in (*ROWS, *rows) if name in rows}  # in the order of the table, then others
    write_text(path.with_suffix(".md"), page(ready, there))
    series = {name.replace("_", " "): [(100 * row[name], 0.0) for row in there.values()] for name in OURS[:3]}

    def fill(axis: Any) -> None:
        bars(axis, list(there), series)
        axis.set_xlabel(f"{ready.outside.name}: %")

    save_plot(path.with_suffix(".png"), fill)
    return {kind: str(path.with_suffix(f".{kind}")) for kind in ("json", "md", "png")}


def page(ready: Ready, rows: Mapping[str, Mapping[str, Any]]) -> str:
    """The table of one set in percent, published figures below."""
    outside, first = ready.outside, next(iter(rows.values()))
    own = list(first["own"])
    head = ["method", "precision", "recall", "F1 of means", "micro F1", *own, "false alarms", "seconds"]
    lines = [
        [name, *(_percent(row[key]) for key in OURS), *(_percent(row["own"].get(key)) for key in own),
         _percent(row["false_alarms"]), f"{row['seconds']:.1f}"]
        for name, row in rows.items()
    ]  # fmt: skip
    adapter = next(module for name, module in SETS.items() if name == outside.name)
    made = first["provenance"]
    text = [
        f"# {outside.name}",
        "",
        (adapter.__doc__ or "").strip(),
        "",
        f"{len(ready.data):,} sequences, {len(ready.data.event_names):,} types, {len(ready.data.label_names)} labels; "
        f"{first['pairs']:,} scored pairs with a cause, {first['empty_pairs']:,} without (*false alarms*: share of "
        f"these for which something is named). Seed {made['bench']['seed']}, content {ready.digest[:12]}, commit "
        f"{made['commit'] or 'not recorded'}. Tuned: on {VALIDATION:.0%} of the training subjects; else defaults.",
        "",
        *table(head, lines),
        "",
        *(f"- {line}" for line in outside.remarks),
        *_published(outside),
    ]
    return "\n".join(text).rstrip() + "\n"


def _published(outside: OutsideSet) -> list[str]:
    if not outside.published:
        return []
    rows = [[item.method, item.figure, f"{100 * item.value:.1f}", item.remark] for item in outside.published]
    return ["", "Figures from elsewhere, as published:", "", *table(["method", "figure", "value", "remark"], rows)]


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


BENCH = bench_outside
