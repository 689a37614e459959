"""Telecom alarms: an expert's graph, and an alarm that looks like a cause because it comes afterwards.

    python scripts/story_telecom.py DATA --out DIR       # DATA holds 18v_alarms.csv.gz and 18v_dag_edges.csv

Alarms of one device with gaps of at most an hour are a burst; four alarm types that the graph gives many causes and
next to no effects are the labels. The story is told twice: with whole bursts, and cut at the first label alarm,
as `oscar inspect` advises. Five models, by device, so that every burst is judged by one that never saw its device;
bursts of two alarms or more are explained. DIR then has the page, a figure and `story-telecom.json`.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow.parquet as pq
from story_steps import (
    Counts,
    Pair,
    Story,
    checked,
    commit,
    compared,
    count_verdicts,
    draw_panels,
    fresh_folder,
    keyed,
    ranking_auc,
    read_rows,
    rules_told,
    scored,
    share_text,
)

from oscar_causal.data.sequences import read_dataset
from oscar_causal.errors import OscarError
from oscar_causal.verbs.output import print_table

LABELS = ("A06", "A11", "A14", "A15")
"""Alarm types with many causes and next to no effects in the expert's graph."""
QUIET = 3600
"""Seconds without an alarm after which a new burst begins."""


@dataclass(frozen=True)
class Burst:
    """Alarms of one device without a long silence between them: (seconds, type), in order."""

    device: int
    alarms: tuple[tuple[int, str], ...]

    @property
    def label_times(self) -> dict[str, int]:
        """When each label alarm came first."""
        return {name: time for time, name in reversed(self.alarms) if name in LABELS}

    @property
    def events(self) -> list[tuple[int, str]]:
        """The alarms that are no labels."""
        return [alarm for alarm in self.alarms if alarm[1] not in LABELS]


def main(argv: Sequence[str] | None = None) -> None:
    args = arguments(argv)
    begun, story = time.monotonic(), Story(args.data.resolve())
    bursts = read_bursts(story.data / "18v_alarms.csv.gz")
    truth = read_truth(story.data / "18v_dag_edges.csv")
    out = fresh_folder(args.out)
    with chdir(out):
        write_tables(bursts)
        figures = tell(story, args, truth)
        figures |= {
            "story": "telecom",
            "seed": args.seed,
            "commit": commit(),
            "order": order_of(bursts),
            "truth": [[*pair, kind] for pair, kind in truth.items()],
            "typed": story.typed,
            "seconds": round(time.monotonic() - begun, 1),
        }
        Path("story-telecom.json").write_text(json.dumps(figures, indent=1) + "\n")
        show(figures, truth)
    print(f"{args.out}: page.html, story-telecom.png, story-telecom.json; {figures['seconds']:.0f} s in all")


def type_name(number: str) -> str:
    return f"A{int(number):02d}"


def read_bursts(path: Path) -> list[Burst]:
    """Bursts in the order of devices and times."""
    rows = read_rows(path, ["alarm_id", "device_id", "start_timestamp"])
    alarms = sorted((int(r["device_id"]), int(r["start_timestamp"]), type_name(r["alarm_id"])) for r in rows)
    bursts: list[list[tuple[int, int, str]]] = []
    for alarm in alarms:
        last = bursts[-1][-1] if bursts else None
        if last is None or last[0] != alarm[0] or alarm[1] - last[1] > QUIET:
            bursts.append([])
        bursts[-1].append(alarm)
    return [Burst(burst[0][0], tuple((time, name) for _, time, name in burst)) for burst in bursts]


def read_truth(path: Path) -> dict[Pair, str]:
    """(label, event) -> parent, or ancestor where every way in the expert's graph leads over other types."""
    rows = read_rows(path, ["cause", "effect"])
    graph = nx.DiGraph((type_name(row["cause"]), type_name(row["effect"])) for row in rows)
    return {
        (label, event): "parent" if graph.has_edge(event, label) else "ancestor"
        for label in LABELS
        if label in graph
        for event in sorted(nx.ancestors(graph, label) - set(LABELS))
    }


def write_tables(bursts: Iterable[Burst]) -> None:
    """The two tables that `oscar import` wants: alarms, and the first time of each label."""
    with Path("alarms.csv").open("w", newline="") as events, Path("outcomes.csv").open("w", newline="") as outcomes:
        alarms, labels = csv.writer(events), csv.writer(outcomes)
        alarms.writerow(["sequence_id", "device", "time", "event"])
        labels.writerow(["sequence_id", "label", "label_time"])
        for number, burst in enumerate(bursts):
            name = f"device {burst.device:02d} burst {number:05d}"
            if burst.events:
                alarms.writerows([name, burst.device, *alarm] for alarm in burst.events)
                labels.writerows([name, label, at] for label, at in burst.label_times.items())


def order_of(bursts: Iterable[Burst]) -> dict[str, dict[str, dict[str, int]]]:
    """Label -> event -> in how many bursts with both its first alarm came before, with or after the label's first."""
    found: dict[str, dict[str, dict[str, int]]] = {label: {} for label in LABELS}
    for burst in bursts:
        first = {name: time for time, name in reversed(burst.events)}
        for label, at in burst.label_times.items():
            for event, came in first.items():
                counts = found[label].setdefault(event, {"before": 0, "same second": 0, "after": 0})
                counts["before" if came < at else "after" if came > at else "same second"] += 1
    return found


