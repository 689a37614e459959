"""Sequences a second: ours, the paper's listing, the same in half precision, on one random model in one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from oscar_causal.data.batches import pad
from oscar_causal.data.folders import write_json, write_text
from oscar_causal.density.model import OscarModel, to_tokens
from oscar_causal.density.precision import float32_products
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.discovery.prefix import PrefixConfig
from oscar_causal.errors import UsageError
from oscar_causal.score.bench.agreement import measure_agreement
from oscar_causal.score.bench.ledger import FORMAT_VERSION, provenance
from oscar_causal.score.bench.listing import ListingConfig, run_listing
from oscar_causal.score.bench.place import ShowProgress, no_progress
from oscar_causal.score.bench.process_speed import time_processes
from oscar_causal.score.bench.race import measure_race
from oscar_causal.score.bench.running import choose_rows
from oscar_causal.score.bench.settings import BenchSettings
from oscar_causal.score.bench.speed_page import speed_page, speed_plot
from oscar_causal.score.bench.stopwatch import Timed, ceiling_tflops, measure
from oscar_causal.score.bench.workload import (
    Sizes,
    Workload,
    intervention_stage,
    make_workload,
    multiplied_weights,
    one_per_launch,
)

DEFAULTS = {"preset": "paper", "test": 2048}
"""Of a full run; `--quick` has its own."""
SIZES = {
    "paper": Sizes(),
    "base": Sizes(preset="base"),
    "tiny": Sizes(preset="tiny", events=320, labels=12, mean_length=64.0, sd_length=16.0, longest=127),
}
LISTING_BATCH = 4
"""Sequences at once: 256 rows of 256 tokens, with all that the listing keeps."""
MOST = {"ours": 1.0, "ours_prefix": 0.25, "ours_discover": 0.25, "listing": 0.05, "listing_fp16": 0.125}
"""Row -> share of the sequences it is timed on; slow rows take fewer."""
PROCESSES = "discover_processes"
SWEEPS: dict[str, tuple[int, ...]] = {
    "events": (1_000, 10_000, 100_000),
    "labels": (10, 474, 5_000),
    "contexts": (16, 64, 256),
    "mean_length": (50, 150, 400),
}
Figures = dict[str, Any]


def measure_speed(settings: BenchSettings, show: ShowProgress = no_progress) -> Figures:
    """Measure the chosen rows and what else was asked for; JSON, Markdown and PNG go to the benchmark's folder."""
    if settings.preset not in SIZES:
        raise UsageError(f"--preset: expected one of {', '.join(SIZES)}, got {settings.preset!r}")
    if (settings.model is None) != (settings.dataset is None):
        raise UsageError("--model and --dataset: expected both or neither (agreement of precisions), got one")
    measured = rows_of(settings.workers)
    rows = choose_rows(measured, settings.rows)
    sizes = replace(SIZES[settings.preset], sequences=settings.test, seed=settings.seed)
    found: Figures = {"kind": "bench", "format_version": FORMAT_VERSION, "bench": "speed", "sizes": asdict(sizes)}
    found["provenance"] = provenance(settings)
    found["ceiling_tflops"] = ceiling_tflops(settings.device)
    work = make_workload(sizes, settings.device)
    found["weights"], found["shortlist_weights"] = _weights(work.model)
    for row in rows:
        with show(f"timing {row}", "rows"):
            found[row] = _shares(measured[row](work, settings.device), found["ceiling_tflops"])
        _write(found, settings)
    if settings.sweep:
        for found["sweep"] in sweep(replace(sizes, sequences=max(16, settings.test // 8)), settings.device):
            _write(found, settings)  # whatever comes after may be cut short
    if settings.model is not None:
        for found["agreement"] in measure_agreement(settings, show):
            _write(found, settings)
    if settings.fleet == "demo":
        found["race"] = measure_race(settings, show)
    return {**found, "measured": rows, "files": _write(found, settings)}


def rows_of(workers: int) -> dict[str, Callable[[Workload, str], Figures]]:
    """What can be timed; with several workers also `discover` in so many processes."""
    if workers == 1:
        return ROWS
    return {**ROWS, PROCESSES: partial(time_processes, workers=workers, config=INTERVENTION)}


def sweep(sizes: Sizes, device: str) -> Iterator[Figures]:
    """Sequences/s of our stage when one size at a time takes other values; all so far after each."""
    found: Figures = {}
    for name, values in SWEEPS.items():
        for value in values:
            changed = replace(sizes, **{name: value})  # type: ignore[arg-type]
            if name == "mean_length":
                changed = replace(changed, sd_length=0.3 * value, longest=2 * value)
            figures = time_ours(make_workload(changed, device), device)
            found.setdefault(name, {})[str(value)] = figures
            yield found


def time_ours(work: Workload, device: str) -> Figures:
    """The intervention estimator's contexts (see `intervention_stage`), compiled and in bfloat16 on a GPU."""
    with float32_products("high"):
        model = fast_model(work.model, device)
        warmup = measure(lambda: intervention_stage(work, model, one_per_launch(work)), device)
        every = range(len(work.data))
        kept: list[Any] = []
        timed = measure(lambda: kept.extend(intervention_stage(work, model, every)), device, beside=work.weight_bytes)
        few = list(every)[:: max(1, len(every) // 16)][::-1]
        again = intervention_stage(work, model, few)
    tokens = work.sizes.contexts * work.real_tokens
    weights = multiplied_weights(work.model.network.config, last_block_at_one=True)
    return {
        **_figures(timed, len(every), 2.0 * weights * tokens),
        "warmup_seconds": warmup.seconds,
        "equal_in_other_company": all(bool((kept[k] == part).all()) for k, part in zip(few, again, strict=True)),
    }


def time_discover(work: Workload, device: str, *, config: DiscoveryConfig, last_block_at_one: bool) -> Figures:
    """`discover` as users call it, in one process: every stage, every test, every row of evidence."""
    few = part_of(work, "ours_discover")
    with float32_products("high"):
        model = fast_model(work.model, device)
        warmup = measure(lambda: list(discover(model, work.data, config, indices=one_per_launch(work))), device)
        spent: list[int] = []

        def run() -> None:
            spent.extend(found[0].contexts for found in discover(model, work.data, config, indices=few))

        timed = measure(run, device, beside=work.weight_bytes)
    tokens = float((np.array(spent) * (work.data.lengths[few] + 1)).sum())
    weights = multiplied_weights(work.model.network.config, last_block_at_one=last_block_at_one)
    figures = _figures(timed, len(few), 2.0 * weights * tokens)
    return {**figures, "warmup_seconds": warmup.seconds, "contexts": float(np.mean(spent))}


def time_listing(work: Workload, device: str, *, half: bool) -> Figures:
    """The paper's listing, as printed or under float16 autocast, padded to one length; its model has no shortlists."""
    few = part_of(work, "listing_fp16" if half else "listing")
    config = ListingConfig(contexts=work.sizes.contexts)
    generator = torch.Generator(device).manual_seed(work.sizes.seed)
    width = work.sizes.longest + 1

    def run(indices: Any) -> None:
        for begin in range(0, len(indices), LISTING_BATCH):
            batch = pad(work.encoded, indices[begin : begin + LISTING_BATCH], length=width)
            with torch.autocast(device.split(":")[0], torch.float16) if half else nullcontext():
                found = run_listing(work.paper_model, to_tokens(batch, torch.device(device)), config, generator)
            found.accepted.nonzero().cpu()

    with float32_products("highest"):  # torch's own choice, the listing makes none
        run(few[:LISTING_BATCH])
        timed = measure(lambda: run(few), device, beside=work.weight_bytes)
    tokens = work.sizes.contexts * float((work.data.lengths[few] + 1).sum())
    weights = multiplied_weights(work.model.network.config, last_block_at_one=False)
    return _figures(timed, len(few), 2.0 * weights * tokens)


def part_of(work: Workload, row: str) -> Any:
    """The sequences a row is timed on: evenly spread, whole batches of the listing."""
    count = max(LISTING_BATCH, int(len(work.data) * MOST[row]) // LISTING_BATCH * LISTING_BATCH)
    return np.linspace(0, len(work.data) - 1, min(count, len(work.data))).astype(np.int64)


def fast_model(model: OscarModel, device: str) -> OscarModel:
    """As `oscar discover --precision bf16` uses it on a GPU; on a CPU as it is."""
    return model.compiled(torch.bfloat16) if device.startswith("cuda") else model


def _weights(model: OscarModel) -> tuple[int, int]:
    """Numbers of weights: without and of the labels' shortlists."""
    every = {name: parameter.numel() for name, parameter in model.network.named_parameters()}
    short = sum(number for name, number in every.items() if name.startswith("shortlist."))
    return sum(every.values()) - short, short


def _figures(timed: Timed, sequences: int, operations: float) -> Figures:
    return {
        "sequences_per_s": sequences / timed.seconds,
        "tflops": operations / timed.seconds / 1e12,
        "peak_gib": timed.peak_gib,
        "sequences": sequences,
        "seconds": timed.seconds,
    }


def _shares(figures: Figures, ceiling: float) -> Figures:
    return {**figures, "share_of_ceiling": figures["tflops"] / ceiling}


def _write(found: Mapping[str, Any], settings: BenchSettings) -> dict[str, str]:
    path = settings.out / f"speed-{settings.preset}-seed{settings.seed}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, dict(found))
    names = [*ROWS, PROCESSES]
    write_text(path.with_suffix(".md"), speed_page(found, names))
    speed_plot(found, names, path.with_suffix(".png"))
    return {kind: str(path.with_suffix(f".{kind}")) for kind in ("json", "md", "png")}


PREFIX = DiscoveryConfig(estimator="prefix", prefix=PrefixConfig(contexts=64))
INTERVENTION = DiscoveryConfig(intervention=InterventionConfig(contexts=64))
ROWS: dict[str, Callable[[Workload, str], Figures]] = {
    "ours": time_ours,
    "ours_prefix": partial(time_discover, config=PREFIX, last_block_at_one=False),
    "ours_discover": partial(time_discover, config=INTERVENTION, last_block_at_one=True),
    "listing": partial(time_listing, half=False),
    "listing_fp16": partial(time_listing, half=True),
}
BENCH = measure_speed
