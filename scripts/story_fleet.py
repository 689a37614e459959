"""A made fleet with two rules that change at a date, decoys, a hidden driver and an expert's book with four mistakes.

    python scripts/story_fleet.py --out DIR

Makes the fleet, trains on most cars, explains those the model has not seen, pools them, recovers rules and compares
them with the book, looks for changes and for labels that hang together, then judges new cars with and without the
fleet. DIR has the page and `story-fleet.json`, with the truth beside what was found.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from story_steps import Story, checked, commit, fresh_folder

from oscar_causal.data.rules import And, Event, Not, Or, Rule, event_names, format_rule, parse, positive_names
from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.errors import OscarError
from oscar_causal.graph.rules.expert import relation
from oscar_causal.score.bench.ledger import machine
from oscar_causal.verbs.discover import fastest_device
from oscar_causal.verbs.output import print_table

KNOBS = ("drift=0.2", "temporal_labels=0.25", "decoys=0.9", "hidden_driver=0.25")
NEW = 20
"""Every so many-th car is new: not trained on, not pooled."""


def main(argv: Sequence[str] | None = None) -> None:
    args = arguments(argv)
    begun, story = time.monotonic(), Story(Path("DATA"))
    out = fresh_folder(args.out)
    with chdir(out):
        figures = tell(story, args)
        figures |= {
            "story": "fleet",
            "seed": args.seed,
            "commit": commit(),
            "machine": machine(fastest_device()),
            "typed": story.typed,
            "seconds": round(time.monotonic() - begun, 1),
        }
        Path("story-fleet.json").write_text(json.dumps(figures, indent=1, default=str) + "\n")
        show(figures)
    print(f"{args.out}: page.html, story-fleet.json; {figures['seconds']:.0f} s in all")


def tell(story: Story, args: argparse.Namespace) -> dict[str, Any]:
    """The whole story, from the fleet to the score of new cars."""
    seed, contexts = ("--seed", str(args.seed)), ("--contexts", str(args.contexts))
    knobs = [word for knob in KNOBS for word in ("--set", knob)]
    knobs += ["--labels", str(args.labels)] if args.labels else []
    made = story.oscar("synth", "--sequences", str(args.sequences), *knobs, *seed, "--out", "fleet")
    truth = true_rules(made)
    split_cars(read_dataset("fleet"))
    for name in ("known", "new"):
        story.oscar("select", "fleet", "--ids", f"{name}.txt", "--out", name)
    story.oscar("train", "known", "--steps", str(args.steps), *seed, "--out", "model")
    figures: dict[str, Any] = {"check": checked(story.oscar("check", "model", "known"))}
    told = story.oscar("discover", "model", "known", "--held-out", *contexts, *seed, "--out", "pool")
    figures["pool"] = {name: told[name] for name in ("explained", "causes", "inhibitors", "empty", "counts")}
    story.oscar("baseline", "iamb", "known", "--features", "counts,order", "--workers", "1", "--out", "classical")
    mistakes = write_book(Path("fleet/rules.json"), read_dataset("known"), Path("book.json"))
    pooled = (
        "population",
        "pool",
        "--classical",
        "classical",
        "--window",
        str(args.window),
        "--world",
        str(args.world),
    )
    figures["population"] = story.oscar(*pooled, "--expert", "book.json", *contexts, *seed, "--out", "population")
    for name, options in (("one-shot", ()), ("fused", ("--population", "population"))):
        story.oscar("discover", "model", "new", *options, *contexts, *seed, "--out", name)
    figures["score"] = compared(story.oscar("score", "one-shot", "fused", "--compare", *seed))
    story.oscar("report", "fused", "--population", "population", "--title", "A made fleet", "--out", "page.html")
    return figures | found(Path("population"), truth, mistakes)


def true_rules(made: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Label -> its true rules, published or not, each with the time it is in force."""
    truth: dict[str, list[dict[str, Any]]] = {}
    for label, entry in json.loads(Path("fleet/rules.json").read_text()).items():
        plain = entry if isinstance(entry, dict) else {"rule": entry, "from": None, "to": None}
        truth.setdefault(label, []).append(plain)
    for entry in made["generator"]["hidden_rules"]:
        truth.setdefault(entry["label"], []).append({key: entry[key] for key in ("rule", "from", "to")})
    return truth


