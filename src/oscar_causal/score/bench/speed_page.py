"""The page and the plot of the benchmark of speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from oscar_causal.score.bench.pages import table
from oscar_causal.score.bench.plots import bars, save_plot

Found = Mapping[str, Any]
TITLES = {
    "ours": "ours: N contexts of the intervention estimator, without its tests",
    "ours_prefix": "ours: `discover`, estimator prefix, one process",
    "ours_discover": "ours: `discover`, estimator intervention, one process",
    "discover_processes": "ours: `discover` in several processes on one device, from start to end",
    "listing": "the paper's listing as printed (fp32, padded)",
    "listing_fp16": "the same under fp16 autocast",
}
HEAD = ("what", "sequences/s", "TFLOP/s on real tokens", "of the ceiling", "peak GiB beyond the weights")


def speed_page(found: Found, names: Sequence[str]) -> str:
    """Everything measured so far as Markdown."""
    sizes, made = found["sizes"], found["provenance"]
    rows = [_line(name, found[name]) for name in names if name in found]
    lines = [
        "# Speed of discovery",
        "",
        f"A random model of {found['weights'] / 1e6:.1f} M weights ({sizes['preset']}; in the rows of ours also "
        f"{found['shortlist_weights'] / 1e6:.1f} M of the labels' shortlists, over random types, as in trained models; "
        f"the paper's has none), {sizes['events']:,} event "
        f"types, {sizes['labels']:,} labels, N = {sizes['contexts']}, lengths {sizes['mean_length']:g} ± "
        f"{sizes['sd_length']:g} up to {sizes['longest']} events. {made['machine']}, torch "
        f"{made['versions']['torch']}, seed {sizes['seed']}. Ceiling: {found['ceiling_tflops']:.2f} TFLOP/s, "
        "the best matrix product measured here.",
        "",
        *table(HEAD, rows),
        "",
        "Operations are two for every weight of the blocks that a real token is multiplied with: padding does not "
        "count, nor does what a row leaves out (ours makes the last label block only where it is read).",
        *_company(found),
        *_processes(found),
        *_sweep(found),
        *_agreement(found),
        *_race(found),
    ]
    return "\n".join(lines) + "\n"


def speed_plot(found: Found, names: Sequence[str], path: Path) -> None:
    """Sequences per second of every row."""
    here = [name for name in names if name in found]
    values: list[tuple[float, float] | None] = [(found[name]["sequences_per_s"], 0.0) for name in here]

    def draw(axis: Any) -> None:
        bars(axis, here, {"sequences/s": values})
        axis.set_xlabel("sequences/s")

    save_plot(path, draw)


def _line(name: str, figures: Found) -> list[str]:
    peak = "–" if figures["peak_gib"] is None else f"{figures['peak_gib']:.2f}"
    share = f"{100 * figures['share_of_ceiling']:.1f} %"
    return [TITLES[name], f"{figures['sequences_per_s']:.2f}", f"{figures['tflops']:.4g}", share, peak]


def _company(found: Found) -> list[str]:
    if "ours" not in found:
        return []
    same = found["ours"]["equal_in_other_company"]
    return [
        "",
        f"Sequences asked again in other company and order: {'every bit the same' if same else '**not** equal'}.",
    ]


def _processes(found: Found) -> list[str]:
    if "discover_processes" not in found:
        return []
    part = found["discover_processes"]
    pace = "too short to tell" if part["pace"] is None else f"{part['pace']:.2f} sequences/s"
    return [
        "",
        f"{part['workers']} processes took {part['seconds']:.0f} s for {part['sequences']:,} sequences, of which "
        f"{part['first_shard_seconds']:.0f} s until the first shard was done (processes begin, load, compile, record); "
        f"in the middle half of the run: {pace}.",
    ]


def _sweep(found: Found) -> list[str]:
    if "sweep" not in found:
        return []
    lines = ["", "## One size at a time", ""]
    rows = [
        [name, f"{int(value):,}", f"{figures['sequences_per_s']:.2f}", f"{figures['tflops']:.4g}"]
        for name, values in found["sweep"].items()
        for value, figures in values.items()
    ]
    return lines + table(("size", "value", "sequences/s", "TFLOP/s"), rows)


def _agreement(found: Found) -> list[str]:
    if "agreement" not in found:
        return []
    part = found["agreement"]
    rows = [
        [name, f"{100 * part[name]['precision']:.2f} %", f"{100 * part[name]['seeds']:.2f} %", str(part[name]["union"])]
        for name in ("intervention", "prefix")
        if name in part
    ]
    head = ("estimator", f"float32 and {part['half']}, same contexts", "two seeds", "accepted events")
    return ["", f"## Agreement on accepted events ({part['sequences']} sequences)", "", *table(head, rows)]


def _race(found: Found) -> list[str]:
    if "race" not in found:
        return []
    race = found["race"]
    rows = [[name, f"{100 * part['f1']:.1f}", f"{part['cpu_seconds']:.2f}"] for name, part in race["entrants"].items()]
    verdicts = [
        f"To the F1 of `{name}`: "
        + ("no budget of ours reaches it." if faster is None else f"ours is {faster:.1f} times faster.")
        for name, faster in race["times_faster"].items()
    ]
    return [
        "",
        f"## To equal F1, one CPU thread, {race['sequences']} held-out sequences",
        "",
        *table(("what", "F1 of means, causes present", "CPU seconds"), rows),
        "",
        *verdicts,
    ]
