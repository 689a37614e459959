"""Table "NADEs": how much do the model's size, its training and the context c matter?

Rows that differ in c share one model, which learns labels from the smallest c on; the paper trains a Tf_y for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from oscar_causal.density.settings import preset_config
from oscar_causal.score.bench.estimators import PAPER_PREFIX, intervention_settings, prefix_settings
from oscar_causal.score.bench.pages import page, percent, point, table
from oscar_causal.score.bench.paper import paper_cell, paper_value
from oscar_causal.score.bench.plots import curves, save_plot
from oscar_causal.score.bench.rows import Fused, OneShot, Row
from oscar_causal.score.bench.running import Bench, Rows
from oscar_causal.score.bench.settings import BenchSettings

FOLDS = 5
SMALL_SAMPLE = 500
LARGE_CONTEXTS = (4, 12, 15, 20, 30)
SMALL_CONTEXT = 20
TOKENS_RATIO = 5
"""1.5 billion tokens against 300 million."""
SMALLER = {"paper": "base", "base": "tiny", "tiny": "tiny"}
"""The small model beside each large one (the smallest has none below it: then only its training is shorter)."""


def rows(settings: BenchSettings) -> Mapping[str, Row]:
    """The paper's rows, size and training apart (which its small row mixes), and our estimators on both models."""
    tokens = preset_config(settings.preset).batch_tokens
    fifth = {"steps": max(1, settings.steps // TOKENS_RATIO)}
    smaller = {"preset": SMALLER[settings.preset], "batch_tokens": tokens}
    found: dict[str, Row] = {f"large c={c}": _row(c, {}) for c in LARGE_CONTEXTS}
    found[f"small c={SMALL_CONTEXT}"] = _row(SMALL_CONTEXT, {**smaller, **fifth})
    if SMALLER[settings.preset] != settings.preset:
        found[f"large short c={SMALL_CONTEXT}"] = _row(SMALL_CONTEXT, fifth)
        found[f"small long c={SMALL_CONTEXT}"] = _row(SMALL_CONTEXT, smaller)
    for name, training in (("large", {}), ("small", {**smaller, **fifth})):
        config = intervention_settings()
        found[f"{name} intervention"] = OneShot(config, training, folds=FOLDS, small_sample=SMALL_SAMPLE)
        found[f"{name} fused"] = Fused(config, training, folds=FOLDS, small_sample=SMALL_SAMPLE)
    return found


def _row(c: int, training: Mapping[str, Any]) -> OneShot:
    config = prefix_settings(replace(PAPER_PREFIX, context=c))
    return OneShot(config, training, folds=FOLDS, small_sample=SMALL_SAMPLE)


HEAD = ("model", "tokens", "weights", "precision", "recall", "F1 of means", "mean of labels' F1", "Tf_y F1")
PAPER_HEAD = ("paper: tokens", "paper: weights", "paper: precision", "paper: recall", "paper: F1", "paper: Tf_y F1")


def to_page(measured: Rows) -> str:
    """Two tables, for all sequences and for small samples, as in the paper."""
    body = [
        "Weighted averages against every event of the label's rule, in percent, mean ± sd.",
        "",
        f"## All held-out sequences, {FOLDS} folds",
        "",
        *table((*HEAD, *PAPER_HEAD), [_line(name, figures) for name, figures in measured.items()]),
        "",
        f"## Five samples of at most {SMALL_SAMPLE} sequences",
        "",
        *table(
            ("model", "sequences", *HEAD[3:7], *PAPER_HEAD[2:5]),
            [_small_line(name, figures) for name, figures in measured.items()],
        ),
        "",
        *_notes(measured),
    ]
    return page("nades", "Model size, training and context", body, measured, ("f1", "weights", "times"))


def _line(name: str, figures: Mapping[str, Any]) -> list[str]:
    model = figures["model"]
    return [
        name,
        f"{model['tokens'] / 1e6:.1f} M",
        f"{model['weights'] / 1e6:.1f} M",
        *_scores(figures["truth"]),
        f"{100 * model['label_f1']:.1f}",
        *(paper_cell("nades", name, key) for key in ("tokens", "parameters", "precision", "recall", "f1", "label_f1")),
    ]


def _small_line(name: str, figures: Mapping[str, Any]) -> list[str]:
    sample = figures["small_sample"]
    sizes = sorted(set(sample["sequences"]))
    told = f"{sizes[0]}–{sizes[-1]}" if len(sizes) > 1 else "".join(map(str, sizes))
    papers = [paper_cell("nades", name, "small_sample", key) for key in ("precision", "recall", "f1")]
    return [name, told, *_scores(sample["truth"]), *papers]


def _scores(truth: Mapping[str, Any]) -> list[str]:
    part = truth.get("rule_all", {})
    return [percent(part, "weighted", key) for key in ("precision", "recall", "f1_of_means", "f1")]


def _notes(measured: Rows) -> list[str]:
    short = [
        name
        for name, figures in measured.items()
        if figures["settings"].get("context", figures["model"]["min_context"]) < figures["model"]["min_context"]
    ]
    notes = [
        "- Rows that differ in c share one model, so Tf_y F1 does not vary with c; the paper trains a Tf_y for each."
    ]
    if short:
        notes.append(f"- {', '.join(short)}: c is below the shortest prefix this model was trained on.")
    return notes


def plot(measured: Rows, path: Path) -> None:
    """F1 of means by c, ours and the paper's."""
    ours, papers = [], []
    for c in LARGE_CONTEXTS:
        name = f"large c={c}"
        part = measured.get(name, {}).get("truth", {}).get("rule_all")
        if part:
            ours.append((float(c), *point(part, "weighted", "f1_of_means")))
        value = paper_value("nades", name, "f1")
        papers += [(float(c), *value)] if value else []

    def draw(axis: Any) -> None:
        lines = {"prefix, large model": ours, "paper (its own data)": papers}
        curves(axis, lines, xlabel="context c", ylabel="F1 in %, weighted, whole rule")

    save_plot(path, draw)


BENCH = Bench("nades", rows, to_page, plot)
