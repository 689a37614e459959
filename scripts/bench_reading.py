"""What observed labels alone say of one sequence, at full size and without a model: the known half of `fused`.

    python scripts/bench_reading.py --fleet temporal --seed 0 --workers 2        # two cores, about 4 minutes

Boundaries are learnt from the training cars as `bench_fleet.py` does (IAMB by presence; with counts and order), each
label's best is read in every labelled sequence of the held-out cars, and an event is a cause where the reading says
that it more probably acted than not. Beside it: how many rules come out right from these boundaries and the labels of
`--mine` training sequences, no model asked (`bench_rules.py` asks one). Writes reading-FLEET-seedN.json.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import fleet_making
import numpy as np
from bench_rules import SMALL, by_positives, compared_rules, show_rules, world_of
from fleet_classical import ORDER, PRESENCE, Plan, learn, learn_from, training_rows
from fleet_figures import Method, compare, judged, parts_of, show
from fleet_making import Run, held_out_share, made_fleet
from fleet_truth import causes_of, true_rules, where_present

from oscar_causal.data.rules import EventIndex, format_rule, positive_names
from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.discovery.classical.reading import read_per_sequence
from oscar_causal.discovery.fleet_prior import features_by_label, subject_fold
from oscar_causal.discovery.fused import EVEN
from oscar_causal.discovery.reading import Read, Readings, readings_of
from oscar_causal.graph.rules.boundary_rule import boundary_rule
from oscar_causal.graph.rules.mining import Mined
from oscar_causal.score.matching import Pair, Sets

READ = "observed labels, read here"
DRAWS = 1000


def read_all(readings: Readings, data: Dataset, pairs: list[Pair]) -> dict[Pair, Read | None]:
    """Every pair read without the fold of its car."""
    ids = {name: number for number, name in enumerate(data.event_names)}
    row = {name: number for number, name in enumerate(data.sequence_ids.to_pylist())}
    subjects, offsets, found = data.subject_ids.to_pylist(), data.events.offsets, {}
    for name, label in pairs:
        k = row[name]
        part = slice(int(offsets[k]), int(offsets[k + 1]))
        index = EventIndex(np.array([0, part.stop - part.start]), data.events.ids[part], data.times[part], ids)
        found[name, label] = readings.read(label, index, subject_fold(subjects[k]))
    return found


def calibration(found: dict[Pair, Read | None], truth: Sets) -> list[dict[str, float]]:
    """What readings say, and how often it is so."""
    told = [(chance, event in truth[p]) for p, r in found.items() if r for event, chance in r.acted.items()]
    said, true = np.array([t[0] for t in told]), np.array([t[1] for t in told])
    edges = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 1.0)
    bins = np.digitize(said, edges[1:-1])
    return [
        {"from": edges[k], "to": edges[k + 1], "events": int(n), "said": float(said[bins == k].mean()),
         "true": float(true[bins == k].mean())}
        for k, n in enumerate(np.bincount(bins, minlength=len(edges) - 1)) if n
    ]  # fmt: skip


def figures(run: Run, fleet: Path) -> dict[str, Any]:
    """Learn, choose, read, compare."""
    args, data = run.args, read_dataset(fleet)
    plan = Plan(str(fleet), held_out_share(args, fleet, fleet / "none"), args.seed, args.workers)
    known = learn(plan, (PRESENCE, ORDER), False)
    run.done("classical")
    rows = training_rows(plan, data)
    other = np.ones(len(data), bool)
    other[rows] = False
    test = data.take(np.flatnonzero(other & (data.labels.lengths > 0)))
    readings = readings_of(known.patterns.patterns, features_by_label(known.classical))
    if readings is None:
        raise SystemExit("no boundary has members: nothing to read")
    truth = causes_of(test)
    pairs = sorted(truth)
    found = read_all(readings, test, pairs)
    acted = {
        p: frozenset(e for e, chance in r.acted.items() if chance >= EVEN) if r else frozenset()
        for p, r in found.items()
    }
    positive = {label: {n for rule in some for n in positive_names(rule)} for label, some in true_rules(fleet).items()}
    methods = {
        "presence oracle": Method(where_present(positive, test)),
        "iamb, where present": judged(read_per_sequence(known.boundaries[PRESENCE], test), "p_value"),
        "iamb with counts and order": judged(read_per_sequence(known.boundaries[ORDER], test), "p_value"),
        READ: Method(acted),
    }
    subjects = dict(zip(test.sequence_ids.to_pylist(), test.subject_ids.to_pylist(), strict=True))
    parts = parts_of(pairs, truth, methods["presence oracle"].found, known.classical.positives)
    return {
        "training_sequences": known.sequences,
        "test_sequences": len(test),
        "tables": compare(methods, READ, truth, parts, subjects, draws=DRAWS, seed=args.seed),
        "calibration": calibration(found, truth),
        "rules": rules_of_boundaries(data.take(rows[: args.mine]), args.workers),
    }


def rules_of_boundaries(mined: Dataset, workers: int) -> dict[str, Any]:
    """Rules that refined boundaries of these sequences give, compared with the true ones of up to 8 events."""
    known, world, found = learn_from(mined, (PRESENCE, ORDER), workers), world_of(mined), []
    index, number = Mined(mined), {name: place for place, name in enumerate(world_of(mined).label_names)}
    for label, features in features_by_label(known.classical).items():
        rule = boundary_rule(index, label, features)
        told = {"label": label, "positives": known.classical.positives[label], "status": "proposed" if rule else "none"}
        found.append(
            {**told, "rule": format_rule(rule) if rule else None, **compared_rules(world, number[label], rule)}
        )
    steady = [row for row in found if row["kind"] in ("boolean", "temporal") and row["size"] <= SMALL]
    return {"mined": len(mined), "steady_up_to_8": by_positives(steady), "all": by_positives(found), "rules": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    fleet_making.add_arguments(parser)
    parser.add_argument("--mine", type=int, default=100_000, help="training sequences whose labels give rules")
    args = parser.parse_args()
    run = Run(args, f"reading-{args.fleet}-seed{args.seed}")
    with tempfile.TemporaryDirectory() as name:
        run.done("all", complete=True, **figures(run, made_fleet(run, Path(args.work or name))))
    show(run.result, "read")
    show_rules(run.result["rules"])


if __name__ == "__main__":
    main()
