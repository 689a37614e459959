"""`oscar discover`: explain a dataset folder shard by shard into a results folder, resumable.

One process, several (`workers`), several under torchrun, or a Ray cluster (`distributed`): which process explains a
sequence changes nothing, because `discover` treats every sequence alone.
"""

from __future__ import annotations

import math
import platform
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from oscar_causal.data.folders import read_json
from oscar_causal.data.rows import SequenceRows
from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.worker_pool import WorkerPool
from oscar_causal.density.folds import MEAN, load_models
from oscar_causal.density.precision import settle_on
from oscar_causal.discovery.boundary import Boundary
from oscar_causal.discovery.jobs import Job as Job  # also known here
from oscar_causal.discovery.jobs import partial_run, prepare_run
from oscar_causal.discovery.oneshot import DiscoveryConfig, discover
from oscar_causal.discovery.ranks import join_ranks
from oscar_causal.discovery.results import SHARD_SEQUENCES, ResultsWriter, shard_files
from oscar_causal.discovery.sharding import alike
from oscar_causal.discovery.survey import Survey, explained_sequences
from oscar_causal.discovery.workers import one_thread_children, worker_context
from oscar_causal.errors import OscarError, UsageError

OnBegin = Callable[[dict[str, Any]], None]
OnProgress = Callable[[int, int], None]
Indices = npt.NDArray[np.int64]
ENGINES = ("local", "ray")


