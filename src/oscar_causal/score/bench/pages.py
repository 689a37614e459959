"""A benchmark's page: our rows with the paper's numbers beside them, how they were measured, what to mind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oscar_causal.score.bench.paper import paper_numbers

Figures = Mapping[str, Any]


def percent(part: Figures, average: str, figure: str) -> str:
    """`55.3 ± 1.4`: mean and sd of one figure in percent.

    >>> percent({"mean": {"micro": {"f1": 0.5}}, "sd": {"micro": {"f1": 0.0125}}}, "micro", "f1")
    '50.0 ± 1.2'
    """
    if not part:
        return "–"
    mean, sd = part["mean"][average][figure], part["sd"][average][figure]
    return f"{100 * mean:.1f} ± {100 * sd:.1f}"


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
    return [f"- {', '.join(names)}: {how}" for how, names in groups.items()]


def _how(figures: Figures) -> str:
    made = figures["provenance"]
    bench = made["bench"]
    told = [
        f"fleet `{bench['fleet']}`, {figures['sequences']:,} held-out sequences, {figures['pairs']:,} scored pairs",
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
