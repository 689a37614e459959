"""Table "sampling": how the first c events are drawn for `prefix`, at the paper's k = 3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from oscar_causal.discovery.prefix import PrefixConfig
from oscar_causal.score.bench.estimators import PAPER_PREFIX, intervention_settings, prefix_settings
from oscar_causal.score.bench.pages import page, percent, point, table
from oscar_causal.score.bench.paper import paper_cell, paper_value
from oscar_causal.score.bench.plots import bars, save_plot
from oscar_causal.score.bench.rows import Fused, OneShot, Row
from oscar_causal.score.bench.running import Bench, Rows
from oscar_causal.score.bench.settings import BenchSettings

PAPER_RUNS = 10
_PLAIN = replace(PAPER_PREFIX, threshold=3.0, top_k=None, top_p=None)
SAMPLERS: dict[str, PrefixConfig] = {
    "none": replace(_PLAIN, sampler="none"),
    "permutation": replace(_PLAIN, sampler="permutation"),
    "top-k=20": replace(_PLAIN, top_k=20),
    "top-k=35": replace(_PLAIN, top_k=35),
    "top-k=35 T=0.8": replace(_PLAIN, top_k=35, temperature=0.8),
    "top-k=35 T=1.2": replace(_PLAIN, top_k=35, temperature=1.2),
    "top-k=25 p=0.8": replace(_PLAIN, top_k=25, top_p=0.8),
    "top-k=35 p=0.8": replace(_PLAIN, top_k=35, top_p=0.8),
    "top-k=35 p=0.9": replace(_PLAIN, top_k=35, top_p=0.9),
    "top-k=35 p=0.9 T=0.9": replace(_PLAIN, top_k=35, top_p=0.9, temperature=0.9),
    "top-k=35 p=0.9 T=1.1": replace(_PLAIN, top_k=35, top_p=0.9, temperature=1.1),
}
AVERAGES = ("micro", "macro", "weighted")


def rows(settings: BenchSettings) -> Mapping[str, Row]:
    """The paper's eleven samplers (without any draw one run is enough), and our estimators."""
    runs = settings.repeats(PAPER_RUNS)
    found: dict[str, Row] = {
        name: OneShot(prefix_settings(config), runs=1 if config.sampler == "none" else runs)
        for name, config in SAMPLERS.items()
    }
    config = intervention_settings()
    return {**found, "intervention": OneShot(config, runs=runs), "fused": Fused(config, runs=runs)}


def to_page(measured: Rows) -> str:
    """F1 by three averages against every event of the rule, and seconds."""
    head = ["sampling", *(f"F1 {name}" for name in AVERAGES), "F1 of means, causes present", "seconds"]
    head += [*(f"paper: F1 {name}" for name in AVERAGES), "paper: seconds"]
    lines = [_line(name, figures) for name, figures in measured.items()]
    body = [
        "F1 against every event of the label's rule (macro and weighted: averages of the labels' F1), in percent, "
        "mean ± sd over seeds (one seed: no ±). The rows named by a sampler are `prefix` with k = 3.",
        "",
        *table(head, lines),
    ]
    return page("sampling", "How contexts are sampled", body, measured, ("times", "threshold", "samples", "nucleus"))


def _line(name: str, figures: Mapping[str, Any]) -> list[str]:
    truth, seconds = figures["truth"].get("rule_all", {}), figures["seconds"]
    return [
        name,
        *(percent(truth, average, "f1") for average in AVERAGES),
        percent(figures["truth"].get("why", {}), "sample", "f1_of_means"),
        f"{seconds['mean']:.1f}" + ("" if seconds["sd"] is None else f" ± {seconds['sd']:.1f}"),
        *(paper_cell("sampling", name, f"f1_{average}") for average in AVERAGES),
        paper_cell("sampling", name, "seconds"),
    ]


def plot(measured: Rows, path: Path) -> None:
    """Weighted F1 of every sampler, ours and the paper's."""
    ours = [_bar(figures) for figures in measured.values()]
    series = {"weighted F1": ours, "paper: weighted F1": [paper_value("sampling", n, "f1_weighted") for n in measured]}

    def draw(axis: Any) -> None:
        bars(axis, list(measured), series)
        axis.set_xlabel("%, against every event of the rule")

    save_plot(path, draw)


def _bar(figures: Mapping[str, Any]) -> tuple[float, float] | None:
    truth = figures["truth"].get("rule_all")
    return None if truth is None else point(truth, "weighted", "f1")


BENCH = Bench("sampling", rows, to_page, plot)
