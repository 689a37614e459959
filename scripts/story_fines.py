"""Traffic fines: a preventive cause, and two events that nothing in the data can part.

    python scripts/story_fines.py DATA --out DIR     # DATA holds seq_events.csv.gz, seq_labels.csv.gz, seq_truth.csv

Imports the cases, trains, checks, explains the tenth of the cases the model has not seen in three ways (as the defaults
have it; with events taken out instead of replaced; asking also why credit collection did not come), pools them, writes
a page, and scores everything against the rules of the process. A second model that is also trained on unfinished cases
shows what an announcer is. DIR then has the page, a figure and `story-fines.json`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from story_steps import (
    Counts,
    Keep,
    Pair,
    Story,
    checked,
    commit,
    compared,
    count_verdicts,
    draw_panels,
    fresh_folder,
    keyed,
    plausibility,
    read_rows,
    rules_told,
    scored,
    share_text,
)

from oscar_causal.data.sequences import read_dataset
from oscar_causal.density.folds import load_models
from oscar_causal.density.interface import Contexts
from oscar_causal.errors import DataError, OscarError
from oscar_causal.verbs.output import print_table

OPENING = "Create Fine"
"""Opens every case, so that nothing in the data says what a case without it would be."""
ASKED = "credit_collection"
"""The label with a preventive cause."""
SIGN = {"promotes": "▲", "prevents": "▼"}
"""How the figure marks what is known."""
TAKEN_OUT = ("--held-out", "--exclude", OPENING, "--replacement", "delete")


def main(argv: Sequence[str] | None = None) -> None:
    args = arguments(argv)
    begun, story = time.monotonic(), Story(args.data.resolve())
    truth = read_truth(story.data / "seq_truth.csv")
    out = fresh_folder(args.out)
    with chdir(out):
        figures = tell(story, args, truth)
        figures |= {
            "story": "fines",
            "seed": args.seed,
            "commit": commit(),
            "typed": story.typed,
            "seconds": round(time.monotonic() - begun, 1),
        }
        Path("story-fines.json").write_text(json.dumps(figures, indent=1) + "\n")
        show(figures, truth)
    print(f"{args.out}: page.html, story-fines.png, story-fines.json; {figures['seconds']:.0f} s in all")


def read_truth(path: Path) -> dict[Pair, str]:
    """(label, event) -> promotes or prevents."""
    rows = read_rows(path, ["label", "event", "effect"])
    wrong = [row["effect"] for row in rows if row["effect"] not in SIGN]
    if wrong:
        raise DataError(f"{path}: expected effect promotes or prevents, got {wrong[0]!r}")
    return {(row["label"], row["event"]): row["effect"] for row in rows}


def rules_of(truth: dict[Pair, str]) -> dict[str, str]:
    """The truth as rules: one of the promoting events, none of the preventing ones.

    >>> rules_of({("late", "A"): "promotes", ("late", "B"): "promotes", ("late", "C d"): "prevents"})
    {'late': '("A" | "B") & !"C d"'}
    """
    rules = {}
    for label in sorted({label for label, _ in truth}):
        names: dict[str, list[str]] = {"promotes": [], "prevents": []}
        for (other, event), effect in truth.items():
            if other == label:
                names[effect].append(json.dumps(event))
        rules[label] = " & ".join([f"({' | '.join(names['promotes'])})", *(f"!{name}" for name in names["prevents"])])
    return rules


def tell(story: Story, args: argparse.Namespace, truth: dict[Pair, str]) -> dict[str, Any]:
    """The whole story, from tables to scores."""
    seed = ("--seed", str(args.seed))
    tables = [str(story.data / name) for name in ("seq_events.csv.gz", "seq_labels.csv.gz")]
    figures: dict[str, Any] = {"import": story.oscar("import", tables[0], "--labels", tables[1], "--time-unit", "d",
                                                     "--out", "fines")}  # fmt: skip
    Path("fines/rules.json").write_text(json.dumps(rules_of(truth)))
    figures["inspect"] = story.oscar("inspect", "fines")
    train = ("train", "fines", "--steps", str(args.steps), *seed)
    story.oscar(*train, "--out", "model")
    figures["check"] = checked(story.oscar("check", "model", "fines"))
    discover = ("discover", "model", "fines", *seed)
    story.oscar(*discover, "--held-out", "--out", "first")
    story.oscar(*discover, *TAKEN_OUT, "--out", "causes")
    story.oscar(*discover, *TAKEN_OUT, "--label", ASKED, "--out", "why-not")
    story.oscar("baseline", "iamb", "fines", "--out", "iamb")
    story.oscar(*train, "--min-context", "1", "--out", "forecaster")
    story.oscar("discover", "forecaster", "fines", *seed, *TAKEN_OUT, "--out", "announced")
    story.oscar("population", "first", "--out", "population-first", "--world", str(args.world), *seed)
    story.oscar("population", "causes", "--out", "population", "--world", str(args.world), *seed)
    story.oscar("report", "causes", "--population", "population", "--title", "Traffic fines", "--out", "page.html")
    figures["score"] = {
        name: scored(story.oscar("score", name)) for name in ("first", "causes", "announced")
    }  # held-out cases
    figures["iamb_minus_causes"] = compared(story.oscar("score", "causes", "iamb", "--compare", *seed))
    return figures | counted(truth)


def counted(truth: dict[Pair, str]) -> dict[str, Any]:
    """Verdicts per (label, event), the population's word and the figure."""
    fines = Path("fines")
    panels: dict[str, Counts] = {
        "defaults: events replaced by what could stand there": count_verdicts(Path("first"), fines),
        "events taken out, 'Create Fine' left alone": count_verdicts(Path("causes"), fines),
        "the same, asked where credit collection did not come": count_verdicts(Path("why-not"), fines, observed=False),
        "a model also trained on unfinished cases": count_verdicts(Path("announced"), fines),
        "IAMB on all cases, read where present": count_verdicts(Path("iamb"), fines),
    }
    events = sorted({event for counts in panels.values() for _, event in counts})
    marks = {pair: SIGN[effect] for pair, effect in truth.items()}
    draw_panels(panels, marks, events, Path("story-fines.png"))
    names = ("first", "causes", "why_not", "announced", "iamb")
    promoting = {event for (label, event), effect in truth.items() if (label, effect) == (ASKED, "promotes")}

    def with_penalty(events: Sequence[str], _: str) -> bool:  # elsewhere there is nothing to prevent
        return bool(promoting & set(events))

    return {
        "verdicts": {name: keyed(part) for name, part in zip(names, panels.values(), strict=True)},
        "prevented": keyed(count_verdicts(Path("why-not"), fines, observed=False, keep=with_penalty)),
        "variant_occurs": keyed(count_verdicts(Path("causes"), fines, keep=supported(fines))),
        "plausibility": plausibility(Path("first")),
        "opening_alone": {name: of_opening(name) for name in ("model", "forecaster")},
        "instead": {event: stand_ins(event) for (label, event) in truth if label == ASKED},
        "population": {name: population_of(Path(name)) for name in ("population-first", "population")},
    }


