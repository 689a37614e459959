"""A run of `oscar discover` before it begins: what decides its results, and how its memory is shared out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from oscar_causal.data.checksums import edited_hashes
from oscar_causal.data.digest import check_digest
from oscar_causal.data.folders import finite_or_none, partial_of, read_json
from oscar_causal.data.stream import describe_dataset
from oscar_causal.density.checkpoint import model_digest
from oscar_causal.density.folds import load_models
from oscar_causal.density.memory import GIB, TOKENS_PER_PASS
from oscar_causal.density.precision import refuse_other_versions, versions
from oscar_causal.discovery.results import fingerprint
from oscar_causal.discovery.settings import DiscoveryConfig
from oscar_causal.discovery.survey import Survey, plan_memory, survey

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Job:
    """What a process needs to know to explain shards."""

    model: str
    dataset: str
    config: DiscoveryConfig
    device: str
    also: tuple[str, ...] = ()
    """Further models, whose agreement is recorded."""
    tokens_per_pass: int | None = None
    """Where memory is short; None = as many as the device takes well."""
    bf16: bool = False
    """On a GPU: blocks of the label density in bfloat16."""

    @property
    def precision(self) -> str:
        """Of the label density; the replacement law is never made in bfloat16."""
        return ("bf16" if self.bf16 else "tf32") if self.device.startswith("cuda") else "float32"

    @property
    def by_length(self) -> bool:
        """Do sequences of similar length share a shard?"""
        return self.device.startswith("cuda")


def prepare_run(
    job: Job,
    out: Path | str,
    chosen: Indices,
    *,
    memory: float | None,
    processes: int,
    resume: bool,
) -> tuple[dict[str, Any], Job, Survey]:
    """Look at the data, plan the memory, and describe the run.

    `memory` is the cap of one process in GiB; without it `processes` share what is free. A resumed run keeps the piece
    size it began with, and wants the libraries it began with.
    """
    check_digest(job.dataset)
    models = [load_models(path) for path in (job.model, *job.also)]
    job.config.check(models[0].vocabulary)
    seen = survey(Path(job.dataset), chosen, models[0], job.config)
    device = job.device if job.device.startswith("cuda") else "cpu"
    estimate, cap = plan_memory(models, seen, job.config, device=device, gib=memory, processes=processes)
    usual = estimate.tokens_per_pass == TOKENS_PER_PASS[device.split(":")[0]]
    tokens = None if usual else estimate.tokens_per_pass
    before = read_json(partial_run(out)) if resume and partial_run(out).exists() else {}
    if before:
        refuse_other_versions(before.get("versions") or {})
    if before and memory is None:
        tokens = before.get("tokens_per_pass")
    job = replace(job, tokens_per_pass=tokens)
    about = {
        "memory": {**estimate.to_json(), "cap_gib": finite_or_none(cap / GIB)},
        "calibrated": all(model.calibration is not None for model in models[0].models),
        "min_context": models[0].min_context,
        "unknown": dict(seen.unknown_names),
    }
    return {**describe_run(job, chosen), **about}, job, seen


def partial_run(out: Path | str) -> Path:
    """The `run.json` of a run that is not finished."""
    return partial_of(Path(out)) / "run.json"


def describe_run(job: Job, chosen: Indices) -> dict[str, Any]:
    """What decides the results, with its fingerprint; the content of `run.json` but for times and hosts."""
    config = job.config
    what: dict[str, Any] = {
        "estimator": config.estimator_name,
        "estimand": config.estimand,
        "config": config.to_json(),
        "seed": config.seed,
        "precision": job.precision,
        "tokens_per_pass": job.tokens_per_pass,
        "dataset": describe_dataset(job.dataset),
        "model": {
            "path": job.model,
            "digest": model_digest(job.model),
            "edited_sha256": edited_hashes(Path(job.model)),
        },
        "also": [{"path": path, "digest": model_digest(path)} for path in job.also],
        "sequences": len(chosen),
        "selection": hashlib.sha256(chosen.tobytes()).hexdigest(),
        "versions": versions(),
    }
    decides = {key: what[key] for key in ("config", "seed", "precision", "tokens_per_pass", "selection", "versions")}
    decides |= {"dataset": [what["dataset"][key] for key in ("digest", "sequences_sha256")]}
    decides |= {"model": what["model"]["digest"]}
    decides |= {"also": [part["digest"] for part in what["also"]]}
    decides |= {"shards": "by length"} if job.by_length else {}
    return {**what, "fingerprint": fingerprint(decides)}
