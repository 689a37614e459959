"""The page and the picture of `oscar bench labels`: worlds down, label models across."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from oscar_causal.score.bench.label_models.models import ROWS
from oscar_causal.score.bench.pages import table
from oscar_causal.score.bench.plots import bars, save_plot

Rows = Mapping[str, Mapping[str, Any]]
"""`KIND/SEED/LABEL MODEL` -> figures."""

ABOUT = """\
# Label models

How much of what a recorded sequence tells about its labels does a label model know? *Skill* =
(LL_base - LL_model) / (LL_base - LL_Bayes) of the log losses of all test pairs: 0 = the base rate of each label,
1 = the true probabilities that the labels were drawn with; in brackets its 95 % interval over resampled sequences.
Thresholds of F1 are chosen for each label on a tenth of the training subjects, which no weights were fitted to. F1 is
divided by that of the true probabilities, whose thresholds are chosen in the same way: micro (all pairs together) /
macro (mean over labels). A base rate has an F1 too: that of always saying yes.
"""


def to_page(rows: Rows) -> str:
    """Skill, F1 as a share of the true probabilities', average precision, and who measured."""
    worlds, models = _axes(rows)
    parts = [ABOUT]
    for title, cell in (
        ("Skill", _skill),
        ("F1 / F1 of the true probabilities", _ratio),
        ("Average precision, mean over labels", _precision),
        ("Seconds to fit and predict", lambda row: f"{row['seconds']:.0f}"),
    ):
        lines = [[world, *(_told(rows.get(f"{world}/{model}"), cell) for model in models)] for world in worlds]
        parts += [f"## {title}\n", *table(["world/seed", *models], lines), ""]
    return "\n".join([*parts, *_measured(rows, models)]) + "\n"


def _axes(rows: Rows) -> tuple[list[str], list[str]]:
    worlds = sorted({key.rsplit("/", 1)[0] for key in rows})
    return worlds, [name for name in ROWS if any(key.endswith(f"/{name}") for key in rows)]


def _told(row: Mapping[str, Any] | None, cell: Callable[[Mapping[str, Any]], str]) -> str:
    return "" if row is None else cell(row)


def _skill(row: Mapping[str, Any]) -> str:
    if row["skill"] is None:
        return "–"
    return f"{row['skill']:.2f} ({row['skill_low']:.2f} to {row['skill_high']:.2f})"


def _ratio(row: Mapping[str, Any]) -> str:
    ratio = row["f1_ratio"]
    return "–" if ratio is None or None in ratio.values() else f"{ratio['micro']:.2f} / {ratio['macro']:.2f}"


def _precision(row: Mapping[str, Any]) -> str:
    return "–" if row["average_precision"] is None else f"{row['average_precision']:.2f}"


def _measured(rows: Rows, models: list[str]) -> list[str]:
    """Machine and commit of each label model's rows."""
    lines = ["## How it was measured", ""]
    for model in models:
        of = [row for key, row in rows.items() if key.endswith(f"/{model}")]
        how = sorted({f"{row['machine']}, commit {row['commit'] or 'not recorded'}" for row in of})
        steps = sorted({str(row["details"]["steps"]) for row in of if "steps" in row["details"]})
        lines.append(f"- {model}: {'; '.join(how)}" + (f"; {', '.join(steps)} steps" if steps else ""))
    return lines


def draw(rows: Rows, path: Path) -> None:
    """Skill by world and label model."""
    worlds, models = _axes(rows)
    shown = [model for model in models if model not in ("base rate", "true P")] or models
    skills = {model: [_bar(rows.get(f"{world}/{model}")) for world in worlds] for model in shown}

    def paint(axis: Any) -> None:
        axis.figure.set_figheight(2 + 0.6 * len(worlds))
        bars(axis, worlds, skills)
        axis.set_xlim(min(0.0, axis.get_xlim()[0]), 1.0)
        axis.set_xlabel("skill: 0 = base rate, 1 = true probabilities")

    save_plot(path, paint)


def _bar(row: Mapping[str, Any] | None) -> tuple[float, float] | None:
    """Skill (not below -0.2, so that one bad row hides no other) and half of its interval."""
    if row is None or row["skill"] is None:
        return None
    return max(row["skill"], -0.2), (row["skill_high"] - row["skill_low"]) / 2
