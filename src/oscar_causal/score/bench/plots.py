"""The plots of the benchmarks: ours solid, the paper's (where it has numbers) hatched or dashed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Curve = Sequence[tuple[float, float, float]]
"""(x, mean, sd) in the order of x."""


def save_plot(path: Path, draw: Callable[[Any], None], *, panels: int = 1) -> None:
    """Draw on `panels` axes side by side and write a PNG whole or not at all."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4 * panels, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, panels)
    draw(axes)
    partial = path.with_name(f"{path.name}.partial")
    figure.savefig(partial, dpi=120, format="png")
    partial.replace(path)


def curves(axis: Any, lines: Mapping[str, Curve], *, xlabel: str, ylabel: str, log: int | None = None) -> None:
    """Lines with one-sigma error bars; `log`: base of a logarithmic x axis."""
    for name, points in lines.items():
        if points:
            x, mean, sd = zip(*points, strict=True)
            axis.errorbar(x, mean, yerr=sd, marker="o", markersize=3, capsize=2, linewidth=1.2, label=name)
    if log is not None:
        axis.set_xscale("log", base=log)
    axis.set_xlabel(xlabel)
    axis.set_ylabel(ylabel)
    axis.grid(alpha=0.3)
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=8)


def bars(axis: Any, names: Sequence[str], series: Mapping[str, Sequence[tuple[float, float] | None]]) -> None:
    """Groups of horizontal bars, one group per name; a series that begins with `paper` is hatched."""
    height = 0.8 / len(series)
    for k, (title, values) in enumerate(series.items()):
        known = [(i, value) for i, value in enumerate(values) if value is not None]
        if known:
            axis.barh(
                [i + k * height for i, _ in known],
                [value[0] for _, value in known],
                height,
                xerr=[value[1] for _, value in known],
                label=title,
                hatch="//" if title.startswith("paper") else None,
                alpha=0.5 if title.startswith("paper") else 0.9,
            )
    axis.set_yticks([i + 0.4 - height / 2 for i in range(len(names))], names)
    axis.invert_yaxis()
    axis.grid(axis="x", alpha=0.3)
    axis.figure.legend(loc="outside lower center", ncols=3, fontsize=8)
