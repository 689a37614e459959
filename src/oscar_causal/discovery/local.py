"""`--engine local`: explain a dataset on this machine, in one or several processes, shard by shard, resumable.

Which process explains a sequence changes nothing: `discover` treats every sequence alone.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import platform
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from oscar_causal import __version__
from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.density.checkpoint import model_digest
from oscar_causal.density.folds import MEAN, ModelSet, load_models
from oscar_causal.discovery.boundary import Boundary
from oscar_causal.discovery.oneshot import ESTIMATORS, DiscoveryConfig, discover
from oscar_causal.discovery.results import SHARD_SEQUENCES, ResultsWriter, fingerprint
from oscar_causal.errors import UsageError

OnProgress = Callable[[int, int], None]
Indices = npt.NDArray[np.int64]


def discover_folder(  # noqa: PLR0913 - it mirrors the verb
    model: Path | str,
    dataset: Path | str,
    out: Path | str,
    config: DiscoveryConfig | None = None,
    *,
    indices: Indices | None = None,
    workers: int = 1,
    device: str = "cpu",
    resume: bool = False,
    force: bool = False,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Explain the sequences (or those at `indices`) of a dataset folder with a model folder, into a results folder."""
    if workers < 1:
        raise UsageError(f"workers: expected at least 1, got {workers}")
    config = config or DiscoveryConfig()
    data = read_dataset(dataset)
    chosen = np.arange(len(data)) if indices is None else np.asarray(indices, np.int64)
    run = describe_run(Path(model), data, chosen, config)
    begun = time.time()
    writer = ResultsWriter(out, run, resume=resume, force=force)
    try:
        shards = [chosen[begin : begin + SHARD_SEQUENCES] for begin in range(0, len(chosen), SHARD_SEQUENCES)]
        waiting = [k for k in range(len(shards)) if not writer.done(k)]
        done = sum(len(shards[k]) for k in range(len(shards)) if k not in set(waiting))
        job = (str(model), str(dataset), config, device)
        for k, boundaries in _explain_shards(job, [(k, shards[k]) for k in waiting], workers):
            writer.write_shard(k, boundaries)
            done += len(shards[k])
            if on_progress is not None:
                on_progress(done, len(chosen))
        writer.finish(seconds=time.time() - begun, host=platform.node(), workers=workers, device=device)
    except BaseException:
        writer.discard()
        raise
    return run


def describe_run(model: Path, data: Dataset, chosen: Indices, config: DiscoveryConfig) -> dict[str, Any]:
    """What decides the results, with its fingerprint; the content of `run.json` but for times and hosts."""
    what = {
        "estimator": config.estimator,
        "estimand": ESTIMATORS[config.estimator],
        "config": config.to_json(),
        "seed": config.seed,
        "precision": "float32",
        "dataset": {"path": str(data.path), "digest": data.info.get("digest")},
        "model": {"path": str(model), "digest": model_digest(model)},
        "sequences": len(chosen),
        "selection": hashlib.sha256(chosen.tobytes()).hexdigest(),
        "versions": {"oscar": __version__},
    }
    decides = {key: what[key] for key in ("config", "seed", "precision", "selection", "versions")}
    decides |= {"dataset": what["dataset"]["digest"], "model": what["model"]["digest"]}  # type: ignore[index]
    return {**what, "fingerprint": fingerprint(decides)}


Job = tuple[str, str, DiscoveryConfig, str]
_worker: dict[str, Any] = {}


def _explain_shards(job: Job, shards: list[tuple[int, Indices]], workers: int) -> Iterator[tuple[int, list[Boundary]]]:
    if workers == 1 or len(shards) <= 1:
        _load(job)
        for k, indices in shards:
            yield k, _explain(indices)
        return
    with _pool(job, min(workers, len(shards))) as pool:
        futures = [(k, pool.submit(_explain, indices)) for k, indices in shards]
        for k, future in futures:
            yield k, future.result()


@contextmanager
def _pool(job: Job, workers: int) -> Iterator[ProcessPoolExecutor]:
    context = multiprocessing.get_context("spawn")
    with one_thread_children():
        pool = ProcessPoolExecutor(workers, context, initializer=_load, initargs=(job, True))
        try:
            yield pool
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def one_thread_children() -> Iterator[None]:
    """Processes started inside this block use one thread each: several libraries with all cores each would thrash."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _load(job: Job, one_thread: bool = False) -> None:
    """Open model and dataset once per process."""
    import torch

    if one_thread:
        torch.set_num_threads(1)
    model, dataset, config, device = job
    if device.startswith("cuda"):
        torch.set_float32_matmul_precision("high")
    _worker.update(models=load_models(model, device=device), data=read_dataset(dataset), config=config)


def _explain(indices: Indices) -> list[Boundary]:
    part: Dataset = _worker["data"].take(indices)
    models: ModelSet = _worker["models"]
    routes, seen = models.routes(part.subject_ids), models.seen_in_training(part.subject_ids)
    found: dict[int, list[Boundary]] = {}
    for route in np.unique(routes):
        rows = np.flatnonzero(routes == route)
        model = models.mean if route == MEAN else models.models[int(route)]
        explained = discover(model, part.take(rows), _worker["config"])
        found.update(zip(rows.tolist(), explained, strict=True))
    return [
        replace(item, trusted=models.trusted(item.label), seen_in_training=bool(seen[row]))
        for row in range(len(part))
        for item in found[row]
    ]


def unseen_indices(model: Path | str, dataset: Path | str) -> Indices:
    """Sequences of a dataset that the model judging them was not trained on (with folds: all)."""
    unseen = np.flatnonzero(~load_models(model).seen_in_training(read_dataset(dataset).subject_ids))
    if not len(unseen):
        raise UsageError(f"{model}: was trained on every subject of {dataset}; there is no held-out sequence")
    return unseen
