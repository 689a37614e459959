"""`oscar discover` of the held-out part by processes that are there already: the same results folder."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from oscar_causal.data.rows import SequenceRows
from oscar_causal.data.sequences import Int64
from oscar_causal.discovery.jobs import Job, prepare_run
from oscar_causal.discovery.oneshot import DiscoveryConfig
from oscar_causal.discovery.results import ResultsWriter
from oscar_causal.discovery.survey import explained_sequences
from oscar_causal.score.bench.processes import Desk, Processes, pieces_of


def job_of(processes: Processes, model: Path, dataset: Path, config: DiscoveryConfig) -> Job:
    """What the processes are told."""
    return Job(str(model.resolve()), str(dataset.resolve()), config, processes.device)


def explain_folder(
    processes: Processes,
    model: Path,
    dataset: Path,
    out: Path,
    config: DiscoveryConfig,
    on_progress: Callable[[int, int], None],
) -> None:
    """Explain every sequence of a dataset folder into a results folder; a run that was cut short goes on."""
    job = job_of(processes, model, dataset, config)
    processes.ready(job)
    begun = time.time()
    resume, rows = out.with_name(f"{out.name}.partial").exists(), np.arange(len(SequenceRows(dataset)))
    run, job, seen = prepare_run(job, out, rows, memory=None, processes=processes.workers, resume=resume)
    writer = ResultsWriter(out, run, resume=resume)
    try:
        pieces = pieces_of(len(rows))
        waiting = [k for k in range(len(pieces)) if not writer.done(k)]
        done = len(rows) - sum(len(pieces[k]) for k in waiting)
        for k, files in zip(waiting, processes.each(_files, job, [pieces[k] for k in waiting]), strict=True):
            writer.write_files(k, files)
            done += len(pieces[k])
            on_progress(done, len(rows))
        counts = seen.counts(explained_sequences(writer.partial / "verdicts"))
        how = {"engine": "local", "workers": processes.workers, "processes": 1, "device": processes.device}
        writer.finish(seconds=time.time() - begun, host=platform.node(), counts=counts, **how)
    except BaseException:
        writer.discard()
        raise


def _files(desk: Desk, rows: Int64) -> dict[str, bytes]:
    return desk(rows)
