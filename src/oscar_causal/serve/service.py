"""What all routes share: the models, what can be picked, the worker, the jobs and the limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from oscar_causal import __version__
from oscar_causal.data.stream import memory_bytes
from oscar_causal.density.checkpoint import model_digest
from oscar_causal.density.estimates import Plan, ServeWork
from oscar_causal.density.folds import ModelSet, load_models
from oscar_causal.density.memory import Work, cap_bytes
from oscar_causal.density.slopes import PASSES
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.oneshot import ESTIMATORS
from oscar_causal.serve import limits
from oscar_causal.serve.answers import Change, LabelInfo, ModelInfo, Prediction, trust_reason
from oscar_causal.serve.catalogue import Catalogue
from oscar_causal.serve.jobs import Jobs
from oscar_causal.serve.limits import Limits
from oscar_causal.serve.predictions import ROWS_PER_PASS
from oscar_causal.serve.prepared import Prepared
from oscar_causal.serve.worker import ModelWorker


@dataclass(frozen=True, eq=False)
class Service:
    """Made once, before the first request."""

    models: ModelSet
    catalogue: Catalogue
    worker: ModelWorker
    jobs: Jobs
    limits: Limits
    digest: str

    def model_info(self) -> ModelInfo:
        """The content of `GET /model`."""
        return ModelInfo(
            version=__version__,
            digest=self.digest,
            folds=len(self.models.models),
            events=len(self.models.vocabulary.events),
            labels=[self._label_info(name) for name in self.models.vocabulary.labels],
            channels=list(self.models.channels),
            max_length=self.models.max_length,
            min_context=self.models.min_context,
            estimand=ESTIMATORS["intervention"],
            dataset=self.catalogue.data is not None,
            most_contexts=limits.CONTEXTS,
            most_events=limits.EVENTS,
        )

    def prediction(self, prepared: Prepared, probs: np.ndarray, *, each_event: bool) -> Prediction:
        """Probabilities (P, Y) of a sequence as an answer."""
        sent = len(prepared.sequence.events)
        first = sent - prepared.length + 1 if each_event else sent
        return Prediction(
            sequence_id=prepared.sequence.sequence_id,
            labels=list(self.models.vocabulary.labels),
            after=list(range(first, sent + 1)),
            probabilities=probs.tolist(),
            min_context=self.models.min_context,
            seen_in_training=prepared.seen,
            flags=prepared.flags,
            names=self.catalogue.describe(prepared.sequence.events),
        )

    def changes(self, before: np.ndarray, after: np.ndarray) -> list[Change]:
        """Every label's probability before and after."""
        rows = zip(self.models.vocabulary.labels, before.tolist(), after.tolist(), strict=True)
        return [Change(label=name, before=b, after=a, trusted=self.models.trusted(name)) for name, b, a in rows]

    def _label_info(self, label: str) -> LabelInfo:
        quality = self.models.models[0].info.get("quality", {}).get("per_label", {}).get(label, {})
        trusted = self.models.trusted(label)
        return LabelInfo(
            label=label,
            description=self.catalogue.names.get(label),
            trusted=trusted,
            reason=None if trusted else trust_reason(self.models, label),
            f1=quality.get("f1"),
            positives=quality.get("positives"),
        )


def plan_memory(models: ModelSet, dataset: Path | str | None, device: str, memory: float | None) -> Plan:
    """What the service takes at most; models answer in smaller pieces where memory is short."""
    networks = [model.network for model in models.models]
    weights = sum(tensor.nbytes for network in networks for tensor in network.state_dict().values())
    shape = networks[0].config
    sloped = min(limits.LABELS, shape.labels, InterventionConfig().ranking_budget // PASSES)
    work = Work(shape, weights, models.max_length, limits.CONTEXTS, sloped)
    size = 0 if dataset is None else memory_bytes(dataset)
    plan = ServeWork(work, ROWS_PER_PASS, size).plan(cap_bytes(memory, device), device.split(":")[0])
    for model in models.models:
        model.pieces.tokens = plan.pieces.get("tokens_per_pass")
    return plan


def open_service(
    model: Path | str,
    dataset: Path | str | None = None,
    settings: Limits | None = None,
    *,
    device: str = "cpu",
    memory: float | None = None,
    on_plan: Callable[[Plan], None] | None = None,
) -> Service:
    """Open a model folder (or folds) and perhaps a dataset folder; nothing runs before `worker.start()`.

    `memory` is the most that it may take in GiB (default: a share of what is free); `on_plan` hears the plan.
    """
    settings = settings or Limits()
    models = load_models(model, device=device)
    plan = plan_memory(models, dataset, device, memory)
    if on_plan is not None:
        on_plan(plan)
    worker = ModelWorker(models, settings)
    jobs = Jobs(models, worker, settings)
    return Service(models, Catalogue(models, dataset), worker, jobs, settings, model_digest(model))
