"""Figure k: scores of `prefix` by the k of mean + k * sd, from one pass; of `intervention` and `fused` by alpha."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.score.bench.estimators import PAPER_PREFIX, THRESHOLDS, intervention_settings, prefix_settings
from oscar_causal.score.bench.pages import page, percent, point, table
from oscar_causal.score.bench.place import Place, model_figures
from oscar_causal.score.bench.plots import curves, save_plot
from oscar_causal.score.bench.rows import Fused, OneShot, Row, figures_of
from oscar_causal.score.bench.running import Bench, Rows
from oscar_causal.score.bench.settings import BenchSettings

PAPER_RUNS = 8
"""The paper does not say; as many as for its figure N."""
ALPHAS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5)
LEVEL_RUNS = 2
"""Seeds at each alpha, of which the paper has none."""
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
            explained = place.prefix_pass(model, replace(prefix_settings(), seed=place.settings.seed + run))
            seconds += explained.seconds
            for k in THRESHOLDS:
                found[k].append(place.score(explained.at(k)))
        return _row(place, model, found, self.runs, seconds, {"estimator": "prefix", "contexts": PAPER_PREFIX.contexts})


@dataclass(frozen=True)
class Levels:
    """`intervention` or `fused` at every alpha. Each level is a run of its own: alpha also decides when a sequence is
    settled, so what a run at a large alpha accepts with a small q is less than a run at the small one finds."""

    kind: type[OneShot]
    runs: int

    def measure(self, place: Place) -> dict[str, Any]:
        """See `Row`."""
        configs = {alpha: intervention_settings(InterventionConfig(alpha=alpha)) for alpha in ALPHAS}
        found = {alpha: self.kind(config, runs=self.runs).measure(place) for alpha, config in configs.items()}
        first = found[ALPHAS[0]]
        return {
            "points": [{"at": alpha, "truth": row["truth"]} for alpha, row in found.items()],
            **{name: first[name] for name in ("pairs", "sequences", "runs", "model")},
            "seconds": {"mean": sum(row["seconds"]["mean"] for row in found.values()), "sd": None},
            "settings": {name: value for name, value in first["settings"].items() if name != "alpha"},
        }


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
        "sequences": len(place.part.data),
        "runs": runs,
        "seconds": {"mean": seconds / runs, "sd": None},
        "model": model_figures(model),
        "settings": settings,
    }


def rows(settings: BenchSettings) -> Mapping[str, Row]:
    """The estimators, each over its own threshold."""
    levels = settings.repeats(LEVEL_RUNS)
    return {
        "prefix": PrefixThresholds(settings.repeats(PAPER_RUNS)),
        "intervention": Levels(OneShot, levels),
        "fused": Levels(Fused, levels),
    }


def to_page(measured: Rows) -> str:
    """A line per threshold."""
    head = [*(f"F1 {name}, whole rule" for name in AVERAGES), "precision", "recall", "F1 of means"]
    head = [*head[:3], *(f"{name}, causes present" for name in head[3:])]
    sections = []
    for name, figures in measured.items():
        lines = [_line(at) for at in figures["points"]]
        sections += [f"## {name}", "", *table(["k" if name == "prefix" else "alpha", *head], lines), ""]
    body = [
        "In percent, mean ± sd over seeds (one seed: no ±). Nothing was chosen here: all values are shown.",
        "",
        *sections,
    ]
    return page("threshold", "The threshold", body, measured, ("threshold",))


def _line(at: Mapping[str, Any]) -> list[str]:
    whole, why = at["truth"].get("rule_all", {}), at["truth"].get("why", {})
    return [
        f"{at['at']:g}",
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
                    (p["at"], *point(p["truth"][truth], average, figure))
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
