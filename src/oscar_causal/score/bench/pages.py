"""A benchmark's page: our rows with the paper's numbers beside them, how they were measured, what to mind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oscar_causal.score.bench.paper import paper_numbers

Figures = Mapping[str, Any]


def percent(part: Figures, average: str, figure: str) -> str:
    """`55.3 ± 1.4`: mean and sd of one figure in percent; the mean alone where there was one run.

    >>> percent({"mean": {"micro": {"f1": 0.5}}, "sd": {"micro": {"f1": 0.0125}}}, "micro", "f1")
    '50.0 ± 1.2'
    """
    if not part:
        return "–"
    mean = 100 * part["mean"][average][figure]
    return f"{mean:.1f}" if part["sd"] is None else f"{mean:.1f} ± {100 * part['sd'][average][figure]:.1f}"


def point(part: Figures, average: str, figure: str) -> tuple[float, float]:
    """Mean and sd of one figure in percent, for a plot; sd 0 where there was one run.

    >>> point({"mean": {"micro": {"f1": 0.5}}, "sd": None}, "micro", "f1")
    (50.0, 0.0)
    """
    sd = 0.0 if part["sd"] is None else part["sd"][average][figure]
    return 100 * part["mean"][average][figure], 100 * sd


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table; the first column to the left, figures to the right."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" + "---:|" * (len(head) - 1)]
    return lines + [f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in rows]


def page(bench: str, title: str, body: Sequence[str], rows: Mapping[str, Figures], minded: Sequence[str]) -> str:
    """The whole page. `minded`: names of the paper's contradictions that matter here."""
    paper = paper_numbers()
    lines = [f"# {title}", "", *body, "", "## How ours was measured", "", *_measured(rows), ""]
    lines += [f"## The paper's settings ({paper[bench]['source']})", ""]
    lines += [f"- {line}" for line in paper[bench]["settings"]]
    notes = [paper["contradictions"][name] for name in minded]
    if notes:
        lines += ["", "Numbers of the paper that do not fit together:", "", *(f"- {note}" for note in notes)]
    return "\n".join(lines) + "\n"


def _measured(rows: Mapping[str, Figures]) -> list[str]:
    """One line for each set of rows that were measured alike."""
    groups: dict[str, list[str]] = {}
    for name, figures in rows.items():
        groups.setdefault(_how(figures), []).append(name)
    lines = [f"- {', '.join(names)}: {how}" for how, names in groups.items()]
    if len({figures["provenance"].get("explained") for figures in rows.values()}) > 1:
        lines.append("- **These rows were not all measured on the same sequences**; compare those of one line only.")
    return lines


def _how(figures: Figures) -> str:
    made = figures["provenance"]
    bench = made["bench"]
    told = [
        f"fleet `{bench['fleet']}`, {figures['sequences']:,} held-out sequences, {figures['pairs']:,} scored pairs"
        + (f" (content {made['explained'][:8]})" if "explained" in made else ""),
        f"seed {bench['seed']}" + (f", {figures['runs']} runs" if figures.get("runs", 1) > 1 else ""),
    ]
    if "model" in figures:
        model = figures["model"]
        told.append(f"`{model['preset']}` model of {_millions(model['weights'])} weights")
        told.append(f"trained on {_millions(model['tokens'])} tokens, label F1 {100 * model['label_f1']:.1f}")
    if "learnt_from" in figures:
        told.append(f"learnt from {figures['learnt_from']:,} training sequences")
    told.append(f"{made['machine']}, {made['workers']} processes")
    told.append(f"oscar {made['versions']['oscar']}, commit {made['commit'] or 'not recorded'}")
    return "; ".join(told)


def _millions(number: int) -> str:
    return f"{number / 1e6:.1f} M"
