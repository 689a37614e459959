"""Attribution methods on the same model and sequences as ours: F1 beside forward passes.

A rival's cut (and its setting, where it has one) is chosen on validation sequences: unseen ones of other subjects than
those that are scored. `prefix` and ours run with the paper's or their default settings.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from oscar_causal.data.rows import SequenceRows
from oscar_causal.data.sequences import Int64, read_dataset
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.prefix import PrefixConfig
from oscar_causal.errors import UsageError
from oscar_causal.score.bench.estimators import intervention_settings, prefix_settings
from oscar_causal.score.bench.explaining import job_of
from oscar_causal.score.bench.gradients import InputTimesGradient, IntegratedGradients
from oscar_causal.score.bench.pages import page, percent, point, table
from oscar_causal.score.bench.perturbations import LeaveOneOut, Lime, PrefixMoves, Rise, ShapleySampling
from oscar_causal.score.bench.place import Place, model_figures, observed_pairs
from oscar_causal.score.bench.plots import save_plot
from oscar_causal.score.bench.processes import Desk, pieces_of
from oscar_causal.score.bench.ratings import Method, Rated, best_cut, rate_all
from oscar_causal.score.bench.rows import OneShot, Row, figures_of
from oscar_causal.score.bench.running import Bench, Rows
from oscar_causal.score.bench.settings import BenchSettings
from oscar_causal.score.matching import Truth, truth_of

FOLDS = 5
VALIDATION = 100
"""Most validation sequences."""
RATES = (0.1, 0.25, 0.5)
"""Rates of replacing that RISE may choose from; its authors use 0.5 for images."""
CONTEXTS_C = (4, 15)
"""Values of c that `prefix tuned` may choose from."""


@dataclass(frozen=True)
class Rival:
    """An attribution method, or several settings of it of which the best on validation sequences is taken."""

    variants: tuple[Method, ...]

    def measure(self, place: Place) -> dict[str, Any]:
        """See `Row`. Beside the scores: mean passes per sequence, the chosen variant and cut."""
        model = place.model()
        validation, truth = validation_part(place)
        tuned = []
        for variant in self.variants:
            rated, _, _ = self._rate(place, model, variant, validation)
            cut, f1 = best_cut(rated, truth)
            tuned.append((f1, cut, variant))
        f1, cut, variant = max(tuned, key=lambda item: item[0])
        rated, passes, seconds = self._rate(place, model, variant, place.part.folder)
        return {
            **figures_of([place.score(cut.explain(rated), folds=FOLDS)]),
            "passes": float(np.mean(passes)),
            "sequences": len(place.part.data),
            "validation_sequences": len(SequenceRows(validation)),
            "validation_f1": f1,
            "seconds": {"mean": seconds, "sd": None},
            "model": model_figures(model),
            "settings": {"method": type(variant).__name__, **asdict(variant), "cut": asdict(cut)},  # type: ignore[call-overload]
        }

    def _rate(self, place: Place, model: Path, variant: Method, folder: Path) -> tuple[list[Rated], list[int], float]:
        job = job_of(place.processes, model, folder, intervention_settings())
        place.processes.ready(job)
        begun = time.monotonic()
        pieces = pieces_of(len(SequenceRows(folder)))
        rated: list[Rated] = []
        passes: list[int] = []
        with place.show(type(variant).__name__, "pieces") as show:
            work = partial(_rate_rows, variant, place.settings.seed)
            for done, (some, spent) in enumerate(place.processes.each(work, job, pieces)):
                rated, passes = rated + some, passes + spent
                show(done + 1, len(pieces))
        return rated, passes, time.monotonic() - begun


def _rate_rows(method: Method, seed: int, desk: Desk, rows: Int64) -> tuple[list[Rated], list[int]]:
    return rate_all(method, desk.models, desk.data.take(rows), seed=seed)


@dataclass(frozen=True)
class Counted(OneShot):
    """`oscar discover`, with the forward passes it spent."""

    def measure(self, place: Place) -> dict[str, Any]:
        """See `Row`."""
        figures, model = super().measure(place), place.model()
        return {**figures, "passes": place.passes(model, self.prepared(place, model, place.settings.seed))}


def validation_rows(place: Place) -> Int64:
    """Unseen labelled sequences after the scored ones, of other subjects."""
    scored = set(place.part.data.subject_ids.to_pylist())
    others = [row for row in place.unseen_labelled.tolist() if place.data.subject_ids[row].as_py() not in scored]
    if not others:
        raise UsageError(
            f"{place.fleet}: expected unseen sequences beside the {place.settings.test} scored ones to choose cuts on, "
            "found none; say a smaller --test"
        )
    return np.array(others[:VALIDATION], np.int64)


def validation_part(place: Place) -> tuple[Path, Truth]:
    """The folder of the validation sequences, and their causes by the dataset's reasons (else by its rules)."""
    folder = place.selected(validation_rows(place))
    data = read_dataset(folder)
    truths = truth_of(data, observed_pairs(data))
    for name in ("why", "rule_present"):
        if name in truths:
            return folder, truths[name]
    raise UsageError(f"{place.fleet}: expected reasons or rules to score against, found none")