def discover_folder(  # noqa: PLR0913 - it mirrors the verb
    model: Path | str,
    dataset: Path | str,
    out: Path | str,
    config: DiscoveryConfig | None = None,
    *,
    indices: Indices | None = None,
    engine: str = "local",
    workers: int | None = None,
    device: str = "cpu",
    also: Sequence[Path | str] = (),
    memory: float | None = None,
    precision: str | None = None,
    resume: bool = False,
    force: bool = False,
    on_begin: OnBegin | None = None,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Explain the sequences (or those at `indices`) of a dataset folder with a model folder, into a results folder.

    `workers` processes share the work (one by default; with the engine `ray` all that the cluster has room for). Under
    torchrun each process takes its share of the shards and the first one finishes the folder. `device` is cpu or cuda;
    with `ray` also auto: the GPUs of the cluster if it has any. `also`: further model folders, whose agreement with
    each verdict is recorded. `memory`: most GiB for one process (default: its part of a share of what is free).
    `precision` of the label density on a GPU: tf32 (default) or bf16.
    `on_begin` is told the content of `run.json` before the work begins.
    """
    _check_engine(engine, workers, device)
    if precision not in (None, "tf32", "bf16") or (precision is not None and device == "cpu"):
        raise UsageError(f"--precision: expected tf32 or bf16, on a GPU, got {precision!r} on {device}")
    config = config or DiscoveryConfig()
    data = SequenceRows(dataset)
    chosen = np.arange(len(data)) if indices is None else np.asarray(indices, np.int64)
    begun, ranks = time.time(), join_ranks()
    job = Job(str(Path(model).resolve()), str(Path(dataset).resolve()), config, ranks.device(device), _resolved(also))
    job = replace(job, bf16=precision == "bf16")
    if engine == "ray" and memory is None:
        memory = math.inf  # of the cluster's machines nothing is known here
    processes = (workers or 1) * ranks.local_world

    def open_run() -> tuple[dict[str, Any], Job, Survey, ResultsWriter]:
        run, planned, seen = prepare_run(job, out, chosen, memory=memory, processes=processes, resume=resume)
        return run, planned, seen, ResultsWriter(out, run, resume=resume, force=force)

    run, job, seen, writer = ranks.first(open_run) or _join_run(job, out)
    try:
        if on_begin is not None:
            on_begin(run)
        shards = cut(job, data, chosen)
        mine = range(ranks.rank, len(shards), ranks.world)
        waiting = [(k, shards[k]) for k in mine if not writer.done(k)]
        total = sum(len(shards[k]) for k in mine)
        done = total - sum(len(shard) for _, shard in waiting)
        for k, files in _explain_shards(engine, job, waiting, workers):
            writer.write_files(k, files)
            done += len(shards[k])
            if on_progress is not None:
                on_progress(done, total)
        ranks.wait()
        if seen is not None:
            how = {"engine": engine, "workers": workers, "processes": ranks.world, "device": device}
            run["counts"] = seen.counts(explained_sequences(writer.partial / "verdicts"))
            writer.finish(seconds=time.time() - begun, host=platform.node(), counts=run["counts"], **how)
        ranks.wait()
    except BaseException:
        writer.discard()
        raise
    return run


def cut(job: Job, data: SequenceRows, chosen: Indices) -> list[Indices]:
    """The chosen rows in shards: as they come, or on a GPU those of similar length together."""
    size = shard_size(len(chosen))
    rows = alike(chosen, data.lengths()[chosen], size) if job.by_length else chosen
    return [rows[begin : begin + size] for begin in range(0, len(rows), size)]


def shard_size(sequences: int) -> int:
    """Sequences of a shard: fewer where there are few, so that several processes have work and progress is seen.

    >>> shard_size(100_000), shard_size(240), shard_size(3)
    (256, 15, 8)
    """
    return min(SHARD_SEQUENCES, max(8, math.ceil(sequences / 16)))


def _check_engine(engine: str, workers: int | None, device: str) -> None:
    if engine not in ENGINES:
        raise UsageError(f"--engine: expected one of {', '.join(ENGINES)}, got {engine!r}")
    if engine == "local":
        check_device(device)
    elif not re.fullmatch(r"cpu|cuda(:\d+)?|auto", device):
        raise UsageError(f"--device: expected cpu, cuda or auto, got {device!r}")
    if workers is not None and workers < 1:
        raise UsageError(f"--workers: expected at least 1, got {workers}")


def check_device(device: str) -> None:
    """Refuse a device that this machine does not have."""
    import torch

    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise UsageError(f"--device: expected cpu or cuda, got {device!r}")
    here = torch.cuda.device_count()
    if device.startswith("cuda") and int(device[5:] or 0) >= here:
        raise UsageError(f"--device: expected cpu or one of the {here} GPUs that torch finds here, got {device!r}")


def _resolved(folders: Sequence[Path | str]) -> tuple[str, ...]:
    return tuple(str(Path(folder).resolve()) for folder in folders)


def _join_run(job: Job, out: Path | str) -> tuple[dict[str, Any], Job, None, ResultsWriter]:
    """Join a run that the first process has opened: its plan holds for all, whatever memory is free here."""
    run = read_json(partial_run(out))
    return run, replace(job, tokens_per_pass=run["tokens_per_pass"]), None, ResultsWriter(out, run, joins=True)


class ShardExplainer:
    """A model and a dataset, opened once; explains one shard after the other."""

    def __init__(self, job: Job, *, one_thread: bool = False) -> None:
        import torch

        if one_thread:
            torch.set_num_threads(1)
        settle_on(job.device)
        self.models, *self.also = (load_models(path, device=job.device) for path in (job.model, *job.also))
        for model in (model for models in (self.models, *self.also) for model in models.models):
            model.pieces.tokens = job.tokens_per_pass
        if job.device.startswith("cuda"):
            dtype = torch.bfloat16 if job.bf16 else torch.float32
            self.models, *self.also = (models.compiled(dtype) for models in (self.models, *self.also))
        self.data, self.config = SequenceRows(job.dataset), job.config
        borrowed = job.config.replacement in ("marginal", "donors")
        self.background = read_dataset(job.dataset) if borrowed else None

    def __call__(self, indices: Indices) -> dict[str, bytes]:
        """The files of the shard that holds these sequences."""
        return shard_files(self.explain(indices))

    def explain(self, indices: Indices) -> list[Boundary]:
        """All boundaries of these sequences, in their order, each by the model that may judge it."""
        part = self.data.take(indices)
        routes = np.stack([models.routes(part.subject_ids) for models in (self.models, *self.also)], axis=1)
        seen = self.models.seen_in_training(part.subject_ids)
        found: dict[int, list[Boundary]] = {}
        for route in np.unique(routes, axis=0):
            rows = np.flatnonzero((routes == route).all(axis=1))
            model, *also = self._judges(route)
            explained = discover(model, part.take(rows), self.config, also=also, background=self.background)
            found.update(zip(rows.tolist(), explained, strict=True))
        return [
            replace(item, trusted=self.models.trusted(item.label), seen_in_training=bool(seen[row]))
            for row in range(len(part))
            for item in found[row]
        ]

    def _judges(self, route: Indices) -> list[Any]:
        """Who judges along a route: the model, then those whose agreement is asked; behind a mean, its own models."""
        models = [
            models.mean if k == MEAN else models.models[k]
            for models, k in zip((self.models, *self.also), route.tolist(), strict=True)
        ]
        return [*models, *self.models.models] if route[0] == MEAN else models


Shards = list[tuple[int, Indices]]
ShardFiles = Iterator[tuple[int, dict[str, bytes]]]


def _explain_shards(engine: str, job: Job, shards: Shards, workers: int | None) -> ShardFiles:
    if not shards:
        return
    if engine == "ray":
        from oscar_causal.discovery.distributed import explain_on_ray

        yield from explain_on_ray(job, shards, workers)
    elif workers is None or workers == 1 or len(shards) == 1:
        with one_thread(job.device):
            explain = ShardExplainer(job)
            for k, indices in shards:
                yield k, explain(indices)
    else:
        yield from _explain_in_processes(job, shards, workers)


_of_this_process: dict[str, ShardExplainer] = {}


def _begin_process(job: Job) -> None:
    _of_this_process["explainer"] = ShardExplainer(job, one_thread=True)


def _explain_in_process(indices: Indices) -> dict[str, bytes]:
    return _of_this_process["explainer"](indices)


def _explain_in_processes(job: Job, shards: Shards, workers: int) -> ShardFiles:
    context = worker_context(job.device)
    with one_thread_children(), WorkerPool(min(workers, len(shards)), context, _begin_process, job) as pool:
        try:
            futures = {pool.submit(_explain_in_process, indices): k for k, indices in shards}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise OscarError(
                "discover: a worker process died (killed, or out of memory?); what it had finished is kept, "
                "say --resume to go on"
            ) from error


@contextmanager
def one_thread(device: str) -> Iterator[None]:
    """On the CPU one thread, as in every worker: the number of threads changes the last bits of a product."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1 if device == "cpu" else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def unseen_indices(model: Path | str, dataset: Path | str) -> Indices:
    """Sequences of a dataset that the model judging them was not trained on (with folds: all)."""
    unseen = np.flatnonzero(~load_models(model).seen_in_training(read_dataset(dataset).subject_ids))
    if not len(unseen):
        raise UsageError(f"{model}: was trained on every subject of {dataset}; there is no held-out sequence")
    return unseen