def split_cars(fleet: Dataset) -> None:
    """Write known.txt and new.txt: the sequences of every car on one side."""
    cars, ids = fleet.subject_ids.to_pylist(), fleet.sequence_ids.to_pylist()
    new = set(sorted(set(cars))[::NEW])
    for name, wanted in (("known", False), ("new", True)):
        chosen = [item for item, car in zip(ids, cars, strict=True) if (car in new) == wanted]
        Path(f"{name}.txt").write_text("\n".join(chosen) + "\n")


def write_book(rules: Path, fleet: Dataset, book: Path) -> dict[str, dict[str, str]]:
    """The published rules with four mistakes, each in the first rule that has room for it; says which."""
    content = json.loads(rules.read_text())
    steady = {label: parse(text) for label, text in content.items() if isinstance(text, str)}
    mistakes: dict[str, dict[str, str]] = {}
    for kind in (
        "an alternative is missing",
        "the blocker is missing",
        "a condition is missing",
        "a bystander is blamed",
    ):
        for label, rule in steady.items():
            wrong = None if label in mistakes else with_mistake(rule, kind, bystander(fleet, label, rule))
            if wrong is not None:
                mistakes[label] = {"mistake": kind, "true": format_rule(rule), "book": format_rule(wrong)}
                content[label] = format_rule(wrong)
                break
    book.write_text(json.dumps(content, indent=1) + "\n")
    return mistakes


def with_mistake(rule: Rule, kind: str, other: str) -> Rule | None:
    """A plain rule with this mistake in it; None where it has no room for it.

    >>> [format_rule(with_mistake(parse(text), kind, "X")) for text, kind in (
    ...     ("A | B | C", "an alternative is missing"), ("(A | B) & !D", "the blocker is missing"),
    ...     ("A & B & C", "a condition is missing"), ("A & B", "a bystander is blamed"))]
    ['A | B', 'A | B', 'A & B', 'A & X']
    """
    match rule, kind:
        case Or(items), "an alternative is missing" if plain(items):
            return shorter(Or, items[:-1])
        case And(items), "the blocker is missing" if any(isinstance(item, Not) for item in items):
            return shorter(And, [item for item in items if not isinstance(item, Not)])
        case And(items), "a condition is missing" if plain(items) and len(items) > 2:
            return And(items[:-1])
        case And(items), "a bystander is blamed" if plain(items):
            return And((*items[:-1], Event(other)))
    return None


def plain(items: Iterable[Rule]) -> bool:
    return all(isinstance(item, Event) for item in items)


def shorter(kind: type[And] | type[Or], items: Sequence[Rule]) -> Rule:
    return items[0] if len(items) == 1 else kind(tuple(items))


def bystander(fleet: Dataset, label: str, rule: Rule) -> str:
    """The event most often beside the label that its rule does not mention."""
    known = set(event_names(rule))
    rows = [k for k in range(len(fleet)) if label in fleet.labels_of(k)]
    seen = Counter(event for k in rows for event in set(fleet.events_of(k)) - known)
    return max(sorted(seen), key=lambda event: seen[event])


def found(folder: Path, truth: Mapping[str, Any], mistakes: Mapping[str, Any]) -> dict[str, Any]:
    """Boundaries, rules, book, pairs of labels and changes, with the truth beside them."""
    rows = pq.read_table(folder / "boundaries.parquet").to_pylist()
    proposals, expert, interplay = (json.loads((folder / f"{name}.json").read_text())
                                    for name in ("proposals", "expert", "interplay"))  # fmt: skip
    return {
        "truth": truth,
        "boundaries": boundary_figures(rows, truth),
        "rules": {label: rule_figures(item, truth[label]) for label, item in sorted(proposals.items())},
        "mistakes": {label: {**told, **book_figures(expert, label)} for label, told in mistakes.items()},
        "expert": {label: item["relation"] for label, item in expert["rules"].items()},
        "interplay": interplay["pairs"],
        "changes": [{**row, "from": str(row["from"]), "to": str(row["to"])}
                    for row in pq.read_table(folder / "rule_drift.parquet").to_pylist()
                    if row["changed"] or len(truth[row["label"]]) > 1],
    }  # fmt: skip


