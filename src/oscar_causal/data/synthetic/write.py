"""A fleet as a dataset folder: blocks drawn by several processes, written in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa

from oscar_causal.data.folders import read_json, refuse_existing
from oscar_causal.data.rules import PublishedRule, format_rule, write_rules
from oscar_causal.data.synthetic.audit import Audit, bayes_figures, merge, oracle_figures
from oscar_causal.data.synthetic.config import BLOCK_SEQUENCES, FleetConfig
from oscar_causal.data.synthetic.draw import draw_block, sequences_table, why_table
from oscar_causal.data.synthetic.world import World, make_world
from oscar_causal.data.worker_pool import WorkerPool
from oscar_causal.data.writer import dataset_writer
from oscar_causal.errors import UsageError

GENERATOR_VERSION = 1
"""Raised when the same config and seed give other sequences than before."""
BLOCKS_PER_WORKER = 8
"""Below this a second process costs more than it brings."""

OnProgress = Callable[[int, int], None]
Drawn = tuple[pa.Table, pa.Table, Audit]


def write_fleet(
    config: FleetConfig,
    seed: int,
    out: Path | str,
    workers: int | None = None,
    force: bool = False,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Write a fleet to the folder `out` and return the content of its `dataset.json`.

    The bytes depend on config and seed only. `workers` processes draw (default: one per core, fewer for small fleets);
    with more than one, a script needs the usual `if __name__ == "__main__":`. `on_progress` gets (done, total).
    """
    if workers is not None and workers < 1:
        raise UsageError(f"workers: expected at least 1, got {workers}")
    refuse_existing(Path(out), force=force)
    world = make_world(config, seed)
    with dataset_writer(out, force=force) as writer:
        audits = []
        for table, why, counts in _draw_all(world, _worker_count(config, workers)):
            writer.write(table, where="synthetic sequences")
            if len(why):
                writer.write_why(why)
            audits.append(counts)
            if on_progress is not None:
                on_progress(min(len(audits) * BLOCK_SEQUENCES, config.sequences), config.sequences)
        writer.write_names(world.descriptions())
        if not config.null:
            write_rules(writer.folder / "rules.json", world.published_rules())
        writer.describe(**describe(world, merge(audits)))
    return read_json(Path(out) / "dataset.json")


def describe(world: World, total: Audit) -> dict[str, Any]:
    """What `dataset.json` says about how the fleet came about and how well it can be known at best."""
    null = world.config.null
    return {
        "generator": {
            "name": "oscar synth",
            "version": GENERATOR_VERSION,
            "seed": world.seed,
            "config": world.config.to_json(),
            "hidden_rules": [] if null else [_hidden(name, rule) for name, rule in world.hidden_rules()],
            "graded_labels": {} if null else _graded(world),
        },
        "label_counts": {
            "recorded": int(total.observed.sum()),
            "lost": int(total.lost.sum()),
            "false": int(total.false.sum()),
        },
        "bayes": bayes_figures(total),
        "presence_oracle": oracle_figures(total),
    }


def _hidden(name: str, published: PublishedRule) -> dict[str, str | None]:
    start, end = (
        None if moment is None else f"{moment:%Y-%m-%dT%H:%M:%SZ}" for moment in (published.start, published.end)
    )
    return {"label": name, "rule": format_rule(published.rule), "from": start, "to": end}


def _graded(world: World) -> dict[str, Any]:
    """Strengths of the causes and inhibitors of the labels that chance has a say in."""
    found = {}
    for name, law in zip(world.label_names, world.laws, strict=False):
        if law.graded:
            causes = {world.event_names[e]: s for e, s in zip(law.causes, law.strengths, strict=True)}
            inhibitors = {world.event_names[e]: q for e, q in zip(law.blockers, law.inhibitions, strict=True)}
            found[name] = {"causes": causes, "inhibitors": inhibitors}
    return found


def _worker_count(config: FleetConfig, workers: int | None) -> int:
    blocks = -(-config.sequences // BLOCK_SEQUENCES)
    if workers is not None:
        return min(workers, blocks)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, blocks // BLOCKS_PER_WORKER))


def _draw_all(world: World, workers: int) -> Iterator[Drawn]:
    """All blocks in order; at most two blocks per worker wait to be written."""
    jobs = [
        (number, min(BLOCK_SEQUENCES, world.config.sequences - number * BLOCK_SEQUENCES))
        for number in range(-(-world.config.sequences // BLOCK_SEQUENCES))
    ]
    if workers == 1:
        yield from (_draw(world, *job) for job in jobs)
        return
    context = get_context("spawn")
    with WorkerPool(workers, context, _begin_worker, world.config, world.seed) as pool:
        waiting: deque[Future[Drawn]] = deque()
        for job in jobs:
            if len(waiting) >= 2 * workers:
                yield waiting.popleft().result()
            waiting.append(pool.submit(_draw_in_worker, *job))
        while waiting:
            yield waiting.popleft().result()


def _draw(world: World, number: int, count: int) -> Drawn:
    block = draw_block(world, number, count)
    return sequences_table(world, block), why_table(world, block), block.audit


_WORLDS: list[World] = []
"""The world of this worker process."""


def _begin_worker(config: FleetConfig, seed: int) -> None:
    _WORLDS[:] = [make_world(config, seed)]


def _draw_in_worker(number: int, count: int) -> Drawn:
    return _draw(_WORLDS[0], number, count)
