"""What `oscar population` says at its end: counts for machines, a table and lines for people."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oscar_causal.verbs.output import print_lines, print_table

if TYPE_CHECKING:
    from oscar_causal.graph.population_folder import Population

SHOWN = 25
"""Rows of the table, and lines about rules that differ from the expert's."""
FEW = 5
"""Pairs named in a line."""


def summarise(found: Population) -> dict[str, Any]:
    """Counts for people and machines; null = not looked at."""
    from oscar_causal.graph.rule_drift import changed_rules
    from oscar_causal.report.fleet import held_up

    verdicts = found.boundaries["verdict"].to_pylist()
    return {
        "sequences": found.info["sequences"],
        "unlabelled": found.info["unlabelled"],
        "absent": found.info["absent"],
        "labels": len(found.labels),
        "untrusted_labels": [row["label"] for row in found.labels.to_pylist() if row["untrusted"]],
        "pairs": len(verdicts),
        **{name.replace(" ", "_"): verdicts.count(name) for name in ("cause", "inhibitor", "undecided", "too few")},
        "never_without": sum(bool(others) for others in found.boundaries["never_without"].to_pylist()),
        "rules": len(found.rules),
        "prior": found.prior is not None,
        "changes": 0 if found.drift is None else sum(found.drift["changed"].to_pylist()),
        "changed_rules": 0 if found.rule_drift is None else len(changed_rules(found.rule_drift)),
        "expert": _expert(found),
        "interplay": _interplay(found),
        "world": held_up(found.boundaries["world_p_value"].to_pylist(), found.info["settings"]["boundaries"]["alpha"]),
    }


def _expert(found: Population) -> dict[str, Any] | None:
    """How many proposals are what beside the expert's rule, and how many labels have a rule on one side only."""
    from oscar_causal.graph.rules.expert import RELATIONS

    if found.expert is None:
        return None
    relations = Counter(item["relation"] for item in found.expert["rules"].values())
    lonely = {name: len(found.expert[name]) for name in ("without_proposal", "without_expert")}
    return {"file": found.expert["file"], **{name: relations[name] for name in RELATIONS}, **lonely}


def _interplay(found: Population) -> dict[str, int] | None:
    """Pairs of labels by verdict."""
    if found.interplay is None:
        return None
    return dict(sorted(Counter(row["verdict"] for row in found.interplay["pairs"]).items()))


def show_population(found: Population, out: Path, summary: dict[str, Any]) -> None:
    """The most frequent labels as a table, then everything else in lines."""
    relations = {label: item["relation"] for label, item in (found.expert or {"rules": {}})["rules"].items()}
    beside = ["beside the expert's"] if found.expert is not None else []
    rows = [
        [
            row["label"] + (" (not trusted)" if row["untrusted"] else ""),
            row["sequences"],
            ", ".join(row["causes"]) or "-",
            found.rules.get(row["label"], "-"),
            *([relations.get(row["label"], "-")] if beside else []),
        ]
        for row in sorted(found.labels.to_pylist(), key=lambda row: -row["sequences"])[:SHOWN]
    ]
    print_table(["label", "sequences", "causes", "proposed rule", *beside], rows, title="most frequent labels")
    lines = [
        f"{out}: {summary['sequences']:,} (sequence, label) pairs of {summary['labels']:,} labels",
        f"{summary['cause']:,} causes, {summary['inhibitor']:,} inhibitors, {summary['undecided']:,} undecided, "
        f"{summary['too_few']:,} events tested in too few cars",
    ]
    lines += [*_doubtful(summary), *_beside_expert(found, summary), *_hang_together(summary), *_tested(found, summary)]
    if found.drift is not None:
        lines.append(f"{summary['changes']:,} changes of effects between windows (drift.parquet)")
    if found.rule_drift is not None:
        lines.append(f"{summary['changed_rules']:,} labels whose rule changes with time (rule_drift.parquet)")
    if found.prior is None:
        lines.append("no prior: `discover --population` needs a model and --looks above 0 here")
    print_lines(lines)


def _doubtful(summary: dict[str, Any]) -> list[str]:
    """What the counts rest on besides recorded labels."""
    lines = []
    if summary["untrusted_labels"]:
        lines.append(f"{len(summary['untrusted_labels']):,} labels are not trusted: causes and rules speak about noise")
    if summary["unlabelled"]:
        lines.append(
            f"{summary['unlabelled']:,} of them without recorded labels: there the model alone says that it came"
        )
    if summary["absent"]:
        lines.append(f"{summary['absent']:,} more left out: explained, but recorded not to have come")
    if summary["never_without"]:
        lines.append(
            f"{summary['never_without']:,} events without which another of the boundary was never seen (never_without)"
        )
    return lines


def _beside_expert(found: Population, summary: dict[str, Any]) -> list[str]:
    told = summary["expert"]
    if found.expert is None or told is None:
        return []
    counts = ", ".join(f"{told[name]:,} {name}" for name in ("same", "stricter", "looser", "contradicting"))
    unknown = f", {told['unknown']:,} that logic alone does not settle" if told["unknown"] else ""
    lines = [
        f"beside the rules of {told['file']}: {counts}{unknown}; "
        f"{told['without_proposal']:,} of them without a proposal, {told['without_expert']:,} proposals without one"
    ]
    differ = {label: item for label, item in found.expert["rules"].items() if item["relation"] != "same"}
    for label, item in list(differ.items())[:SHOWN]:
        guess = "" if item["status"] == "proposed" else " (a best guess)"
        lines.append(f"  {label}{guess}: {item['sentence']}")
    return [*lines, *([f"  and {len(differ) - SHOWN:,} more (expert.json)"] if len(differ) > SHOWN else [])]


def _hang_together(summary: dict[str, Any]) -> list[str]:
    if summary["interplay"] is None:
        return []
    verdicts = ", ".join(f"{number:,} {verdict}" for verdict, number in summary["interplay"].items())
    return [f"pairs of labels: {verdicts or 'none share a cause or depend on each other'} (interplay.json)"]


def _tested(found: Population, summary: dict[str, Any]) -> list[str]:
    told = summary["world"]
    if told is None:
        return []
    columns = (found.boundaries[name].to_pylist() for name in ("world_p_value", "event", "label"))
    rows = sorted((row for row in zip(*columns, strict=True) if row[0] is not None), reverse=True)
    weakest = ", ".join(f"{event} for {label} (p = {p:.3f})" for p, event, label in rows[:FEW])
    lines = [f"on observed labels {told['held_up']:,} of {told['tested']:,} tested pairs hold up (world_p_value)"]
    return lines if told["held_up"] == told["tested"] else [*lines, f"  least sure: {weakest}"]