def boundary_figures(rows: Sequence[Mapping[str, Any]], truth: Mapping[str, Any]) -> dict[str, Any]:
    """Causes and inhibitors of the fleet against the events of all true rules, and the test on observed labels."""
    causes = {(row["label"], row["event"]) for row in rows if row["verdict"] == "cause"}
    true = {
        (label, name) for label, told in truth.items() for rule in told for name in positive_names(parse(rule["rule"]))
    }
    tested = [row for row in rows if row["world_p_value"] is not None]
    columns = ("label", "event", "effect", "ci_low", "ci_high", "i_squared", "world_p_value")
    return {
        "causes": len(causes),
        "true": len(true),
        "right": len(causes & true),
        "wrong": sorted(causes - true),
        "missed": sorted(true - causes),
        "inhibitors": sorted((row["label"], row["event"]) for row in rows if row["verdict"] == "inhibitor"),
        "world": [
            {name: row[name] for name in columns} | {"true": (row["label"], row["event"]) in true} for row in tested
        ],
    }


def rule_figures(item: Mapping[str, Any], true: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A proposal, and what it is beside each true rule of its label."""
    kept = ("status", "rule", "confidence", "method", "reasons", "rule_without_label", "label_without_rule")
    beside = [None if item["rule"] is None else relation(parse(item["rule"]), parse(told["rule"])) for told in true]
    return {**{name: item[name] for name in kept}, "beside_the_truth": beside}


def book_figures(expert: Mapping[str, Any], label: str) -> dict[str, Any]:
    """What the command says of a rule of the book."""
    told = expert["rules"].get(label)
    return (
        {"relation": None}
        if told is None
        else {name: told[name] for name in ("relation", "status", "sentence", "subjects")}
    )


def compared(told: Mapping[str, Any]) -> dict[str, Any]:
    """Precision, recall and F1 of both ways against the known reasons, and the difference with its interval."""
    kept = ("precision", "recall", "f1_of_means")
    runs = {run["results"]: {name: run["truth"]["why"]["sample"][name] for name in kept} for run in told["runs"]}
    part = told["differences"][0]["truth"]["why"]
    return {**runs, "pairs": part["pairs"], "difference": part["sample"]["f1_of_means"]}


def show(figures: Mapping[str, Any]) -> None:
    """The closing tables."""
    rows = [[label, item["rule"], item["status"], ", ".join(map(str, item["beside_the_truth"]))]
            for label, item in figures["rules"].items()]  # fmt: skip
    print_table(["label", "rule", "status", "beside the truth"], rows, title="rules")
    rows = [
        [label, item["mistake"], item["relation"], item.get("sentence", "-")]
        for label, item in figures["mistakes"].items()
    ]
    print_table(["label", "the book's mistake", "the proposal is", "told"], rows, title="the expert's book")
    rows = [[name, *figures["score"][name].values()] for name in ("one-shot", "fused")]
    print_table(["new cars", "precision", "recall", "F1 of means"], rows)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder to write; must not exist")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--sequences", type=int, default=12_000)
    parser.add_argument("--labels", type=int, help="default: those of the demo fleet")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--contexts", type=int, default=64)
    parser.add_argument("--window", type=int, default=365, help="days of a window")
    parser.add_argument("--world", type=int, default=24, help="pairs tested on observed labels")
    return parser.parse_args(argv)


if __name__ == "__main__":
    try:
        main()
    except OscarError as error:
        sys.exit(f"story_fleet: {error}")