def supported(dataset: Path) -> Keep:
    """Does the case without this event occur in the data, its other events in the same order?"""
    data = read_dataset(dataset)
    occur = {tuple(data.events_of(k)) for k in range(len(data))}
    return lambda events, event: tuple(name for name in events if name != event) in occur


def of_opening(folder: str) -> dict[str, float]:
    """P(label) of a case that consists of the opening event alone."""
    model = load_models(folder).models[0]
    case = Contexts(torch.tensor([[model.vocabulary.event_ids[OPENING]]]), torch.zeros(1).double(), torch.zeros(1, 0))
    labels = model.vocabulary.label_ids
    answers = model.label_probs(case, torch.tensor(list(labels.values())), torch.tensor([1])).flatten()
    return dict(zip(labels, answers.tolist(), strict=True))


def stand_ins(event: str, most: int = 40) -> dict[str, Any]:
    """What Tf_x puts in an event's place in held-out cases with the label, and P(label) with each, or with nothing.

    Cases in which the event occurs once, `most` at most; stand-ins drawn in less than 3 % of a case are left out.
    """
    models, data = load_models("model"), read_dataset("fines")
    model, ids = models.models[0], models.vocabulary.event_ids
    label = torch.tensor([models.vocabulary.label_ids[ASKED]])

    def probability(events: Sequence[int], times: Sequence[float]) -> float:
        context = Contexts(torch.tensor([events]), torch.tensor(times), torch.zeros(len(events), 0))
        return float(model.label_probs(context, label, torch.tensor([len(events)])))

    told: dict[str, list[float]] = {"observed": [], "taken out": []}
    shares: dict[str, list[float]] = {}
    for k in np.flatnonzero(~models.seen_in_training(data.subject_ids)).tolist():
        names, times = data.events_of(k), data.times[data.events.offsets[k] : data.events.offsets[k + 1]].tolist()
        if ASKED not in data.labels_of(k) or names.count(event) != 1 or len(told["observed"]) == most:
            continue
        events, at = [ids[name] for name in names], names.index(event)
        law = model.event_probs(Contexts(torch.tensor([events]), torch.tensor(times), torch.zeros(len(events), 0)))[at]
        told["observed"].append(probability(events, times))
        told["taken out"].append(probability(events[:at] + events[at + 1 :], times[:at] + times[at + 1 :]))
        others = {name: float(law[number]) for name, number in ids.items() if name != event}
        for name, weight in others.items():
            share = weight / sum(others.values())
            if share >= 0.03:
                shares.setdefault(name, []).append(share)
                told.setdefault(name, []).append(probability([*events[:at], ids[name], *events[at + 1 :]], times))
    cases = len(told["observed"])
    found = {name: {"probability": float(np.mean(values))} for name, values in told.items() if values}
    return {"cases": cases, **found, **{n: found[n] | {"drawn": sum(some) / cases} for n, some in shares.items()}}


