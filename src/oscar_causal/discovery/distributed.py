"""`--engine ray`: the shards of a run explained by actors of a Ray cluster, each with the model loaded once.

Ray Data streams: row numbers of a shard in, an actor reads those rows from the dataset's Parquet files, and the
finished Parquet files of the shard come back to the one writer. Ray places the actors, holds back work while results
wait to be written, and repeats what was lost with a worker or a node; a shard is written once, whoever explained it.
Dataset and model must lie where every node can read them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from oscar_causal.discovery.local import Job, ShardExplainer, ShardFiles, Shards
from oscar_causal.errors import MissingExtra, OscarError, UsageError

Batch = dict[str, Any]
IN_FLIGHT = 2
"""Shards handed to an actor at a time: the next one waits beside the one at work."""


def explain_on_ray(job: Job, shards: Shards, workers: int | None) -> ShardFiles:
    """Explain shards on the cluster at RAY_ADDRESS, or on one started here when there is none."""
    ray = _ray()
    started = not ray.is_initialized()
    if started:
        ray.init(logging_level="error", log_to_driver=False)
    try:
        yield from _stream(ray, job, shards, workers)
    except ray.exceptions.RayError as error:
        raise _told(error) from error
    finally:
        if started:
            ray.shutdown()


class RayExplainer:
    """What an actor does: one shard per batch."""

    def __init__(self, job: Job) -> None:
        self._explain = ShardExplainer(job, one_thread=not job.device.startswith("cuda"))

    def __call__(self, batch: Batch) -> Batch:
        (indices,) = batch["indices"]
        files = self._explain(np.asarray(indices, np.int64))
        return {"shard": batch["shard"], **{name: [content] for name, content in files.items()}}


def _stream(ray: Any, job: Job, shards: Shards, workers: int | None) -> Iterator[tuple[int, dict[str, bytes]]]:
    data = import_module("ray.data")
    _be_quiet(ray)
    job = replace(job, device=_device(ray, job.device))
    unit, room = _places(ray, job.device)
    most = min(len(shards), max(1, room if workers is None else min(workers, room)))
    work = data.from_items([_item(k, indices) for k, indices in shards], override_num_blocks=len(shards))
    explained = work.map_batches(
        RayExplainer,
        fn_constructor_args=(job,),
        batch_size=1,
        compute=data.ActorPoolStrategy(min_size=1, max_size=most, max_tasks_in_flight_per_actor=IN_FLIGHT),
        **unit,
    )
    seen: set[int] = set()
    for row in explained.iter_rows():
        k = int(row.pop("shard"))
        if k not in seen:
            seen.add(k)
            yield k, row
    if len(seen) != len(shards):
        raise OscarError(f"ray: expected {len(shards)} shards back, got {len(seen)}; say --resume to go on")


def _item(k: int, indices: npt.NDArray[np.int64]) -> Batch:
    return {"shard": k, "indices": indices}


def _places(ray: Any, device: str) -> tuple[dict[str, float], int]:
    """What one actor takes, and how many of them the cluster has room for now."""
    kind = "GPU" if device.startswith("cuda") else "CPU"
    return {f"num_{kind.lower()}s": 1}, int(ray.cluster_resources().get(kind, 1))


def _device(ray: Any, wanted: str) -> str:
    has_gpus = bool(ray.cluster_resources().get("GPU"))
    if wanted == "auto":
        return "cuda" if has_gpus else "cpu"
    if wanted.startswith("cuda") and not has_gpus:
        raise UsageError(f"--device {wanted}: expected a GPU in the Ray cluster, found none")
    return wanted


def _be_quiet(ray: Any) -> None:
    """Progress is told by the verb."""
    import logging

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)


def _told(error: BaseException) -> OscarError:
    """What the user can mend, as the actor said it; anything else in one line."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OscarError):
            return cause
        cause = getattr(cause, "cause", None) or cause.__cause__
    line = next((line.strip() for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)
    return OscarError(f"ray: {type(error).__name__}: {line}; what was finished is kept, say --resume to go on")


def _ray() -> Any:
    try:
        import ray
        import ray.data
        import ray.exceptions
    except ImportError as error:
        raise MissingExtra("--engine ray: expected the package ray, found none; install oscar-causal[ray]") from error
    return ray