def rows(settings: BenchSettings) -> Mapping[str, Row]:
    """Rivals from cheap to dear, then the paper's estimator as published and tuned, then ours."""
    contexts = {n: intervention_settings(InterventionConfig(contexts=n)) for n in (64, 256)}
    moves = tuple(PrefixMoves(PrefixConfig(context=c, contexts=64)) for c in CONTEXTS_C)
    return {
        "input x gradient": Rival((InputTimesGradient(),)),
        "integrated gradients": Rival((IntegratedGradients(),)),
        "shapley sampling": Rival((ShapleySampling(),)),
        **{f"rise N={n}": Rival(tuple(Rise(n, rate) for rate in RATES)) for n in (64, 256)},
        **{f"lime N={n}": Rival((Lime(n),)) for n in (64, 256)},
        "leave-one-out": Rival((LeaveOneOut(),)),
        "prefix": Counted(prefix_settings(), folds=FOLDS),
        "prefix tuned": Rival(moves),
        **{f"intervention N={n}": Counted(config, folds=FOLDS) for n, config in contexts.items()},
    }


def to_page(measured: Rows) -> str:
    """The table: passes, scores against the causes present, the chosen cut."""
    head = ["method", "passes per sequence", "precision", "recall", "F1 of means", "macro F1", "ms per sequence", "cut"]
    body = [
        "Against the events that brought the label about in this sequence, averages over pairs, in percent, mean ± sd "
        f"over {FOLDS} folds of the subjects (macro: over labels). All rows ask the same model about the same "
        "sequences with the same replacements; *passes* are forward passes of the label model, a pass forward and "
        "back counting as three. Rivals have their cut, RISE its rate and `prefix tuned` its c and k, chosen on "
        "validation sequences; `prefix` and `intervention` have no chosen threshold. Times are those "
        "of all processes together.",
        "",
        *table(head, [_line(name, figures) for name, figures in measured.items()]),
    ]
    return page("rivals", "Attribution rivals", body, measured, ())


def _line(name: str, figures: Mapping[str, Any]) -> list[str]:
    why = _truth(figures)
    return [
        name,
        f"{figures['passes']:.0f}",
        *(percent(why, "sample", key) for key in ("precision", "recall", "f1_of_means")),
        percent(why, "macro", "f1"),
        f"{1000 * figures['seconds']['mean'] / figures['sequences']:.0f}",
        _cut(figures["settings"]),
    ]


def _truth(figures: Mapping[str, Any]) -> Mapping[str, Any]:
    truths: Mapping[str, Any] = figures["truth"]
    part: Mapping[str, Any] = truths.get("why", truths.get("rule_present", {}))
    return part


def _cut(settings: Mapping[str, Any]) -> str:
    if "cut" not in settings:
        return "default"
    cut = settings["cut"]
    told = f"{cut['at']:.2g} of the largest" if cut["kind"] == "share" else f"{cut['at']:.3g}"
    if "rate_of_replacing" in settings:
        return f"{told}; rate {settings['rate_of_replacing']:g}"
    return f"{told}; c = {settings['config']['context']}" if "config" in settings else told


def plot(measured: Rows, path: Path) -> None:
    """F1 against forward passes, a point for each method."""

    def draw(axis: Any) -> None:
        for name, figures in measured.items():
            why = _truth(figures)
            if why:
                mean, sd = point(why, "sample", "f1_of_means")
                ours = name.startswith("intervention")
                axis.errorbar(
                    figures["passes"],
                    mean,
                    yerr=sd,
                    marker="o" if ours else "s",
                    capsize=2,
                    color="C3" if ours else "C0",
                )
                axis.annotate(name, (figures["passes"], mean), xytext=(5, 3), textcoords="offset points", fontsize=7)
        axis.set_xscale("log")
        axis.set_xlabel("forward passes per sequence")
        axis.set_ylabel("F1 in %, causes present")
        axis.grid(alpha=0.3)

    save_plot(path, draw)


BENCH = Bench("rivals", rows, to_page, plot)