def population_of(folder: Path) -> dict[str, Any]:
    """The fleet's verdicts on what was tested in enough cases, and every rule with its reasons."""
    columns = ("label", "event", "verdict", "present", "effect", "ci_low", "ci_high", "q_value", "world_p_value")
    rows = pq.read_table(folder / "boundaries.parquet").to_pylist()
    kept = [{name: row[name] for name in columns} for row in rows if row["verdict"] != "too few"]
    return {"boundaries": kept, "rules": rules_told(folder)}


def show(figures: dict[str, Any], truth: dict[Pair, str]) -> None:
    """The closing table: what is known, and in how many of the cases with the event each way says so."""
    rows = []
    for (label, event), effect in sorted(truth.items()):
        cells = [figures["verdicts"][name].get(label, {}).get(event) for name in figures["verdicts"]]
        rows.append([f"{event} {effect} {label}", *map(share_text, cells)])
    ways = ["default", "taken out", "why not", "forecast", "IAMB"]
    print_table(["truth", *ways], rows, title="+ cause, - inhibitor, of the cases with the event")
    ways = [[name, *(part[key] for key in ("precision", "recall", "f1_of_means", "random"))]
            for name, part in figures["score"].items()]  # fmt: skip
    print_table(["held-out cases", "precision", "recall", "F1 of means", "random guess"], ways)
    rules = figures["population"]["population"]["rules"]
    print_table(["label", "rule", "status"], [[label, told["rule"], told["status"]] for label, told in rules.items()])


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the tables")
    parser.add_argument("--out", type=Path, required=True, help="folder to write; must not exist")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=400, help="of each of the two trainings")
    parser.add_argument("--world", type=int, default=12, help="pairs tested on observed labels")
    return parser.parse_args(argv)


if __name__ == "__main__":
    try:
        main()
    except OscarError as error:
        sys.exit(f"story_fines: {error}")
