"""Figure N: scores, their spread and the time per sequence by the number of contexts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.score.bench.estimators import PAPER_PREFIX, intervention_settings, prefix_settings
from oscar_causal.score.bench.pages import page, percent, point, table
from oscar_causal.score.bench.plots import curves, save_plot
from oscar_causal.score.bench.rows import Fused, OneShot, Row
from oscar_causal.score.bench.running import Bench, Rows
from oscar_causal.score.bench.settings import BenchSettings

PAPER_RUNS = 8
PREFIX_N = (2, 4, 8, 16, 32, 68, 128)
INTERVENTION_N = (16, 32, 64, 128, 256)
FUSED_N = (64, 128, 256)
AVERAGES = ("micro", "macro", "weighted")


def rows(settings: BenchSettings) -> Mapping[str, Row]:
    """The one-shot estimators over a range of N."""
    runs = settings.repeats(PAPER_RUNS)
    prefix = {n: prefix_settings(replace(PAPER_PREFIX, contexts=n)) for n in PREFIX_N}
    ours = {n: intervention_settings(InterventionConfig(contexts=n)) for n in INTERVENTION_N}
    return {
        **{f"prefix N={n}": OneShot(config, runs=runs) for n, config in prefix.items()},
        **{f"intervention N={n}": OneShot(config, runs=runs) for n, config in ours.items()},
        **{f"fused N={n}": Fused(ours[n], runs=runs) for n in FUSED_N},
    }


def to_page(measured: Rows) -> str:
    """F1 by three averages against two truths, and milliseconds per sequence."""
    head = ["contexts", *(f"F1 {name}, whole rule" for name in AVERAGES)]
    head += ["F1 weighted, causes present", "F1 of means, causes present", "ms per sequence"]
    lines = [_line(name, figures) for name, figures in measured.items()]
    body = [
        "In percent, mean ± sd over seeds (one seed: no ±). N: forward passes per sequence.",
        "",
        *table(head, lines),
    ]
    return page("contexts", "How many contexts", body, measured, ("samples", "times"))


def _line(name: str, figures: Mapping[str, Any]) -> list[str]:
    whole, why = figures["truth"].get("rule_all", {}), figures["truth"].get("why", {})
    return [
        name,
        *(percent(whole, average, "f1") for average in AVERAGES),
        percent(why, "weighted", "f1"),
        percent(why, "sample", "f1_of_means"),
        f"{milliseconds(figures):.1f}",
    ]


def milliseconds(figures: Mapping[str, Any]) -> float:
    """Per sequence."""
    return 1000 * float(figures["seconds"]["mean"]) / float(figures["sequences"])


def plot(measured: Rows, path: Path) -> None:
    """Scores against N, and time against N: a straight line if the time is linear."""
    scores: dict[str, list[tuple[float, float, float]]] = {}
    times: dict[str, list[tuple[float, float, float]]] = {}
    for name, figures in measured.items():
        estimator, n = name.split(" N=")
        for truth, title in (("rule_all", "whole rule"), ("why", "causes present")):
            part = figures["truth"].get(truth)
            if part:
                scores.setdefault(f"{estimator}, {title}", []).append((float(n), *point(part, "weighted", "f1")))
        times.setdefault(estimator, []).append((float(n), milliseconds(figures), 0.0))

    def draw(axes: Any) -> None:
        curves(axes[0], scores, xlabel="contexts N", ylabel="weighted F1 in %", log=2)
        curves(axes[1], times, xlabel="contexts N", ylabel="ms per sequence")

    save_plot(path, draw, panels=2)


BENCH = Bench("contexts", rows, to_page, plot)
