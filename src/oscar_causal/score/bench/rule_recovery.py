"""Rule recovery: of the labels whose rule is published, for how many is it found, and is it stated when it is right?

A recovered rule is *right* if it is logically equal to the published one with the time windows of both left out, and
*exact* if the windows are equal too. Both rows begin with the same boundaries (IAMB by presence and with order, refined
on the training sequences). `model search` is rule recovery as `oscar population` does it. `counts alone` combines the
features of the boundary by the observed labels, asks no model and gives no confidence.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from oscar_causal.data.rules import And, Not, Or, Rule, Then, equivalent, format_rule, parse, read_rules
from oscar_causal.data.sequences import Dataset
from oscar_causal.data.subjects import pack_subjects
from oscar_causal.density.folds import load_models
from oscar_causal.discovery.classical.features import FeatureConfig
from oscar_causal.discovery.classical.learning import learn_boundaries
from oscar_causal.discovery.classical.methods import BaselineConfig
from oscar_causal.discovery.fleet_prior import features_by_label
from oscar_causal.discovery.reading import Features
from oscar_causal.discovery.refining import refined
from oscar_causal.errors import UsageError
from oscar_causal.graph.assembling import classical_of
from oscar_causal.graph.rule_recovery import RuleRecoveryConfig, recover_rules
from oscar_causal.graph.rules.boundary_rule import boundary_rule
from oscar_causal.graph.rules.mining import Mined
from oscar_causal.score.bench.pages import table
from oscar_causal.score.bench.place import Place, model_figures
from oscar_causal.score.bench.plots import bars, save_plot
from oscar_causal.score.bench.rows import Row
from oscar_causal.score.bench.running import Bench, Rows
from oscar_causal.score.bench.settings import BenchSettings

EDGES = (0.0, 0.5, 0.8, 0.9, 0.95)
"""Lower ends of the bins of confidence; the last one ends at 1."""
COUNTS = ("labels", "recovered", "right", "exact", "stated", "stated right", "stated exact")


@dataclass(frozen=True)
class Recovered:
    """The rule that was recovered for a label."""

    rule: Rule | None
    stated: bool
    """As opposed to a best guess that the data cannot tell from others."""
    confidence: float | None = None


@dataclass(frozen=True)
class Compared:
    """A recovered rule beside the published one."""

    label: str
    published: str
    recovered: str | None
    stated: bool
    confidence: float | None
    right: bool
    exact: bool


def compare_rules(recovered: Mapping[str, Recovered], published: Mapping[str, Rule]) -> list[Compared]:
    """Every published rule beside what was recovered for its label; a label without any counts as not recovered.

    >>> found = {"y": Recovered(parse("B then A within 60s"), stated=True, confidence=0.9)}
    >>> (row,) = compare_rules(found, {"y": parse("B then A within 3600s")})
    >>> row.right, row.exact
    (True, False)
    """
    rows = []
    for label, true in sorted(published.items()):
        found = recovered.get(label, Recovered(None, stated=False))
        rule = found.rule
        right = rule is not None and equivalent(_without_windows(rule), _without_windows(true)) is True
        exact = rule is not None and equivalent(rule, true) is True
        text = None if rule is None else format_rule(rule)
        rows.append(Compared(label, format_rule(true), text, found.stated, found.confidence, right, exact))
    return rows


def count_rules(rows: Sequence[Compared]) -> dict[str, int]:
    """How many were recovered, right, exact and stated."""
    stated = [row for row in rows if row.stated]
    found = [row for row in rows if row.recovered is not None]
    kinds = (rows, found, [row for row in rows if row.right], [row for row in rows if row.exact], stated)
    right = ([row for row in stated if row.right], [row for row in stated if row.exact])
    return {name: len(part) for name, part in zip(COUNTS, (*kinds, *right), strict=True)}


def by_confidence(rows: Sequence[Compared]) -> list[dict[str, Any]]:
    """Stated rules by their confidence: from each edge up to the next."""
    bins = []
    for low, high in zip(EDGES, (*EDGES[1:], float("inf")), strict=True):
        part = [row for row in rows if row.stated and row.confidence is not None and low <= row.confidence < high]
        right, exact = sum(row.right for row in part), sum(row.exact for row in part)
        bins.append({"from": low, "stated": len(part), "right": right, "exact": exact})
    return bins


def _without_windows(rule: Rule) -> Rule:
    if isinstance(rule, And | Or):
        return type(rule)(tuple(_without_windows(item) for item in rule.items))
    if isinstance(rule, Not):
        return Not(_without_windows(rule.item))
    if isinstance(rule, Then):
        first = _without_windows(rule.first)
        return replace(rule, first=first, within=None)  # type: ignore[arg-type]
    return rule


@dataclass(frozen=True)
class RuleRow:
    """Rules of the training sequences, with or without the search that asks the model."""

    model_search: bool

    def measure(self, place: Place) -> dict[str, Any]:
        """See `Row`; `rules` has every label."""
        published = published_rules(place.fleet)
        training, test = place.data.take(place.training_rows), place.data.take(place.unseen)
        model = place.model() if self.model_search else None
        begun = time.monotonic()
        every = boundary_features(training, place.settings.workers)
        features = {label: every[label] for label in published if label in every}
        if model is None:
            found = rules_of_counts(training, features)
        else:
            models = load_models(model, device=place.settings.device)
            found = rules_of_model(models, training, test, features, place.settings.seed)
        rows = compare_rules(found, published)
        return {
            **count_rules(rows),
            "by_confidence": by_confidence(rows),
            "rules": [asdict(row) for row in rows],
            "learnt_from": len(training),
            "seconds": {"mean": time.monotonic() - begun, "sd": None},
            **({} if model is None else {"model": model_figures(model)}),
        }


def published_rules(fleet: Path) -> dict[str, Rule]:
    """The dataset's rules that hold at all times."""
    rules = read_rules(fleet / "rules.json")
    always = {label: item.rule for label, item in rules.items() if item.start is None and item.end is None}
    if not always:
        raise UsageError(f"{fleet / 'rules.json'}: expected rules without dates to compare with, found none")
    return always


