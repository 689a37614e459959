"""Table 1: OSCAR against classical methods, with a time limit for each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oscar_causal.discovery.classical.ci_tests import CiConfig
from oscar_causal.discovery.classical.methods import BaselineConfig
from oscar_causal.discovery.oneshot import DiscoveryConfig
from oscar_causal.score.bench.estimators import intervention_settings, prefix_settings
from oscar_causal.score.bench.pages import page, percent, point, table
from oscar_causal.score.bench.paper import paper_cell, paper_value
from oscar_causal.score.bench.plots import bars, save_plot
from oscar_causal.score.bench.rows import Classical, Fused, OneShot, Presence, Row
from oscar_causal.score.bench.running import Bench, Rows
from oscar_causal.score.bench.settings import BenchSettings

FOLDS = 6
CLASSICAL = ("iamb", "cmb", "mb-by-mb", "pcd-by-pcd", "mi-mcf")
HEAD = (
    "method",
    "precision",
    "recall",
    "F1 of means",
    "mean of labels' F1",
    "F1 of means, causes present",
    "minutes",
    "paper: precision",
    "paper: recall",
    "paper: F1",
    "paper: minutes",
)


def rows(settings: BenchSettings) -> Mapping[str, Row]:
    """Both one-shot estimators and the user's own, five classical methods, IAMB at the paper's level uncorrected, and
    what knowing the rules would give."""
    published = CiConfig(alpha=0.1, correction="none")
    own = {} if settings.estimator is None else {settings.estimator: DiscoveryConfig(estimator=settings.estimator)}
    return {
        "prefix": OneShot(prefix_settings(), folds=FOLDS),
        "intervention": OneShot(intervention_settings(), folds=FOLDS),
        "fused": Fused(intervention_settings(), folds=FOLDS),
        **{name: OneShot(config, folds=FOLDS) for name, config in own.items()},
        **{name: Classical(BaselineConfig(name), FOLDS) for name in CLASSICAL},  # type: ignore[arg-type]
        "iamb alpha=0.1": Classical(BaselineConfig("iamb", published), FOLDS),
        "rule where present": Presence(FOLDS),
    }


def to_page(measured: Rows) -> str:
    """The table in percent, weighted averages against every event of the rule, as in the paper."""
    lines = [_line(name, figures) for name, figures in measured.items()]
    body = [
        "Precision, recall and both readings of F1 are weighted averages against every event of the label's rule (the "
        f"paper's truth), in percent, mean ± sd over {FOLDS} folds of the subjects. *Causes present*: averages over "
        "pairs against the events that brought the label about in this sequence. `prefix` is the paper's estimator; "
        "`rule where present` knows the rules and names their events that are present: no method, a ceiling.",
        "",
        *table(HEAD, lines),
        "",
        *_notes(measured),
    ]
    return page("table-1", "Table 1: one-shot discovery against classical methods", body, measured, ("times", "f1"))


def _line(name: str, figures: Mapping[str, Any]) -> list[str]:
    truth = figures["truth"].get("rule_all", {})
    ours = [percent(truth, "weighted", key) for key in ("precision", "recall", "f1_of_means", "f1")]
    ours.append(percent(figures["truth"].get("why", {}), "sample", "f1_of_means"))
    ours.append(f"{figures['seconds']['mean'] / 60:.2f}")
    if "cpu_seconds" in figures:
        ours[-1] += f" ({figures['cpu_seconds'] / 60:.2f})"
    papers = [paper_cell("table-1", name, key) for key in ("precision", "recall", "f1", "minutes")]
    return [name, *ours, *papers]


def _notes(measured: Rows) -> list[str]:
    notes = [
        "- Classical boundaries are learnt from all sequences that the training of the model gets and read where their "
        "events are present; a label's truth is its rule, so a perfect global boundary is hard to beat here. Times of "
        "classical methods are for learning (in brackets: of the processor, all processes added up), of one-shot "
        "methods for explaining the test sequences; training is not in them, nor is the "
        "population that `fused` draws its prior from (these same sequences as `intervention` sees them, own subject "
        "left out)."
    ]
    for name, figures in measured.items():
        if figures.get("incomplete_labels"):
            limit = figures["provenance"]["bench"]["time_limit"]
            notes.append(
                f"- {name} was stopped after {limit:g} s with {figures['incomplete_labels']} of {figures['labels']} "
                "labels unfinished; what it had found by then is scored."
            )
        if figures.get("whole_boundary", {}).get("pairs"):
            f1 = 100 * figures["whole_boundary"]["weighted"]["f1_of_means"]
            notes.append(f"- {name}, the whole boundary against the whole rule, present or not: F1 of means {f1:.1f}.")
    return notes


def plot(measured: Rows, path: Path) -> None:
    """Precision, recall and F1 of means of every method, and the paper's."""
    series: dict[str, list[tuple[float, float] | None]] = {}
    for key, papers in (("precision", "precision"), ("recall", "recall"), ("f1_of_means", "f1")):
        series[key.replace("_", " ")] = [_bar(figures, key) for figures in measured.values()]
        series[f"paper: {papers}"] = [paper_value("table-1", name, papers) for name in measured]

    def draw(axis: Any) -> None:
        bars(axis, list(measured), series)
        axis.set_xlabel("%, weighted, against every event of the rule")

    save_plot(path, draw)


def _bar(figures: Mapping[str, Any], key: str) -> tuple[float, float] | None:
    truth = figures["truth"].get("rule_all")
    return None if truth is None else point(truth, "weighted", key)


BENCH = Bench("table-1", rows, to_page, plot)
