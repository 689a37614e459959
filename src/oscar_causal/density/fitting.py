"""From a dataset to a model folder: split, vocabulary, training, calibration, quality, card."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from oscar_causal.data.batches import Encoded, encode
from oscar_causal.data.checksums import NAME as CHECKSUMS
from oscar_causal.data.checksums import checksums
from oscar_causal.data.digest import check_digest
from oscar_causal.data.folders import read_json, write_json, write_text
from oscar_causal.data.sequences import Dataset
from oscar_causal.data.stream import sequences_sha256
from oscar_causal.data.subjects import folds as subject_folds
from oscar_causal.data.subjects import held_out, pack_subjects
from oscar_causal.data.vocabulary import Vocabulary, build_vocabulary
from oscar_causal.density.checkpoint import checkpoint_pieces, has_checkpoint, remove_checkpoints, save_model
from oscar_causal.density.estimates import Plan, TrainPieces, TrainWork
from oscar_causal.density.lists import OnList, boundary_lists
from oscar_causal.density.memory import Pieces, cap_bytes
from oscar_causal.density.model import OscarModel
from oscar_causal.density.partial import CARD, is_main_process, processes, threads_of, training_folder
from oscar_causal.density.precision import repeatable, versions
from oscar_causal.density.quality import assess
from oscar_causal.density.reference import reference_of
from oscar_causal.density.settings import TrainConfig
from oscar_causal.density.training import OnStep, Trainer
from oscar_causal.density.transformer import Network, NetworkConfig
from oscar_causal.errors import UsageError

OnPlan = Callable[[Plan], None]
"""Called with the memory plan before a model is trained."""
FILES = ("config.json", "model.safetensors", "quality.json", "training.json", "vocabulary.json")
"""Of a model folder, with checksums; the card is for people."""


def train(  # noqa: PLR0913 - it mirrors the verb
    dataset: Dataset,
    out: Path | str,
    config: TrainConfig | None = None,
    *,
    folds: int | None = None,
    resume: bool = False,
    force: bool = False,
    workers: int = 1,
    memory: float | None = None,
    on_plan: OnPlan | None = None,
    on_list: OnList | None = None,
    on_step: OnStep | None = None,
) -> dict[str, Any]:
    """Train both densities on a dataset and write the model folder; returns its quality figures.

    With `folds` = K, K models are trained, each without the subjects of one fold, so that every subject can later be
    explained by a model that never saw it. While training the work lies in `<out>.partial`; after a kill the same call
    with `resume` goes on from there. `workers` processes look for what each label listens to (a script that asks for
    several needs the usual `if __name__ == "__main__"`); the answer does not depend on their number. `on_list`
    hears how far they are. `memory` is the most that training may take in GiB beside the program and the dataset
    (default: a share of what is free); where it is short, steps are cut into smaller pieces. `on_plan` hears the plan.
    """
    out, config = Path(out), config or TrainConfig()
    if folds is not None and folds < 2:
        raise UsageError(f"folds: expected at least 2, got {folds}")
    if not dataset.label_names:
        raise UsageError("training: expected a dataset with at least one label, found none")
    if dataset.path is not None:
        check_digest(dataset.path)
    config = config.fitted(dataset.lengths)
    how: dict[str, Any] = {"resume": resume, "workers": workers, "memory": memory}
    how |= {"on_plan": on_plan, "on_list": on_list, "on_step": on_step}
    with (
        training_folder(out, _plan(dataset, config, folds), resume=resume, force=force) as partial,
        repeatable(threads_of(partial), processes().device),
    ):
        if folds is None:
            outside = held_out(dataset.subject_ids, config.validation, seed=config.seed)
            return train_one(dataset, outside, partial, config, **how)
        return _train_folds(dataset, partial, config, folds, **how)


def train_one(  # noqa: PLR0913 - what `train` was told, for one model
    dataset: Dataset,
    outside: npt.NDArray[np.bool_],
    folder: Path,
    config: TrainConfig,
    *,
    vocabulary: Vocabulary | None = None,
    resume: bool = False,
    workers: int = 1,
    memory: float | None = None,
    on_plan: OnPlan | None = None,
    on_list: OnList | None = None,
    on_step: OnStep | None = None,
) -> dict[str, Any]:
    """Train on the sequences not marked `outside`, judge on those marked; fills `folder` unless that is done."""
    begun = time.time()
    if (folder / CARD).exists():  # finished before a restart
        remove_checkpoints(folder)
        return read_json(folder / "quality.json")
    if outside.all():
        raise UsageError(
            f"training: expected some subjects outside the held-out part, got {len(dataset)} sequences in it"
        )
    inside_data, outside_data = dataset.take(np.flatnonzero(~outside)), dataset.take(np.flatnonzero(outside))
    vocabulary = vocabulary or build_vocabulary(inside_data, min_count=config.min_count)
    if not vocabulary.labels:
        raise UsageError("training: expected at least one label outside the held-out part, found none")
    if not vocabulary.events:
        raise UsageError(f"min_count: expected event types seen at least {config.min_count:,} times, found none")
    inside, held = (encode(part, vocabulary, max_length=config.max_length) for part in (inside_data, outside_data))
    shape = config.network(events=vocabulary.size, labels=len(vocabulary.labels), channels=len(dataset.channels))
    began = checkpoint_pieces(folder) if resume and memory is None else None  # a resumed run keeps its pieces
    plan = _plan_memory(shape, config, inside, held, memory, began)
    if on_plan is not None:
        on_plan(plan)
    pieces = TrainPieces(**plan.pieces)
    torch.manual_seed(config.seed)
    network = Network(shape)
    lists = None
    if network.shortlist is not None and not (resume and has_checkpoint(folder)):  # a checkpoint knows its own
        size = network.shortlist.types.shape[1]
        lists = boundary_lists(inside_data, vocabulary, size, workers=workers, on_list=on_list)
    trainer = Trainer(network, config, inside, held, folder, lists, pieces)
    history = trainer.fit(resume=resume, on_step=on_step)
    network.eval().requires_grad_(False)
    limits = config.max_length, config.min_context
    model = OscarModel(network, vocabulary, dataset.channels, *limits, pieces=Pieces(pieces.held_out))
    reference = reference_of(inside, held, outside_data.subject_ids, vocabulary)
    told = f"{len(held)} held-out sequences of the training dataset"
    quality = assess(model, held, reference, evaluated_on=told, fit=True)
    if trainer.accelerator.is_main_process:
        save_model(model, folder)
        write_json(folder / "quality.json", quality)
        inputs = inputs_of(dataset, config)
        write_json(
            folder / "training.json",
            {**_provenance(inside_data, config, trainer, history, begun, plan), "inputs": inputs},
        )
        write_json(folder / CHECKSUMS, checksums(folder, FILES))
        write_text(folder / CARD, _card(inputs, config, quality, network))
        remove_checkpoints(folder)
    return quality


def inputs_of(dataset: Dataset, config: TrainConfig) -> dict[str, Any]:
    """What of a dataset a model reads and what not, for `training.json`."""
    cut = np.maximum(dataset.lengths - config.max_length, 0)
    return {
        "channels": list(dataset.channels),
        "static_not_read": sorted({key for known in dataset.static() for key in known}),
        "min_context": config.fitted(dataset.lengths).min_context,
        "sequences_cut": int((cut > 0).sum()),
        "events_cut": int(cut.sum()),
    }


def input_words(inputs: Mapping[str, Any]) -> str:
    """The channels and static keys of `inputs_of` in one line."""
    channels = f"channels {', '.join(inputs['channels'])}" if inputs["channels"] else "no channels"
    unread = inputs["static_not_read"]
    words = f"static keys {', '.join(unread)} (stored, never read)" if unread else "nothing, there are no static keys"
    return f"reads events, times, {channels}; does not read {words}"


def _train_folds(dataset: Dataset, folder: Path, config: TrainConfig, count: int, **how: Any) -> dict[str, Any]:
    fold = subject_folds(dataset.subject_ids, count, seed=config.seed)
    vocabulary = build_vocabulary(dataset, min_count=config.min_count)  # shared, so that folds can be averaged
    qualities = []
    for k in range(count):
        if not (fold == k).any():
            raise UsageError(f"folds: fold {k} of {count} has no subject; use fewer folds")
        part = folder / f"fold-{k}"
        part.mkdir(exist_ok=True)
        qualities.append(train_one(dataset, fold == k, part, config, vocabulary=vocabulary, **how))
    if is_main_process():
        write_json(folder / "folds.json", {"kind": "folds", "format_version": 1, "folds": count, "seed": config.seed})
        write_json(folder / CHECKSUMS, checksums(folder, ["folds.json"]))
    return {"folds": qualities, "labels": _mean_scores([quality["labels"] for quality in qualities])}


def _mean_scores(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        average: {key: float(np.mean([part[average][key] for part in parts])) for key in parts[0][average]}
        for average in ("micro", "macro", "weighted")
    }


def _plan(dataset: Dataset, config: TrainConfig, folds: int | None) -> dict[str, Any]:
    """What must be the same when a run goes on after an interruption; it keeps the number of threads by itself."""
    counts = {"sequences": len(dataset), "events": len(dataset.events.ids), "digest": dataset.info.get("digest")}
    counts["sequences_sha256"] = None if dataset.path is None else sequences_sha256(dataset.path)
    decides = {"config": config.to_json(), "folds": folds, "dataset": counts}
    return {**decides, "versions": versions(), "threads": torch.get_num_threads()}


def _plan_memory(
    shape: NetworkConfig,
    config: TrainConfig,
    inside: Encoded,
    held: Encoded,
    memory: float | None,
    began: Mapping[str, Any] | None,
) -> Plan:
    """What training will take; `began`: pieces that are decided already."""
    state = processes()
    device = state.device.type
    cap = cap_bytes(memory, device, sharing=1 if device == "cuda" else state.num_processes)
    fixed = device == "cuda" or state.num_processes > 1
    work = TrainWork(
        shape, inside.events.lengths, held.events.lengths, config.batch_tokens // state.num_processes, device, fixed
    )
    return work.plan(cap) if began is None else work.estimate(TrainPieces(**began), cap)


def _provenance(
    dataset: Dataset,
    config: TrainConfig,
    trainer: Trainer,
    history: list[dict[str, float]],
    begun: float,
    plan: Plan,
) -> dict[str, Any]:
    return {
        "config": config.to_json(),
        "dataset": {"path": str(dataset.path) if dataset.path else None, "digest": dataset.info.get("digest")},
        "sequences": len(dataset),
        "subjects": pack_subjects(dataset.subject_ids),
        "history": history,
        "believed": trainer.run.believed,
        "steps": trainer.run.step,
        "tokens": trainer.run.tokens,
        "tokens_per_s": trainer.run.tokens / max(trainer.run.seconds, 1e-9),
        "seconds": time.time() - begun,
        "memory": plan.to_json(),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine(),
        "threads": torch.get_num_threads(),
        "versions": {**versions(), "python": platform.python_version()},
    }


def _card(inputs: Mapping[str, Any], config: TrainConfig, quality: dict[str, Any], network: Network) -> str:
    rows = quality["per_label"].values()
    trusted = sum(row["trusted"] for row in rows)
    weights = sum(parameter.numel() for parameter in network.parameters())
    return f"""# OSCAR model

Two densities in one network: the next event (Tf_x) and every label from each prefix (Tf_y).

- {weights:,} weights, preset `{config.preset}`, label form `{config.label_form}`, training `{config.scheme}`
- {network.config.events - 3:,} event types, {network.config.labels:,} labels
- {input_words(inputs)}
- labels are predicted from c = {config.min_context} events on; of longer sequences the last {config.max_length:,}
  are read ({inputs["events_cut"]:,} were cut off)
- held-out label F1: weighted {quality["labels"]["weighted"]["f1"]:.3f}, macro {quality["labels"]["macro"]["f1"]:.3f}
- {trusted} of {len(rows)} labels can be judged; the others are listed with the reason in `quality.json`

A verdict made with this model speaks about the direct effect of an event on the model's prediction. It speaks about
the world only as far as the model is right and the method's assumptions hold.
"""