def boundary_features(training: Dataset, workers: int) -> dict[str, Features]:
    """Refined boundaries of every label."""
    kinds = (FeatureConfig(("presence",)), FeatureConfig(("presence", "counts", "order")))
    subjects = pack_subjects(training.subject_ids)
    learnt = (learn_boundaries(training, BaselineConfig(features=kind), workers=workers) for kind in kinds)
    sources = [classical_of("iamb", found, subjects) for found in learnt]
    return features_by_label(refined(sources, [training], workers=workers))


def rules_of_counts(training: Dataset, features: Mapping[str, Features]) -> dict[str, Recovered]:
    """How the features of each boundary combine, by the observed labels."""
    mined = Mined(training)
    rules = {label: boundary_rule(mined, label, part) for label, part in features.items()}
    return {label: Recovered(rule, stated=rule is not None) for label, rule in rules.items()}


def rules_of_model(
    models: Any, training: Dataset, test: Dataset, features: Mapping[str, Features], seed: int
) -> dict[str, Recovered]:
    """Rule recovery with the model, for the labels that it knows."""
    known = set(models.vocabulary.labels)
    candidates = {
        label: sorted({name for names in part.names for name in names})
        for label, part in features.items()
        if label in known
    }
    found = recover_rules(
        models, training, candidates, RuleRecoveryConfig(seed=seed), held_out=test, features=dict(features)
    )
    return {
        item.label: Recovered(parse(item.rule) if item.rule else None, item.status == "proposed", item.confidence)
        for item in found
    }


def rows(settings: BenchSettings) -> Mapping[str, Row]:
    """The same boundaries, with and without the model."""
    return {"counts alone": RuleRow(model_search=False), "model search": RuleRow(model_search=True)}


def to_page(measured: Rows) -> str:
    """Counts of each row, stated rules by confidence, and how it was measured."""
    head = ("", *COUNTS, "seconds")
    lines = [
        [name, *(str(found[key]) for key in COUNTS), f"{found['seconds']['mean']:.0f}"]
        for name, found in measured.items()
    ]
    bins = [
        [name, *(f"{part['right']} of {part['stated']}" for part in found["by_confidence"])]
        for name, found in measured.items()
        if any(part["stated"] for part in found["by_confidence"])
    ]
    made = [f"- {name}: {_made(found)}" for name, found in measured.items()]
    told = str(__doc__).split("\n\n", 1)[1].strip().splitlines()
    text = ["# Rule recovery", "", *told, "", *table(head, lines), ""]
    if bins:
        text += ["Right rules of those stated, by confidence from:", ""]
        text += [*table(("", *(f"{edge:g}" for edge in EDGES)), bins), ""]
    return "\n".join([*text, *made]) + "\n"


def _made(found: Mapping[str, Any]) -> str:
    made = found["provenance"]
    told = [f"fleet `{made['bench']['fleet']}`", f"seed {made['bench']['seed']}"]
    told += [f"learnt from {found['learnt_from']:,} sequences", made["machine"]]
    return ", ".join([*told, f"commit {made['commit'] or 'not recorded'}"])


def plot(measured: Rows, path: Path) -> None:
    """Shares of the labels, a group of bars for each row."""
    kinds = ("right", "exact", "stated", "stated right")
    series = {kind: [(100 * found[kind] / found["labels"], 0.0) for found in measured.values()] for kind in kinds}

    def draw(axis: Any) -> None:
        bars(axis, list(measured), series)
        axis.set_xlabel("% of the labels with a published rule")

    save_plot(path, draw)


BENCH = Bench("rules", rows, to_page, plot)
