"""Figure k: scores of `prefix` by the k of mean + k * sd, from one pass; of `intervention` by its alpha."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.score.bench.curves import explain_at_thresholds
from oscar_causal.score.bench.estimators import PAPER_PREFIX, intervention_settings
from oscar_causal.score.bench.pages import page, percent, table
from oscar_causal.score.bench.place import Place, model_figures
from oscar_causal.score.bench.plots import curves, save_plot
from oscar_causal.score.bench.rows import Row, config_figures, figures_of
from oscar_causal.score.bench.running import Bench, Rows
from oscar_causal.score.bench.settings import BenchSettings
from oscar_causal.score.scoring import Explained

PAPER_RUNS = 8
"""The paper does not say; as many as for its figure N."""
THRESHOLDS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 2.75, 3.0, 3.5, 4.0, 5.0)
ALPHAS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
AVERAGES = ("micro", "macro", "weighted")


@dataclass(frozen=True)
class PrefixThresholds:
    """`prefix` at every k: the curves along a sequence do not depend on k."""

    runs: int

    def measure(self, place: Place) -> dict[str, Any]:
        """See `Row`."""
        model = place.model()
        found: dict[float, list[dict[str, Any]]] = {k: [] for k in THRESHOLDS}
        seconds = 0.0
        for run in range(self.runs):
            seed = place.settings.seed + run
            explained, took = explain_at_thresholds(place, model, PAPER_PREFIX, THRESHOLDS, seed=seed)
            seconds += took
            for k, part in explained.items():
                found[k].append(place.score(model, part))
        return _row(place, model, found, self.runs, seconds, {"estimator": "prefix", "contexts": PAPER_PREFIX.contexts})


@dataclass(frozen=True)
class InterventionLevels:
    """`intervention` at every alpha: accepted at the largest one, then filtered by q-value, which is the same."""

    runs: int

    def measure(self, place: Place) -> dict[str, Any]:
        """See `Row`."""
        model = place.model()
        config = intervention_settings(InterventionConfig(alpha=max(ALPHAS)))
        found: dict[float, list[dict[str, Any]]] = {alpha: [] for alpha in ALPHAS}
        seconds = 0.0
        for run in range(self.runs):
            explained, took = place.explain(model, replace(config, seed=place.settings.seed + run))
            seconds += took
            for alpha in ALPHAS:
                found[alpha].append(place.score(model, at_level(explained, alpha)))
        return _row(place, model, found, self.runs, seconds, config_figures(config))


def at_level(explained: Explained, alpha: float) -> Explained:
    """What would have been accepted at a smaller alpha."""
    kept = tuple(item for item in explained.accepted if item.q_value is not None and item.q_value <= alpha)
    return replace(explained, accepted=kept)


def _row(
    place: Place,
    model: Path,
    found: Mapping[float, list[dict[str, Any]]],
    runs: int,
    seconds: float,
    settings: dict[str, Any],
) -> dict[str, Any]:
    points = [{"at": at, "truth": figures_of(scored)["truth"]} for at, scored in found.items()]
    return {
        "points": points,
        "pairs": figures_of(next(iter(found.values())))["pairs"],
        "sequences": len(place.part(model).data),
        "runs": runs,
        "seconds": {"mean": seconds / runs, "sd": 0.0},
        "model": model_figures(model),
        "settings": settings,
    }


def rows(settings: BenchSettings) -> Mapping[str, Row]:
    """Both estimators, each over its own threshold."""
    runs = settings.repeats(PAPER_RUNS)
    return {"prefix": PrefixThresholds(runs), "intervention": InterventionLevels(runs)}


def to_page(measured: Rows) -> str:
    """A line per threshold."""
    head = [*(f"F1 {name}, whole rule" for name in AVERAGES), "precision", "recall", "F1 of means"]
    head = [*head[:3], *(f"{name}, causes present" for name in head[3:])]
    sections = []
    for name, figures in measured.items():
        lines = [_line(point) for point in figures["points"]]
        sections += [f"## {name}", "", *table(["k" if name == "prefix" else "alpha", *head], lines), ""]
    body = ["In percent, mean ± sd over seeds. Nothing was chosen here: all values are shown.", "", *sections]
    return page("threshold", "The threshold", body, measured, ("threshold",))


def _line(point: Mapping[str, Any]) -> list[str]:
    whole, why = point["truth"].get("rule_all", {}), point["truth"].get("why", {})
    return [
        f"{point['at']:g}",
        *(percent(whole, average, "f1") for average in AVERAGES),
        *(percent(why, "sample", key) for key in ("precision", "recall", "f1_of_means")),
    ]


def plot(measured: Rows, path: Path) -> None:
    """One panel per estimator: precision, recall and F1 against the causes present, weighted F1 against the rule."""
    wanted = [("why", "sample", key) for key in ("precision", "recall", "f1_of_means")]
    wanted.append(("rule_all", "weighted", "f1"))

    def draw(axes: Any) -> None:
        for axis, (name, figures) in zip([axes] if len(measured) == 1 else axes, measured.items(), strict=True):
            lines = {
                f"{figure.replace('_', ' ')} ({truth}, {average})": [
                    (p["at"], *(100 * p["truth"][truth][key][average][figure] for key in ("mean", "sd")))
                    for p in figures["points"]
                    if truth in p["truth"]
                ]
                for truth, average, figure in wanted
            }
            scale = {"xlabel": "k"} if name == "prefix" else {"xlabel": "alpha", "log": 10}
            curves(axis, lines, ylabel="%", **scale)
            axis.set_title(name)

    save_plot(path, draw, panels=len(measured))


BENCH = Bench("threshold", rows, to_page, plot)
