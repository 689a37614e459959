"""`oscar bench`: a table or figure of the paper, measured again, with the paper's numbers beside ours; outside sets."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from oscar_causal.errors import UsageError
from oscar_causal.verbs.output import Json, print_json, print_lines, print_note, progress_bar

BENCHES = {
    "table-1": "oscar_causal.score.bench.table_1",
    "length": "oscar_causal.score.bench.length",
    "nades": "oscar_causal.score.bench.nades",
    "sampling": "oscar_causal.score.bench.sampling",
    "contexts": "oscar_causal.score.bench.contexts",
    "threshold": "oscar_causal.score.bench.threshold",
    "rivals": "oscar_causal.score.bench.rivals",
    "all": "oscar_causal.score.bench.every",
    "speed": "oscar_causal.score.bench.speed",
    "rules": "oscar_causal.score.bench.rule_recovery",
}
"""Name -> module whose `BENCH` measures, writes its files and returns what it measured; `all`: those before it."""
ROD = ("ladder", "outside")
"""Measured on worlds and on sets from elsewhere instead of a fleet: `oscar_causal.score.bench.ladder`."""
LABELS = "labels"
"""Label models on worlds: `oscar_causal.score.bench.label_models`."""
EVERY = (*BENCHES, *ROD, LABELS)
GPU_WORKERS = 4
"""Processes of `labels` on one GPU: a small network leaves most of it idle."""
ONLY = {
    "--worlds": (*ROD, LABELS),
    "--record": (*ROD, LABELS),
    "--estimator": ("table-1", "all"),
    "--sweep": ("speed",),
    "--data": ("outside",),
    "--missing": (*ROD, *(name for name in BENCHES if name != "speed")),
    "--until": (*ROD, *(name for name in BENCHES if name != "speed")),
}
"""Option -> the benchmarks that look at it."""


def run(
    name: Annotated[str, typer.Argument(help=f"{', '.join(EVERY)}.")],
    out: Annotated[Path, typer.Option(help="Folder for JSON, Markdown and PNG; rows of earlier calls are kept.")],
    quick: Annotated[bool, typer.Option("--quick", help="The demo fleet and a tiny model, on a CPU.")] = False,
    estimator: Annotated[
        str | None, typer.Option(help="table-1, all: your own estimator, module:function, as one more row.")
    ] = None,
    rows: Annotated[
        str | None, typer.Option(help="Only these rows: names or patterns with *, separated by commas.")
    ] = None,
    fleet: Annotated[str | None, typer.Option(help="Preset of the fleet: demo, small, hard, temporal, paper.")] = None,
    sequences: Annotated[int | None, typer.Option(help="Sequences of the fleet.")] = None,
    preset: Annotated[str | None, typer.Option(help="Size of the model: tiny, base or paper.")] = None,
    steps: Annotated[int | None, typer.Option(help="Optimiser steps.")] = None,
    test: Annotated[int | None, typer.Option(help="Held-out sequences to explain.")] = None,
    runs: Annotated[int | None, typer.Option(help="Seeds per row; by default the paper's number.")] = None,
    time_limit: Annotated[float | None, typer.Option(help="Seconds for one classical method.")] = None,
    dataset: Annotated[Path | None, typer.Option(help="This dataset instead of a made fleet.")] = None,
    model: Annotated[Path | None, typer.Option(help="This model instead of a trained one.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="outside: folder of the sets that come from elsewhere; ../shared/data.")
    ] = None,
    work: Annotated[Path | None, typer.Option(help="Where fleets, models and results are kept; OUT/work.")] = None,
    seed: Annotated[int | None, typer.Option(help="Decides the fleet, the weights and the contexts.")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes; by default one for each core, on a GPU and for speed one.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; the fastest there is by default.")] = None,
    sweep: Annotated[bool, typer.Option("--sweep", help="speed: also over V, Y, N and L, one at a time.")] = False,
    missing: Annotated[
        bool, typer.Option("--missing", help="Only rows that OUT does not hold yet, with these settings and sequences.")
    ] = False,
    until: Annotated[
        float | None, typer.Option(help="Begin no row after so many seconds; 0: only pages and plots anew.")
    ] = None,
    worlds: Annotated[
        str | None,
        typer.Option(help="ladder, outside, labels: these kinds of worlds (oscar synth --worlds) or sets, by commas."),
    ] = None,
    record: Annotated[
        str | None,
        typer.Option(help="ladder, outside, labels: your prediction; lets seeds from 1000 on and the kept kinds run."),
    ] = None,
    commit: Annotated[str | None, typer.Option(help="Of the program, for the record.")] = None,
    json: Json = False,
) -> None:
    """Make, train, discover and score what a table or figure of the paper needs; the paper's numbers beside ours."""
    if name not in EVERY:
        raise UsageError(f"bench: expected one of {', '.join(EVERY)}, got {name!r}")
    _refuse_idle(
        name,
        {
            "--estimator": estimator,
            "--sweep": sweep,
            "--missing": missing,
            "--until": until,
            "--data": data,
            "--worlds": worlds,
            "--record": record,
        },
    )
    if name in ROD:
        sizes = {"train": sequences, "test": test, **({} if data is None else {"data": data})}
        asked: dict[str, Any] = {
            "grounds": worlds,
            "rows": rows,
            "seed": seed,
            "runs": runs,
            "missing": missing,
            "until": until,
        }
        asked |= {"work": work, "workers": workers or os.cpu_count() or 1, "record": record, "commit": commit}
        _rod(name, {"out": out, "quick": quick, **asked, **sizes}, json=json)
        return
    if name == LABELS:
        sizes = {"train": sequences, "test": test, "steps": steps, "seed": seed, "workers": workers}
        words = {"worlds": worlds, "rows": rows, "device": device, "record": record, "commit": commit}
        _labels(out, work, quick, json=json, **sizes, **words)
        return
    from oscar_causal.discovery.local import check_device
    from oscar_causal.score.bench.settings import bench_settings
    from oscar_causal.verbs.discover import fastest_device

    place = device or fastest_device()
    check_device(place)
    given = {
        "estimator": estimator,
        "rows": rows,
        "fleet": fleet,
        "sequences": sequences,
        "preset": preset,
        "steps": steps,
        "test": test,
        "runs": runs,
        "time_limit": time_limit,
        "dataset": dataset,
        "model": model,
        "work": work,
        "seed": seed,
        "workers": (1 if name == "speed" or place != "cpu" else os.cpu_count()) if workers is None else workers,
        "device": place,
        "commit": commit,
        "sweep": sweep,
        "missing": missing,
        "until": until,
    }
    bench = import_module(BENCHES[name])
    usual = {} if quick else getattr(bench, "DEFAULTS", {})
    settings = bench_settings(out, quick=quick, **{**given, **{k: v for k, v in usual.items() if given[k] is None}})
    found = bench.BENCH(settings, progress_bar, *(() if name == "speed" else (print_note,)))
    if json:
        print_json(found)
    elif name == "all":
        for part, told in found.items():
            print_lines([f"{part}:", *_told(told)])
    else:
        _show(found)