def tell(story: Story, args: argparse.Namespace, truth: dict[Pair, str]) -> dict[str, Any]:
    """The whole story, from tables to scores."""
    figures: dict[str, Any] = {}
    for name, cut in (("whole", ()), ("cut", ("--gap", "0"))):
        figures[name] = explained(story, args, truth, name, cut)
    seed = ("--seed", str(args.seed))
    story.oscar("baseline", "iamb", "cut-longer", "--out", "iamb")
    story.oscar("population", "cut-causes", "--out", "population", "--world", str(args.world), *seed)
    report = ("--population", "population", "--title", "Telecom alarms", "--out", "page.html")
    story.oscar("report", "cut-causes", *report)
    figures["score"] = {name: scored(story.oscar("score", name)) for name in ("whole-causes", "cut-causes", "iamb")}
    figures["iamb_minus_cut"] = compared(story.oscar("score", "cut-causes", "iamb", "--compare", *seed))
    return figures | counted(truth)


def explained(
    story: Story, args: argparse.Namespace, truth: dict[Pair, str], name: str, cut: Sequence[str]
) -> dict[str, Any]:
    """Import, inspect, train, check and discover; cut at the first label or not."""
    tables = ("alarms.csv", "--labels", "outcomes.csv", "--subject-column", "device")
    imported = story.oscar("import", *tables, *cut, "--out", name)
    write_rules(Path(name), truth)
    inspected = story.oscar("inspect", name)
    seed = ("--seed", str(args.seed))
    sizes = ("--folds", str(args.folds), "--steps", str(args.steps))
    story.oscar("train", name, "--out", f"{name}-model", *sizes, *seed)
    check = checked(story.oscar("check", f"{name}-model", name))
    data = read_dataset(name)
    longer = [data.sequence_ids[k].as_py() for k in range(len(data)) if len(data.events_of(k)) > 1]
    Path(f"{name}-longer.txt").write_text("".join(f"{each}\n" for each in longer))
    story.oscar("select", name, "--ids", f"{name}-longer.txt", "--out", f"{name}-longer")
    discovered = story.oscar("discover", f"{name}-model", f"{name}-longer", *seed, "--out", f"{name}-causes")
    return {"import": imported, "inspect": inspected, "check": check, "discover": discovered}


def write_rules(dataset: Path, truth: dict[Pair, str]) -> None:
    """The expert's graph as rules: a label comes by any of its parents."""
    parents: dict[str, list[str]] = {}
    for (label, event), kind in truth.items():
        if kind == "parent":
            parents.setdefault(label, []).append(event)
    (dataset / "rules.json").write_text(json.dumps({label: " | ".join(some) for label, some in parents.items()}))


def counted(truth: dict[Pair, str]) -> dict[str, Any]:
    """Verdicts per (label, event), the population's word, how well each ranks the parents, and the figure."""
    panels: dict[str, Counts] = {
        "whole bursts: alarms after the label are there too": count_verdicts(Path("whole-causes"), Path("whole")),
        "bursts cut at the first label alarm": count_verdicts(Path("cut-causes"), Path("cut")),
        "IAMB on the cut bursts, read where present": count_verdicts(Path("iamb"), Path("cut")),
    }
    events = sorted({event for counts in panels.values() for _, event in counts})
    marks = {pair: kind[0].upper() for pair, kind in truth.items()}
    draw_panels(panels, marks, events, Path("story-telecom.png"))
    boundaries = pq.read_table("population/boundaries.parquet").to_pylist()
    columns = ("label", "event", "verdict", "present", "groups", "effect", "ci_low", "ci_high", "q_value",
               "world_p_value")  # fmt: skip
    ranked = {}
    for label in LABELS:
        effects = {row["event"]: row["effect"] for row in boundaries if row["label"] == label}
        ranked[label] = ranking_auc(
            effects, [e for (who, e), kind in truth.items() if (who, kind) == (label, "parent")]
        )
    return {
        "verdicts": {name: keyed(part) for name, part in zip(("whole", "cut", "iamb"), panels.values(), strict=True)},
        "boundaries": [{name: row[name] for name in columns} for row in boundaries],
        "parents_ranked_auc": ranked,
        "rules": rules_told(Path("population")),
        "interplay": json.loads(Path("population/interplay.json").read_text())["pairs"],
    }


def show(figures: dict[str, Any], truth: dict[Pair, str]) -> None:
    """The closing table: for each label what the fleet says, by what the graph says."""
    rows = []
    for row in sorted(figures["boundaries"], key=lambda row: (row["label"], -row["effect"])):
        if row["verdict"] != "too few":
            pair = (row["label"], row["event"])
            parts = [figures["verdicts"][name].get(pair[0], {}).get(pair[1]) for name in figures["verdicts"]]
            told = (truth.get(pair, "no"), row["verdict"], row["effect"], row["world_p_value"])
            rows.append([f"{pair[1]} {pair[0]}", *told, *map(share_text, parts)])
    columns = ["pair", "graph", "fleet", "effect", "world p", "whole", "cut", "IAMB"]
    print_table(columns, rows, title="+ cause, - inhibitor, of the bursts with label and event")
    scores = [[name, *(part[key] for key in ("precision", "recall", "f1_of_means", "random"))]
              for name, part in figures["score"].items()]  # fmt: skip
    print_table(["against the parents that are present", "precision", "recall", "F1 of means", "random guess"], scores)
    f1 = [[label, *(figures[name]["check"]["labels"][label]["f1"] for name in ("whole", "cut"))] for label in LABELS]
    print_table(["label", "F1 of the model, whole bursts", "cut bursts"], f1)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the tables")
    parser.add_argument("--out", type=Path, required=True, help="folder to write; must not exist")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=150, help="of each model")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--world", type=int, default=12, help="pairs tested on observed labels")
    return parser.parse_args(argv)


if __name__ == "__main__":
    try:
        main()
    except OscarError as error:
        sys.exit(f"story_telecom: {error}")