def _rod(name: str, given: dict[str, Any], *, json: bool) -> None:
    """Every method on every world or outside set."""
    from oscar_causal.score.bench.ladder.tables import RodSettings, bench_ladder, bench_outside

    found = {"ladder": bench_ladder, "outside": bench_outside}[name](RodSettings(**given), print_note)
    if json:
        print_json(found)
    elif found["files"]:
        sys.stdout.write(Path(found["files"]["md"]).read_text(encoding="utf-8"))
    else:
        print_lines(["nothing measured"])


def _labels(out: Path, work: Path | None, quick: bool, *, json: bool, **given: Any) -> None:
    """Every label model on every world; rows that are there already, on the same sequences, are kept."""
    from oscar_causal.discovery.local import check_device
    from oscar_causal.score.bench.label_models.measuring import QUICK, LabelSettings, run_labels
    from oscar_causal.score.bench.label_models.models import ROWS
    from oscar_causal.score.bench.running import choose_rows
    from oscar_causal.verbs.discover import fastest_device

    chosen = (QUICK if quick else {}) | {key: value for key, value in given.items() if value is not None}
    if isinstance(chosen.get("worlds"), str):
        chosen["worlds"] = tuple(part.strip() for part in chosen["worlds"].split(","))
    chosen["rows"] = tuple(choose_rows(ROWS, chosen.get("rows")))
    if "seed" in chosen:
        chosen["seeds"] = (chosen.pop("seed"),)
    chosen.setdefault("device", fastest_device())
    check_device(chosen["device"])
    chosen.setdefault("workers", (os.cpu_count() or 1) if chosen["device"] == "cpu" else GPU_WORKERS)
    found = run_labels(LabelSettings(out, work or out / "work", **chosen), print_note)
    if json:
        print_json(found)
    else:
        sys.stdout.write(Path(found["files"]["md"]).read_text(encoding="utf-8"))


def _refuse_idle(name: str, given: Mapping[str, Any]) -> None:
    """What a benchmark would not look at must not pass for an option of it."""
    for option, value in given.items():
        if value is not None and value is not False and name not in ONLY[option]:
            raise UsageError(f"{option}: expected with bench {' or '.join(ONLY[option])}, got bench {name}")


def _show(found: dict[str, Any]) -> None:
    if found["files"]:
        sys.stdout.write(Path(found["files"]["md"]).read_text(encoding="utf-8"))
    print_lines(["", *_told(found)])


def _told(found: dict[str, Any]) -> list[str]:
    """Which rows were measured, kept and left out, and the files."""
    words = {"measured": "measured now", "kept": "there already", "left_out": "left out, for time"}
    lines = [f"{text}: {', '.join(found[key])}" for key, text in words.items() if found.get(key)]
    return [*lines, *found["files"].values()]
